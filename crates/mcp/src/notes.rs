//! Records about things that no call stands for, coalesced so that a flood of them cannot fill the
//! journal: one record per kind and second, with how often it happened.

use std::borrow::Cow;

use gate::journal::{Component, Level, Record, System};
use gate::{ClosedSet, Explained, Gate, Label, closed_set};
use net::http::server::BodyFault;
use wire::{WireError, WireErrorKind};

use crate::message::frames::UpstreamFault;

/// Most kinds that are kept apart.
const KINDS_MAX: usize = 64;

closed_set! {
    /// What is noted of clients and servers, as records of kind `system`.
    pub enum Note {
        ClientAnswerUnknown "client_answer_unknown": "an answer that matches no open request of the server was dropped";
        ClientAnswerWithoutId "client_answer_without_id": "an error without an id was dropped";
        ClientIdInUse "client_id_in_use": "a request was refused: its id is in use by a call under way";
        ClientMessageLost "client_message_lost": "a message without an id did not reach the server";
        ClientNotificationDropped "client_notification_dropped": "a notification of an unknown kind was dropped";
        ClientNotificationRefused "client_notification_refused": "a notification that is not part of the protocol was dropped: no rule allows it, a rule asks for approval, or it cannot be read";
        ClientParamsUnusable "client_params_unusable": "a request was refused: its params do not fit its method";
        ElicitationUnanswered "elicitation_unanswered": "the client did not answer a question about approval; other channels still may";
        InspectionDenied "inspection_denied": "a notification of the server was held back by a rule of inspect";
        InspectionMasked "inspection_masked": "something was masked in a notification of the server";
        ModernRequestRefused "modern_request_refused": "the headers of a request do not fit its body, or say what is not known here";
        RequestStateUnusable "request_state_unusable": "a client sent a requestState that is unknown, used, too old or of another request";
        ServerAnsweredAgain "server_answered_again": "a second or late answer to a call was dropped";
        ServerAnswerUnknown "server_answer_unknown": "an answer that matches no call under way was dropped";
        ServerEnded "server_ended": "the server's process has ended by itself";
        ServerErrorWithoutId "server_error_without_id": "an error without an id was dropped";
        ServerFrameTooLong "server_frame_too_long": "a frame of the server was too long and was dropped; limits.response_bytes raises the bound";
        ServerGarbage "server_garbage": "what the server sent is not a valid message";
        ServerGivenUp "server_given_up": "all processes of the server were in use; the one that had nothing to do for the longest time was ended for another session";
        ServerListUnreadable "server_list_unreadable": "a list of the server could not be read";
        ServerNotificationDropped "server_notification_dropped": "a notification of the server had no reader and was dropped";
        ServerNotificationForeign "server_notification_foreign": "a message of the server without an id that is not a notification was dropped: a client might take it for a request that was judged";
        ServerRefusesAgain "server_refuses_again": "the restarted server refuses a log level or subscription that it had accepted before";
        ServerRequestUnplaced "server_request_unplaced": "a request of the server had no reader and was refused";
        ServerSessionReopened "server_session_reopened": "the server had lost its session, which was opened again; log level and subscriptions are asked for again";
        ServerRestarted "server_restarted": "the server had ended and was started again";
        SubscriptionsNotRenewed "subscriptions_not_renewed": "the policy has changed since the server was subscribed to, and it was started again; clients have to subscribe again";
    }
}

impl Note {
    /// The note with words of its own about this case.
    pub(crate) fn with<'m>(self, message: impl Into<Cow<'m, str>>) -> Noted<'m> {
        Noted::of(self, message)
    }
}

/// Something to note: a name out of a closed set, and words about this case.
#[derive(Debug, Clone)]
pub struct Noted<'m> {
    event: Label,
    message: Cow<'m, str>,
    level: Level,
}

impl<T: Explained> From<T> for Noted<'_> {
    fn from(value: T) -> Self {
        Self {
            event: value.into(),
            message: Cow::Borrowed(value.sentence()),
            level: Level::Warning,
        }
    }
}

impl<'m> Noted<'m> {
    /// Notes that a server does not speak the revision of a request. That belongs to normal operation: a client that
    /// offers its newest revision first tries an earlier one next.
    pub(crate) fn fallback() -> Self {
        let message = "the server does not speak revision 2026-07-28; its client can open a session of an earlier one";
        Self {
            level: Level::Info,
            ..Self::of(UpstreamFault::EraMismatch, message)
        }
    }

