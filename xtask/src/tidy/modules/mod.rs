//! Which files make up a crate, and which of its modules name which others.
//!
//! Everything here comes from the source text: nothing is compiled, and a name is followed through `use` to the module
//! that defines it. Code that is compiled only for tests has modules but names nothing.

pub(super) mod links;
pub(super) mod map;
pub(super) mod names;
pub(super) mod roots;
