//! The built-in `simulation` server: models of the Open Systems Pharmacology suite as tools.
//!
//! A caller loads models from folders that are allowed, reads and sets parameters, and runs them as jobs; the engine is
//! the crate `pbpk`. Names, arguments, results and errors are those of the PBPK bridge for agents.
//!
//! Invariants, as absences: no caller sees what another one has loaded, run or kept; no model is read from outside of
//! the folders; no number of a result depends on load, on threads or on other runs; nothing is opened or written before
//! the first call that needs it; `confirm` is never an approval, it only says that the caller means it.

mod audit;
mod environment;
mod fault;
mod figures;
mod jobs;
mod metrics;
mod models;
mod options;
mod percent;
mod population;
mod resources;
mod rest;
mod results;
mod server;
mod service;
mod session;
mod tools;

pub use environment::from_environment;
pub use fault::{Fault, FaultDetail, Kind, envelope};
pub use jobs::{WORKER_COMMAND, work_for_another};
pub use options::{BRIDGE, OPTIONS};
pub use rest::{RestFace, SentContent, ToolCaller};
pub use server::SimulationServer;
pub use tools::ToolFault;

/// The engine, as it is called in metadata and capabilities.
pub const BACKEND: &str = "native";
/// The contract of results that name one.
pub const CONTRACT: &str = "pbpk-mcp.v1";
