//! A permit, or a call that is under way, under facts that became known after the decision: it may only be taken
//! back by them.

use crate::effect::Effect;
use crate::facts::{Fact, Facts};
use crate::journal::Status;
use crate::reason::Reason;

use super::decide::Decided;
use super::flight::{InFlight, Outcome, State};
use super::pass::Permit;
use super::refusal::Refusal;

impl<R> Permit<R> {
    /// Judges the call again, now that more is known of it, by the rules that it was judged by first.
    /// What was known must still stand there: facts can be added, and unknown ones become known.
    ///
    /// A refusal is a decision of its own in the journal, and the call that was permitted is settled as
    /// *aborted* for the same reason. Where the rules now want a person, the call is refused: nobody
    /// can be asked any more.
    ///
    /// # Errors
    /// The refusal; nothing was sent, and nothing can be.
    pub fn narrow(mut self, tighter: Facts) -> Result<Self, Box<Refusal>> {
        self.flight.narrow(|facts| *facts = tighter)?;
        Ok(self)
    }
}

impl InFlight {
    /// The same for a call that its peer has taken and does not carry out before this says yes: a peer in this
    /// process that had to ask elsewhere what the call is about. `tighten` changes the facts of the decision.
    ///
    /// # Errors
    /// The refusal; the call is settled, and its peer must not carry it out. One that was settled before is
    /// refused.
    pub fn narrow(&mut self, tighten: impl FnOnce(&mut Facts)) -> Result<(), Box<Refusal>> {
        let Some(mut state) = self.state.take() else {
            return Err(Box::new(Refusal::over()));
        };
        let mut tighter = state.facts.clone();
        tighten(&mut tighter);
        let Some(refusal) = state.narrowed(tighter) else {
            self.state = Some(state);
            return Ok(());
        };
        Self { state: Some(state) }.finish(Outcome {
            status: Status::Aborted,
            reason: Some(refusal.reason.into()),
            ..Outcome::default()
        });
        Err(Box::new(refusal))
    }
}

impl State {
    /// Takes the facts over, or says why they end the call.
    fn narrowed(&mut self, tighter: Box<Facts>) -> Option<Refusal> {
        let mut decided = if !is_narrower(&self.facts, &tighter) {
            Decided::refused(Reason::FactsChanged)
        } else if let Some(quarantine) = tighter.quarantine {
            Decided::refused(quarantine.reason())
        } else {
            Decided::by_policy(&self.world, &tighter)
        };
        if decided.effect == Effect::Hitl {
            decided.reason = Some(Reason::ApprovalTooLate);
        }
        let Some(reason) = decided.reason else {
            self.facts = tighter;
            return None;
        };
        let written = decided.write(&self.recorder, &self.world, &tighter, &self.origin);
        let reason = written.map_or(Reason::Journal, |_| reason);
        self.rule.clone_from(&decided.final_rule);
        Some(decided.refusal(&self.world.hidden(&tighter), reason))
    }
}

/// Whether nothing that was known has become something else.
fn is_narrower(wide: &Facts, narrow: &Facts) -> bool {
    fn kept<T: PartialEq>(wide: &Fact<T>, narrow: &Fact<T>) -> bool {
        wide.known().is_none() || wide == narrow
    }
    let paths_kept = match (&wide.paths, &narrow.paths) {
        (Fact::Known(wide), Fact::Known(narrow)) => wide.iter().all(|path| narrow.contains(path)),
        (Fact::Known(_), _) => false,
        (Fact::Unknown | Fact::Absent, _) => true,
    };
    paths_kept
        && wide.direction == narrow.direction
        && wide.method == narrow.method
        && wide.backend_id == narrow.backend_id
        && wide.resource_type == narrow.resource_type
        && wide.subject_id == narrow.subject_id
        && kept(&wide.tool_name, &narrow.tool_name)
        && kept(&wide.uri, &narrow.uri)
        && kept(&wide.definition, &narrow.definition)
        && (wide.operation.is_none() || wide.operation == narrow.operation)
        && (wide.side_effects.is_none() || wide.side_effects == narrow.side_effects)
        && wide
            .kept_beside()
            .all(|(row, value)| value.known().is_none() || narrow.get(row.id) == value)
}
