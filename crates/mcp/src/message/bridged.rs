//! What a server of the Legacy era is told and says where its client speaks the Modern one: the same, but for what only
//! one of them has.

use wire::jsonrpc::member;
use wire::revision::META_PROTOCOL_VERSION;
use wire::{Bounds, scan_reply, scan_request};

use crate::message::reply::place;
use crate::message::splice;

/// "Resource not found" in the Legacy era, and in the Modern one.
const NOT_FOUND: &str = "-32002";
const INVALID_PARAMS: &[u8] = b"-32602";

/// A request without the revision in its `_meta`, by which a server over HTTP would be spoken to otherwise. The rest of
/// `_meta` stays: it means nothing to its server, and says whom to ask for approval.
#[must_use]
pub fn without_revision(frame: &[u8]) -> Vec<u8> {
    let without = || {
        let scan = scan_request(frame, &Bounds::default()).ok()?;
        let raw = member(&scan.params, "_meta")?;
        let meta = scan_reply(raw.as_bytes(), &Bounds::default()).ok()?;
        let kept = meta
            .members
            .iter()
            .filter(|(name, _)| name != META_PROTOCOL_VERSION)
            .map(|(name, value)| format!("{}:{value}", serde_json::Value::from(&**name)));
        let meta = format!("{{{}}}", kept.collect::<Vec<_>>().join(","));
        let place = place(frame, raw)?;
        Some(splice::edited(frame, &mut [(place, meta.as_bytes())]))
    };
    without().unwrap_or_else(|| frame.to_vec())
}

/// A result with what the Modern era wants in each; `None` where it has that already, or is none.
#[must_use]
pub fn completed(result: &str) -> Option<String> {
    let scan = scan_reply(result.as_bytes(), &Bounds::default()).ok()?;
    let has = |name| member(&scan.members, name).is_some();
    if has("resultType") {
        return None;
    }
    let rest = result.trim_start().strip_prefix('{')?;
    // What was read may be another the next time: nothing is known of how long it holds.
    let cached = match has("contents") && !has("ttlMs") && !has("cacheScope") {
        true => ",\"ttlMs\":0,\"cacheScope\":\"private\"",
        false => "",
    };
    let comma = match rest.trim_start().starts_with('}') {
        true => "",
        false => ",",
    };
    Some(format!(
        "{{\"resultType\":\"complete\"{cached}{comma}{rest}"
    ))
}

/// An error under the code that the Modern era has for it; `None` where that is the same.
#[must_use]
pub fn error(error: &str) -> Option<String> {
    let scan = scan_reply(error.as_bytes(), &Bounds::default()).ok()?;
    let code = member(&scan.members, "code").filter(|code| *code == NOT_FOUND)?;
    let place = place(error.as_bytes(), code)?;
    let changed = splice::edited(error.as_bytes(), &mut [(place, INVALID_PARAMS)]);
    String::from_utf8(changed).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_revision_is_left_out() {
        let frame = |meta: &str| {
            format!(r#"{{"id":1,"method":"tools/call","params":{{"name":"a","_meta":{meta}}}}}"#)
        };
        let without =
            |meta: &str| String::from_utf8(without_revision(frame(meta).as_bytes())).unwrap();
        let version = r#""io.modelcontextprotocol/protocolVersion":"2026-07-28""#;
        let rest = r#""progressToken":7,"x\"y":[1,2]"#;
        assert_eq!(
            without(&format!("{{{version},{rest}}}")),
            frame(&format!("{{{rest}}}"))
        );
        assert_eq!(
            without(&format!("{{{rest}}}")),
            frame(&format!("{{{rest}}}"))
        );
        assert_eq!(without(&format!("{{{version}}}")), frame("{}"));
        let none = r#"{"id":1,"method":"tools/list"}"#;
        assert_eq!(without_revision(none.as_bytes()), none.as_bytes());
    }

    #[test]
    fn results_and_errors_are_those_of_the_other_revision() {
        let cases = [
            (r#"{}"#, Some(r#"{"resultType":"complete"}"#)),
            (
                r#"{"content":[]}"#,
                Some(r#"{"resultType":"complete","content":[]}"#),
            ),
            (
                r#"{"contents":[]}"#,
                Some(r#"{"resultType":"complete","ttlMs":0,"cacheScope":"private","contents":[]}"#),
            ),
            (r#"{"resultType":"task"}"#, None),
            ("7", None),
        ];
        for (result, expect) in cases {
            assert_eq!(completed(result).as_deref(), expect, "{result}");
        }
        assert_eq!(
            error(r#"{"code":-32002,"message":"-32002"}"#).as_deref(),
            Some(r#"{"code":-32602,"message":"-32002"}"#)
        );
        assert_eq!(error(r#"{"code":-32601,"message":"no"}"#), None);
    }
}
