//! The page of names in the journal: what each record is about, and the words in it that are labels.

use std::io::{self, Write};

use gate::identity::{IdentityFault, TokenFault};
use gate::journal::{
    AuthEvent, Component, ConfigEvent, EndReason, JournalEvent, Level, Status, SystemEvent,
};
use gate::pins::PinFault;
use gate::{ClosedSet, Explained, Transport};
use mcp::descriptions::finding::Event;
use mcp::descriptions::suspicious::Suspicion;
use mcp::notes::Note;
use mcp::stdio::Ended;

use crate::reload::Change;

pub(super) fn page(out: &mut dyn Write) -> io::Result<()> {
    writeln!(
        out,
        "# Events\n\nGenerated from the code (`cargo xtask docs`). Each record of the journal has a `kind` and an `event`. The names are"
    )?;
    writeln!(
        out,
        "closed: no other can appear. Reasons of refusals are in [reasons.md](reasons.md)."
    )?;
    heading(
        out,
        "Calls (`decision`, `operation`)",
        "One record of each kind for a call. `status` of an operation, and `transport`, are one of the words below.",
    )?;
    writeln!(out, "| event | meaning |\n|---|---|")?;
    writeln!(
        out,
        "| `policy_decision` | what was decided about a call, written before anything leaves |\n| `operation` | what became of the call, written when its reply ends |"
    )?;
    let statuses = Status::ALL.map(Status::name);
    let transports = Transport::ALL.map(Transport::label);
    writeln!(
        out,
        "\n`status`: {}. `transport`: {}.",
        words(&statuses),
        words(&transports)
    )?;
    table::<AuthEvent>(out, "Callers and sessions (`auth`)", "")?;
    table::<IdentityFault>(
        out,
        "Why a caller is refused",
        "`reason` of `key_refused` and `user_refused`.",
    )?;
    table::<TokenFault>(
        out,
        "Why an access token is refused",
        "`reason` of `token_refused`; the sentence is `error_description` of the answer.",
    )?;
    table::<EndReason>(
        out,
        "How a session over HTTP ended",
        "`end_reason` of `session_ended`.",
    )?;
    table::<ConfigEvent>(out, "Configuration and policy (`config`)", "")?;
    table::<Change>(
        out,
        "What asked for a reload",
        "`change_type` of `updated` and `validation_failed`.",
    )?;
    table::<SystemEvent>(out, "The program (`system`)", "")?;
    table::<Ended>(
        out,
        "Why `run` ended",
        "`reason` of `session_ended`, and of `segment_closed`.",
    )?;
    table::<JournalEvent>(out, "The journal itself (`system`)", "")?;
    table::<Note>(
        out,
        "Clients and servers (`system`)",
        "At most one record for each name and half second; the message says how often. Faults of servers, frames and requests that are listed in [reasons.md](reasons.md) are noted under their own labels.",
    )?;
    table::<Event>(
        out,
        "Descriptions and definitions (`system`)",
        "Each is told once a session.",
    )?;
    let suspicions = Suspicion::ALL.map(Suspicion::label);
    writeln!(
        out,
        "\n`description_suspicious` names one of: {}.",
        words(&suspicions)
    )?;
    table::<PinFault>(out, "Why pins failed", "`reason` of `tool_pins_failed`.")?;
    table::<Level>(out, "Levels", "`level` of records of kind `system`.")?;
    table::<Component>(
        out,
        "Components",
        "`component` of records of kind `system` and `config`.",
    )
}

fn heading(out: &mut dyn Write, title: &str, about: &str) -> io::Result<()> {
    writeln!(out, "\n## {title}\n")?;
    if about.is_empty() {
        return Ok(());
    }
    writeln!(out, "{about}\n")
}

/// A table of one closed set.
fn table<T: ClosedSet + Explained>(
    out: &mut dyn Write,
    title: &str,
    about: &str,
) -> io::Result<()> {
    heading(out, title, about)?;
    writeln!(out, "| name | meaning |\n|---|---|")?;
    for value in T::EVERY {
        writeln!(out, "| `{}` | {} |", value.word(), value.sentence())?;
    }
    Ok(())
}

fn words(words: &[&str]) -> String {
    let words: Vec<String> = words.iter().map(|word| format!("`{word}`")).collect();
    words.join(", ")
}
