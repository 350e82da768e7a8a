//! The three passes that reach a peer. Nobody but this crate makes one, none can be copied, and
//! spending one uses it up.

use super::flight::InFlight;

/// What a sender asks for: proof that the gate has seen the request, with the request inside.
///
/// Sealed: only [`Permit`], [`Control`] and [`Answer`] are passes.
pub trait Pass: sealed::Sealed {
    /// What is sent.
    type Request;
    /// What remains open after sending.
    type Open;
    /// Uses the pass up. For senders only.
    fn spend(self) -> (Self::Request, Self::Open);
}

mod sealed {
    pub trait Sealed {}
    impl<R> Sealed for super::Permit<R> {}
    impl<R> Sealed for super::Control<R> {}
    impl<R> Sealed for super::Answer<R> {}
}

/// Leave to send one judged request, which it owns. Dropped unsent, the call is settled as *aborted*.
#[must_use = "a permit that is not spent aborts its call"]
#[derive(Debug)]
pub struct Permit<R> {
    pub(super) request: R,
    pub(super) flight: InFlight,
}

impl<R> Permit<R> {
    /// The request, to look at.
    pub fn request(&self) -> &R {
        &self.request
    }
}

impl<R> Pass for Permit<R> {
    type Request = R;
    type Open = InFlight;
    fn spend(mut self) -> (R, InFlight) {
        self.flight.mark_sent();
        (self.request, self.flight)
    }
}

/// The protocol's own traffic, which no rule speaks of. Counted, not journalled one by one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ControlKind {
    /// Opening a session or asking what a server can do (`initialize`, `server/discover`).
    Handshake,
    /// `ping`.
    Ping,
    /// Listing; what comes back is filtered by the policy.
    List,
    /// Cancelling an open call.
    Cancel,
    /// News about an open call or a list (progress, list-changed, log messages).
    News,
    /// Setting the log level.
    LogLevel,
    /// The peer's message could not be read; telling it so.
    Complaint,
}

impl ControlKind {
    /// All, in order.
    pub const ALL: [Self; 7] = [
        Self::Handshake,
        Self::Ping,
        Self::List,
        Self::Cancel,
        Self::News,
        Self::LogLevel,
        Self::Complaint,
    ];

    /// The label.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::Handshake => "handshake",
            Self::Ping => "ping",
            Self::List => "list",
            Self::Cancel => "cancel",
            Self::News => "news",
            Self::LogLevel => "log_level",
            Self::Complaint => "complaint",
        }
    }
}

/// Leave to send the protocol's own traffic.
#[must_use = "a pass that is not spent sends nothing"]
#[derive(Debug)]
pub struct Control<R> {
    pub(super) request: R,
}

impl<R> Pass for Control<R> {
    type Request = R;
    type Open = ();
    fn spend(self) -> (R, ()) {
        (self.request, ())
    }
}

/// Leave to send the answer to a request that was judged and is still open.
#[must_use = "a pass that is not spent sends nothing"]
#[derive(Debug)]
pub struct Answer<R> {
    pub(super) request: R,
    pub(super) flight: InFlight,
}

impl<R> Pass for Answer<R> {
    type Request = R;
    type Open = InFlight;
    fn spend(self) -> (R, InFlight) {
        (self.request, self.flight)
    }
}
