//! The MCP face: a client in front, a server or several behind, the gate between.
//!
//! Invariants, as absences: nothing here decides who may do what (the gate does); no frame reaches
//! a server except through [`upstream`], which takes only the gate's passes; no frame is rewritten
//! except where an id has to be spelled as the client spelled it, a name of one of several servers as that server spells it, a list loses what the client may
//! not see, or a description loses what a person cannot see; no state outlives its session.

mod bell;
mod byte_budget;
pub mod call;
pub mod client;
pub mod describe;
pub mod descriptions;
pub mod federation;
pub mod http;
pub mod message;
pub mod notes;
mod reading_pool;
pub mod stdio;
pub mod upstream;
