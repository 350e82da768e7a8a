//! Policies: their rules, what is wrong with them, and what they decide about calls.

mod cases;
mod explain;
mod history;
mod question;
mod replay;

use std::borrow::Borrow;
use std::path::Path;

use dialects::Endpoint;
use gate::policy::lint::{self, UnknownTools, Warning};
use gate::policy::{Effect, Policy, Rule};
use mcp::describe::{ArgumentRoles, is_unknown};
use serde::{Serialize, Serializer};

use crate::pins;

pub use cases::{CASES_MAX, CallEnvironment, CaseReport, PolicyCase, parse_cases};
pub use explain::{
    ConditionOutcome, ExplainedCall, ExplainedPath, ExplainedRule, ExplainedUrl, Explanation,
    explain,
};
pub use history::{PolicyHistory, PolicyVersion, RecordedVersion, VersionChange, VersionRequest};
pub use question::{GivenFact, HypotheticalCall};
pub use replay::{ReplayDifference, ReplayResult, ReplaySummary, replay};

/// Rules of a policy, in the order in which they decide.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct PolicyRules {
    /// Digest of the policy.
    pub digest: String,
    /// deny, hitl, allow; of one effect the more specific first.
    pub rules: Vec<RuleEntry>,
}

/// One rule.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct RuleEntry {
    /// Number in the file, from 1.
    pub number: usize,
    /// Id.
    pub id: String,
    /// Description.
    pub description: Option<String>,
    /// `allow`, `deny` or `hitl`.
    pub effect: &'static str,
    /// Specificity, which chooses the named rule among those that match.
    pub specificity: usize,
    /// Conditions with their patterns, by name.
    #[serde(serialize_with = "by_name")]
    #[cfg_attr(
        feature = "schemas",
        schemars(with = "std::collections::BTreeMap<String, Vec<String>>")
    )]
    pub conditions: Vec<(&'static str, Vec<String>)>,
    /// Side effects with which a yes may be remembered.
    pub cache_side_effects: Vec<String>,
    /// Channels that may answer.
    pub approvers: Vec<&'static str>,
}

fn by_name<S: Serializer>(
    conditions: &[(&'static str, Vec<String>)],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_map(conditions.iter().map(|(name, texts)| (name, texts)))
}

/// Returns the rules of a policy.
#[must_use]
pub fn list_rules(policy: &Policy) -> PolicyRules {
    let numbered: Vec<(usize, &Rule)> = policy.rules().iter().enumerate().collect();
    let rules = by_precedence(numbered, |(_, rule)| rule);
    let entry = |(at, rule): (usize, &Rule)| RuleEntry {
        number: at + 1,
        id: rule.id.clone(),
        description: rule.description.clone(),
        effect: rule.effect.label(),
        specificity: rule.conditions.specificity(),
        conditions: (rule.conditions.all().iter())
            .map(|asked| (asked.row.key, asked.texts.clone()))
            .collect(),
        cache_side_effects: rule.cache_side_effects.clone(),
        approvers: rule.approvers.iter().map(|own| own.label()).collect(),
    };
    PolicyRules {
        digest: policy.digest().to_owned(),
        rules: rules.into_iter().map(entry).collect(),
    }
}

/// Sorts rules in the order in which they decide: deny, hitl, allow; within an effect the more specific first, of equals
/// the first in the file.
fn by_precedence<'r, T>(mut items: Vec<T>, rule: impl Fn(&T) -> &'r Rule) -> Vec<T> {
    items.sort_by_key(|item| {
        let rule = rule(item);
        let effect = match rule.effect {
            Effect::Deny => 0,
            Effect::Hitl => 1,
            Effect::Allow => 2,
        };
        (effect, std::cmp::Reverse(rule.conditions.specificity()))
    });
    items
}

/// Result of a check of a policy.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct PolicyCheck {
    /// File, or name of a shipped policy.
    pub file: String,
    /// Number of rules.
    pub rules: usize,
    /// Digest.
    pub digest: String,
    /// Rules without effect, or with another than they seem to have.
    pub warnings: Vec<PolicyWarning>,
}

/// A rule without effect, or with another than it seems to have.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct PolicyWarning {
    /// Number of the rule, from 1.
    pub rule: usize,
    /// Its id.
    pub id: String,
    /// A sentence.
    pub message: String,
    /// What to do.
    pub hint: String,
}

impl From<Warning> for PolicyWarning {
    fn from(warning: Warning) -> Self {
        Self {
            rule: warning.number,
            id: warning.id,
            message: warning.message,
            hint: warning.hint,
        }
    }
}

/// Checks a policy; `listed` are the servers for which its rules on operations are checked against pinned tools.
#[must_use]
pub fn check(
    file: String,
    policy: &Policy,
    listed: &[ListedServer<'_>],
    pins: &Path,
) -> PolicyCheck {
    let found = warnings(policy).into_iter();
    let found = found.chain(unknown_tool_warnings(policy, listed, pins));
    PolicyCheck {
        file,
        rules: policy.rules().len(),
        digest: policy.digest().to_owned(),
        warnings: found.map(PolicyWarning::from).collect(),
    }
}

/// Returns warnings about rules by themselves.
#[must_use]
pub fn warnings(policy: &Policy) -> Vec<Warning> {
    let of_models = Endpoint::ALL.map(Endpoint::path);
    lint::warnings(policy.rules(), &of_models)
}

/// A server, and what the configuration declares of its tools.
#[derive(Debug, Clone, Copy)]
pub struct ListedServer<'a> {
    /// Name.
    pub name: &'a str,
    /// Declared classes of its tools.
    pub declared: &'a ArgumentRoles,
}

/// Returns warnings about rules that allow by operations, as far as pinned tools of these servers have unknown ones.
#[must_use]
pub fn unknown_tool_warnings(
    policy: &Policy,
    listed: &[ListedServer<'_>],
    pins: &Path,
) -> Vec<Warning> {
    let unknown = listed
        .iter()
        .filter_map(|server| unknown_tools(*server, pins));
    lint::unknown_tools(policy.rules(), &unknown.collect::<Vec<_>>())
}

/// Returns pinned tools of a server with unknown operations; `None` if there are none, or if its pins cannot be read.
fn unknown_tools(server: ListedServer<'_>, pins: &Path) -> Option<UnknownTools> {
    let book = pins::read_book(pins, server.name).ok()?;
    let tools = book.tools.iter().filter(|(name, tool)| {
        let definition = tool.approved.as_ref();
        server.declared.declared(name).is_none()
            && definition.is_some_and(|own| is_unknown(name, &own.text, own.by_person))
    });
    let tools: Vec<String> = tools.map(|(name, _)| name.clone()).collect();
    (!tools.is_empty()).then(|| UnknownTools {
        server: server.name.to_owned(),
        tools,
    })
}

/// Copies texts of any kind.
fn to_texts<T: Borrow<str>>(texts: &[T]) -> Vec<String> {
    texts.iter().map(|text| text.borrow().to_owned()).collect()
}
