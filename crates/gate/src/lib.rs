//! Who, how much, may it, ask a person, write it down: the one door through which every call goes.
//!
//! Invariants, as absences: this crate knows JSON but no protocol; it opens no socket, spawns
//! nothing, reads no environment and no clock (time, randomness and the view of the file system are
//! passed in). Nothing outside it can make a [`Permit`], and nothing can reach an upstream without
//! a pass made here.

pub mod clock;
pub mod facts;
pub mod paths;
pub mod policy;
