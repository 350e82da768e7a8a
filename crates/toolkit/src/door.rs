//! What a call made in process says of itself, and how it ended: the shared words of the doors of `mcp` and `models`.
//!
//! A call through a door meets every stage of a client's own call. It goes over no socket, and its outcome has a type.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use gate::journal::OpId;
use gate::{Caller, Label, Refusal, RunId};
use http::StatusCode;

use crate::reasons::http_status;
use crate::trace::Trace;

/// Longest name of the account of a run, in bytes.
pub const ACCOUNT_BYTES_MAX: usize = 128;

/// Who makes a call in process, for what, and within which bounds.
#[derive(Debug, Clone, Default)]
pub struct CallContext {
    /// Who calls, as an edge has identified them. The labels of a session are those of its caller.
    pub caller: Caller,
    /// The session, as records name it; empty if there is none.
    pub session_id: Arc<str>,
    /// The program that calls, as records name it.
    pub client_id: Option<Arc<str>>,
    /// The run that the call belongs to, the call on whose behalf it is made, and headers for the server.
    pub trace: Trace,
    /// The end of the call; what has not ended by then is cancelled.
    pub deadline: Option<Instant>,
    /// A limit of the run, inside the budgets of the caller.
    pub budget: Option<RunBudget>,
    /// What to do if the policy asks a person.
    pub approval: ApprovalWish,
}

impl CallContext {
    /// Returns a context of this caller without further bounds.
    #[must_use]
    pub fn of(caller: Caller) -> Self {
        Self {
            caller,
            ..Self::default()
        }
    }

    /// Returns the context of calls that an agent makes for the same caller.
    #[must_use]
    pub fn with_agent(mut self, agent: &str) -> Self {
        self.caller.agent = Some(agent.into());
        self
    }

    /// Returns the same context within a run.
    #[must_use]
    pub fn in_run(mut self, run: RunId) -> Self {
        self.trace.run = Some(run);
        self
    }

    /// Returns the context of calls that are made on behalf of this one.
    #[must_use]
    pub fn under(mut self, parent: OpId) -> Self {
        self.trace.parent_op = Some(parent);
        self
    }

    /// Returns the same context with an end.
    #[must_use]
    pub fn until(self, deadline: Instant) -> Self {
        Self {
            deadline: Some(deadline),
            ..self
        }
    }

    /// Returns the time that is left; `None` if there is no deadline.
    #[must_use]
    pub fn time_left(&self) -> Option<Duration> {
        let deadline = self.deadline?;
        Some(deadline.saturating_duration_since(Instant::now()))
    }
}

/// What a run may use in all, counted on an account of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunBudget {
    /// Name of the account; at most [`ACCOUNT_BYTES_MAX`] bytes.
    pub account: Arc<str>,
    /// Most tokens, read and written.
    pub tokens: Option<u64>,
    /// Most cost, in millionths of a dollar.
    pub cost_micros: Option<u64>,
}

/// What to do if the policy asks a person.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ApprovalWish {
    /// Wait for the answer.
    #[default]
    Wait,
    /// Withdraw the call at once: it ends as denied.
    Withdraw,
}

/// How a call ended.
#[derive(Debug, Clone)]
pub struct CallOutcome {
    /// The operation in the journal; `None` if the call has no record.
    pub op: Option<OpId>,
    /// Its end.
    pub end: CallEnd,
}

/// The end of a call.
#[derive(Debug, Clone)]
pub enum CallEnd {
    /// It was answered.
    Done,
    /// The gate refused it.
    Denied(CallFault),
    /// A limit or a budget of the gate refused it; it may pass later.
    Limited(CallFault),
    /// It was withdrawn, or its caller is revoked.
    Cancelled,
    /// Its time is over.
    TimedOut(CallFault),
    /// The upstream did not do its part.
    UpstreamFailed(CallFault),
    /// The request cannot be read, and reached neither gate nor upstream.
    Malformed(CallFault),
    /// No server or model of this name is served to the caller.
    NotFound(CallFault),
}

/// Why a call has no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallFault {
    /// The closed label.
    pub reason: Label,
    /// A sentence for the caller.
    pub message: String,
    /// The rule that decided, if one did.
    pub rule: Option<String>,
    /// When it may pass, in milliseconds from now, if that is known.
    pub retry_after_ms: Option<u64>,
}

impl CallFault {
    /// Returns a fault of this label.
    #[must_use]
    pub fn new(reason: impl Into<Label>, message: impl Into<String>) -> Self {
        Self {
            reason: reason.into(),
            message: message.into(),
            rule: None,
            retry_after_ms: None,
        }
    }
}

impl From<&Refusal> for CallFault {
    fn from(refusal: &Refusal) -> Self {
        let rule = &refusal.final_rule;
        Self {
            rule: (!rule.is_empty()).then(|| rule.clone()),
            retry_after_ms: refusal.retry_after_ms,
            ..Self::new(refusal.reason, refusal.to_string())
        }
    }
}

impl From<&Refusal> for CallEnd {
    fn from(refusal: &Refusal) -> Self {
        match http_status(refusal.reason) {
            StatusCode::TOO_MANY_REQUESTS => Self::Limited(refusal.into()),
            _ => Self::Denied(refusal.into()),
        }
    }
}

impl From<&Refusal> for CallOutcome {
    fn from(refusal: &Refusal) -> Self {
        Self {
            op: refusal.op,
            end: refusal.into(),
        }
    }
}

impl CallEnd {
    /// Returns why the call has no answer; `None` if it has one, or was cancelled.
    #[must_use]
    pub fn fault(&self) -> Option<&CallFault> {
        match self {
            Self::Done | Self::Cancelled => None,
            Self::Denied(fault)
            | Self::Limited(fault)
            | Self::TimedOut(fault)
            | Self::UpstreamFailed(fault)
            | Self::Malformed(fault)
            | Self::NotFound(fault) => Some(fault),
        }
    }

    /// Returns the word for this kind of end.
    #[must_use]
    pub fn word(&self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Denied(_) => "denied",
            Self::Limited(_) => "limited",
            Self::Cancelled => "cancelled",
            Self::TimedOut(_) => "timed_out",
            Self::UpstreamFailed(_) => "upstream_failed",
            Self::Malformed(_) => "malformed",
            Self::NotFound(_) => "not_found",
        }
    }

    /// Returns the closed label of the reason; `None` if the call is done or cancelled.
    #[must_use]
    pub fn reason(&self) -> Option<&'static str> {
        self.fault().map(|fault| fault.reason.as_str())
    }

    /// Returns whether the call was answered.
    #[must_use]
    pub fn is_done(&self) -> bool {
        matches!(self, Self::Done)
    }
}

impl fmt::Display for CallEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.fault() {
            Some(fault) => f.write_str(&fault.message),
            None => f.write_str(self.word()),
        }
    }
}

gate::closed_set! {
    /// Why a call in process has no answer, besides the reasons of gate and upstream.
    pub enum DoorFault {
        ServerUnknown "server_unknown": "no server of this name is served to the caller";
        ModelUnknown "model_not_found": "no model of this name is served to the caller";
        Unreadable "request_unreadable": "the request cannot be read";
        Deadline "deadline_over": "the time that the caller gave the call is over; what the upstream has done is not known";
        UpstreamError "upstream_error": "the server answered with an error";
        ReplyUnreadable "reply_unreadable": "the reply cannot be read as the answer to the call";
    }
}

impl CallFault {
    /// Returns the fault with its usual sentence.
    #[must_use]
    pub fn of(fault: DoorFault) -> Self {
        Self::new(fault, fault.sentence())
    }
}
