//! What each tool of a server seems to do, as lines for `servers.NAME.tools`.

use std::io::Write;

use admin::pins;
use mcp::descriptions::hidden::spelled_out;
use serde_json::json;

use super::{DONE, Failure, ProposeArgs};
use crate::layout;
use crate::places::Places;

pub(super) fn run(args: &ProposeArgs, places: &Places, out: &mut dyn Write) -> Result<u8, Failure> {
    let proposed = pins::propose(&places.pins(), &args.server)?;
    if args.json {
        layout::json(&proposed, out)?;
        return Ok(DONE);
    }
    writeln!(
        out,
        "# a proposal by names, schemas and annotations: read it, correct it, and put it under servers.{} in durward.yaml",
        args.server
    )?;
    writeln!(out, "tools:")?;
    for (name, words) in &proposed.tools {
        // A quoted name is valid YAML whatever it contains; JSON quotes it so.
        let name = json!(spelled_out(name));
        match words {
            Some(words) => writeln!(out, "  {name}: {words}")?,
            None => writeln!(
                out,
                "  # {name}: unknown, so that each call is judged as one that may do anything"
            )?,
        }
    }
    Ok(DONE)
}
