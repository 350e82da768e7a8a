//! The paths as an OpenAPI document, made from the tables by which they are answered.

use serde_json::{Map, Value, json};

use super::body::QUERY_CHARS_MAX;
use super::paths::{ALL, RestPath};
use super::streams::{ID_CHARS_MAX, JOB_CHARS_MAX};
use super::{facade, streams};
use crate::fault::Kind;
use crate::population::CONTENT_TYPE as COLUMNS;
use crate::tools::{TOOLS, Tool, ToolFault, schema, tool};

/// Path of the document.
pub(super) const OPENAPI: &str = "/openapi.json";

/// Returns the document.
///
/// # Errors
/// [`ToolFault`] if a shape in this crate is wrong, which its tests rule out.
pub(super) fn document() -> Result<Value, ToolFault> {
    let mut paths = Map::new();
    for path in ALL {
        let method = path.method.as_str().to_ascii_lowercase();
        let known = paths.entry(path.path).or_insert_with(|| json!({}));
        if let Some(known) = known.as_object_mut() {
            known.insert(method, tool_path(path)?);
        }
    }
    paths.extend(super::resources::documented());
    paths.extend(super::audit::documented());
    paths.insert(facade::CAPABILITIES.to_owned(), capabilities());
    paths.insert(facade::LIST_TOOLS.to_owned(), list_tools());
    paths.insert(facade::CALL_TOOL.to_owned(), call_tool());
    paths.insert(format!("{}/{{jobId}}/events", streams::JOBS), events());
    let chunks = format!("{}/{{resultsId}}/chunks/{{chunkId}}", streams::CHUNKS);
    paths.insert(chunks, chunk()?);
    Ok(json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Durward: simulations", "version": env!("CARGO_PKG_VERSION"),
            "description": "Every call is judged by the rules and recorded in the journal as a call of its tool.",
        },
        "paths": paths,
        "components": {
            "schemas": {"Error": error()},
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer", "description": "An API key, where there are some."}},
        },
        "security": [{"key": []}, {}],
    }))
}

/// Returns a body of one type.
pub(super) fn content(kind: &str, schema: &Value) -> Value {
    json!({kind: {"schema": schema}})
}

/// Returns the answers of an operation: that of success, and the envelope for all else.
pub(super) fn answers(status: u16, about: &str, body: Value) -> Value {
    let failed = json!({
        "description": "It was refused, or failed; error.code says how.",
        "content": content("application/json", &json!({"$ref": "#/components/schemas/Error"})),
    });
    json!({status.to_string(): {"description": about, "content": body}, "default": failed})
}

fn error() -> Value {
    let codes: Vec<&str> = Kind::ALL.iter().map(|kind| kind.label()).collect();
    let text = json!({"type": "string"});
    json!({"type": "object", "required": ["error"], "properties": {"error": {
        "type": "object", "required": ["code", "message", "correlationId", "retryable"],
        "properties": {
            "code": {"type": "string", "enum": codes}, "message": text, "correlationId": text,
            "retryable": {"type": "boolean"},
            "details": {"type": "array", "items": {"type": "object", "required": ["issue"],
                "properties": {"issue": text, "field": text, "hint": text, "code": text}}},
        },
    }}})
}

/// Returns a path that is one tool.
fn tool_path(path: &RestPath) -> Result<Value, ToolFault> {
    let found =
        tool(path.tool).ok_or_else(|| ToolFault::new(format!("there is no tool {}", path.tool)))?;
    let (input, output) = (
        found.input_schema(),
        schema(path.answer.unwrap_or(found.output))?,
    );
    let mut ok = answers(
        path.status,
        found.title,
        content("application/json", &output),
    );
    let links = links(path.path);
    if !links.is_empty()
        && let Some(answer) = ok.get_mut(path.status.to_string())
        && let Some(members) = answer.as_object_mut()
    {
        members.insert("links".to_owned(), links.into());
    }
    let mut told = json!({
        "operationId": path.operation(), "summary": found.title,
        "description": found.about, "responses": ok,
    });
    let asked = match path.method {
        http::Method::GET => ("parameters", query(&input)),
        _ => (
            "requestBody",
            json!({"required": true, "content": content("application/json", &body(input, found.critical))}),
        ),
    };
    if let Some(members) = told.as_object_mut() {
        members.insert(asked.0.to_owned(), asked.1);
    }
    Ok(told)
}

/// Returns the arguments as a body; a word or a number confirms as well.
fn body(mut input: Value, critical: bool) -> Value {
    close(&mut input);
    match critical {
        true => with_required(input, "confirm", confirmation()),
        false => input,
    }
}

/// Closes every object with listed members to others.
fn close(schema: &mut Value) {
    let Some(members) = schema.as_object_mut() else {
        return;
    };
    if let Some(properties) = members.get_mut("properties").and_then(Value::as_object_mut) {
        properties.values_mut().for_each(close);
        members.insert("additionalProperties".to_owned(), false.into());
    }
    if let Some(items) = members.get_mut("items") {
        close(items);
    }
}

