//! What the client of a refused request is told.

use gate::facts::Facts;
use gate::{Origin, Refusal};

use super::client::{Asker, CallStep};
use super::input_required::Stray;
use super::read::Names;
use crate::message::refusal::{self, Dialect, Refusals};
use crate::notes::Note;

impl Asker {
    /// What the client of a refused request is told.
    pub(super) fn refused(&self, names: &Names, refusal: &Refusal) -> Vec<u8> {
        self.client.on_step(CallStep::Refused(refusal));
        if !self.refuses_by_result(names) {
            return refusal::as_error(&names.id, refusal);
        }
        let dialect = Dialect {
            is_modern: self.is_modern(),
            // A refusal of what a result asks for names no tool.
            has_output_schema: refusal
                .tool_name
                .as_deref()
                .is_none_or(|tool| self.server.has_output_schema(tool)),
        };
        refusal::as_result(&names.id, refusal, (dialect, names.unfit.as_deref()))
    }

    /// Whether a refusal of this request is a result.
    pub(super) fn refuses_by_result(&self, names: &Names) -> bool {
        names.is_tool_call && self.server.refusals == Refusals::Result
    }

    /// What a client is told that comes back for a call that is not kept; such returns count as calls.
    pub(super) fn strayed(
        &self,
        stray: Stray,
        names: &Names,
        facts: &Facts,
        origin: &Origin,
    ) -> Vec<u8> {
        let counted = self.server.gate.admit_stray(facts, origin);
        self.client
            .note(Note::RequestStateUnusable.with(stray.sentence()));
        match counted {
            Ok(()) => stray.answer(&names.id),
            Err(refusal) => self.refused(names, &refusal),
        }
    }
}
