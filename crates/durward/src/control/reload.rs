//! `durward reload`: asks running instances, over their control sockets.

use std::io::Write;

use clap::Args;
use serde_json::{Value, json};

use crate::places::Places;
use admin::control::{Request, client};

pub const HELP: &str = "\
Examples:
  durward reload                    every running instance of this user
  durward reload --server files     those that guard this server

An instance reads its policy and its configuration again. If a file is invalid, the last good one stays in force.
Changed files are reloaded by themselves within a second, unless --no-watch was given.

Exit codes: 0 every instance reloaded; 1 one of them could not; 2 no instance could be asked.";

/// One of those asked could not take it up.
const EXIT_REFUSED: u8 = 1;
/// Nobody could be asked.
const EXIT_CANNOT: u8 = 2;

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

/// Asks and tells; gives the exit code.
pub fn run(args: &ReloadArgs, places: &Places, out: &mut dyn Write, err: &mut dyn Write) -> u8 {
    let mut found = client::instances(&places.runtime);
    for warning in &found.warnings {
        let _ = writeln!(err, "warning: {warning}");
    }
    let (mut told, mut refused) = (Vec::new(), false);
    for instance in &mut found.instances {
        let socket = instance.socket.display().to_string();
        let server = match instance.ask(&Request::Status, |_| {}) {
            Ok(status) => text(&status, "server"),
            Err(error) => {
                let _ = writeln!(err, "warning: {socket}: {error}");
                continue;
            }
        };
        if args.server.as_ref().is_some_and(|name| *name != server) {
            continue;
        }
        match instance.ask(&Request::Reload, |_| {}) {
            Ok(answer) => {
                told.push(json!({ "server": server, "socket": socket, "in_force": answer }))
            }
            Err(error) => {
                refused = true;
                let error = error.to_string();
                if !args.json {
                    let _ = writeln!(
                        err,
                        "error: {server}: {error}\n  the earlier rules and settings stay in force"
                    );
                }
                told.push(json!({ "server": server, "socket": socket, "error": error }));
            }
        }
    }
    if told.is_empty() {
        let _ = writeln!(
            err,
            "error: no running instance{}",
            match &args.server {
                Some(name) => format!(" guards \"{name}\"; durward status tells which run"),
                None => " of this user was found; `durward status` lists what runs".to_owned(),
            }
        );
        return EXIT_CANNOT;
    }
    // A reader that has seen enough closes the pipe.
    let _ = print(args.json, &told, out);
    if refused { EXIT_REFUSED } else { 0 }
}

fn print(json: bool, told: &[Value], out: &mut dyn Write) -> std::io::Result<()> {
    if json {
        return writeln!(out, "{:#}", json!(told));
    }
    for instance in told {
        let Some(answer) = instance.get("in_force") else {
            continue;
        };
        writeln!(
            out,
            "{}: policy {} in force, digest {}",
            text(instance, "server"),
            text(answer, "version"),
            text(answer, "digest")
        )?;
        let keys = answer.get("needs_restart").and_then(Value::as_array);
        let keys: Vec<&str> = keys
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        if !keys.is_empty() {
            writeln!(out, "  changed, and needs a restart: {}", keys.join(", "))?;
        }
    }
    Ok(())
}

fn text(value: &Value, name: &str) -> String {
    value
        .get(name)
        .and_then(Value::as_str)
        .unwrap_or("?")
        .to_owned()
}
