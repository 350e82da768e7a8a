//! A call that reaches several machines: each of them is judged and recorded on its own.

use std::sync::Arc;

use crate::effect::Effect;
use crate::facts::{Fact, FactId, Facts, Value};
use crate::journal::{Micros, Status};
use crate::paths::PathArgument;
use crate::peer::PeerId;
use crate::reason::Reason;

use super::decide::Decided;
use super::flight::{Attempt, InFlight, Outcome, PermittedCall, State};
use super::refusal::Refusal;

impl InFlight {
    /// Judges the same call at a further machine of this name, where its paths lead to these places too. The
    /// decision is a record of its own and ends as the whole call does, unless [`Self::ended_at`] says otherwise.
    ///
    /// Where the rules want a person there, the yes that the call was begun with counts if the same rule asked
    /// for it: the person has read the names of all machines.
    ///
    /// # Errors
    /// The refusal; the whole call is settled as *aborted*, and nothing of it may be carried out any more. A call
    /// that is settled already is refused.
    pub fn beside(
        &mut self,
        host: &str,
        places: impl IntoIterator<Item = PathArgument>,
    ) -> Result<(), Box<Refusal>> {
        let Some(mut state) = self.state.take() else {
            return Err(Box::new(Refusal::over()));
        };
        let mut facts = state.facts.clone();
        let _ = facts.set(FactId::Host, Fact::Known(host.into()));
        facts.add_paths(places);
        let refusal = match state.judged_beside(facts) {
            Ok(further) => {
                state.beside.push(further);
                self.state = Some(state);
                return Ok(());
            }
            Err(refusal) => refusal,
        };
        Self { state: Some(state) }.finish(Outcome {
            status: Status::Aborted,
            reason: Some(refusal.reason.into()),
            ..Outcome::default()
        });
        Err(refusal)
    }

    /// Notes how the call ended at the machine of this name. At a further machine its own operation record says so; at the
    /// machine that the call was begun for it is an attempt of the call's record. What was noted first stays, and a machine
    /// that was not judged is passed over.
    pub fn ended_at(&mut self, host: &str, outcome: Outcome) {
        let Some(state) = &mut self.state else {
            return;
        };
        let now = state.recorder.clock.mono_ns();
        if state.is_at(host) {
            let begun = state.sent_ns.unwrap_or(state.begun_ns);
            self.attempt(Attempt {
                peer: PeerId::server(host),
                model: None,
                status: outcome.status,
                reason: outcome.reason,
                duration: Micros::from_nanos(now.saturating_sub(begun)),
            });
            return;
        }
        let further = state
            .beside
            .iter_mut()
            .filter(|further| further.is_at(host));
        for further in further {
            further.ended.get_or_insert((outcome, now));
        }
    }
}

impl State {
    fn is_at(&self, host: &str) -> bool {
        self.facts.get(FactId::Host).known().and_then(Value::text) == Some(host)
    }

    fn judged_beside(&self, facts: Box<Facts>) -> Result<Self, Box<Refusal>> {
        let mut decided = match facts.quarantine {
            Some(quarantine) => Decided::refused(quarantine.reason()),
            None => Decided::by_policy(&self.world, &facts),
        };
        let is_asked = decided.effect == Effect::Hitl;
        let is_approved = self.is_approved && self.rule == decided.final_rule;
        if is_asked && !is_approved {
            decided.reason = Some(Reason::ApprovalTooLate);
        }
        let written = decided.write(&self.recorder, &self.world, &facts, &self.origin);
        let Ok(op) = written else {
            let facts = self.world.hidden(&facts);
            return Err(Box::new(decided.refusal(&facts, Reason::Journal)));
        };
        if let Some(reason) = decided.reason {
            return Err(Box::new(
                decided.refusal(&self.world.hidden(&facts), reason),
            ));
        }
        let permitted = PermittedCall {
            op,
            world: Arc::clone(&self.world),
            facts,
            origin: self.origin.clone(),
            targets: self.targets.clone(),
            rule: self.rule.clone(),
            is_approved: self.is_approved,
            begun_ns: self.recorder.clock.mono_ns(),
        };
        Ok(Self {
            sent_ns: self.sent_ns,
            answered_here: self.answered_here,
            if_dropped: self.if_dropped,
            ..Self::new(&self.recorder, permitted)
        })
    }
}
