//! What a built-in tool server is made of.
//!
//! A server states its tools ([`server::ToolDef`]), says what a call is about before it is judged, and answers
//! calls that were let through; [`mcp`] speaks the protocol for it.
//!
//! Invariants, as absences: no socket is opened and no process is started here; nothing is stored except
//! through `state`; no tool is called except with a [`server::ToolCall`], which only a spent pass of the gate
//! becomes; no queue, list, result or wait here is without a named bound.

pub mod breaker;
pub mod cancel;
pub mod door;
pub mod face;
pub mod files;
pub mod jobs;
pub mod mcp;
pub mod measure;
pub mod options;
pub mod outputs;
pub mod reasons;
pub mod results;
pub mod schema;
pub mod seal;
pub mod server;
pub mod store;
pub mod trace;
#[cfg(any(test, feature = "trial"))]
pub mod trial;

pub use cancel::Cancel;
pub use trace::Trace;

#[cfg(test)]
mod views;