    /// A name with words about this case.
    pub(crate) fn of(event: impl Explained, message: impl Into<Cow<'m, str>>) -> Self {
        Self {
            event: event.into(),
            message: message.into(),
            level: Level::Warning,
        }
    }

    /// A frame that was refused.
    pub(crate) fn frame(fault: &WireError) -> Self {
        Self {
            event: Frame(fault.kind).into(),
            message: Cow::Borrowed(fault.message),
            level: Level::Warning,
        }
    }

    /// A body that was not taken.
    pub(crate) fn body(fault: BodyFault) -> Self {
        Self {
            event: Body(fault).into(),
            message: Cow::Borrowed(fault.sentence()),
            level: Level::Warning,
        }
    }
}

/// The names of broken frames, which `wire` lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Frame(WireErrorKind);

impl ClosedSet for Frame {
    const EVERY: &'static [Self] = &[
        Self(WireErrorKind::NotUtf8),
        Self(WireErrorKind::Syntax),
        Self(WireErrorKind::TooDeep),
        Self(WireErrorKind::DuplicateKey),
        Self(WireErrorKind::TooLong),
        Self(WireErrorKind::NotJsonRpc),
        Self(WireErrorKind::BatchNotAllowed),
        Self(WireErrorKind::TooMany),
        Self(WireErrorKind::AmbiguousMember),
        Self(WireErrorKind::AmbiguousArgument),
    ];

    fn word(self) -> &'static str {
        self.0.label()
    }
}

/// The names of bodies that are not taken, which `net` lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Body(BodyFault);

impl ClosedSet for Body {
    const EVERY: &'static [Self] = &[
        Self(BodyFault::TooLong),
        Self(BodyFault::TooSlow),
        Self(BodyFault::Broken),
        Self(BodyFault::BudgetExhausted),
        Self(BodyFault::Revoked),
    ];

    fn word(self) -> &'static str {
        self.0.label()
    }
}

/// What has been noted and not been written.
#[derive(Debug, Default)]
pub struct Notes {
    waiting: Vec<Waiting>,
}

#[derive(Debug)]
struct Waiting {
    event: Label,
    message: String,
    level: Level,
    count: u64,
}

impl Notes {
    /// Notes an event; it is written with the next flush.
    pub fn add(&mut self, noted: Noted<'_>) {
        let Noted {
            event,
            message,
            level,
        } = noted;
        let same = |note: &&mut Waiting| note.event == event && note.level == level;
        if let Some(note) = self.waiting.iter_mut().find(same) {
            note.count += 1;
        } else if self.waiting.len() < KINDS_MAX {
            match level {
                Level::Info => tracing::info!(event = event.as_str(), "{message}"),
                Level::Warning => tracing::warn!(event = event.as_str(), "{message}"),
            }
            self.waiting.push(Waiting {
                event,
                message: message.into_owned(),
                level,
                count: 1,
            });
        }
    }

    /// Writes what has been noted. A journal that fails here fails the gate, which the session sees.
    pub fn flush(&mut self, gate: &Gate, session_id: &str, backend_id: &str) {
        for note in self.waiting.drain(..) {
            let message = if note.count > 1 {
                format!("{} ({} times)", note.message, note.count)
            } else {
                note.message
            };
            let record = System {
                level: Some(note.level),
                component: Some(Component::Mcp),
                message: Some(&message),
                session_id: Some(session_id),
                backend_id: Some(backend_id),
                ..System::of(note.event)
            };
            drop(gate.record(&Record::System(&record)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_other_crates_list_are_listed_here_in_full() {
        let frames: Vec<_> = Frame::EVERY.iter().map(|frame| frame.0).collect();
        assert_eq!(frames, WireErrorKind::ALL);
        let bodies: Vec<_> = Body::EVERY.iter().map(|body| body.0).collect();
        assert_eq!(bodies, BodyFault::ALL);
    }

    #[test]
    fn no_two_notes_have_one_name_and_all_have_room() {
        let mut names: Vec<_> = Note::ALL.iter().map(|note| note.label()).collect();
        let faults = UpstreamFault::EVERY.iter().map(|fault| fault.label());
        names.extend(faults);
        names.extend(Frame::EVERY.iter().map(|frame| frame.word()));
        names.extend(Body::EVERY.iter().map(|body| body.word()));
        assert!(names.len() <= KINDS_MAX, "{}", names.len());
        let all = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), all);
    }
}
