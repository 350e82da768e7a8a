//! Calls that wait for a person: list, find and answer them, read past answers, and follow what happens.

mod feed;
mod grants;
mod question;

use std::path::{Path, PathBuf};

use gate::approval::Choice;
use gate::journal::audit::{Filter, Kind};
use serde::{Deserialize, Serialize};

use crate::calls::{self, CallPage, CallQuery, PageCursor};
use crate::control::Request;
use crate::control::client::{self, Found, NoAnswer};
use crate::error::AdminError;

pub use feed::{ApprovalFeed, EVENTS_MAX, FeedItem, SEARCH_MS};
pub use grants::{
    ForgetReport, ForgottenGrants, GrantList, GrantSelection, GrantedCall, forget_grants,
    list_grants,
};
pub use question::{ApprovalEvent, ApprovalQuestion, EndedQuestion, InstanceEvent, ReloadFailure};

/// Label of a refusal of a yes that has to confirm that part of the call was not shown.
pub const NOT_ALL_SHOWN: &str = "not_all_shown";

/// A call that waits, and the instance that holds it.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct WaitingCall {
    /// Control socket of the instance.
    pub socket: PathBuf,
    /// The question about the call.
    #[serde(flatten)]
    pub question: ApprovalQuestion,
}

/// Calls that wait in running instances of this user.
#[derive(Debug, Default)]
pub struct WaitingCalls {
    /// Oldest first within an instance.
    pub calls: Vec<WaitingCall>,
    /// How many instances run.
    pub instances: usize,
    /// Sentences about what could not be read; the calls of these instances are not listed.
    pub warnings: Vec<String>,
}

impl WaitingCalls {
    /// Returns the one call with this id, or beginning of an id.
    ///
    /// # Errors
    /// [`AdminError::NotWaiting`] and [`AdminError::Ambiguous`].
    pub fn find(&self, id: &str) -> Result<&WaitingCall, AdminError> {
        let matching: Vec<&WaitingCall> = self
            .calls
            .iter()
            .filter(|call| call.question.id.starts_with(id))
            .collect();
        match matching.as_slice() {
            [] => Err(AdminError::NotWaiting),
            [call] => Ok(call),
            several => {
                let ids = several.iter().map(|call| call.question.id.clone());
                Err(AdminError::Ambiguous(ids.collect()))
            }
        }
    }
}

/// Returns the calls that wait in the instances of these runtime directories.
#[must_use]
pub fn list(runtime: &[PathBuf]) -> WaitingCalls {
    list_of(&mut client::instances(runtime))
}

fn list_of(found: &mut Found) -> WaitingCalls {
    let mut waiting = WaitingCalls {
        instances: found.instances.len(),
        warnings: std::mem::take(&mut found.warnings),
        ..WaitingCalls::default()
    };
    for instance in &mut found.instances {
        let socket = instance.socket.clone();
        let mut unread = 0_u64;
        let asked = instance.ask(
            &Request::Approvals,
            |question| match serde_json::from_value(question) {
                Ok(question) => waiting.calls.push(WaitingCall {
                    socket: socket.clone(),
                    question,
                }),
                Err(_) => unread += 1,
            },
        );
        let name = socket.display();
        if let Err(error) = asked {
            waiting.warnings.push(format!("{name}: {error}"));
        }
        if unread > 0 {
            let message = format!(
                "{name}: {unread} waiting calls are not ones that this version understands"
            );
            waiting.warnings.push(message);
        }
    }
    waiting
}

/// An answer to a waiting call.
#[derive(Debug, Clone)]
pub struct ApprovalAnswer {
    /// Yes or no, and for how long.
    pub choice: Choice,
    /// Why, for the caller.
    pub reason: Option<String>,
    /// Confirms a yes although not all of the call was shown.
    pub unseen: bool,
}

/// A call that was answered.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct AnsweredCall {
    /// The question that waits no longer.
    pub question: ApprovalQuestion,
    /// Whether the same call passes without a question for a while.
    #[serde(default)]
    pub remembered: bool,
}

/// Result of an answer.
#[derive(Debug)]
pub struct AnswerReport {
    /// The answered call, or why no call was answered.
    pub outcome: Result<AnsweredCall, AdminError>,
    /// Sentences about instances that could not be asked.
    pub warnings: Vec<String>,
}

/// Answers the one call with this id, or beginning of an id.
#[must_use]
pub fn answer(runtime: &[PathBuf], id: &str, answer: &ApprovalAnswer) -> AnswerReport {
    let mut found = client::instances(runtime);
    let waiting = list_of(&mut found);
    let mut warnings = waiting.warnings.clone();
    let outcome = match waiting.find(id) {
        // An instance that knew the call says how it ended.
        Err(AdminError::NotWaiting) => send(&mut found, None, id, answer, &mut warnings),
        Err(error) => Err(error),
        Ok(call) => send(&mut found, Some(&call.socket), id, answer, &mut warnings),
    };
    AnswerReport { outcome, warnings }
}

/// Sends the answer to the instance that holds the call, or to each until one knows it.
fn send(
    found: &mut Found,
    holder: Option<&Path>,
    id: &str,
    answer: &ApprovalAnswer,
    warnings: &mut Vec<String>,
) -> Result<AnsweredCall, AdminError> {
    // The id as it was typed: the instance knows whether it could also mean a call that has just ended.
    let request = Request::Answer {
        id: id.to_owned(),
        answer: answer.choice.label().to_owned(),
        reason: answer.reason.clone(),
        unseen: answer.unseen,
    };
    let mut refusal = AdminError::NotWaiting;
    for instance in &mut found.instances {
        if holder.is_some_and(|holder| holder != instance.socket) {
            continue;
        }
        match instance.ask(&request, |_| {}) {
            Ok(reply) => {
                return serde_json::from_value(reply).map_err(|error| AdminError::Reply {
                    socket: instance.socket.clone(),
                    error,
                });
            }
            Err(NoAnswer::Refused { label, message }) => {
                if refusal.label() == AdminError::NotWaiting.label() {
                    refusal = AdminError::Refused { label, message };
                }
            }
            Err(NoAnswer::Io(error)) => {
                warnings.push(format!("{}: {error}", instance.socket.display()));
            }
        }
    }
    Err(refusal)
}

/// Returns the latest decisions about calls that waited for a person, with their outcomes.
///
/// # Errors
/// A journal that cannot be read.
pub fn history(
    journal: &Path,
    limit: usize,
    cursor: Option<PageCursor>,
) -> Result<CallPage, AdminError> {
    let query = CallQuery {
        filter: Filter {
            kind: Some(Kind::Decision),
            decision: Some("hitl".to_owned()),
            ..Filter::default()
        },
        limit,
        cursor,
        with_outcomes: true,
    };
    calls::list(journal, &query)
}

#[cfg(test)]
mod tests;
