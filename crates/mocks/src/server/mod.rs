//! An MCP server without a transport: a frame goes in, actions come out.
//!
//! Both eras are spoken by one [`Server`]: Legacy after `initialize` (2024-11-05 to 2025-11-25), Modern
//! (2026-07-28) for every request whose `_meta` names a version.

mod dispatch;
mod era;
mod fault;
mod surface;

pub(crate) use dispatch::Server;
pub use era::{
    Eras, LEGACY_VERSIONS, META_CAPABILITIES, META_CLIENT, META_SERVER, META_VERSION,
    MODERN_VERSION,
};
pub(crate) use fault::Fault;
pub(crate) use surface::{Called, Identity, Surface};

use std::time::Duration;

/// What a transport is to do for a machine, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Send one frame; the transport adds the framing.
    Send(Vec<u8>),
    /// Send one frame after a wait, unless it is withdrawn first.
    SendLater {
        /// The request it answers, as spelled on the wire.
        id: String,
        /// How long to wait.
        after: Duration,
        /// The frame.
        frame: Vec<u8>,
    },
    /// Forget the delayed frame that answers this request id.
    Withdraw {
        /// The id as spelled on the wire.
        id: String,
    },
    /// Write bytes as they are, without framing.
    SendRaw(Vec<u8>),
    /// Write this many bytes of log lines to standard error.
    Complain {
        /// How many bytes.
        bytes: usize,
    },
    /// Stay alive after the end of input, at most this long.
    Linger(Duration),
    /// End the process with this exit code.
    End(u8),
}

/// Protocol logic that any transport can drive.
pub trait Machine {
    /// Takes one frame and appends what is to be done.
    fn handle(&mut self, frame: &[u8], actions: &mut Vec<Action>);

    /// Takes the end of input and appends what is to be done; nothing appended ends the process with 0.
    fn end_of_input(&mut self, _actions: &mut Vec<Action>) {}

    /// Takes a frame that was longer than the transport's bound and was dropped.
    fn too_long(&mut self, actions: &mut Vec<Action>) {
        let fault = Fault::InvalidRequest("the frame is longer than 32 MiB; send less".into());
        actions.push(Action::Send(
            fault.frame("null", era::Era::Legacy("2025-11-25")),
        ));
    }
}
