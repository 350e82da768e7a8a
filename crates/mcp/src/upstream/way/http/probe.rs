//! Whether a server is there at all.

use std::sync::Arc;

use gate::{ControlKind, Gate, PeerId};

use super::{HttpSession, HttpUpstream, Incoming};
use crate::message::frames::{Failure, UpstreamFault as Fault};
use crate::upstream::{Frame, taken};

/// How long the server may take to answer, in milliseconds.
const PROBE_MS_MAX: u64 = 10_000;

/// The opening message of the Legacy era; a server of the other era answers it with an error, which
/// shows as well that it is there.
const INITIALIZE: &str = concat!(
    r#"{"jsonrpc":"2.0","id":"durward-probe","method":"initialize","params":{"protocolVersion":"2025-11-25","#,
    r#""capabilities":{},"clientInfo":{"name":"durward","version":""#,
    env!("CARGO_PKG_VERSION"),
    r#""}}}"#
);

impl HttpUpstream {
    /// Opens a session and ends it again: whether a message, be it an error, comes back.
    ///
    /// # Errors
    /// What is wrong instead.
    pub async fn probe(self: &Arc<Self>, gate: &Arc<Gate>) -> Result<(), Failure> {
        let mut session = HttpSession::new(
            PeerId::server(self.place()),
            Arc::clone(self),
            Arc::clone(gate),
        );
        session.call_ms_max = PROBE_MS_MAX;
        session.reconnect_ms_max = 0;
        let session = Arc::new(session);
        let frame = Frame::from(INITIALIZE.as_bytes().to_vec());
        let pass = gate.control(ControlKind::Handshake, session.id(), frame);
        let (frame, ()) = taken(pass, session.id()).ok_or(Fault::Unreachable)?;
        let mut exchange = session.carry(frame);
        let outcome = loop {
            match exchange.next().await {
                Some(Incoming::Response(_)) => break Ok(()),
                Some(Incoming::Failed(failure)) => break Err(failure),
                Some(Incoming::Message(_) | Incoming::Odd(..)) => {}
                None => break Err(Fault::NoAnswer.into()),
            }
        };
        drop(exchange);
        session.close().await;
        outcome
    }
}