/// Returns an object with one more member that is required.
fn with_required(mut object: Value, name: &str, schema: Value) -> Value {
    let properties = object.get_mut("properties").and_then(Value::as_object_mut);
    properties.map(|all| all.insert(name.to_owned(), schema));
    let required = object.get_mut("required").and_then(Value::as_array_mut);
    if let Some(all) = required {
        all.push(name.into());
    }
    object
}

fn confirmation() -> Value {
    json!({
        "enum": [true, 1, "true", "1", "yes", "y", "confirmed"],
        "description": "Says that the caller means it; the header X-MCP-Confirm says the same.",
    })
}

/// Links from the answer of one operation to another: the answer's path, the other operation, the member that it takes,
/// and its pointer in the answer.
const LINKS: [(&str, &str, &str, &str); 14] = [
    (
        "/load_simulation",
        "list_parameters",
        "simulationId",
        "simulationId",
    ),
    (
        "/load_simulation",
        "get_parameter_value",
        "simulationId",
        "simulationId",
    ),
    (
        "/load_simulation",
        "set_parameter_value",
        "simulationId",
        "simulationId",
    ),
    (
        "/load_simulation",
        "run_simulation",
        "simulationId",
        "simulationId",
    ),
    (
        "/load_simulation",
        "run_population_simulation",
        "simulationId",
        "simulationId",
    ),
    (
        "/load_simulation",
        "snapshot_simulation",
        "simulationId",
        "simulationId",
    ),
    (
        "/snapshot_simulation",
        "restore_simulation",
        "simulationId",
        "snapshot/simulationId",
    ),
    ("/run_simulation", "get_job_status", "jobId", "jobId"),
    ("/run_simulation", "cancel_job", "jobId", "jobId"),
    (
        "/run_population_simulation",
        "get_job_status",
        "jobId",
        "jobId",
    ),
    ("/run_population_simulation", "cancel_job", "jobId", "jobId"),
    (
        "/get_job_status",
        "get_simulation_results",
        "resultsId",
        "resultHandle/resultsId",
    ),
    (
        "/get_job_status",
        "get_population_results",
        "resultsId",
        "resultHandle/resultsId",
    ),
    (
        "/get_job_status",
        "calculate_pk_parameters",
        "resultsId",
        "resultHandle/resultsId",
    ),
];

/// Returns the links from the answers of a path.
fn links(path: &str) -> Map<String, Value> {
    let of = LINKS.iter().filter(|(from, ..)| *from == path);
    of.map(|(_, to, member, at)| {
        let body = json!({*member: format!("$response.body#/{at}")});
        (
            (*to).to_owned(),
            json!({"operationId": to, "requestBody": body}),
        )
    })
    .collect()
}

/// Returns the arguments as members of the query. A text is shorter there than in a body.
pub(super) fn query(input: &Value) -> Value {
    let required = input.get("required").and_then(Value::as_array);
    let is_required = |name: &str| required.is_some_and(|all| all.iter().any(|one| one == name));
    let properties = input.get("properties").and_then(Value::as_object);
    let one = |(name, schema): (&String, &Value)| {
        let mut schema = schema.clone();
        let most = schema.get("maxLength").and_then(Value::as_u64);
        if let (Some(most), Some(members)) = (most, schema.as_object_mut()) {
            members.insert(
                "maxLength".to_owned(),
                most.min(QUERY_CHARS_MAX as u64).into(),
            );
        }
        json!({"name": name, "in": "query", "required": is_required(name), "schema": schema})
    };
    properties.into_iter().flatten().map(one).collect()
}

pub(super) fn in_path(name: &str, chars_max: usize) -> Value {
    let id =
        json!({"type": "string", "minLength": 1, "maxLength": chars_max, "pattern": NO_CONTROLS});
    json!({"name": name, "in": "path", "required": true, "schema": id})
}

/// Ids in paths have no control characters.
const NO_CONTROLS: &str = "^[^\\x00-\\x1f\\x7f-\\x9f]+$";

fn capabilities() -> Value {
    let object = content(
        "application/json",
        &json!({"type": "object", "required": ["transports", "adapter", "timeouts"]}),
    );
    json!({"get": {
        "operationId": "capabilities", "summary": "What the server can do, and whether a worker process solves a known model",
        "security": [], "responses": answers(200, "Its capabilities", object),
    }})
}

fn list_tools() -> Value {
    let tools = content(
        "application/json",
        &json!({"type": "object", "required": ["tools"], "properties": {"tools": {"type": "array"}}}),
    );
    json!({"get": {
        "operationId": "list_tools", "summary": "The tools that the caller may see",
        "responses": answers(200, "The tools", tools),
    }})
}

