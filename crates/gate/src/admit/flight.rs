//! A call that is under way, and its end in the journal.

use std::sync::Arc;

use crate::facts::{Direction, Facts};
use crate::inspect::Finding;
use crate::journal::{
    Micros, OpId, Operation, Record, RecordedAttempt, ResponseSummary, Stages, Status, Usage,
};
use crate::label::Label;
use crate::limits::Slot;
use crate::peer::{PeerId, Targets};
use crate::run::RunId;

use super::World;
use super::call::Origin;
use super::observer::{End, Observed};
use super::recorder::{Open, Recorder};

/// Most attempts that one operation record lists; further ones are counted.
pub const ATTEMPTS_MAX: usize = 16;

/// A call between its decision and its end. It always ends: finished, or by being dropped, which
/// settles it as *cancelled* (as *aborted* where it was never sent).
#[must_use = "a flight that is dropped is settled as cancelled"]
pub struct InFlight {
    pub(super) state: Option<Box<State>>,
}

pub(super) struct State {
    #[expect(dead_code, reason = "held until the call is over")]
    pub open: Open,
    pub recorder: Arc<Recorder>,
    pub op: OpId,
    /// What the call was judged by.
    pub world: Arc<World>,
    pub facts: Box<Facts>,
    pub origin: Box<Origin>,
    pub targets: Targets,
    /// The rule that decided.
    pub rule: Arc<str>,
    /// Whether a person has answered that rule with a yes.
    pub is_approved: bool,
    /// When the call began, identification included.
    pub begun_ns: u64,
    pub stages: Stages,
    pub sent_ns: Option<u64>,
    pub answered_here: bool,
    /// The error code and the reason that are recorded where it is dropped.
    pub if_dropped: (Option<i64>, Option<Label>),
    /// The call's place among those under way, until it is settled.
    pub slot: Option<Slot>,
    pub attempts: Vec<Attempt>,
    pub attempts_omitted: u64,
    pub usage: Usage,
    /// What the inspection found in what came back.
    pub inspected: Option<Box<Finding>>,
    /// The same call at further machines; they end as it does, unless they ended before.
    pub beside: Vec<State>,
    /// How it ended at this machine, and when, where that is known before the whole call ends.
    pub ended: Option<(Outcome, u64)>,
}

/// One try of a call at one peer, where a call may have several.
#[derive(Debug, Clone)]
pub struct Attempt {
    /// Where.
    pub peer: PeerId,
    /// The peer's name of the model, for a call of one.
    pub model: Option<Arc<str>>,
    /// How it ended.
    pub status: Status,
    /// A closed label where it failed.
    pub reason: Option<Label>,
    /// How long it took.
    pub duration: Micros,
}

/// How a call ended.
#[derive(Debug, Clone, Copy, Default)]
pub struct Outcome {
    /// It succeeded.
    pub status: Status,
    /// The protocol's error code.
    pub error_code: Option<i64>,
    /// A closed label where it failed on the way.
    pub reason: Option<Label>,
    /// Size and keyed digest of the reply.
    pub response: Option<ResponseSummary>,
}

/// A call that was let through, as its decision has it.
pub(super) struct PermittedCall {
    pub op: OpId,
    pub world: Arc<World>,
    pub facts: Box<Facts>,
    pub origin: Box<Origin>,
    pub targets: Targets,
    pub rule: Arc<str>,
    pub is_approved: bool,
    pub begun_ns: u64,
}

impl State {
    /// Returns the state of a call that was let through and of which nothing has happened yet.
    pub fn new(recorder: &Arc<Recorder>, call: PermittedCall) -> Self {
        let PermittedCall {
            op,
            world,
            facts,
            origin,
            targets,
            rule,
            is_approved,
            begun_ns,
        } = call;
        Self {
            open: Open::of(recorder),
            recorder: Arc::clone(recorder),
            op,
            world,
            facts,
            origin,
            targets,
            rule,
            is_approved,
            begun_ns,
            stages: Stages::default(),
            sent_ns: None,
            answered_here: false,
            if_dropped: (None, None),
            slot: None,
            attempts: Vec::new(),
            attempts_omitted: 0,
            usage: Usage::default(),
            inspected: None,
            beside: Vec::new(),
            ended: None,
        }
    }

    /// Frees the call's place among those under way.
    fn leave(&mut self) {
        self.slot = None;
        self.beside.iter_mut().for_each(State::leave);
    }
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

    pub(super) fn mark_answered_here(&mut self) {
        if let Some(state) = &mut self.state {
            state.answered_here = true;
        }
    }

    pub(super) fn targets(&self) -> &[PeerId] {
        self.state
            .as_ref()
            .map_or(&[], |state| state.targets.peers())
    }

    /// Whether this peer asked: a server's request is answered to that server, a client's to its
    /// session.
    pub(super) fn was_asked_by(&self, peer: &PeerId) -> bool {
        self.state
            .as_ref()
            .is_some_and(|state| match state.facts.direction {
                Direction::ToServer => peer.is_client() && *peer.name() == *state.origin.session_id,
                Direction::ToClient => {
                    !peer.is_client() && peer.name() == state.facts.backend_id.as_str()
                }
            })
    }

    /// The call's name, for logs.
    #[must_use]
    pub fn op(&self) -> OpId {
        self.state.as_ref().map_or(OpId(0), |state| state.op)
    }

    /// What the call was judged by, and where it came from.
    #[must_use]
    pub fn about(&self) -> Option<(&Facts, &Origin)> {
        let state = self.state.as_ref()?;
        Some((&state.facts, &state.origin))
    }

