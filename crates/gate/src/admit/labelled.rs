//! Where data flow meets calls: a call is judged with the labels of its caller's session, and what comes back
//! labels that.

use std::sync::Arc;

use crate::caller::Caller;
use crate::facts::Facts;
use crate::flow::Cause;
use crate::inspect::{Finding, InspectedText, Inspection};
use crate::labels::{Label, Labels};

use super::flight::InFlight;
use super::{Gate, World};

impl Gate {
    /// States the labels of the caller's session, those that the call itself brings included.
    pub(super) fn state_labels(&self, world: &World, facts: &mut Facts, caller: &Caller) {
        let sessions = world.flow.sessions();
        if facts.inspected.is_none() && sessions.is_empty() {
            return;
        }
        let now_ns = self.mono_ns();
        if let Some(finding) = &facts.inspected
            && !finding.labels().is_empty()
        {
            let cause = Cause {
                server: facts.backend_id.as_str().into(),
                tool: facts.tool_name.known().map(|tool| tool.as_str().into()),
                op: None,
            };
            sessions.label(&caller.subject, finding.labels(), &cause, now_ns);
        }
        if let Some(held) = sessions.of(&caller.subject, now_ns) {
            facts.state_labels(Some(&held));
        }
    }

    /// The facts of what a call of this caller may still become, with the labels of the caller's session as they are
    /// now: rules that name labels hold for a further target as for the first.
    #[must_use]
    pub fn labelled(&self, caller: &Caller, mut facts: Facts) -> Facts {
        self.state_labels(&self.world(), &mut facts, caller);
        facts
    }

    /// What goes to a caller beside the answers to its calls, as the inspection leaves it: the same as for an answer,
    /// and its labels are those of the caller's session before this returns.
    pub fn said<'t>(
        &self,
        caller: &Arc<str>,
        server: &Arc<str>,
        look: impl FnOnce(&Inspection) -> InspectedText<'t>,
    ) -> Option<InspectedText<'t>> {
        let inspected = self.inspection().map(|inspection| look(&inspection));
        let finding = inspected.as_ref().and_then(|(_, finding)| finding.as_ref());
        let labels = finding.map(Finding::labels).unwrap_or_default();
        self.heard(caller, server, labels);
        inspected
    }

    /// A server has said something to this caller that answers no call of theirs; `labels` are those that the
    /// inspection gives it.
    pub fn heard(&self, caller: &Arc<str>, server: &Arc<str>, labels: Labels) {
        let world = self.world.load();
        let labels = labels.with(world.flow.of(server, None));
        self.label(&world, caller, server, labels);
    }

    /// Labels the session of a caller who reads what a server says of itself: a list, its instructions, an error in the
    /// place of either. That is the server's text, and nothing that it keeps for its users: `untrusted` alone counts.
    pub fn list_read(&self, caller: &Arc<str>, server: &Arc<str>) {
        let world = self.world.load();
        let all = world.flow.of(server, None);
        let labels = all.iter().filter(|label| *label == Label::Untrusted);
        self.label(&world, caller, server, labels.collect());
    }

    fn label(&self, world: &World, caller: &Arc<str>, server: &Arc<str>, labels: Labels) {
        if !labels.is_empty() {
            let cause = Cause {
                server: Arc::clone(server),
                tool: None,
                op: None,
            };
            let sessions = world.flow.sessions();
            sessions.label(caller, labels, &cause, self.mono_ns());
        }
    }
}

impl InFlight {
    /// Something has come back on this call; `labels` are those that the inspection gives it.
    pub fn came_back(&self, labels: Labels) {
        let Some(state) = &self.state else {
            return;
        };
        let (flow, facts) = (&state.world.flow, &state.facts);
        let tool = facts.tool_name.known().map(String::as_str);
        let labels = labels.with(flow.of(&facts.backend_id, tool));
        if !labels.is_empty() {
            let cause = Cause {
                server: facts.backend_id.as_str().into(),
                tool: tool.map(Into::into),
                op: Some(state.op.to_string().into()),
            };
            let caller: Arc<str> = facts.subject_id.as_str().into();
            let now_ns = state.recorder.clock.mono_ns();
            flow.sessions().label(&caller, labels, &cause, now_ns);
        }
    }
}
