//! The one classification of what a call does, behind `operations`, `side_effects`, `reads_only`, `sends_outward`,
//! the order of calls, moves of protected directories and the starter policy.
//!
//! Sources, from the strongest: what the operator declares of a tool (`servers.NAME.tools`), what a built-in server
//! states, the exact name of a [shipped](shipped) tool, a definition that a person approved, its annotations, its name.
//! Annotations that no person approved and names only make the class worse. A tool of which no source says more is
//! unknown: it may do anything, so no allow rule by effect matches it, and deny and hitl rules do.

mod arguments;
mod classify;
mod evidence;
mod names;
mod operation;
mod propose;
mod shipped;

pub use arguments::{ArgumentSigns, SchemaSigns, is_option_like, is_output_name};
pub use classify::{CallEffects, of_evidence, of_name};
pub use evidence::{Annotations, Evidence};
pub use operation::{Operation, OperationSet};
pub use propose::propose;
pub use shipped::{NEVER_REMEMBERED, SIDE_EFFECTS, of_tool, table};

pub(crate) use classify::{Stated, classify};
pub(crate) use shipped::labels;