    /// Notes one try at one peer. Of more than [`ATTEMPTS_MAX`] the latest is kept, and those left out are counted.
    pub fn attempt(&mut self, attempt: Attempt) {
        if let Some(state) = &mut self.state {
            if state.attempts.len() >= ATTEMPTS_MAX {
                state.attempts.pop();
                state.attempts_omitted += 1;
            }
            state.attempts.push(attempt);
        }
    }

    /// What is recorded where this is dropped, for then its caller has gone.
    pub fn if_dropped(&mut self, error_code: Option<i64>, reason: Label) {
        if let Some(state) = &mut self.state {
            state.if_dropped = (error_code, Some(reason));
        }
    }

    /// Adds what the call has used.
    pub fn used(&mut self, usage: Usage) {
        if let Some(state) = &mut self.state {
            state.usage.add(usage);
        }
    }

    /// Notes what the inspection found in something that came back.
    pub fn found(&mut self, finding: &Finding) {
        if let Some(state) = &mut self.state {
            match &mut state.inspected {
                Some(inspected) => inspected.join(finding),
                None => state.inspected = Some(Box::new(finding.clone())),
            }
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
    pub fn finish(self, outcome: Outcome) {
        drop(self.ended(outcome));
    }

    /// The call ends here and leaves its place among those under way. Its record is written when what this returns is dropped.
    pub fn ended(mut self, outcome: Outcome) -> Ended {
        Ended(self.state.take().map(|mut state| {
            state.leave();
            let ended_ns = state.recorder.clock.mono_ns();
            (state, outcome, ended_ns)
        }))
    }
}

/// A call that is over. Dropping this writes its operation record, so an edge can let the answer leave first.
#[must_use = "dropped at once, the record is written before the answer leaves"]
pub struct Ended(Option<(Box<State>, Outcome, u64)>);

impl std::fmt::Debug for Ended {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.0 {
            Some((state, ..)) => write!(f, "Ended({})", state.op),
            None => f.write_str("Ended"),
        }
    }
}

impl Drop for Ended {
    fn drop(&mut self) {
        if let Some((state, outcome, ended_ns)) = self.0.take() {
            settle(&state, outcome, ended_ns);
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
        if let Some(mut state) = self.state.take() {
            let status = if state.sent_ns.is_some() || state.answered_here {
                Status::Cancelled
            } else {
                Status::Aborted
            };
            let (error_code, reason) = state.if_dropped;
            let outcome = Outcome {
                status,
                error_code,
                reason,
                ..Outcome::default()
            };
            state.leave();
            let ended_ns = state.recorder.clock.mono_ns();
            settle(&state, outcome, ended_ns);
        }
    }
}

fn settle(state: &State, outcome: Outcome, now: u64) {
    for further in &state.beside {
        let (outcome, now) = further.ended.unwrap_or((outcome, now));
        settle(further, outcome, now);
    }
    let mut stages = state.stages;
    if let (Some(sent), true) = (state.sent_ns, stages.upstream_us == Micros::default()) {
        stages.upstream_us = Micros::from_nanos(now.saturating_sub(sent));
    }
    let total = Micros::from_nanos(now.saturating_sub(state.begun_ns));
    let (facts, origin) = (&*state.world.hidden(&state.facts), &state.origin);
    let request_id = state.world.hidden_text(&state.facts, &origin.request_id);
    let inspected = state.inspected.as_deref();
    let inspected = inspected.map(Finding::told).unwrap_or_default();
    let attempts: Vec<RecordedAttempt<'_>> = state.attempts.iter().map(Attempt::borrowed).collect();
    // A call of a model may be answered by another target than the one that was judged first.
    let served = state.attempts.last();
    let model = served.and_then(|attempt| attempt.model.as_deref());
    let model = model.map(|model| state.world.hidden_text(&state.facts, model));
    let backend_id = match served.filter(|_| model.is_some()) {
        Some(attempt) => attempt.peer.name(),
        None => &facts.backend_id,
    };
    let record = Operation {
        op: state.op,
        status: outcome.status,
        request_id: Some(&request_id),
        session_id: Some(&origin.session_id),
        run_id: origin.run.as_ref().map(RunId::as_str),
        method: Some(&facts.method),
        tool_name: facts.tool_name.known().map(String::as_str),
        error_code: outcome.error_code,
        reason: outcome.reason,
        client_id: origin.client_id.as_deref(),
        backend_id: Some(backend_id),
        model: model.as_deref(),
        transport: Some(origin.transport),
        response_summary: outcome.response,
        duration_us: total,
        stages,
        unexplained_us: stages.unexplained(total),
        config_version: None,
        attempts: &attempts,
        attempts_omitted: state.attempts_omitted,
        usage: state.usage,
        inspected: &inspected,
    };
    // The call is over; a journal that fails here stops the next one at its decision.
    if let Ok(bytes) = state.recorder.write(&Record::Operation(&record)) {
        let (caller, direction) = (&state.facts.subject_id, state.facts.direction);
        state.recorder.charge(caller, direction, bytes);
    }
    state.recorder.observe(&Observed {
        op: state.op,
        facts,
        origin,
        rule: &state.rule,
        approval: stages.approval_us,
        duration: total,
        end: End::Operation(&record),
    });
}

impl Attempt {
    fn borrowed(&self) -> RecordedAttempt<'_> {
        RecordedAttempt {
            peer: self.peer.name(),
            status: self.status,
            reason: self.reason,
            duration_us: self.duration,
        }
    }
}
