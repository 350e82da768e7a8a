//! Read-only lists and documents: loaded simulations, model files, the schemas of the tools, the capabilities of this
//! version.

use http::header::{ETAG, IF_NONE_MATCH, LAST_MODIFIED};
use http::request::Parts;
use http::{HeaderValue, StatusCode};
use net::http::server::{Request, Response, ResponseBody};
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};
use toolkit::face::Behalf;

use super::answer::PendingAnswer;
use super::openapi::{answers, content, document, in_path, query};
use super::{RestFace, body};
use crate::fault::{Fault, Kind};
use crate::models::{EXTENSIONS, hex};
use crate::tools::{TOOLS, Tool, schema, tool};
use crate::{BACKEND, CONTRACT};

/// Path of the endpoint.
pub(super) const RESOURCES: &str = "/mcp/resources";
/// A document: its name, and what makes it of the name of the engine.
type Document = (&'static str, fn(&str) -> Value);

/// Lists that are a tool's: the name, the tool, and the member of its result that has the items.
const LISTS: [(&str, &str, &str); 3] = [
    ("simulations", "list_simulations", "items"),
    ("parameters", "list_parameters", "parameters"),
    ("models", "discover_models", "items"),
];
/// Documents of this version, which are the same for everybody.
const DOCUMENTS: [Document; 3] = [
    ("capability-matrix", capabilities),
    ("contract-manifest", contract),
    ("release-bundle-manifest", release),
];
/// Default and largest number of members of a page.
const PAGE: (u64, u64) = (100, 500);
/// A page of a list.
const SHAPE: &str = "{items [o], page i, limit i, total i}";
/// Longest id of a schema, in characters.
const SCHEMA_ID_CHARS_MAX: usize = 128;

impl RestFace {
    /// Answers a path below [`RESOURCES`].
    pub(super) async fn resource(
        &self,
        path: &str,
        behalf: Behalf<'_>,
        request: &Request,
        answering: &PendingAnswer,
    ) -> Result<Response, Fault> {
        let name = path.strip_prefix(RESOURCES).unwrap_or_default();
        let name = name.strip_prefix('/').unwrap_or_default();
        let listed = LISTS.iter().find(|(known, ..)| *known == name);
        let told = if let Some((_, of, items)) = listed {
            self.list(of, items, behalf, &request.head).await?
        } else if let Some((_, make)) = DOCUMENTS.iter().find(|(known, _)| *known == name) {
            let service = crate::service::last_served(&self.server);
            let over_r = service.is_some_and(|service| service.over_r().is_some());
            make(if over_r { "ospsuite" } else { BACKEND })
        } else if name == "schemas" {
            let all = self.schemas(behalf).await?.into_iter();
            let items: Vec<Value> = all
                .map(|(id, schema)| json!({"id": id, "title": schema.get("title"), "sha256": digest(&schema)}))
                .collect();
            paged(items, &request.head)?
        } else if let Some(wanted) = name.strip_prefix("schemas/") {
            let wanted = crate::percent::decoded(wanted);
            let mut all = self.schemas(behalf).await?.into_iter();
            let found = all.find(|(id, _)| *id == wanted).ok_or_else(|| {
                let none = format!("there is no schema '{}'", wanted.escape_debug());
                Fault::missing("id", none).hint(format!("{RESOURCES}/schemas lists them"))
            })?;
            json!({"id": found.0, "schema": found.1})
        } else {
            return Err(Fault::new(Kind::NotFound, "nothing is here"));
        };
        // A list is as old as its newest member; members without a time are as old as this process.
        let items = told.get("items").and_then(Value::as_array);
        let times = items
            .into_iter()
            .flatten()
            .filter_map(|item| item.get("modifiedAt")?.as_str());
        let newest = times.filter_map(gate::journal::parse_utc).max();
        Ok(dated_answer(
            &told,
            newest.unwrap_or(self.since_ms),
            &request.head,
            answering,
        ))
    }

    /// Returns a list that a tool gives, by the query's arguments.
    async fn list(
        &self,
        of: &str,
        items: &str,
        behalf: Behalf<'_>,
        head: &Parts,
    ) -> Result<Value, Fault> {
        let tool = find_tool(of)?;
        let mut asked = body::typed_query(head, &tool.plain_input_schema())?;
        if let Some(asked) = asked.as_object_mut() {
            asked.entry("page").or_insert_with(|| 1.into());
            asked.entry("limit").or_insert_with(|| PAGE.0.into());
        }
        let told = self.call(tool, behalf, asked, false).await?;
        let all = told.get(items).and_then(Value::as_array);
        let all = all
            .into_iter()
            .flatten()
            .map(|item| match item.is_string() {
                true => json!({"path": item}),
                false => item.clone(),
            });
        let of = |name: &str| told.get(name).cloned().unwrap_or_default();
        Ok(json!({
            "items": all.collect::<Vec<Value>>(), "page": of("page"), "limit": of("limit"), "total": of("total"),
        }))
    }

    /// Returns the schemas of the tools that the caller may see, by id.
    async fn schemas(&self, behalf: Behalf<'_>) -> Result<Vec<(String, Value)>, Fault> {
        let listed = self.visible_tools(behalf).await?;
        let mut all = Vec::new();
        for (tool, listed) in listed {
            for (member, kind) in [("inputSchema", "input"), ("outputSchema", "output")] {
                if let Some(schema) = listed.get(member) {
                    let mut schema = schema.clone();
                    if let Some(members) = schema.as_object_mut() {
                        members.insert(
                            "title".to_owned(),
                            format!("{} ({kind})", tool.title).into(),
                        );
                    }
                    all.push((format!("{}.{kind}", tool.name), schema));
                }
            }
        }
        Ok(all)
    }
}

fn find_tool(name: &str) -> Result<&'static Tool, Fault> {
    tool(name).ok_or_else(|| Fault::missing("tool", format!("there is no tool {name}")))
}

