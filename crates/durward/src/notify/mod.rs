//! Notifies approvers of calls that wait and of reloads that failed: a bell, a notification on the desktop, a command,
//! a webhook.
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
use crate::reload::{ReloadFailure, ReloadState};

/// Most messages under way at once; further calls are not told of in this way.
const UNDER_WAY_MAX: usize = 16;
/// How long one command may run, in milliseconds.
const COMMAND_MS_MAX: u64 = 10_000;
/// How long a webhook is tried for a failed reload, in seconds.
const RELOAD_S_MAX: u64 = 60;
/// The bell of a terminal.
const BELL: &[u8] = b"\x07";

/// Announces every call that begins to wait and every reload that fails, until the runtime ends.
pub fn begin(notify: &Notify, gate: &Arc<Gate>, reloads: &ReloadState) {
    let ways = Ways::of(notify);
    if ways.bell || ways.sends() {
        let ways = Arc::new(ways);
        tokio::spawn(watch_reloads(Arc::clone(&ways), reloads.clone()));
        tokio::spawn(watch(ways, Arc::clone(gate)));
    }
}

/// A message to approvers, in the form of each way to send it.
struct Announcement {
    /// What it is about, for the log.
    subject: String,
    /// What a command and a webhook receive.
    message: Value,
    /// Heading of the notification on the desktop.
    title: String,
    /// Its text.
    body: String,
    /// How long the notification is shown and the webhook is tried, in seconds.
    time_s: u64,
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
                tell(&ways, &gate, &question);
            }
        }
        approvals.changed(seen).await;
    }
}

/// Announces each reload that fails, once as long as the reason is the same.
async fn watch_reloads(ways: Arc<Ways>, reloads: ReloadState) {
    let mut changes = reloads.subscribe();
    // One that failed before this began counts as well.
    changes.mark_changed();
    let mut announced: Option<ReloadFailure> = None;
    while changes.changed().await.is_ok() {
        let status = changes.borrow_and_update().clone();
        let failure = status.failure().cloned();
        let news = failure.as_ref().filter(|of| !of.is_announced_elsewhere);
        if let Some(failure) = news.filter(|new| announced.as_ref() != Some(*new)) {
            let message = json!({
                "event": "reload_failed",
                "last_reload": status.outcome(),
                "answer": "durward status",
            });
            let announcement = Announcement {
                subject: "the failed reload".into(),
                message,
                title: "Durward cannot use the changed rules or settings".into(),
                body: format!("{}; the earlier ones stay in force", failure.message),
                time_s: RELOAD_S_MAX,
            };
            announce(&ways, announcement, || true);
        }
        announced = failure;
    }
}

/// Announces a call that waits.
fn tell(ways: &Arc<Ways>, gate: &Arc<Gate>, question: &Question) {
    let what = question.tool_name.as_ref().unwrap_or(&question.mcp_method);
    let announcement = Announcement {
        subject: question.id.clone(),
        message: message(question, ways.arguments),
        title: format!("{what} on {} waits for approval", question.backend_id),
        body: format!(
            "{} s to answer: durward approvals allow {} (or deny)",
            question.timeout_seconds, question.id
        ),
        time_s: question.timeout_seconds,
    };
    let (gate, id) = (Arc::clone(gate), question.id.clone());
    let waits = move || gate.approvals().list().iter().any(|other| other.id == id);
    announce(ways, announcement, waits);
}

/// Sends an announcement in every way that is configured; a webhook is tried again as long as `is_due`.
fn announce(
    ways: &Arc<Ways>,
    announcement: Announcement,
    is_due: impl Fn() -> bool + Send + Sync + 'static,
) {
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
            announcement.subject
        );
        return;
    };
    let ways = Arc::clone(ways);
    tokio::spawn(async move {
        let message = announcement.message.to_string();
        let command = async {
            if let Some(program) = &ways.command {
                program.run(message.as_bytes(), COMMAND_MS_MAX).await;
            }
        };
        let desktop = async {
            if let Some(desktop) = &ways.desktop {
                desktop.show(&announcement).await;
            }
        };
        let webhook = async {
            if let Some(webhook) = &ways.webhook {
                let time = Duration::from_secs(announcement.time_s);
                webhook.post(&message, time, &is_due).await;
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
