//! The query language of records: kinds, conditions and times.

use std::str::FromStr;

use gate::journal::audit::{Filter, Kind};
use gate::journal::parse_utc;
use serde::{Deserialize, Serialize};

/// The kinds of records, as users name them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub enum RecordKind {
    /// Decisions about calls.
    Decisions,
    /// Outcomes of calls.
    Operations,
    /// Callers and their credentials.
    Auth,
    /// The program itself.
    System,
    /// Changes of the configuration.
    ConfigHistory,
    /// Changes of the policy.
    PolicyHistory,
}

impl RecordKind {
    /// Every kind, in the order in which they are listed.
    pub const ALL: [Self; 6] = [
        Self::Decisions,
        Self::Operations,
        Self::Auth,
        Self::System,
        Self::ConfigHistory,
        Self::PolicyHistory,
    ];

    /// Returns the name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Decisions => "decisions",
            Self::Operations => "operations",
            Self::Auth => "auth",
            Self::System => "system",
            Self::ConfigHistory => "config-history",
            Self::PolicyHistory => "policy-history",
        }
    }

    /// Returns the kind of this name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// Returns what the records hold, in a few words.
    #[must_use]
    pub fn summary(self) -> &'static str {
        match self {
            Self::Decisions => "what was decided about each call",
            Self::Operations => "what became of each call",
            Self::Auth => "callers and their credentials",
            Self::System => "the program itself",
            Self::ConfigHistory => "changes of the configuration",
            Self::PolicyHistory => "changes of the policy",
        }
    }

    /// Returns the filter that takes every record of the kind.
    #[must_use]
    pub fn filter(self) -> Filter {
        let (kind, component) = match self {
            Self::Decisions => (Kind::Decision, None),
            Self::Operations => (Kind::Operation, None),
            Self::Auth => (Kind::Auth, None),
            Self::System => (Kind::System, None),
            Self::ConfigHistory => (Kind::Config, Some("configuration")),
            Self::PolicyHistory => (Kind::Config, Some("policy")),
        };
        Filter {
            kind: Some(kind),
            component: component.map(str::to_owned),
            ..Filter::default()
        }
    }
}

/// Conditions on records, by the names that users give them. All must be met.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RecordConditions {
    /// Refusals of every kind alone: by a rule, a limit or a person, for want of an answer, and rejected keys.
    pub refused: bool,
    /// Of this caller.
    pub caller: Option<String>,
    /// About this tool.
    pub tool: Option<String>,
    /// About this server.
    pub server: Option<String>,
    /// Decided by this rule.
    pub rule: Option<String>,
    /// With this reason or outcome.
    pub reason: Option<String>,
    /// Of this run.
    pub run: Option<String>,
}

impl RecordConditions {
    /// Returns the filter, tightened by the conditions.
    #[must_use]
    pub fn tighten(self, filter: Filter) -> Filter {
        Filter {
            refused: self.refused,
            subject_id: self.caller,
            tool_name: self.tool,
            backend_id: self.server,
            rule: self.rule,
            reason: self.reason,
            run_id: self.run,
            ..filter
        }
    }
}

/// The beginning of a time range.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Since {
    /// Milliseconds before now.
    Ago(i64),
    /// Milliseconds since 1970.
    At(i64),
}

impl Since {
    /// Returns the beginning in milliseconds since 1970.
    #[must_use]
    pub fn at_ms(self, now_ms: i64) -> i64 {
        match self {
            Self::Ago(ms) => now_ms.saturating_sub(ms),
            Self::At(ms) => ms,
        }
    }
}

impl FromStr for Since {
    type Err = String;

    /// Reads a span such as `5m` or a UTC time.
    fn from_str(text: &str) -> Result<Self, String> {
        if let Some(ms) = parse_utc(text) {
            return Ok(Self::At(ms));
        }
        let unit_ms = match text.chars().next_back() {
            Some('s') => 1_000,
            Some('m') => 60_000,
            Some('h') => 3_600_000,
            Some('d') => 86_400_000,
            _ => 0,
        };
        let digits = text.trim_end_matches(['s', 'm', 'h', 'd']);
        let one_unit = digits.len().saturating_add(1) == text.len();
        let ago = digits
            .parse::<u32>()
            .ok()
            .filter(|_| one_unit && unit_ms > 0);
        match ago {
            Some(number) => Ok(Self::Ago(i64::from(number).saturating_mul(unit_ms))),
            None => Err("not a time; write 30s, 5m, 1h, 7d or 2026-11-21T03:38:09Z".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_spans_or_instants() {
        for (text, expect) in [
            ("30s", Some(Since::Ago(30_000))),
            ("5m", Some(Since::Ago(300_000))),
            ("24h", Some(Since::Ago(86_400_000))),
            ("7d", Some(Since::Ago(604_800_000))),
            ("1970-01-02", Some(Since::At(86_400_000))),
            ("1970-01-01T00:00:01Z", Some(Since::At(1_000))),
            ("", None),
            ("5", None),
            ("5mm", None),
            ("-5m", None),
            ("99999999999d", None),
            ("yesterday", None),
        ] {
            assert_eq!(text.parse().ok(), expect, "{text}");
        }
    }

    #[test]
    fn kinds_have_the_names_of_their_data() {
        for kind in RecordKind::ALL {
            assert_eq!(serde_json::to_value(kind).unwrap(), kind.name());
            assert_eq!(RecordKind::parse(kind.name()), Some(kind));
        }
        assert_eq!(RecordKind::parse("other"), None);
    }
}
