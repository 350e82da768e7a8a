//! The crate from outside.

mod tags;
