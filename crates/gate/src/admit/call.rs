//! A call as a face hands it to the gate.

use std::sync::Arc;

use crate::caller::Caller;
use crate::facts::Facts;
use crate::inspect::Inspected;
use crate::journal::{Digest, OpId};
use crate::label::Label;
use crate::peer::{Targets, Transport};
use crate::run::RunId;

/// A request and what is known of it. The gate owns the request from here on.
#[derive(Debug)]
pub struct Call<R> {
    /// Who calls. The fact `subject_id` is the caller's, whatever the face has stated.
    pub caller: Caller,
    /// What the call is about.
    pub facts: Box<Facts>,
    /// Where it came from.
    pub origin: Box<Origin>,
    /// Where it may be sent.
    pub targets: Targets,
    /// The request that is sent if the call passes. Its finding is a fact of the call.
    pub request: Inspected<R>,
}

/// Where a call came from and when.
#[derive(Debug, Clone, Default)]
pub struct Origin {
    /// The client's own id of the request, as spelled.
    pub request_id: String,
    /// The session.
    pub session_id: Arc<str>,
    /// The protocol's era.
    pub era: Option<Label>,
    /// The client program, where it named itself.
    pub client_id: Option<Arc<str>>,
    /// How the server is reached.
    pub transport: Transport,
    /// The run that it belongs to, where the caller named one.
    pub run: Option<RunId>,
    /// The call on whose behalf this one is made, such as an agent's turn.
    pub parent_op: Option<OpId>,
    /// Keyed digest of the arguments, by [`crate::Gate::digest`].
    pub arguments_digest: Option<Digest>,
    /// When the frame was read, on the gate's monotonic clock.
    pub received_ns: u64,
    /// It has waited for its server's list of tools since before any drain: it is judged as if it had
    /// come then.
    pub waited: bool,
}
