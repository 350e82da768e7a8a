//! A call that is under way, and its end in the journal.

use std::sync::Arc;

use crate::journal::{Micros, OpId, Operation, Record, ResponseSummary, Stages, Status};

use crate::limits::Slot;

use super::pass::Answer;
use super::recorder::Recorder;

/// A call between its decision and its end. It always ends: finished, or by being dropped, which
/// settles it as *cancelled* (as *aborted* where it was never sent).
#[must_use = "a flight that is dropped is settled as cancelled"]
pub struct InFlight {
    state: Option<Box<State>>,
}

pub(super) struct State {
    pub recorder: Arc<Recorder>,
    pub op: OpId,
    pub about: About,
    pub received_ns: u64,
    pub stages: Stages,
    pub sent_ns: Option<u64>,
    /// The call's place among those under way, until it is settled.
    pub slot: Option<Slot>,
}

/// What the operation record repeats of the call.
#[derive(Debug, Clone, Default)]
pub struct About {
    /// The client's own id of the request, as spelled.
    pub request_id: String,
    /// The session.
    pub session_id: Arc<str>,
    /// The method.
    pub method: String,
    /// The tool.
    pub tool_name: Option<String>,
    /// The server.
    pub backend_id: String,
    /// The client program, where it named itself.
    pub client_id: Option<Arc<str>>,
    /// How the server is reached.
    pub transport: &'static str,
}

/// How a call ended.
#[derive(Debug, Clone, Copy, Default)]
pub struct Outcome {
    /// It succeeded.
    pub status: Status,
    /// The protocol's error code.
    pub error_code: Option<i64>,
    /// A closed label where it failed on the way.
    pub reason: Option<&'static str>,
    /// Size and keyed digest of the reply.
    pub response: Option<ResponseSummary>,
}

impl InFlight {
    pub(super) fn new(state: State) -> Self {
        Self {
            state: Some(Box::new(state)),
        }
    }

    pub(super) fn mark_sent(&mut self) {
        if let Some(state) = &mut self.state {
            state.sent_ns = Some(state.recorder.clock.mono_ns());
        }
    }

    /// The call's name, for logs.
    #[must_use]
    pub fn op(&self) -> OpId {
        self.state.as_ref().map_or(OpId(0), |state| state.op)
    }

    /// Ties the answer to this open request to it, so that it may be sent.
    pub fn answer<R>(self, request: R) -> Answer<R> {
        Answer {
            request,
            flight: self,
        }
    }

    /// The upstream's part ends here; what follows is ours.
    pub fn reply_arrived(&mut self) {
        if let Some(state) = &mut self.state
            && let Some(sent) = state.sent_ns
        {
            let now = state.recorder.clock.mono_ns();
            state.stages.upstream_us = Micros::from_nanos(now.saturating_sub(sent));
        }
    }

    /// Writes the operation record.
    pub fn finish(mut self, outcome: Outcome) {
        if let Some(state) = self.state.take() {
            settle(*state, outcome);
        }
    }
}

impl std::fmt::Debug for InFlight {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "InFlight({})", self.op())
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        if let Some(state) = self.state.take() {
            let status = if state.sent_ns.is_some() {
                Status::Cancelled
            } else {
                Status::Aborted
            };
            settle(
                *state,
                Outcome {
                    status,
                    ..Outcome::default()
                },
            );
        }
    }
}

fn settle(state: State, outcome: Outcome) {
    drop(state.slot);
    let now = state.recorder.clock.mono_ns();
    let mut stages = state.stages;
    if let (Some(sent), true) = (state.sent_ns, stages.upstream_us == Micros::default()) {
        stages.upstream_us = Micros::from_nanos(now.saturating_sub(sent));
    }
    let total = Micros::from_nanos(now.saturating_sub(state.received_ns));
    let about = &state.about;
    let record = Operation {
        op: state.op,
        status: outcome.status,
        request_id: Some(&about.request_id),
        session_id: Some(&about.session_id),
        method: Some(&about.method),
        tool_name: about.tool_name.as_deref(),
        error_code: outcome.error_code,
        reason: outcome.reason,
        client_id: about.client_id.as_deref(),
        backend_id: Some(&about.backend_id),
        transport: Some(about.transport),
        response_summary: outcome.response,
        duration_us: total,
        stages,
        unexplained_us: stages.unexplained(total),
        config_version: None,
    };
    // The call is over; a journal that fails here stops the next one at its decision.
    drop(state.recorder.write(&Record::Operation(&record)));
}
