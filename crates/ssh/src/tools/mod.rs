//! The tools: what they are, which commands they run, and what they answer.

mod batch;
mod context;
mod definitions;
mod fan_out;
mod file;
mod forward;
mod jobs;
mod network;
mod run;
mod terminal;
mod transfer;

pub(crate) use batch::{of_batch, together};
pub(crate) use context::context;
pub(crate) use definitions::{Tool, all};
pub(crate) use fan_out::{
    Rolling, Round, hosts as fan_hosts, of_fan_out, stream_bytes_max as fan_stream_bytes_max,
};
pub(crate) use file::{FileAsked, normalised, of_file};
pub(crate) use jobs::{Named, of_job};
pub(crate) use network::answer as of_network;
pub(crate) use run::{answer, before, order, time};
pub(crate) use terminal::{of_terminal, size, typed, wanted};
pub(crate) use transfer::{Asked, edits, mode, of_directory, of_edit, of_transfer};

use serde_json::Value;
use toolkit::server::{Args, Unfit};

use crate::command::Command;

/// The commands that a call of a tool runs, in order; none where it runs none.
///
/// Whoever judges a call and whoever runs it ask here.
pub(crate) fn commands(tool: Tool, args: Args<'_>) -> Result<Vec<Command>, Unfit> {
    let read = |member: &str, line: &str| {
        Command::read(line).map_err(|fault| Unfit::member(member, fault.to_string()))
    };
    let of = |member: &str, argv: Vec<String>| {
        Command::of(argv).map_err(|fault| Unfit::member(member, fault.to_string()))
    };
    match tool {
        Tool::Run | Tool::JobStart | Tool::FanOut | Tool::TerminalOpen => {
            Ok(vec![read("command", args.text("command")?)?])
        }
        Tool::Hostname => Ok(vec![read("command", "hostname")?]),
        Tool::Batch => {
            let lines = args.get("commands").and_then(Value::as_array);
            lines
                .into_iter()
                .flatten()
                .filter_map(Value::as_str)
                .map(|line| read("commands", line))
                .collect()
        }
        Tool::CatFile => {
            let asked = FileAsked::read(args)?;
            Ok(vec![of("path", asked.argv())?])
        }
        Tool::Interfaces
        | Tool::Routes
        | Tool::Firewall
        | Tool::Qdisc
        | Tool::Connectivity
        | Tool::Compare => {
            let argvs = network::argvs(tool, args)?;
            argvs.into_iter().map(|argv| of("target", argv)).collect()
        }
        Tool::Connect
        | Tool::Disconnect
        | Tool::ListSessions
        | Tool::PoolStats
        | Tool::ReadOutput
        | Tool::Get
        | Tool::Put
        | Tool::ListDir
        | Tool::Edit
        | Tool::JobStatus
        | Tool::JobOutput
        | Tool::JobCancel
        | Tool::ForwardOpen
        | Tool::ForwardList
        | Tool::ForwardClose
        | Tool::TerminalSend
        | Tool::TerminalRead
        | Tool::TerminalClose => Ok(Vec::new()),
    }
}
