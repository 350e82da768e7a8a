//! What comes as the body of a request.

use serde_json::{Map, Value};
use wire::{Bounds, scan_request};

/// A body that is a JSON object, with no name twice in any object of it: readers differ in which of the two they take.
///
/// # Errors
/// What is wrong, as a sentence.
pub fn object(body: &[u8]) -> Result<Map<String, Value>, String> {
    let wrong = |error: &dyn std::fmt::Display| format!("the body is not JSON: {error}");
    scan_request(body, &Bounds::default()).map_err(|error| wrong(&error))?;
    match serde_json::from_slice(body) {
        Ok(Value::Object(members)) => Ok(members),
        Ok(_) => Err("the body has to be a JSON object".to_owned()),
        Err(error) => Err(wrong(&error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_is_an_object_and_each_name_stands_once() {
        let read = |body: &str| object(body.as_bytes());
        assert_eq!(read(r#"{"a":{"b":1},"c":{"b":2}}"#).unwrap().len(), 2);
        for (body, wrong) in [
            ("[]", "the body has to be a JSON object"),
            ("7", "the body has to be a JSON object"),
            ("", "the body is not JSON"),
            (r#"{"a":NaN}"#, "the body is not JSON"),
            (
                r#"{"a":1e999}"#,
                "the body is not JSON: number out of range",
            ),
            (r#"{"a":1,"a":1}"#, "twice"),
            (r#"{"a":1,"\u0061":1}"#, "twice"),
            (r#"{"x":[{"a":1,"a":2}]}"#, "twice"),
        ] {
            let told = read(body).unwrap_err();
            assert!(told.contains(wrong), "{body}: {told}");
        }
        let deep = "{\"a\":".repeat(3_000);
        assert!(read(&deep).is_err());
    }
}
