//! `durward reload`: asks running instances, over their control sockets.

use std::io::Write;

use admin::reload::{self, InstanceReload, ReloadAnswer};
use clap::Args;

use crate::failure::{self, CommandFamily};
use crate::layout;
use crate::places::Places;

pub const HELP: &str = "\
Examples:
  durward reload                    every running instance of this user
  durward reload --server files     those that guard this server

An instance reads its policy and its configuration again. If a file is invalid, the last good one stays in force.
Changed files are reloaded by themselves within a second, unless --no-watch was given.

Exit codes: 0 every instance reloaded; 1 one of them could not; 2 no instance could be asked.";

/// An instance could not reload.
const EXIT_REFUSED: u8 = 1;

/// Arguments of `durward reload`.
#[derive(Debug, Args)]
pub struct ReloadArgs {
    /// Only instances that guard this server
    #[arg(long, value_name = "NAME", value_parser = crate::names::server_name)]
    server: Option<String>,
    /// Print one JSON array
    #[arg(long)]
    json: bool,
}

/// Reloads and prints; returns the exit code.
pub fn run(args: &ReloadArgs, places: &Places, out: &mut dyn Write, err: &mut dyn Write) -> u8 {
    let report = reload::reload(&places.runtime, args.server.as_deref());
    for warning in &report.warnings {
        let _ = writeln!(err, "warning: {warning}");
    }
    let instances = match report.instances {
        Ok(instances) => instances,
        Err(error) => {
            let _ = writeln!(err, "error: {error}");
            return failure::exit_code(CommandFamily::Reload, error.kind());
        }
    };
    // A reader that has seen enough closes the pipe.
    let _ = match args.json {
        true => layout::json(&instances, out),
        false => print(&instances, out, err),
    };
    let is_refused = |own: &InstanceReload| matches!(own.outcome, ReloadAnswer::Error(_));
    match instances.iter().any(is_refused) {
        true => EXIT_REFUSED,
        false => 0,
    }
}

fn print(
    instances: &[InstanceReload],
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> std::io::Result<()> {
    for InstanceReload {
        server, outcome, ..
    } in instances
    {
        let in_force = match outcome {
            ReloadAnswer::InForce(in_force) => in_force,
            ReloadAnswer::Error(error) => {
                let _ = writeln!(
                    err,
                    "error: {server}: {error}\n  the earlier rules and settings stay in force"
                );
                continue;
            }
        };
        writeln!(
            out,
            "{server}: policy {} in force, digest {}",
            in_force.version.as_deref().unwrap_or("?"),
            in_force.digest.as_deref().unwrap_or("?")
        )?;
        if !in_force.needs_restart.is_empty() {
            let keys = in_force.needs_restart.join(", ");
            writeln!(out, "  changed, and needs a restart: {keys}")?;
        }
    }
    Ok(())
}
