//! The MCP face: a client in front, a server behind, the gate between.
//!
//! Invariants, as absences: nothing here decides who may do what (the gate does); no frame reaches
//! a server except through [`upstream`], which takes only the gate's passes; no frame is rewritten
//! except where an id has to be spelled as the client spelled it, a list loses what the client may
//! not see, or a description loses what a person cannot see; no state outlives its session.

pub mod ask_client;
pub mod definitions;
pub mod describe;
pub mod descriptions;
pub mod era;
pub mod finding;
pub mod frames;
pub mod input_required;
pub mod listing;
pub mod method;
pub mod mirrored;
mod notes;
pub mod reply;
pub mod request;
pub mod serve;
pub mod session;
pub mod tree;
pub mod upstream;

pub use session::{Ending, Session, SessionOptions};
