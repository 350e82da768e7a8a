//! A rule as written: effect and conditions.

use crate::approval::Channel;
use crate::facts::ResourceType;

use super::operation::Operation;

/// What a rule does with a call that it matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// Lets it pass.
    Allow,
    /// Refuses it.
    Deny,
    /// Asks a person.
    Hitl,
}

impl Effect {
    /// The word used in policies and in the journal.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Deny => "deny",
            Self::Hitl => "hitl",
        }
    }
}

/// A rule.
#[derive(Debug, Clone)]
pub struct Rule {
    /// Unique in the policy.
    pub id: String,
    /// For people.
    pub description: Option<String>,
    /// What it does.
    pub effect: Effect,
    /// What it asks of a call: all of these.
    pub conditions: Conditions,
    /// Side effects up to which an approval may be remembered (hitl only).
    pub cache_side_effects: Vec<String>,
    /// Who may answer (hitl only).
    pub approvers: Vec<Channel>,
}

/// The twelve conditions. AND across, OR inside a list; an empty list never matches; `None` does not ask.
#[derive(Debug, Clone, Default)]
pub struct Conditions {
    /// Shell globs over the tool's raw name, without case.
    pub tool_name: Option<Vec<String>>,
    /// Shell globs over the server's name, without case.
    pub backend_id: Option<Vec<String>>,
    /// Shell globs over the protocol's method.
    pub mcp_method: Option<Vec<String>>,
    /// Path globs over every path-like argument.
    pub path_pattern: Option<Vec<String>>,
    /// Path globs over the sources.
    pub source_path: Option<Vec<String>>,
    /// Path globs over the destinations.
    pub dest_path: Option<Vec<String>>,
    /// Extensions with their dot, lower case.
    pub extension: Option<Vec<String>>,
    /// URI schemes, lower case.
    pub scheme: Option<Vec<String>>,
    /// Callers, exactly.
    pub subject_id: Option<Vec<String>>,
    /// Kinds of thing.
    pub resource_type: Option<Vec<ResourceType>>,
    /// What the tool does, by its name.
    pub operations: Option<Vec<Operation>>,
    /// Side effects, any of.
    pub side_effects: Option<Vec<String>>,
}

/// Names of the conditions, as in a policy file.
pub const CONDITION_NAMES: [&str; 12] = [
    "tool_name",
    "backend_id",
    "mcp_method",
    "path_pattern",
    "source_path",
    "dest_path",
    "extension",
    "scheme",
    "subject_id",
    "resource_type",
    "operations",
    "side_effects",
];

impl Conditions {
    /// How many conditions are asked.
    #[must_use]
    pub fn count(&self) -> usize {
        [
            self.tool_name.is_some(),
            self.backend_id.is_some(),
            self.mcp_method.is_some(),
            self.path_pattern.is_some(),
            self.source_path.is_some(),
            self.dest_path.is_some(),
            self.extension.is_some(),
            self.scheme.is_some(),
            self.subject_id.is_some(),
            self.resource_type.is_some(),
            self.operations.is_some(),
            self.side_effects.is_some(),
        ]
        .into_iter()
        .filter(|asked| *asked)
        .count()
    }

    /// Whether the condition of this name is asked.
    #[must_use]
    pub fn asks(&self, name: &str) -> bool {
        self.asked(name).is_some()
    }

    /// What the condition of this name asks for, as written; `None` where it is not asked.
    #[must_use]
    pub fn asked(&self, name: &str) -> Option<Vec<&str>> {
        match name {
            "tool_name" => texts(&self.tool_name),
            "backend_id" => texts(&self.backend_id),
            "mcp_method" => texts(&self.mcp_method),
            "path_pattern" => texts(&self.path_pattern),
            "source_path" => texts(&self.source_path),
            "dest_path" => texts(&self.dest_path),
            "extension" => texts(&self.extension),
            "scheme" => texts(&self.scheme),
            "subject_id" => texts(&self.subject_id),
            "resource_type" => self
                .resource_type
                .as_ref()
                .map(|l| l.iter().map(|t| t.label()).collect()),
            "operations" => self
                .operations
                .as_ref()
                .map(|l| l.iter().map(|o| o.label()).collect()),
            "side_effects" => texts(&self.side_effects),
            _ => None,
        }
    }

    /// How specific the rule is: 100 per condition, +10 per glob condition without a wildcard, +1
    /// per path segment before the first wildcard. It only picks which rule is named.
    #[must_use]
    pub fn specificity(&self) -> usize {
        let globs = [
            &self.tool_name,
            &self.backend_id,
            &self.mcp_method,
            &self.path_pattern,
            &self.source_path,
            &self.dest_path,
        ];
        let literal = globs
            .iter()
            .filter(|g| {
                g.as_ref()
                    .is_some_and(|list| list.iter().all(|p| super::glob::is_literal(p)))
            })
            .count();
        let segments = globs
            .iter()
            .skip(3)
            .filter_map(|g| g.as_ref())
            .filter_map(|list| list.iter().map(|p| segments_before_wildcard(p)).max())
            .sum::<usize>();
        100 * self.count() + 10 * literal + segments
    }
}

fn texts(list: &Option<Vec<String>>) -> Option<Vec<&str>> {
    list.as_ref()
        .map(|list| list.iter().map(String::as_str).collect())
}

fn segments_before_wildcard(pattern: &str) -> usize {
    pattern
        .split('/')
        .filter(|s| !s.is_empty())
        .take_while(|s| super::glob::is_literal(s))
        .count()
}
