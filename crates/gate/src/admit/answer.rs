//! The answer of a client to a request of its server: judged by what it says, on top of the judgement of the request.

use std::sync::Arc;

use crate::effect::Effect;
use crate::facts::{Fact, Facts};
use crate::inspect::Inspected;

use super::decide::Decided;
use super::flight::{InFlight, PermittedCall, State};
use super::refusal::Refusal;
use super::{Gate, micros};
use crate::flow::Cause;
use crate::reason::Reason;

/// The decision about an answer.
#[must_use = "an answer goes to its server only if it passes"]
#[derive(Debug)]
pub enum AnswerVerdict {
    /// It goes to the server that asked.
    Passes,
    /// It does not; the refusal is in the journal.
    Refused(Box<Refusal>),
    /// The rules want a person who has not been asked: it is to be admitted as a call of its own.
    Asks,
}

impl Gate {
    /// Judges the answer to an open request by the rules that are in force now; `facts` say what the answer leads to.
    ///
    /// An answer that names a path or a URL, and one that is refused, is a decision record of its own, which ends
    /// with the request. Any other is covered by the record of the request. The yes that a person gave to the request
    /// counts for the answer if the same rule asks for it.
    pub fn judge_answer<R>(
        &self,
        flight: &mut InFlight,
        mut facts: Box<Facts>,
        answer: &Inspected<R>,
    ) -> AnswerVerdict {
        let Some(state) = &mut flight.state else {
            return AnswerVerdict::Refused(Box::new(Refusal::over()));
        };
        let world = self.world();
        let begun_ns = self.mono_ns();
        if let Some(finding) = answer.finding() {
            facts.state_finding(finding);
        }
        let caller: Arc<str> = facts.subject_id.as_str().into();
        let sessions = world.flow.sessions();
        if let Some(finding) = &facts.inspected
            && !finding.labels().is_empty()
        {
            let cause = Cause {
                server: facts.backend_id.as_str().into(),
                tool: None,
                op: Some(state.op.to_string().into()),
            };
            sessions.label(&caller, finding.labels(), &cause, begun_ns);
        }
        if let Some(held) = sessions.of(&caller, begun_ns) {
            facts.state_labels(Some(&held));
        }
        let mut decided = match facts.quarantine {
            Some(quarantine) => Decided::refused(quarantine.reason()),
            None => Decided::by_policy(&world, &facts).joined_by_finding(&facts),
        };
        let is_approved = state.is_approved && state.rule == decided.final_rule;
        if decided.effect == Effect::Hitl && !is_approved {
            if !self.is_draining() {
                return AnswerVerdict::Asks;
            }
            decided = Decided::refused(Reason::Draining);
        }
        if decided.reason.is_none() && !leads_somewhere(&facts, &state.facts) {
            return AnswerVerdict::Passes;
        }
        decided.policy_us = micros(self.mono_ns().saturating_sub(begun_ns));
        let written = decided.write(&self.recorder, &world, &facts, &state.origin);
        let hidden = world.hidden(&facts);
        let Ok(op) = written else {
            return AnswerVerdict::Refused(Box::new(decided.refusal(&hidden, Reason::Journal)));
        };
        if let Some(reason) = decided.reason {
            return AnswerVerdict::Refused(Box::new(decided.refusal(&hidden, reason)));
        }
        drop(hidden);
        let permitted = PermittedCall {
            op,
            world,
            facts,
            origin: state.origin.clone(),
            targets: state.targets.clone(),
            rule: Arc::clone(&decided.final_rule),
            is_approved,
            begun_ns,
        };
        let answer = State {
            sent_ns: Some(begun_ns),
            if_dropped: state.if_dropped,
            ..State::new(&self.recorder, permitted)
        };
        state.beside.push(answer);
        AnswerVerdict::Passes
    }
}

/// Returns whether an answer names a path or a URL that its request did not name. Single words are no paths.
fn leads_somewhere(answer: &Facts, request: &Facts) -> bool {
    let has_paths = match &answer.paths {
        Fact::Known(paths) => !paths.is_empty(),
        _ => true,
    };
    let (said, asked) = (&answer.reach, &request.reach);
    has_paths
        || said.unread
        || said.urls != asked.urls
        || ![&said.places, &said.relative, &said.globs, &said.schemes]
            .iter()
            .all(|found| found.is_empty())
}
