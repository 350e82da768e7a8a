//! What a client is told of a refusal, whichever form it has.

use serde_json::Value;

/// The code of a refusal that is a JSON-RPC error.
pub(crate) const REFUSED_CODE: i32 = -31_001;

/// What is said of a refusal or a fault: the `data` of an error, or what a tool result with `isError` holds
/// beside its text.
pub(crate) fn told(answer: &Value) -> &Value {
    let result = &answer["result"];
    if result["isError"] != true {
        return &answer["error"]["data"];
    }
    match &result["structuredContent"] {
        Value::Null => &result["_meta"]["durward/refusal"],
        structured => structured,
    }
}

/// Whether the answer is a result of the server's.
pub(crate) fn is_passed(answer: &Value) -> bool {
    answer["result"].is_object() && told(answer).is_null()
}

/// The text that a model reads: of a refused tool call, which is a result with `isError`.
#[track_caller]
pub(crate) fn refusal_text(answer: &Value) -> &str {
    let result = &answer["result"];
    assert_eq!(result["isError"], true, "{answer}");
    result["content"][0]["text"].as_str().unwrap()
}
