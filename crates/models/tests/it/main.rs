//! The crate from outside.

mod no_way_around_the_gate;
