//! `durward status`: what is here. It only reads, and takes no lock that a starting instance needs.

use std::io::{self, Write};

use admin::journal::SegmentFile;
use admin::status::{
    InstallationStatus, InstanceStatus, RunningInstance, StatusQuery, read_status,
};
use clap::Args;
use serde_json::Value;

use crate::config::values::Size;
use crate::disk::{self, rough};
use crate::failure::{self, CommandFamily};
use crate::layout;
use crate::places::Places;
use crate::plural::count;

pub const HELP: &str = "\
Examples:
  durward status
  durward status --json | jq '.instances[].server'

The command reads only. It lists the instances of the state directory, and with --all every instance of this user that
answers on its control socket.

Exit codes: 0 done; 2 the journal cannot be read.";

/// Arguments of `durward status`.
#[derive(Debug, Args)]
pub struct StatusArgs {
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    /// Include instances that use another state directory
    #[arg(long)]
    all: bool,
}

/// Prints the state of things; gives the exit code.
pub fn run(args: &StatusArgs, places: &Places, out: &mut dyn Write, err: &mut dyn Write) -> u8 {
    let query = StatusQuery {
        all: args.all,
        retain_bytes: places.retain,
        free_bytes: disk::free_bytes(&places.journal()),
        warn_below_bytes: places.warn_below,
    };
    let status = match read_status(&places.paths(), &query) {
        Ok(status) => status,
        Err(error) => {
            let _ = writeln!(err, "error: {error}");
            return failure::exit_code(CommandFamily::Status, error.kind());
        }
    };
    if let Some(free) = status.journal.free_bytes.filter(|_| status.journal.is_low) {
        let _ = writeln!(err, "warning: {}", disk::sentence(free, places));
    }
    for warning in &status.warnings {
        let _ = writeln!(err, "warning: {warning}");
    }
    let printed = match args.json {
        true => layout::json(&status, out),
        false => print(&status, places, out).and_then(|()| print_instances(&status, places, out)),
    };
    match printed.and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            let _ = writeln!(err, "error: cannot write: {error}");
            2
        }
        _ => 0,
    }
}

fn print_instances(
    status: &InstallationStatus,
    places: &Places,
    out: &mut dyn Write,
) -> io::Result<()> {
    let Some(directory) = places.runtime.first() else {
        return Ok(());
    };
    writeln!(out, "control  {}", directory.display())?;
    for RunningInstance { socket, status } in &status.instances {
        writeln!(
            out,
            "  {}  {}{} waiting for approval  policy {}  {socket}",
            status.server.as_deref().unwrap_or("?"),
            serving(status),
            status.approvals_waiting,
            status.policy_version.as_deref().unwrap_or("?"),
        )?;
        for line in lines(status) {
            writeln!(out, "    {line}")?;
        }
        let keys = status.serving.iter().flat_map(|own| &own.resting_keys);
        for key in keys {
            let model = key.model.as_ref();
            writeln!(
                out,
                "    key {} of the model provider {} rests{}: {}, {} s left",
                key.key,
                key.provider.as_deref().unwrap_or("?"),
                model.map_or_else(String::new, |model| format!(" for {model}")),
                key.reason.as_deref().unwrap_or("?"),
                key.left_s
            )?;
        }
    }
    if status.instances_elsewhere > 0 {
        writeln!(
            out,
            "  {} of other state directories; see durward status --all",
            count(status.instances_elsewhere, "instance")
        )?;
    }
    Ok(())
}

/// Returns the lines below an instance: its latest reload, certificates, and the verification of its journal.
fn lines(status: &InstanceStatus) -> Vec<String> {
    let text = |text: &Option<String>| text.as_deref().unwrap_or("?").replace('\n', "\n    ");
    let mut lines = Vec::new();
    if let Some(reload) = status.last_reload.as_ref().filter(|own| !own.successful) {
        lines.push(format!(
            "reload failed {}: {}\n    the earlier rules and settings stay in force; correct the file, or run: durward reload",
            text(&reload.at),
            text(&reload.message)
        ));
    }
    let certificates = status.certificates.iter();
    lines.extend(certificates.filter_map(|own| own.warning.clone()));
    let journal = status.journal_verified.clone().unwrap_or_default();
    if journal.finding.is_some() {
        lines.push(format!(
            "the journal was changed: {}; see durward audit verify, durward audit repair",
            text(&journal.finding)
        ));
    } else if journal.back_to.is_some() {
        let extent = match journal.complete {
            true => "all",
            false => "not all yet",
        };
        lines.push(format!(
            "closed segments verified back to {} ({extent}), at {}",
            text(&journal.back_to),
            text(&journal.at)
        ));
    }
    lines
}

/// Returns the address of an instance of `durward serve`, its sessions and processes; nothing for another one.
fn serving(status: &InstanceStatus) -> String {
    let Some(serving) = &status.serving else {
        return String::new();
    };
    let Some(address) = &serving.address else {
        return String::new();
    };
    let sessions = count(serving.sessions, "session");
    let processes = serving.processes;
    let noun = match processes {
        1 => "process",
        _ => "processes",
    };
    format!("{address}  {sessions}  {processes} server {noun}  ")
}

fn print(status: &InstallationStatus, places: &Places, out: &mut dyn Write) -> io::Result<()> {
    let journal = &status.journal;
    writeln!(out, "state    {}", status.state_dir)?;
    writeln!(
        out,
        "journal  {}  {}, {}{}, {} free on its disk",
        journal.dir,
        count(journal.segments, "segment"),
        rough(journal.size_bytes),
        (journal.retain_bytes).map_or_else(String::new, |most| format!(" of {}", Size(most))),
        journal.free_bytes.map_or_else(|| "?".to_owned(), rough)
    )?;
    let key = if status.keys { "present" } else { "none yet" };
    writeln!(out, "keys     {}  {key}", places.keys().display())?;
    writeln!(out, "running  {}", count(status.running, "instance"))?;
    let running = |open: &&SegmentFile| open.running;
    for open in status.open_segments.iter().filter(running) {
        writeln!(
            out,
            "  {}  since {}  last record {}  {}",
            open.server.as_deref().unwrap_or("?"),
            open.since.as_deref().unwrap_or("?"),
            open.last.as_deref().unwrap_or("none"),
            open.file
        )?;
    }
    let ended = status.open_segments.len() - status.running;
    if ended > 0 {
        writeln!(
            out,
            "ended    {} without closing the segment; `durward audit verify` checks that all is there",
            count(ended, "instance")
        )?;
    }
    let text = |record: &Value, name: &str| {
        let text = record.get(name).and_then(Value::as_str);
        text.unwrap_or("?").to_owned()
    };
    match &journal.last_record {
        Some(record) => writeln!(
            out,
            "last     {}  {}  {}",
            text(record, "time"),
            text(record, "kind"),
            text(record, "event")
        ),
        None => writeln!(
            out,
            "last     no records yet; start with: durward run -- CMD"
        ),
    }
}
