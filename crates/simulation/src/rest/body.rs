//! Readers of a request: its body, its query, its headers.

use http::request::Parts;
use net::http::server::Request;
use serde_json::{Map, Value};

use crate::fault::{Fault, Kind};
use crate::percent::decoded;

/// The words by which a header confirms.
const YES: [&str; 5] = ["true", "1", "yes", "y", "confirmed"];

/// Returns the body as an object.
pub(super) async fn object(request: &mut Request) -> Result<Value, Fault> {
    let body = request.read_body().await.map_err(|fault| {
        let kind = if fault.status().as_u16() == 408 {
            Kind::Timeout
        } else {
            Kind::InvalidInput
        };
        Fault::new(kind, fault.sentence())
    })?;
    let wrong = |what: String| Fault::input("body", what).code("value_error");
    if body.is_empty() {
        let what = "the body is empty, and has to be a JSON object";
        return Err(wrong(what.into()));
    }
    toolkit::face::object(&body)
        .map(Value::Object)
        .map_err(wrong)
}

/// Returns the query as an object of texts.
///
/// # Errors
/// [`Fault`] if a name is given twice: two readers may choose different ones.
pub(super) fn query(head: &Parts) -> Result<Value, Fault> {
    let pairs = head.uri.query().unwrap_or_default().split('&');
    let mut members = Map::new();
    for (name, value) in pairs.filter_map(|pair| pair.split_once('=')) {
        let name = decoded(name);
        if members.contains_key(&name) {
            let wrong = format!("'{}' is given twice in the query", name.escape_debug());
            return Err(Fault::input(&name, wrong).code("value_error"));
        }
        members.insert(name, decoded(value).into());
    }
    Ok(Value::Object(members))
}

/// Longest text of a query, in characters: encoded it has to fit into the head of a request.
pub(super) const QUERY_CHARS_MAX: usize = 512;

/// Returns the query as a tool takes it: members that its schema wants as whole numbers become numbers. Others stay
/// texts, which the tool refuses.
///
/// # Errors
/// [`Fault`] if a text is longer than [`QUERY_CHARS_MAX`].
pub(super) fn typed_query(head: &Parts, schema: &Value) -> Result<Value, Fault> {
    let mut asked = query(head)?;
    let properties = schema.get("properties").and_then(Value::as_object);
    for (name, value) in asked.as_object_mut().into_iter().flatten() {
        let wanted = properties.and_then(|all| all.get(name)?.get("type"));
        let is_whole = wanted.is_some_and(|kind| {
            kind == "integer"
                || kind
                    .as_array()
                    .is_some_and(|kinds| kinds.contains(&"integer".into()))
        });
        let chars = value.as_str().map_or(0, |text| text.chars().count());
        if chars > QUERY_CHARS_MAX {
            let wrong = format!("{name} has {chars} characters, more than {QUERY_CHARS_MAX}");
            return Err(Fault::input(name, wrong).code("value_error"));
        }
        let number = value.as_str().and_then(|text| text.parse::<i64>().ok());
        if let (true, Some(number)) = (is_whole, number) {
            *value = number.into();
        }
    }
    Ok(asked)
}

/// Rejects a query with other names than these, and offers the nearest one.
///
/// # Errors
/// [`Fault`] of the first unknown name, and as [`query`].
pub(super) fn only(head: &Parts, names: &[&str]) -> Result<(), Fault> {
    let asked = query(head)?;
    let mut members = asked.as_object().into_iter().flatten();
    let Some((name, _)) = members.find(|(name, _)| !names.contains(&name.as_str())) else {
        return Ok(());
    };
    let wrong = format!("the query does not take '{}'", name.escape_debug());
    let fault = Fault::input(name, wrong).code("unknown_argument");
    let near = pbpk::path::nearest(name, names.iter().copied(), 1);
    Err(match near.is_empty() {
        true => fault,
        false => fault.hint(format!("did you mean {}?", near.join(" or "))),
    })
}

/// One value of the query.
///
/// # Errors
/// As [`query`].
pub(super) fn query_value(head: &Parts, name: &str) -> Result<Option<String>, Fault> {
    let asked = query(head)?;
    let value = asked.get(name).and_then(Value::as_str);
    Ok(value.map(str::to_owned))
}

/// Returns a header that is text.
pub(super) fn header<'h>(head: &'h Parts, name: &str) -> Option<&'h str> {
    head.headers.get(name)?.to_str().ok().map(str::trim)
}

/// Returns whether the caller says that it means it: by a member of the body, or by a header.
pub(super) fn confirmed(body: &Value, member: &str, head: &Parts) -> bool {
    let said = match body.get(member) {
        Some(Value::Bool(said)) => *said,
        Some(Value::String(text)) => YES.contains(&text.trim().to_ascii_lowercase().as_str()),
        Some(Value::Number(number)) => number.as_i64() == Some(1),
        _ => false,
    };
    let header = header(head, "x-mcp-confirm").and_then(|all| all.split(',').next());
    said || header.is_some_and(|first| YES.contains(&first.trim().to_ascii_lowercase().as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn head(uri: &str, confirm: Option<&str>) -> Parts {
        let mut builder = http::Request::builder().uri(uri);
        if let Some(confirm) = confirm {
            builder = builder.header("X-MCP-Confirm", confirm);
        }
        builder.body(()).unwrap().into_parts().0
    }

    #[test]
    fn a_caller_confirms_by_body_or_header() {
        for (body, header, expect) in [
            (json!({"confirm": true}), None, true),
            (json!({"confirm": "yes"}), None, true),
            (json!({"confirm": 1}), None, true),
            (json!({"confirm": "no"}), None, false),
            (json!({"confirm": false}), Some("Confirmed, x"), true),
            (json!({}), Some("no, true"), false),
            (json!({}), None, false),
        ] {
            let said = confirmed(&body, "confirm", &head("/x", header));
            assert_eq!(said, expect, "{body} {header:?}");
        }
    }

    #[test]
    fn whole_numbers_of_a_query_are_numbers_where_the_tool_wants_them() {
        let schema = json!({"properties": {"n": {"type": ["integer", "null"]}, "m": {"type": "integer"}, "s": {"type": "string"}}});
        let asked = typed_query(&head("/x?n=7&m=x&s=8&other=9", None), &schema);
        let asked = asked.unwrap();
        assert_eq!(asked, json!({"n": 7, "m": "x", "s": "8", "other": "9"}));
        let long = format!("/x?s={}", "y".repeat(QUERY_CHARS_MAX + 1));
        assert!(typed_query(&head(&long, None), &schema).is_err());
    }

    #[test]
    fn unknown_names_of_a_query_are_refused_with_the_nearest_one() {
        assert!(only(&head("/x?format=csv", None), &["format"]).is_ok());
        let fault = only(&head("/x?fromat=csv", None), &["format"]).unwrap_err();
        assert_eq!(fault.details[0].field.as_deref(), Some("fromat"));
        assert_eq!(
            fault.details[0].hint.as_deref(),
            Some("did you mean format?")
        );
    }

    #[test]
    fn queries_are_decoded() {
        let asked = query(&head("/x?simulationId=a%20b%7Cc&n=1+2&odd=%zz", None));
        assert_eq!(
            asked.unwrap(),
            json!({"simulationId": "a b|c", "n": "1 2", "odd": "%zz"})
        );
        let twice = query(&head("/x?scope=a&scop%65=b", None));
        assert_eq!(
            twice.unwrap_err().message,
            "'scope' is given twice in the query"
        );
    }
}
