//! Agents without I/O: a run as a state machine, and the texts between a model and tools.
//!
//! [`run::Run`] is the loop: inputs are what happened, actions are what is to be done. [`tags::TagReader`] reads ReAct
//! tags for loop and stream alike, [`repair`] reads tool calls, [`observation`] writes results, [`chat`] writes the
//! answer as a chat completion.
//!
//! Invariants, as absences: this crate opens no socket and no file, and reads no clock; nothing inside a thought,
//! an answer or an observation becomes a tool call; no repair adds a name or a value; no buffer here grows without
//! a named bound; no run that a limit has cut ends with `stop`.

pub mod chat;
pub mod delta;
pub mod observation;
pub mod plan;
pub mod prompt;
pub mod repair;
pub mod run;
pub mod tags;