/// Returns a part of a list, by the query's `page` and `limit`.
fn paged(items: Vec<Value>, head: &Parts) -> Result<Value, Fault> {
    body::only(head, &["page", "limit"])?;
    let number = |name: &str, usual: u64, most: u64| match body::query_value(head, name)? {
        None => Ok(usual),
        Some(text) => {
            let number = text
                .parse()
                .ok()
                .filter(|number| (1..=most).contains(number));
            number.ok_or_else(|| {
                Fault::input(name, format!("{name} has to be a number from 1 to {most}"))
                    .code("value_error")
            })
        }
    };
    let (page, limit) = (
        number("page", 1, 1_000_000)?,
        number("limit", PAGE.0, PAGE.1)?,
    );
    let skip = usize::try_from((page - 1) * limit).unwrap_or(usize::MAX);
    let take = usize::try_from(limit).unwrap_or(usize::MAX);
    let total = items.len();
    let items: Vec<Value> = items.into_iter().skip(skip).take(take).collect();
    Ok(json!({"items": items, "page": page, "limit": limit, "total": total}))
}

fn digest(value: &Value) -> String {
    hex(&Sha256::digest(value.to_string().as_bytes()))
}

/// Returns an answer with a tag of its content and a date; only the tag if the client has that content already.
fn dated_answer(
    told: &Value,
    modified_ms: i64,
    head: &Parts,
    answering: &PendingAnswer,
) -> Response {
    let digest = digest(told);
    let tag = format!("W/\"{}\"", digest.get(..32).unwrap_or_default());
    let held = body::header(head, IF_NONE_MATCH.as_str()).unwrap_or_default();
    let mut response = match held
        .split(',')
        .any(|held| held.trim() == tag || held.trim() == "*")
    {
        true => {
            let mut response = http::Response::new(ResponseBody::default());
            *response.status_mut() = StatusCode::NOT_MODIFIED;
            answering.with(response)
        }
        false => answering.json(200, told),
    };
    let headers = response.headers_mut();
    for (name, value) in [(ETAG, tag), (LAST_MODIFIED, http_date(modified_ms))] {
        if let Ok(value) = HeaderValue::from_str(&value) {
            headers.insert(name, value);
        }
    }
    response
}

/// Returns a date as headers have it (RFC 9110, IMF-fixdate).
fn http_date(ms: i64) -> String {
    const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
    const MONTHS: [&str; 12] = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ];
    let utc = gate::journal::format_utc(ms);
    let part = |from: usize, to: usize| utc.get(from..to).unwrap_or_default();
    let month = part(5, 7).parse::<usize>().unwrap_or(1);
    let month = MONTHS
        .get(month.saturating_sub(1))
        .copied()
        .unwrap_or_default();
    let day = usize::try_from(ms.div_euclid(86_400_000).rem_euclid(7)).unwrap_or_default();
    let day = DAYS.get(day).copied().unwrap_or_default();
    let (date, year, time) = (part(8, 10), part(0, 4), part(11, 19));
    format!("{day}, {date} {month} {year} {time} GMT")
}

