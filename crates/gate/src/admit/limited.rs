//! Where limits meet calls: before the policy (how many, how often), before the send (how many at
//! once), and what is written of those that are turned away.

use std::borrow::Cow;

use crate::facts::{Direction, Facts, ResourceType};
use crate::journal::{JournalError, Record};
use crate::limits::{Counted, Lane, Limits, Slot, Standing, Stop, Who};
use crate::peer::PeerId;
use crate::reason::Reason;

use super::call::{Call, Origin};
use super::control::ControlKind;
use super::decide::Decided;
use super::early_refusals::{Due, Tally};
use super::pass::Control;
use super::refusal::Refusal;
use super::{Gate, World};

/// A call that ends before the policy is asked.
pub(super) struct TurnAway {
    reason: Reason,
    retry_after_ms: Option<u64>,
}

impl TurnAway {
    /// A revoked key gets nothing more, whatever the call has waited for.
    pub(super) fn revoked() -> Self {
        Self {
            reason: Reason::CallerRevoked,
            retry_after_ms: None,
        }
    }
}

impl Gate {
    /// Counts a call against the limits. What is refused later was counted nevertheless: trying what
    /// is forbidden costs as much as doing what is allowed.
    pub(super) async fn within_limits(
        &self,
        world: &World,
        facts: &Facts,
        counted: Counted,
        origin: &Origin,
        now_ns: u64,
    ) -> Result<Standing, TurnAway> {
        let lane = match facts.direction {
            Direction::ToServer => Lane::Calls,
            Direction::ToClient => Lane::ToClient,
        };
        self.check_draining(origin)?;
        let (counters, limits) = (&self.recorder.counters, &world.limits);
        let standing = counters.arrive(limits, lane, counted, now_ns).await?;
        counters.check_journal_bytes(limits, facts.direction, counted, now_ns)?;
        Ok(standing)
    }

    /// Returns the keys that a call is counted by.
    pub(super) fn counted(&self, facts: &Facts) -> Counted {
        self.recorder.counters.of(&who(facts))
    }

    fn arrive(
        &self,
        world: &World,
        lane: Lane,
        counted: Counted,
        origin: &Origin,
        now_ns: u64,
    ) -> Result<Standing, TurnAway> {
        self.check_draining(origin)?;
        self.recorder
            .counters
            .arrive_now(&world.limits, lane, counted, now_ns)
            .map_err(TurnAway::from)
    }

    fn check_draining(&self, origin: &Origin) -> Result<(), TurnAway> {
        match self.is_draining() && !origin.waited {
            true => Err(TurnAway {
                reason: Reason::Draining,
                retry_after_ms: None,
            }),
            false => Ok(()),
        }
    }

    /// Refuses a call before the policy: journalled as the first of its second, or counted.
    pub(super) fn turn_away(
        &self,
        world: &World,
        facts: &Facts,
        origin: &Origin,
        why: TurnAway,
    ) -> Refusal {
        let mut decided = Decided::refused(why.reason);
        decided.retry_after_ms = why.retry_after_ms;
        let Due { first, tallies } =
            self.turned_away
                .add(facts, origin, why.reason, self.mono_ns());
        let mut written = self.write_tallies(tallies).map(|()| None);
        if first && written.is_ok() {
            let affordable = self.affordable(world, facts);
            written = decided
                .write(&self.recorder, world, &affordable, origin)
                .map(Some);
            if let Ok(Some(op)) = written {
                decided.observe(op, (&self.recorder, world), facts, origin);
            }
        }
        let (op, reason) = match written {
            Ok(op) if !self.has_failed() => (op, why.reason),
            Ok(_) | Err(_) => (None, Reason::Journal),
        };
        let refusal = decided.refusal(&world.hidden(facts), reason);
        Refusal { op, ..refusal }
    }

    pub(super) fn write_tallies(&self, tallies: Vec<Tally>) -> Result<(), JournalError> {
        tallies.iter().try_for_each(|tally| {
            let record = tally.record(self.recorder.next_op(self.wall_ms()));
            let bytes = self.recorder.write(&Record::Decision(&record))?;
            self.recorder
                .charge(&tally.subject_id, tally.direction, bytes);
            Ok(())
        })
    }

