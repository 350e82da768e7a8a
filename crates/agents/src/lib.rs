//! Parts of agents that need no I/O: what a model wrote becomes a tool call, and a tool's result becomes text for it.
//!
//! [`tags::TagReader`] reads ReAct tags for loop and stream alike, [`repair`] reads tool calls, [`observation`]
//! writes results.
//!
//! Invariants, as absences: this crate opens no socket and no file, and reads no clock; nothing inside a thought,
//! an answer or an observation becomes a tool call; no repair adds a name or a value; no buffer here grows without
//! a named bound.

pub mod observation;
pub mod repair;
pub mod tags;
