//! What each tool of a server seems to do, as lines for `servers.NAME.tools`.

use std::io::Write;

use mcp::describe::proposed;
use mcp::descriptions::hidden::spelled_out;
use serde_json::{Map, Value, json};

use super::{DONE, Failure, ProposeArgs, book, chosen};
use crate::places::Places;

pub(super) fn run(args: &ProposeArgs, places: &Places, out: &mut dyn Write) -> Result<u8, Failure> {
    chosen(places, Some(&args.server))?;
    let book = book(places, &args.server)?;
    let pinned = book.tools.iter().filter_map(|(name, tool)| {
        let definition = tool.approved.as_ref()?;
        Some((name, proposed(name, &definition.text)))
    });
    if args.json {
        let tools: Map<String, Value> = pinned
            .map(|(name, operations)| (name.clone(), json!(operations.map(|set| set.words()))))
            .collect();
        writeln!(out, "{:#}", json!({"server": args.server, "tools": tools}))?;
        return Ok(DONE);
    }
    writeln!(
        out,
        "# a proposal by names, schemas and annotations: read it, correct it, and put it under servers.{} in durward.yaml",
        args.server
    )?;
    writeln!(out, "tools:")?;
    for (name, operations) in pinned {
        // A name in quotes is one in YAML whatever is in it; JSON quotes it so.
        let name = json!(spelled_out(name));
        match operations {
            Some(operations) => writeln!(out, "  {name}: {}", operations.words())?,
            None => writeln!(
                out,
                "  # {name}: unknown, so that each call is judged as one that may do anything"
            )?,
        }
    }
    Ok(DONE)
}
