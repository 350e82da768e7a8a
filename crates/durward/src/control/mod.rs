//! Commands that ask running instances, and the end of the control socket that a running instance has.

pub mod reload;
pub mod server;