/// What can be done with a file of each kind.
fn capabilities(backend: &str) -> Value {
    let is_native = backend == BACKEND;
    let format = |extension: &&str| {
        json!({
            "runtimeFormat": extension, "backend": backend, "load": true, "parameters": true, "run": true,
            "population": true, "sensitivity": true, "fit": is_native, "plots": true, "cancellation": true,
        })
    };
    let refused = |extension: &str, why: &str| json!({"runtimeFormat": extension, "load": false, "reason": why});
    let read = EXTENSIONS
        .iter()
        .filter(|extension| is_native || **extension == "pkml");
    let mut not_read = vec![
        refused("R", "a model in R needs rxode2, which is not used"),
        refused(
            "pksim5",
            "a project holds models and is none: export a .pkml",
        ),
    ];
    if !is_native {
        not_read.push(refused("xml", "the package ospsuite reads .pkml only"));
    }
    json!({
        "contractVersion": CONTRACT, "formats": read.map(format).collect::<Vec<_>>(), "refused": not_read,
    })
}

/// Returns the tools, and what their schemas are.
fn contract(_: &str) -> Value {
    let one = |tool: &Tool| {
        json!({
            "name": tool.name, "critical": tool.critical, "roles": tool.roles(),
            "inputSha256": digest(&tool.plain_input_schema()),
            "outputSha256": schema(tool.output).ok().map(|schema| digest(&schema)),
        })
    };
    let tools = TOOLS.iter().filter(|tool| tool.of_bridge).map(one);
    json!({"contractVersion": CONTRACT, "tools": tools.collect::<Vec<_>>()})
}

/// Which program this is, and what it says of itself.
fn release(backend: &str) -> Value {
    let documents = [
        ("/openapi.json", document().ok()),
        ("/mcp/resources/contract-manifest", Some(contract(backend))),
    ];
    let one = |(path, document): (&str, Option<Value>)| json!({"path": path, "sha256": document.map(|document| digest(&document))});
    json!({
        "service": "durward", "version": env!("CARGO_PKG_VERSION"), "contractVersion": CONTRACT,
        "engine": {"name": backend, "version": env!("CARGO_PKG_VERSION")},
        "documents": documents.into_iter().map(one).collect::<Vec<_>>(),
    })
}

/// Returns the paths as OpenAPI has them.
pub(super) fn documented() -> Map<String, Value> {
    let page = schema(SHAPE).unwrap_or_default();
    let operation = |id: &str, summary: &str, parameters: Value, body: &Value| {
        json!({"get": {
            "operationId": id.replace(['-', '/'], "_"), "summary": summary, "parameters": parameters,
            "responses": answers(200, summary, content("application/json", body)),
        }})
    };
    let mut paths = Map::new();
    for (name, of, _) in LISTS {
        let input = tool(of).map(Tool::plain_input_schema).unwrap_or_default();
        let title = tool(of).map_or("", |tool| tool.title);
        let told = operation(
            &format!("list_{name}_resource"),
            title,
            json!(query(&input)),
            &page,
        );
        paths.insert(format!("{RESOURCES}/{name}"), told);
    }
    let whole = |most: u64| json!({"type": "integer", "minimum": 1, "maximum": most});
    let pages = json!({"properties": {"page": whole(1_000_000), "limit": whole(PAGE.1)}});
    let schemas = operation(
        "schemas",
        "The schemas of the tools",
        json!(query(&pages)),
        &page,
    );
    paths.insert(format!("{RESOURCES}/schemas"), schemas);
    let object = json!({"type": "object"});
    let id = json!([in_path("id", SCHEMA_ID_CHARS_MAX)]);
    let one = operation("schema", "One schema", id, &object);
    paths.insert(format!("{RESOURCES}/schemas/{{id}}"), one);
    for (name, _) in DOCUMENTS {
        let told = operation(name, "A document of this version", json!([]), &object);
        paths.insert(format!("{RESOURCES}/{name}"), told);
    }
    paths
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_headers() {
        for (ms, expect) in [
            (0, "Thu, 01 Jan 1970 00:00:00 GMT"),
            (784_111_777_000, "Sun, 06 Nov 1994 08:49:37 GMT"),
            (1_709_209_800_999, "Thu, 29 Feb 2024 12:30:00 GMT"),
        ] {
            assert_eq!(http_date(ms), expect);
        }
    }

    #[test]
    fn documents_say_the_same_each_time() {
        for (name, make) in DOCUMENTS {
            assert_eq!(make(BACKEND), make(BACKEND), "{name}");
        }
        assert_eq!(contract(BACKEND)["tools"].as_array().unwrap().len(), 19);
    }
}
