//! Tells a person that a call waits for approval: a bell, a notification on the desktop, a command, a webhook.
//!
//! Telling is beside the calls: it delays none, and where it fails, the call still waits and can be answered.
//! Arguments, paths and changes of a call leave only where the configuration says so.

mod desktop;
mod program;
mod webhook;

use std::collections::HashSet;
use std::io::{self, IsTerminal as _, Write as _};
use std::sync::Arc;
use std::time::Duration;

use gate::Gate;
use gate::approval::Question;
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use crate::config::notify::Notify;

/// Most messages under way at once; further calls are not told of in this way.
const UNDER_WAY_MAX: usize = 16;
/// How long one command may run, in milliseconds.
const COMMAND_MS_MAX: u64 = 10_000;
/// The bell of a terminal.
const BELL: &[u8] = b"\x07";

/// Tells of every call that begins to wait, until the runtime ends.
pub fn begin(notify: &Notify, gate: &Arc<Gate>) {
    let ways = Ways::of(notify);
    if ways.bell || ways.sends() {
        tokio::spawn(watch(Arc::new(ways), Arc::clone(gate)));
    }
}

/// What is done for each call.
struct Ways {
    bell: bool,
    desktop: Option<desktop::Desktop>,
    command: Option<program::Program>,
    webhook: Option<webhook::Sender>,
    arguments: bool,
    under_way: Arc<Semaphore>,
}

impl Ways {
    fn of(notify: &Notify) -> Self {
        let desktop = if notify.desktop {
            let found = desktop::Desktop::find();
            if found.is_none() {
                tracing::warn!(
                    "approval.notify.desktop: there is no notify-send on the PATH; install libnotify, or use approval.notify.command"
                );
            }
            found
        } else {
            None
        };
        let webhook = notify.webhook.as_ref().and_then(|webhook| {
            webhook::Sender::new(webhook)
                .inspect_err(|error| tracing::warn!("approval.notify.webhook: {error}"))
                .ok()
        });
        Self {
            bell: notify.bell && io::stderr().is_terminal(),
            desktop,
            command: program::Program::of(&notify.command),
            webhook,
            arguments: notify.arguments,
            under_way: Arc::new(Semaphore::new(UNDER_WAY_MAX)),
        }
    }

    fn sends(&self) -> bool {
        self.desktop.is_some() || self.command.is_some() || self.webhook.is_some()
    }
}

async fn watch(ways: Arc<Ways>, gate: Arc<Gate>) {
    let approvals = gate.approvals();
    let mut told: HashSet<String> = HashSet::new();
    loop {
        let seen = approvals.version();
        let waiting = approvals.list();
        told.retain(|id| waiting.iter().any(|question| question.id == *id));
        for question in waiting {
            if told.insert(question.id.clone()) {
                tell(&ways, &gate, question);
            }
        }
        approvals.changed(seen).await;
    }
}

fn tell(ways: &Arc<Ways>, gate: &Arc<Gate>, question: Question) {
    if ways.bell {
        // A terminal that is gone hears nothing.
        let _ = io::stderr().write_all(BELL);
    }
    if !ways.sends() {
        return;
    }
    let Ok(place) = Arc::clone(&ways.under_way).try_acquire_owned() else {
        tracing::warn!(
            "approval.notify: {UNDER_WAY_MAX} messages are under way; {} is not announced",
            question.id
        );
        return;
    };
    let (ways, gate) = (Arc::clone(ways), Arc::clone(gate));
    tokio::spawn(async move {
        let message = message(&question, ways.arguments).to_string();
        let command = async {
            if let Some(program) = &ways.command {
                program.run(message.as_bytes(), COMMAND_MS_MAX).await;
            }
        };
        let desktop = async {
            if let Some(desktop) = &ways.desktop {
                desktop.show(&question).await;
            }
        };
        let webhook = async {
            if let Some(webhook) = &ways.webhook {
                let waits = || {
                    let list = gate.approvals().list();
                    list.iter().any(|other| other.id == question.id)
                };
                let time = Duration::from_secs(question.timeout_seconds);
                webhook.post(&message, time, &waits).await;
            }
        };
        tokio::join!(command, desktop, webhook);
        drop(place);
    });
}

/// The call as a command and a webhook are given it.
fn message(question: &Question, arguments: bool) -> Value {
    let mut call = json!({
        "event": "approval_waiting",
        "id": question.id,
        "server": question.backend_id,
        "method": question.mcp_method,
        "tool": question.tool_name,
        "caller": question.subject_id,
        "client": question.client_id,
        "rule": question.rule,
        "description": question.description,
        "side_effects": question.side_effects,
        "created_at": question.created_at,
        "timeout_seconds": question.timeout_seconds,
        "answer": format!("durward approvals allow|once|deny {}", question.id),
    });
    if let (true, Some(members)) = (arguments, call.as_object_mut()) {
        for (name, value) in [
            ("uri", json!(question.uri)),
            ("path", json!(question.path)),
            ("source_path", json!(question.source_path)),
            ("dest_path", json!(question.dest_path)),
            ("arguments", json!(question.arguments)),
            ("change", json!(question.change)),
        ] {
            members.insert(name.into(), value);
        }
    }
    call
}