fn call_tool() -> Value {
    let one = |tool: &Tool| {
        let mut input = tool.plain_input_schema();
        close(&mut input);
        let has_required = input
            .get("required")
            .and_then(Value::as_array)
            .is_some_and(|all| !all.is_empty());
        if let (false, Some(members)) = (has_required, input.as_object_mut()) {
            members.insert("type".to_owned(), json!(["object", "null"]));
        }
        let mut asked = json!({"type": "object", "required": ["tool"], "properties": {
            "tool": {"const": tool.name},
            "arguments": input,
            "idempotencyKey": {"type": ["string", "null"], "minLength": 1, "maxLength": facade::KEY_CHARS_MAX},
        }});
        if has_required
            && let Some(required) = asked.get_mut("required").and_then(Value::as_array_mut)
        {
            required.push("arguments".into());
        }
        match tool.critical {
            true => with_required(asked, "critical", confirmation()),
            false => asked,
        }
    };
    let tools = TOOLS.iter().filter(|tool| tool.of_bridge);
    let asked = json!({"oneOf": tools.map(one).collect::<Vec<_>>()});
    let told = json!({"type": "object", "required": ["content", "isError", "tool", "structuredContent", "annotations"]});
    json!({"post": {
        "operationId": "call_tool", "summary": "Calls any tool",
        "requestBody": {"required": true, "content": content("application/json", &asked)},
        "responses": answers(200, "What the tool gave", content("application/json", &told)),
    }})
}

fn events() -> Value {
    // Readers make of a stream what they like: a text, or an object for each event.
    let stream = content("text/event-stream", &json!({}));
    json!({"get": {
        "operationId": "job_events",
        "summary": "One event for each change of a job's state, and events named progress between them, until it has ended",
        "parameters": [in_path("jobId", JOB_CHARS_MAX)], "responses": answers(200, "The events", stream),
    }})
}

fn chunk() -> Result<Value, ToolFault> {
    let found = tool("get_population_chunk")
        .ok_or_else(|| ToolFault::new("there are no chunks".to_owned()))?;
    let text = json!({"type": "string"});
    let mut bodies = content("application/json", &schema(found.output)?);
    if let Some(kinds) = bodies.as_object_mut() {
        kinds.insert("text/csv".to_owned(), json!({"schema": text}));
        kinds.insert(COLUMNS.to_owned(), json!({"schema": {}}));
    }
    let mut answers = answers(200, "The curves of some individuals", bodies);
    let part = json!({"description": "A range of the bytes of format=columns", "content": {COLUMNS: {"schema": {}}}});
    if let Some(known) = answers.as_object_mut() {
        known.insert("206".to_owned(), part);
        known.insert(
            "416".to_owned(),
            json!({"description": "The range lies behind the end."}),
        );
    }
    let format = json!({"name": "format", "in": "query", "schema": {"type": "string", "enum": ["json", "csv", "columns"]}});
    Ok(json!({"get": {
        "operationId": "chunk", "summary": found.title,
        "parameters": [in_path("resultsId", ID_CHARS_MAX), in_path("chunkId", ID_CHARS_MAX), format], "responses": answers,
    }}))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_path_that_is_answered_stands_in_the_document() {
        let document = document().unwrap();
        let paths = document["paths"].as_object().unwrap();
        for path in ALL {
            let method = path.method.as_str().to_ascii_lowercase();
            let told = &paths[path.path][&method];
            assert!(
                told["responses"][path.status.to_string()].is_object(),
                "{}",
                path.path
            );
            assert!(told["responses"]["default"].is_object(), "{}", path.path);
        }
        let mut named: Vec<&str> = ALL.iter().map(|path| path.path).collect();
        named.dedup();
        let resources = super::super::resources::documented().len();
        assert_eq!(paths.len(), named.len() + resources + 6);
        for path in paths.keys() {
            let asked = path.replace(['{', '}'], "");
            assert_eq!(super::super::routes::of(&asked), path);
        }
        let mut operations: Vec<&str> = ALL.iter().map(RestPath::operation).collect();
        operations.sort_unstable();
        operations.dedup();
        assert_eq!(
            operations.len(),
            ALL.len(),
            "each operation has a name of its own"
        );
        for (from, to, member, _) in LINKS {
            let target =
                &paths[&format!("/{to}")]["post"]["requestBody"]["content"]["application/json"];
            assert!(
                target["schema"]["properties"][member].is_object(),
                "{from} {to}"
            );
            assert!(ALL.iter().any(|path| path.path == from), "{from}");
        }
        let run = &paths["/run_simulation"]["post"]["requestBody"]["content"]["application/json"]["schema"];
        assert!(
            run["properties"]["confirm"].is_object()
                && run["properties"]["simulationId"].is_object(),
            "{run}"
        );
        let codes = document["components"]["schemas"]["Error"]["properties"]["error"]["properties"]
            ["code"]["enum"]
            .as_array()
            .unwrap();
        assert_eq!(codes.len(), Kind::ALL.len());
    }
}
