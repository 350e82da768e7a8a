//! Who, how much, may it, ask a person, write it down: the one door through which every call goes.
//!
//! Invariants, as absences: this crate knows JSON but no protocol; it opens no socket, spawns
//! nothing, reads no environment and no clock (time, randomness and the view of the file system are
//! passed in). Nothing outside it can make a [`Permit`], and nothing can reach an upstream without
//! a pass made here.

pub mod admit;
pub mod approval;
pub mod caller;
pub mod channel;
pub mod clock;
pub mod effect;
pub mod effects;
pub mod facts;
pub mod flow;
pub mod identity;
pub mod inspect;
pub mod journal;
pub mod label;
pub mod labels;
pub mod limits;
mod memo;
pub mod names;
pub mod paths;
pub mod peer;
pub mod pins;
pub mod policy;
pub mod reason;
pub mod revocation;
pub mod run;
pub mod urls;
mod words;

pub use admit::{
    Admission, Answer, AnswerVerdict, Attempt, Call, Control, ControlKind, Ended, Gate, InFlight,
    Observed, Observer, Origin, Outcome, Pass, Permit, Refusal, Spent, Ticket, Unfinished, World,
};
pub use caller::Caller;
pub use clock::Clock;
pub use label::{ClosedSet, Explained, Label};
pub use peer::{PeerId, Targets, Transport};
pub use reason::Reason;
pub use revocation::RevocationFlag;
pub use run::{Parent, RunId};
