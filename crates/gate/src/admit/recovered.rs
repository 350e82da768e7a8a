//! Calls that another process has left open: their end is recorded by the next one.

use crate::journal::{JournalError, OpId, Operation, Record, Recovery, Status, Usage};
use crate::peer::Transport;

use super::Gate;

/// A call whose decision is in the journal, and whose process ended before it did.
#[derive(Debug, Clone, Copy)]
pub struct Unfinished<'a> {
    /// The call, as in its decision.
    pub op: OpId,
    /// The client's own id of the request.
    pub request_id: &'a str,
    /// The run that it belongs to.
    pub run_id: Option<&'a str>,
    /// The method.
    pub method: &'a str,
    /// Which server answered.
    pub backend_id: &'a str,
    /// What was used of it until then.
    pub usage: Usage,
}

impl Gate {
    /// Records the end of a call that another process has left open: it has failed, and this was used.
    ///
    /// # Errors
    /// What the journal says.
    pub fn settle_unfinished(&self, call: &Unfinished<'_>) -> Result<(), JournalError> {
        let record = Record::Operation(&Operation {
            op: call.op,
            status: Status::Failure,
            request_id: Some(call.request_id),
            run_id: call.run_id,
            method: Some(call.method),
            backend_id: Some(call.backend_id),
            reason: Some(Recovery::Settled.into()),
            transport: Some(Transport::Http),
            usage: call.usage,
            ..Operation::default()
        });
        self.recorder.write(&record).map(drop)
    }
}