    /// Returns the facts that a refusal is recorded with. A caller beyond its bytes of records gets only caller, server and tool
    /// recorded.
    fn affordable<'f>(&self, world: &World, facts: &'f Facts) -> Cow<'f, Facts> {
        let counters = &self.recorder.counters;
        let (counted, now_ns) = (self.counted(facts), self.mono_ns());
        match counters.check_journal_bytes(&world.limits, facts.direction, counted, now_ns) {
            Ok(()) => Cow::Borrowed(facts),
            Err(_) => Cow::Owned(Facts {
                direction: facts.direction,
                method: facts.method.clone(),
                tool_name: facts.tool_name.clone(),
                backend_id: facts.backend_id.clone(),
                resource_type: facts.resource_type,
                subject_id: facts.subject_id.clone(),
                ..Facts::default()
            }),
        }
    }

    /// Takes a place among the calls under way; without one, what could pass is refused after all.
    pub(super) fn enter(
        &self,
        world: &World,
        facts: &Facts,
        decided: &mut Decided,
    ) -> Option<Slot> {
        if decided.reason.is_some() || facts.direction == Direction::ToClient {
            return None;
        }
        let counted = decided.counted.unwrap_or_else(|| self.counted(facts));
        match self.recorder.counters.enter(&world.limits, counted) {
            Ok(slot) => Some(slot),
            Err(stop) => {
                decided.stop(TurnAway::from(stop).reason);
                None
            }
        }
    }

    /// A pass for a request of the protocol's own traffic that a caller may repeat at will (lists,
    /// pings, log levels). They count against the limits; handshakes, cancellations and notifications
    /// do not, see [`Gate::control`].
    ///
    /// # Errors
    /// The refusal, where the caller is beyond its limits.
    pub fn admit_control<R>(
        &self,
        kind: ControlKind,
        facts: &Facts,
        origin: &Origin,
        to: &PeerId,
        request: R,
    ) -> Result<Control<R>, Box<Refusal>> {
        let lane = match kind {
            ControlKind::List => Lane::Calls,
            ControlKind::Ping | ControlKind::LogLevel => Lane::Liveness,
            ControlKind::Handshake
            | ControlKind::Cancel
            | ControlKind::News
            | ControlKind::Complaint => return Ok(self.control(kind, to, request)),
        };
        let world = self.world();
        let counted = self.counted(facts);
        self.arrive(&world, lane, counted, origin, self.mono_ns())
            .map_err(|why| Box::new(self.turn_away(&world, facts, origin, why)))?;
        Ok(self.control(kind, to, request))
    }

    /// Counts a request that is answered here, without a judgement, as a call is counted.
    ///
    /// # Errors
    /// The refusal, where the caller is beyond its limits.
    pub fn admit_stray(&self, facts: &Facts, origin: &Origin) -> Result<(), Box<Refusal>> {
        let world = self.world();
        let counted = self.counted(facts);
        self.arrive(&world, Lane::Calls, counted, origin, self.mono_ns())
            .map(drop)
            .map_err(|why| Box::new(self.turn_away(&world, facts, origin, why)))
    }

    /// A person said yes to a call beyond its tool's window: the window begins anew.
    pub(super) fn note_approved<R>(&self, world: &World, call: &Call<R>, decided: &Decided) {
        if decided.escalated {
            let counted = self.counted(&call.facts);
            self.recorder
                .counters
                .restart_window(&world.limits, counted, self.mono_ns());
        }
    }

    /// Refuses a call before the policy, for a reason that a face knows: it counts as a call, and is journalled
    /// as one that is beyond its limits is.
    pub fn refuse(
        &self,
        facts: &Facts,
        origin: &Origin,
        reason: Reason,
        retry_after_ms: Option<u64>,
    ) -> Box<Refusal> {
        if let Err(refusal) = self.admit_stray(facts, origin) {
            return refusal;
        }
        let why = TurnAway {
            reason,
            retry_after_ms,
        };
        Box::new(self.turn_away(&self.world(), facts, origin, why))
    }

    /// The limits in force.
    #[must_use]
    pub fn limits(&self) -> Limits {
        self.world.load().limits
    }

    /// Writes what is still counted and not written. To be called before the journal is closed.
    ///
    /// # Errors
    /// What the journal says; the gate then refuses every further call.
    pub fn flush(&self) -> Result<(), JournalError> {
        self.write_tallies(self.turned_away.all())
    }
}

impl From<Stop> for TurnAway {
    fn from(stop: Stop) -> Self {
        let ms = |wait_ns: u64| Some(wait_ns.div_ceil(1_000_000));
        let (reason, retry_after_ms) = match stop {
            Stop::Requests { wait_ns } => (Reason::RateLimit, ms(wait_ns)),
            Stop::Tool { wait_ns } => (Reason::ToolRateLimit, ms(wait_ns)),
            Stop::JournalBytes { wait_ns } => (Reason::JournalBytesLimit, ms(wait_ns)),
            Stop::UnderWay => (Reason::UnderWayLimit, None),
        };
        Self {
            reason,
            retry_after_ms,
        }
    }
}

fn who(facts: &Facts) -> Who<'_> {
    Who {
        subject_id: &facts.subject_id,
        backend_id: &facts.backend_id,
        tool: match facts.resource_type {
            Some(ResourceType::Tool) => facts.tool_name.known().map(String::as_str),
            Some(
                ResourceType::Resource
                | ResourceType::Prompt
                | ResourceType::Server
                | ResourceType::Model,
            )
            | None => None,
        },
    }
}
