//! `durward approvals list`.

use std::io::{self, Write};

use clap::Args;
use serde_json::{Value, json};

use crate::control::Request;
use crate::control::client;
use crate::layout;
use crate::places::Places;

use super::{EXIT_CANNOT, text, warn};

/// Arguments of `durward approvals list`.
#[derive(Debug, Args)]
pub struct ListArgs {
    /// Print one JSON object for each call
    #[arg(long)]
    json: bool,
}

/// Prints what waits, oldest first within an instance.
pub fn run(
    args: &ListArgs,
    places: &Places,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> io::Result<u8> {
    let mut found = client::instances(places);
    let (mut waiting, mut failed) = (Vec::new(), warn(&found, err));
    for instance in &mut found.instances {
        let socket = instance.socket.display().to_string();
        let mut add = |question: Value| waiting.push((socket.clone(), question));
        if let Err(error) = instance.ask(&Request::Approvals, &mut add) {
            let _ = writeln!(err, "warning: {socket}: {error}");
            failed = true;
        }
    }
    if args.json {
        for (socket, question) in &waiting {
            let mut question = question.clone();
            if let Some(members) = question.as_object_mut() {
                members.insert("socket".into(), json!(socket));
            }
            writeln!(out, "{question}")?;
        }
    } else {
        for (_, question) in &waiting {
            text::question(question, layout::screen_width(), out)?;
            writeln!(out)?;
        }
        match (waiting.len(), found.instances.len()) {
            (0, 0) => writeln!(out, "no instance of durward is running")?,
            (0, 1) => writeln!(out, "nothing waits for approval (1 instance is running)")?,
            (0, running) => {
                writeln!(
                    out,
                    "nothing waits for approval ({running} instances are running)"
                )?;
            }
            _ => writeln!(out, "answer with: durward approvals allow|once|deny ID")?,
        }
    }
    Ok(if failed { EXIT_CANNOT } else { 0 })
}
