//! Whether the arguments that a server executed are those that the gate judged.

use mocks::ambiguous::AmbiguousFrame;
use serde_json::Value;
use wire::jsonrpc::member;
use wire::{Bounds, scan_request};

/// Whether a line of the book has the arguments of its frame. A server may leave out what its tool does
/// not know; it may not have anything else.
pub fn same_arguments(line: &Value, frame: &AmbiguousFrame) -> bool {
    // A newline makes two frames of one; each was judged for itself.
    let own = frame
        .bytes
        .split(|byte| *byte == b'\n')
        .next()
        .unwrap_or_default();
    if own.trim_ascii_start().starts_with(b"[") {
        let batch: Vec<Value> = serde_json::from_slice(own).unwrap_or_default();
        let mut arguments = batch.iter().map(|call| call.pointer("/params/arguments"));
        return arguments
            .any(|judged| judged.is_some_and(|judged| is_of(&line["arguments"], judged)));
    }
    // What the writer refuses never leaves as a canonical frame; until then the scan is what counts.
    let Ok(scan) = scan_request(own, &Bounds::default()) else {
        return false;
    };
    let Some(arguments) = member(&scan.params, "arguments") else {
        return false;
    };
    let judged: Value = serde_json::from_str(arguments).unwrap();
    is_of(&line["arguments"], &judged)
}

/// Whether a server's reading of a value is that value.
fn is_of(executed: &Value, judged: &Value) -> bool {
    match (executed, judged) {
        (Value::Object(executed), Value::Object(judged)) => executed
            .iter()
            .all(|(name, value)| judged.get(name).is_some_and(|judged| is_of(value, judged))),
        (Value::Array(executed), Value::Array(judged)) => {
            let mut pairs = executed.iter().zip(judged);
            executed.len() == judged.len()
                && pairs.all(|(executed, judged)| is_of(executed, judged))
        }
        (Value::String(executed), Value::String(judged)) => executed == judged,
        // Go and Python write them down as floats.
        (Value::Number(executed), Value::Number(judged)) => {
            let numbers = executed.as_f64().zip(judged.as_f64());
            // The reader of this test may be off by one in the last place.
            numbers.is_some_and(|(a, b)| (a - b).abs() <= a.abs() * 2.0 * f64::EPSILON)
        }
        // JSON in a string is judged as what it holds.
        (Value::Array(_) | Value::Object(_), Value::String(text)) => {
            let held: Option<Value> = serde_json::from_str(text).ok();
            held.is_some_and(|held| is_of(executed, &held))
        }
        (Value::Array(_) | Value::Object(_), _) | (_, Value::Array(_) | Value::Object(_)) => false,
        // Of one kind of scalar another was made: "1" and 1, "yes" and true.
        _ => !executed.is_string() || !judged.is_string(),
    }
}
