//! Repairs two deviations of clients that write JSON without types, as those of the Tcl kit for SSH do.
//!
//! Both have one possible meaning, and what is judged and sent is the repaired frame. Everything else is
//! refused as before.

use crate::scan::{Bounds, scan_reply};

/// The revision of a client that names none: the first one.
const FIRST_REVISION: &str = r#""protocolVersion":"2024-11-05""#;

/// Returns the frame with `"jsonrpc": 2.0` as a string and with a `protocolVersion` in `initialize`; `None` if neither
/// is amiss, or if the frame is not one JSON object.
#[must_use]
pub fn repair(frame: &[u8]) -> Option<Vec<u8>> {
    let text = std::str::from_utf8(frame).ok()?;
    let scan = scan_reply(frame, &Bounds::default()).ok()?;
    let member = |wanted: &str| {
        let mut found = scan.members.iter().filter(|(name, _)| name == wanted);
        // A name that is there twice is for the strict reader to refuse.
        found
            .next()
            .map(|(_, raw)| *raw)
            .filter(|_| found.next().is_none())
    };
    let at = |raw: &str| (raw.as_ptr() as usize).checked_sub(text.as_ptr() as usize);
    // Replacements of (offset, length), in the order of the frame.
    let mut edits: Vec<(usize, usize, String)> = Vec::new();
    if let Some(raw) = member("jsonrpc").filter(|raw| matches!(*raw, "2.0" | "2")) {
        edits.push((at(raw)?, raw.len(), r#""2.0""#.to_owned()));
    }
    if let Some(method) = member("method").filter(|raw| *raw == r#""initialize""#) {
        match member("params") {
            Some(params) if params.starts_with('{') => {
                let params_scan = scan_reply(params.as_bytes(), &Bounds::default()).ok()?;
                let mut names = params_scan.members.iter().map(|(name, _)| name);
                if !names.any(|name| name == "protocolVersion") {
                    let comma = if params_scan.members.is_empty() {
                        ""
                    } else {
                        ","
                    };
                    edits.push((at(params)? + 1, 0, format!("{FIRST_REVISION}{comma}")));
                }
            }
            Some(_) => {}
            None => {
                let end = at(method)? + method.len();
                edits.push((end, 0, format!(r#","params":{{{FIRST_REVISION}}}"#)));
            }
        }
    }
    if edits.is_empty() {
        return None;
    }
    edits.sort_unstable();
    let mut repaired = String::with_capacity(text.len() + 64);
    let mut from = 0;
    for (start, length, with) in edits {
        repaired.push_str(text.get(from..start)?);
        repaired.push_str(&with);
        from = start + length;
    }
    repaired.push_str(text.get(from..)?);
    Some(repaired.into_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn repaired(frame: &str) -> Option<String> {
        repair(frame.as_bytes()).map(|bytes| String::from_utf8(bytes).unwrap())
    }

    #[test]
    fn both_deviations_are_repaired_and_no_other_byte_changes() {
        for (frame, expected) in [
            (
                r#"{"jsonrpc":2.0,"id":1,"method":"tools/list"}"#,
                r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#,
            ),
            (
                r#"{"id":1, "method":"initialize","jsonrpc": 2 }"#,
                r#"{"id":1, "method":"initialize","params":{"protocolVersion":"2024-11-05"},"jsonrpc": "2.0" }"#,
            ),
            (
                r#"{"jsonrpc":2.0,"id":1,"method":"initialize","params":{ "clientInfo":{"name":"é","version":2.0}}}"#,
                r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2024-11-05", "clientInfo":{"name":"é","version":2.0}}}"#,
            ),
            (
                r#"{"params":{},"jsonrpc":"2.0","id":1,"method":"initialize"}"#,
                r#"{"params":{"protocolVersion":"2024-11-05"},"jsonrpc":"2.0","id":1,"method":"initialize"}"#,
            ),
        ] {
            assert_eq!(repaired(frame).as_deref(), Some(expected), "{frame}");
        }
    }

    #[test]
    fn everything_else_is_left_to_the_strict_reader() {
        for frame in [
            r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":2}}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","arguments":{"jsonrpc":2.0}}}"#,
            r#"{"jsonrpc":1.0,"id":1,"method":"ping"}"#,
            r#"{"jsonrpc":2.0,"jsonrpc":2.0,"id":1,"method":"ping"}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":[]}"#,
            r#"[{"jsonrpc":2.0}]"#,
            r#"{"jsonrpc":2.0"#,
            "",
        ] {
            assert_eq!(repaired(frame), None, "{frame}");
        }
    }
}
