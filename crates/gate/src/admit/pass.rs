//! The passes that reach a peer. Nobody but this crate makes one, none can be copied, each is made out
//! to a destination, and spending one uses it up.
//!
//! A pass becomes a [`Spent`] at its destination, and a peer takes nothing else. What is wrong with the
//! destination gives the pass back as it was: nothing has been sent.

use crate::journal::OpId;
use crate::peer::PeerId;

use super::flight::InFlight;

/// Proof that the gate has seen the request, with the request inside.
///
/// Sealed: only [`Permit`], [`Control`] and [`Answer`] are passes.
pub trait Pass: sealed::Sealed + Sized {
    /// What is sent.
    type Request;
    /// What remains open after sending.
    type Open;

    /// Whether it is made out to this peer.
    fn is_for(&self, at: &PeerId) -> bool;

    /// Uses the pass up, for this peer.
    ///
    /// # Errors
    /// The pass itself, unspent, where it is made out to another peer.
    fn spend(self, at: &PeerId) -> Result<(Spent<Self::Request>, Self::Open), Self>;
}

mod sealed {
    pub trait Sealed {}
    impl<R> Sealed for super::Permit<R> {}
    impl<R> Sealed for super::Control<R> {}
    impl<R> Sealed for super::Answer<R> {}
}

/// A request that may leave now, for one peer and once. It owns the request.
#[must_use = "a request that is not taken is not sent"]
#[derive(Debug)]
pub struct Spent<R> {
    request: R,
    at: PeerId,
    op: OpId,
}

impl<R> Spent<R> {
    fn new(request: R, at: PeerId, op: OpId) -> Self {
        Self { request, at, op }
    }

    /// The request, to look at.
    pub fn request(&self) -> &R {
        &self.request
    }

    /// Whom it is for.
    #[must_use]
    pub fn at(&self) -> &PeerId {
        &self.at
    }

    /// The call that it belongs to; 0 for the protocol's own traffic.
    #[must_use]
    pub fn op(&self) -> OpId {
        self.op
    }

    /// Takes the request out. For peers only, each under its own name.
    ///
    /// # Errors
    /// The spent pass itself, where it is for another peer.
    pub fn take(self, here: &PeerId) -> Result<R, Self> {
        if self.at == *here {
            Ok(self.request)
        } else {
            Err(self)
        }
    }

    /// The same request under another destination of its call.
    fn moved_to(self, at: PeerId) -> Self {
        Self { at, ..self }
    }
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

    /// Returns the operation of the call.
    #[must_use]
    pub fn op(&self) -> OpId {
        self.flight.op()
    }

    /// The peers that it can be spent at, in the order in which they are to be tried.
    #[must_use]
    pub fn targets(&self) -> &[PeerId] {
        self.flight.targets()
    }

    /// The call is answered without being sent, such as from what is remembered of an earlier one.
    pub fn answer_locally(mut self) -> InFlight {
        self.flight.mark_answered_here();
        self.flight
    }
}

impl<R> Pass for Permit<R> {
    type Request = R;
    type Open = InFlight;

    fn is_for(&self, at: &PeerId) -> bool {
        self.flight.targets().contains(at)
    }

    fn spend(mut self, at: &PeerId) -> Result<(Spent<R>, InFlight), Self> {
        if !self.is_for(at) {
            return Err(self);
        }
        self.flight.mark_sent();
        let spent = Spent::new(self.request, at.clone(), self.flight.op());
        Ok((spent, self.flight))
    }
}

/// Leave to send the protocol's own traffic to one peer.
#[must_use = "a pass that is not spent sends nothing"]
#[derive(Debug)]
pub struct Control<R> {
    pub(super) request: R,
    pub(super) to: PeerId,
}

impl<R> Pass for Control<R> {
    type Request = R;
    type Open = ();

    fn is_for(&self, at: &PeerId) -> bool {
        self.to == *at
    }

    fn spend(self, at: &PeerId) -> Result<(Spent<R>, ()), Self> {
        if !self.is_for(at) {
            return Err(self);
        }
        Ok((Spent::new(self.request, self.to, OpId(0)), ()))
    }
}

impl InFlight {
    /// Ties the answer to this open request to it, so that it may be sent to whoever asked.
    pub fn answer<R>(self, request: R) -> Answer<R> {
        Answer {
            request,
            flight: self,
        }
    }

    /// A request of this call that a peer gave back unsent goes to another of its targets.
    ///
    /// # Errors
    /// The request as it was, where it belongs to another call or `at` is none of the targets.
    pub fn redirect<R>(&self, unsent: Spent<R>, at: &PeerId) -> Result<Spent<R>, Spent<R>> {
        if unsent.op() == self.op() && self.targets().contains(at) {
            Ok(unsent.moved_to(at.clone()))
        } else {
            Err(unsent)
        }
    }
}

/// Leave to send the answer to a request that was judged and is still open, to whoever asked.
#[must_use = "a pass that is not spent sends nothing"]
#[derive(Debug)]
pub struct Answer<R> {
    pub(super) request: R,
    pub(super) flight: InFlight,
}

impl<R> Pass for Answer<R> {
    type Request = R;
    type Open = InFlight;

    fn is_for(&self, at: &PeerId) -> bool {
        self.flight.was_asked_by(at)
    }

    fn spend(self, at: &PeerId) -> Result<(Spent<R>, InFlight), Self> {
        if !self.is_for(at) {
            return Err(self);
        }
        let spent = Spent::new(self.request, at.clone(), self.flight.op());
        Ok((spent, self.flight))
    }
}
