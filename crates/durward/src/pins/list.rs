//! Servers, tools, and definitions that wait.

use std::io::Write;

use admin::pins::{self, PinnedDefinition, PinnedServer, PinnedTool};
use mcp::descriptions::hidden::spelled_out;

use super::{DIFFERS, DONE, Failure, ListArgs, short};
use crate::layout;
use crate::places::Places;
use crate::plural::count;

pub(super) fn run(args: &ListArgs, places: &Places, out: &mut dyn Write) -> Result<u8, Failure> {
    let pinned = pins::list(&places.pins(), args.server.as_deref())?;
    let mut servers = pinned.servers.iter();
    let code = match servers.any(|server| matches!(server, PinnedServer::Damaged { .. })) {
        true => DIFFERS,
        false => DONE,
    };
    if args.json {
        layout::json(&pinned, out)?;
        return Ok(code);
    }
    if pinned.servers.is_empty() {
        writeln!(
            out,
            "no pins yet: the tools of a server are pinned when a client first lists them"
        )?;
    }
    for server in &pinned.servers {
        match server {
            PinnedServer::Damaged { server, error, .. } => writeln!(out, "{server}  {error}")?,
            PinnedServer::Readable {
                server,
                complete,
                tools,
            } => {
                let waiting = tools.iter().filter(|tool| tool.waiting.is_some()).count();
                let more = match complete {
                    true => "",
                    false => ", list not complete",
                };
                let number = count(tools.len(), "tool");
                writeln!(out, "{server}  {number}, {waiting} waiting{more}")?;
                let all = args.server.is_some();
                for tool in tools {
                    if all || tool.waiting.is_some() {
                        print(tool, out)?;
                    }
                }
            }
        }
    }
    Ok(code)
}

fn print(tool: &PinnedTool, out: &mut dyn Write) -> std::io::Result<()> {
    let name = spelled_out(&tool.tool);
    let line = |what: &str, definition: &PinnedDefinition| {
        format!("{what} {} {}", short(&definition.digest), definition.time)
    };
    match (&tool.approved, &tool.waiting) {
        (Some(approved), None) => writeln!(out, "  {name}  {}", line("approved", approved)),
        (Some(approved), Some(waiting)) => writeln!(
            out,
            "  {name}  CHANGED  {}  {}",
            line("approved", approved),
            line("seen", waiting)
        ),
        (None, Some(waiting)) => writeln!(out, "  {name}  NEW  {}", line("seen", waiting)),
        (None, None) => writeln!(out, "  {name}"),
    }
}
