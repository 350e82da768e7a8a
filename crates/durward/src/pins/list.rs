//! Servers, tools, and what waits.

use std::io::Write;

use gate::journal::format_utc;
use gate::pins::{Definition, PinFile, Tool};
use mcp::descriptions::hidden::spelled_out;
use serde_json::{Value, json};

use super::{DIFFERS, DONE, Failure, ListArgs, chosen, short};
use crate::places::Places;

pub(super) fn run(args: &ListArgs, places: &Places, out: &mut dyn Write) -> Result<u8, Failure> {
    let mut damaged = false;
    let mut servers = Vec::new();
    for server in chosen(places, args.server.as_deref())? {
        let file = PinFile::new(&places.pins(), &server);
        let book = file.and_then(|file| file.read());
        damaged |= book.is_err();
        servers.push((server, book));
    }
    if args.json {
        let servers: Vec<Value> = servers
            .iter()
            .map(|(server, book)| match book {
                Err(error) => {
                    json!({"server": server, "error": error.to_string(), "reason": error.fault().label()})
                }
                Ok(book) => {
                    let book = book.clone().unwrap_or_default();
                    let tools: Vec<Value> = book
                        .tools
                        .iter()
                        .map(|(name, tool)| entry(name, tool))
                        .collect();
                    json!({"server": server, "complete": book.complete, "tools": tools})
                }
            })
            .collect();
        writeln!(out, "{:#}", json!({ "servers": servers }))?;
        return Ok(if damaged { DIFFERS } else { DONE });
    }
    if servers.is_empty() {
        writeln!(
            out,
            "no pins yet: the tools of a server are pinned when a client first lists them"
        )?;
    }
    for (server, book) in &servers {
        match book {
            Err(error) => writeln!(out, "{server}  {error}")?,
            Ok(book) => {
                let book = book.clone().unwrap_or_default();
                let waiting = book.waiting().count();
                let more = if book.complete {
                    ""
                } else {
                    ", list not complete"
                };
                writeln!(
                    out,
                    "{server}  {}, {waiting} waiting{more}",
                    match book.tools.len() {
                        1 => "1 tool".to_owned(),
                        several => format!("{several} tools"),
                    }
                )?;
                let all = args.server.is_some();
                for (name, tool) in &book.tools {
                    if all || tool.waiting.is_some() {
                        line(name, tool, out)?;
                    }
                }
            }
        }
    }
    Ok(if damaged { DIFFERS } else { DONE })
}

fn line(name: &str, tool: &Tool, out: &mut dyn Write) -> std::io::Result<()> {
    let name = spelled_out(name);
    let told = |what: &str, definition: &Definition| {
        format!(
            "{what} {} {}",
            short(&definition.digest),
            format_utc(definition.time_ms)
        )
    };
    match (&tool.approved, &tool.waiting) {
        (Some(approved), None) => writeln!(out, "  {name}  {}", told("approved", approved)),
        (Some(approved), Some(waiting)) => writeln!(
            out,
            "  {name}  CHANGED  {}  {}",
            told("approved", approved),
            told("seen", waiting)
        ),
        (None, Some(waiting)) => writeln!(out, "  {name}  NEW  {}", told("seen", waiting)),
        (None, None) => writeln!(out, "  {name}"),
    }
}

fn entry(name: &str, tool: &Tool) -> Value {
    let told = |definition: &Option<Definition>| {
        definition
            .as_ref()
            .map(|d| json!({"digest": d.digest, "time": format_utc(d.time_ms)}))
    };
    json!({
        "tool": name,
        "approved": told(&tool.approved),
        "waiting": told(&tool.waiting),
    })
}
