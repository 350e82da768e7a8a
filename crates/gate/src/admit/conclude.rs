//! From a decision to what it says, by way of the journal.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use crate::effect::Effect;
use crate::journal::{Appending, JournalError, OpId, Stages};
use crate::limits::Slot;
use crate::reason::Reason;

use super::decide::Decided;
use super::flight::{InFlight, PermittedCall, State};
use super::pass::Permit;
use super::refusal::Refusal;
use super::{Admission, Call, Gate, World, micros};

/// A decision on its way into the journal.
pub(super) struct Concluding<'g, R> {
    gate: &'g Gate,
    call: Call<R>,
    decided: Decided,
    world: Arc<World>,
    stages: Stages,
    /// When it was judged, on the gate's monotonic clock.
    judged_ns: u64,
    slot: Option<Slot>,
    record: Result<(OpId, Appending), JournalError>,
}

/// A decision that lets others come first, so that one write serves them all. Dropped before its end, what it lets pass is
/// recorded as aborted.
struct Later<'g, R> {
    concluding: Option<Concluding<'g, R>>,
    let_others: bool,
}

impl Gate {
    /// Writes the decision down, then gives what it says.
    pub(super) fn conclude<R>(
        &self,
        call: Call<R>,
        decided: Decided,
        world: Arc<World>,
        stages: Stages,
        judged_ns: u64,
    ) -> Admission<R> {
        self.begin_to_conclude(call, decided, world, stages, judged_ns)
            .finish()
    }

    /// Begins to write the decision down. What other calls decide before this one is finished leaves with the same write.
    pub(super) fn begin_to_conclude<R>(
        &self,
        call: Call<R>,
        mut decided: Decided,
        world: Arc<World>,
        stages: Stages,
        judged_ns: u64,
    ) -> Concluding<'_, R> {
        let slot = self.enter(&world, &call.facts, &mut decided);
        let record = decided.begin(&self.recorder, &world, &call.facts, &call.origin);
        Concluding {
            gate: self,
            call,
            decided,
            world,
            stages,
            judged_ns,
            slot,
            record,
        }
    }
}

impl<'g, R> Concluding<'g, R> {
    /// What the decision says, once it is in the journal.
    pub fn finish(self) -> Admission<R> {
        let Self {
            gate,
            call,
            decided,
            world,
            mut stages,
            judged_ns,
            slot,
            record,
        } = self;
        let recorder = &gate.recorder;
        let written = record.and_then(|(op, begun)| {
            recorder.finish(begun, (decided.effect, decided.reason))?;
            Ok(op)
        });
        let Ok(op) = written else {
            let facts = world.hidden(&call.facts);
            return Admission::Refused(decided.refusal(&facts, Reason::Journal));
        };
        if let Some(reason) = decided.reason {
            decided.observe(op, (recorder, &world), &call.facts, &call.origin);
            let refusal = decided.refusal(&world.hidden(&call.facts), reason);
            return Admission::Refused(Refusal {
                op: Some(op),
                ..refusal
            });
        }
        stages.journal_us = micros(recorder.clock.mono_ns().saturating_sub(judged_ns));
        let Call {
            caller,
            facts,
            origin,
            targets,
            request,
        } = call;
        let permitted = PermittedCall {
            op,
            world,
            begun_ns: origin.received_ns.saturating_sub(caller.identity_ns),
            facts,
            origin,
            targets,
            rule: decided.final_rule,
            is_approved: decided.effect == Effect::Hitl,
        };
        let flight = InFlight::new(State {
            stages,
            slot,
            ..State::new(recorder, permitted)
        });
        Admission::Permit(Permit {
            request: request.into_message(),
            flight,
        })
    }

    /// [`Concluding::finish`], after whatever else is ready to go on at this moment.
    pub fn finish_later(self) -> impl Future<Output = Admission<R>> + use<'g, R> {
        Later {
            concluding: Some(self),
            let_others: true,
        }
    }
}

// Nothing in it is pinned.
impl<R> Unpin for Later<'_, R> {}

impl<R> Future for Later<'_, R> {
    type Output = Admission<R>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Admission<R>> {
        if std::mem::take(&mut self.let_others) {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        match self.concluding.take() {
            Some(concluding) => Poll::Ready(concluding.finish()),
            None => Poll::Pending,
        }
    }
}

impl<R> Drop for Later<'_, R> {
    fn drop(&mut self) {
        if let Some(concluding) = self.concluding.take() {
            drop(concluding.finish());
        }
    }
}
