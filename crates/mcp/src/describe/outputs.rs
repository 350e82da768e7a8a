//! Which tools declare an output schema: what clients hold their structured results against.

use std::collections::HashSet;

/// Most tools that are kept.
const TOOLS_MAX: usize = 4_096;

/// The names of tools with an output schema.
#[derive(Debug, Default)]
pub struct Outputs(HashSet<String>);

impl Outputs {
    /// Learns from a tool's definition.
    pub fn learn(&mut self, tool: &str, has_schema: bool) {
        if !has_schema {
            self.0.remove(tool);
        } else if self.0.len() < TOOLS_MAX {
            self.0.insert(tool.to_owned());
        }
    }

    /// Whether a tool declares one; not where it is not known.
    #[must_use]
    pub fn has(&self, tool: &str) -> bool {
        self.0.contains(tool)
    }
}
