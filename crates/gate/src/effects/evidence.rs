//! What is known of one call's effects beside the tool's name.

use super::{ArgumentSigns, OperationSet};

/// What a tool's definition says of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Annotations {
    /// Its `readOnlyHint`.
    pub read_only: Option<bool>,
    /// Its `destructiveHint`.
    pub destructive: Option<bool>,
    /// Its `openWorldHint`.
    pub open_world: Option<bool>,
    /// A person approved the definition; until then annotations only make the class worse.
    pub approved: bool,
}

/// What is known of one call's effects beside the tool's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Evidence {
    /// What the operator declares of the tool in `servers.NAME.tools`.
    pub declared: Option<OperationSet>,
    /// What the tool's definition says of itself.
    pub annotations: Annotations,
    /// The tool's schema has arguments that no tool has that only reads: code, a command, an output.
    pub suspicious_schema: bool,
    /// What the call's arguments show.
    pub arguments: ArgumentSigns,
}
