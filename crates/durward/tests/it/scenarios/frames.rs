//! How the table writes frames: what an era adds to every message, and what differs from run to run, by name.

use super::cell::{Cell, Edge, Era, Peer};
use super::row::Row;

/// The capabilities that every client of the table declares, as the raw clients do.
const MODERN_META: &str = r#""io.modelcontextprotocol/clientCapabilities":{"elicitation":{},"roots":{},"sampling":{}},"io.modelcontextprotocol/clientInfo":{"name":"raw-client","version":"1"},"io.modelcontextprotocol/protocolVersion":"2026-07-28""#;

/// Fills in a frame of the table for one cell.
///
/// - `{meta}`: what the era adds at the end of a request's `params`: in the Modern era its `_meta`.
/// - `{meta+token}`: the same with the progress token `p`, in both eras; `{meta+sent}`: as the server sees it.
/// - `{echoed:X}`: the result that says X back.
/// - `{refused|TEXT|MEMBERS|}`: the result of a refused tool call.
/// - `{done}`: what the era adds at the end of a result of the row's mock; `{done+cached}`: of a list;
///   `{asks}`: of a result that asks the client; `{inside}` and `{complete}`: in one of the built-in server.
/// - `{id:X}`: the id of a request as the server sees it: the client's spelling over stdio, a number of
///   ours over HTTP, where clients may share a server.
pub(crate) fn fill(text: &str, row: &Row, cell: Cell) -> String {
    let text = &refused(&said(text, row, cell), cell);
    let text = &stated(&echoed(text, row, cell), cell);
    let modern = cell.era == Era::Modern;
    let meta = |members: &str| match (modern, members) {
        (true, "") => format!(r#","_meta":{{{MODERN_META}}}"#),
        (true, members) => format!(r#","_meta":{{{members},{MODERN_META}}}"#),
        (false, "") => String::new(),
        (false, members) => format!(r#","_meta":{{{members}}}"#),
    };
    let sent = match cell.edge {
        Edge::Stdio => r#""progressToken":"p""#,
        Edge::Http => r#""progressToken":OURS"#,
    };
    let (name, title) = match row.server[0] {
        "echo" => ("mock-echo", "Echo"),
        "files" => ("mock-files", "Files"),
        "hostile" => ("mock-hostile", "Hostile"),
        _ => ("mock-conformance", "Conformance fixtures"),
    };
    let version = env!("CARGO_PKG_VERSION");
    let done = |kind: &str, members: &str| {
        let server = format!(r#"{{"name":"{name}","title":"{title}","version":"{version}"}}"#);
        let info = format!(r#""_meta":{{"io.modelcontextprotocol/serverInfo":{server}}}"#);
        match modern {
            true => format!(r#","resultType":"{kind}",{members}{info}"#),
            false => String::new(),
        }
    };
    let (inside, complete) = match modern {
        true => (format!("{INSIDE_META},"), r#""resultType":"complete","#),
        false => (String::new(), ""),
    };
    let cached = r#""ttlMs":60000,"cacheScope":"private","#;
    let text = text
        .replace("{meta}", &meta(""))
        .replace("{meta+token}", &meta(r#""progressToken":"p""#))
        .replace("{meta+sent}", &meta(sent))
        .replace("{done}", &done("complete", ""))
        .replace("{done+cached}", &done("complete", cached))
        .replace("{asks}", &done("input_required", ""))
        .replace("{inside}", &inside)
        .replace("{complete}", complete);
    ids(&text, cell)
}

/// A text of the table in the words of the cell's server.
pub(crate) fn said(text: &str, row: &Row, cell: Cell) -> String {
    let swaps = match cell.peer {
        Peer::Child | Peer::Http => &[][..],
        Peer::Builtin => row.inside,
    };
    swaps
        .iter()
        .fold(text.to_owned(), |text, (from, to)| text.replace(from, to))
}

/// What the built-in server adds at the beginning of a result in the Modern era.
pub(crate) const INSIDE_META: &str = concat!(
    r#""_meta":{"io.modelcontextprotocol/serverInfo":{"name":"echo","title":"Echo","version":""#,
    env!("CARGO_PKG_VERSION"),
    r#""}}"#
);

/// `{echoed:X}` in the words of the cell's server.
fn echoed(text: &str, row: &Row, cell: Cell) -> String {
    replaced(text, "{echoed:", |said| match (cell.peer, cell.era) {
        (Peer::Child | Peer::Http, _) => {
            format!(r#"{{"content":[{{"type":"text","text":"{said}"}}],"isError":false{{done}}}}"#)
        }
        (Peer::Builtin, era) => {
            let content = format!(r#""content":[{{"text":"{said}","type":"text"}}]"#);
            let data = format!(r#""structuredContent":{{"text":"{said}"}}"#);
            match era {
                Era::Legacy if row.legacy < "2025-06-18" => format!("{{{content}}}"),
                Era::Legacy => format!("{{{content},{data}}}"),
                Era::Modern => {
                    format!(r#"{{{INSIDE_META},{content},"resultType":"complete",{data}}}"#)
                }
            }
        }
    })
}

/// `{refused|TEXT|MEMBERS|}` in the words of the cell's era. Where the tool has an output schema, as those of the
/// built-in server have, or is not named, what is said of the refusal is in `_meta`.
fn refused(text: &str, cell: Cell) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, behind)) = rest.split_once("{refused|") {
        let (inner, after) = behind.split_once("|}").expect("{refused|…|} is closed");
        let (said, members) = inner.split_once('|').expect("TEXT|MEMBERS");
        let content = format!(r#""content":[{{"text":"{said}","type":"text"}}],"isError":true"#);
        let is_typed = cell.peer == Peer::Builtin && members.contains(r#""tool_name":"echo""#);
        let complete = match cell.era {
            Era::Legacy => "",
            Era::Modern => r#","resultType":"complete""#,
        };
        out.push_str(before);
        out.push_str(&if is_typed || members.contains(r#""tool_name":null"#) {
            format!(r#"{{"_meta":{{"durward/refusal":{{{members}}}}},{content}{complete}}}"#)
        } else {
            format!(r#"{{{content}{complete},"structuredContent":{{{members}}}}}"#)
        });
        rest = after;
    }
    out.push_str(rest);
    out
}

/// Adds what a built-in server states of its tools: a decision about one of them says so. Nothing else says what the
/// tools of the table do: no person approved their definitions.
fn stated(text: &str, cell: Cell) -> String {
    let is_tool = |tool: &&str| text.contains(&format!(" tool_name={tool} "));
    let is_known = ["echo", "add", "wait"].iter().any(is_tool);
    if cell.peer == Peer::Builtin && text.starts_with("decision ") && is_known {
        let kind = " resource_type=tool";
        return text.replace(kind, &format!(r#" operations=["read"]{kind}"#));
    }
    text.to_owned()
}

/// A text with something else for each `{NAME:X}`.
fn replaced(text: &str, open: &str, with: impl Fn(&str) -> String) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, behind)) = rest.split_once(open) {
        let (inner, after) = behind.split_once('}').expect("{NAME:X} is closed");
        out.push_str(before);
        out.push_str(&with(inner));
        rest = after;
    }
    out.push_str(rest);
    out
}

/// `{id:X}` for the cell's edge.
fn ids(text: &str, cell: Cell) -> String {
    replaced(text, "{id:", |id| match cell.edge {
        Edge::Stdio => id.to_owned(),
        Edge::Http => "OURS".to_owned(),
    })
}

/// A frame that the client received, without what differs from run to run.
pub(crate) fn of_client(frame: &str) -> String {
    // How long the built-in server has waited is as long as it took.
    const WAITED: &str = "waited_ms\\\":";
    let frame = nameless(frame);
    match frame.split_once(WAITED) {
        Some((before, behind)) => {
            let rest = behind.trim_start_matches(|c: char| c.is_ascii_digit());
            without_number(&format!("{before}{WAITED}N{rest}"), r#""waited_ms":"#)
        }
        None => frame,
    }
}

/// A frame that the server received, without what differs from run to run.
pub(crate) fn of_server(frame: &str, cell: Cell) -> String {
    let mut out = nameless(frame);
    if cell.edge == Edge::Http {
        for member in [r#""id":"#, r#""requestId":"#, r#""progressToken":"#] {
            out = without_number(&out, member);
        }
    }
    out
}

/// Ids of questions that wait for a person are random, and the time that is left is what it is.
fn nameless(frame: &str) -> String {
    const NAME: &str = "durward-approval-";
    const LEFT: &str = "approval, ";
    if let Some((before, behind)) = frame.split_once(LEFT) {
        let rest = behind.trim_start_matches(|c: char| c.is_ascii_digit());
        if rest.starts_with(" s left") {
            return format!("{before}{LEFT}N{rest}");
        }
    }
    let mut out = String::new();
    let mut rest = frame;
    while let Some((before, behind)) = rest.split_once(NAME) {
        out.push_str(before);
        out.push_str(NAME);
        out.push_str("ID");
        rest = behind.trim_start_matches(|c: char| c.is_ascii_alphanumeric());
    }
    out.push_str(rest);
    out
}

/// The first number behind a member's name, as `OURS`.
fn without_number(frame: &str, member: &str) -> String {
    let Some((before, behind)) = frame.split_once(member) else {
        return frame.to_owned();
    };
    let rest = behind.trim_start_matches(|c: char| c.is_ascii_digit());
    if rest.len() == behind.len() {
        return frame.to_owned();
    }
    format!("{before}{member}OURS{rest}")
}

/// A batch with its messages in the order of their bytes.
pub(crate) fn in_byte_order(frame: &str) -> String {
    let Ok(mut parts) = serde_json::from_str::<Vec<&serde_json::value::RawValue>>(frame) else {
        return frame.to_owned();
    };
    parts.sort_by_key(|part| part.get());
    let parts: Vec<&str> = parts.iter().map(|part| part.get()).collect();
    format!("[{}]", parts.join(","))
}
