//! Cases: calls with the decision that is expected of a policy.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use gate::paths::PathView;
use gate::policy::{Effect, Policy};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use toolkit::mcp::Builtin;

use super::explain::because;
use super::question::{GivenFact, HypotheticalCall};

/// Most cases of one file.
pub const CASES_MAX: usize = 100_000;

/// Machine and servers of a hypothetical call.
pub struct CallEnvironment<'a> {
    /// The file system of servers.
    pub view: &'a dyn PathView,
    /// The caller if a case names none.
    pub user: &'a str,
    /// Returns the built-in server of this name.
    pub builtin: &'a dyn Fn(&str) -> Option<Arc<Builtin>>,
}

impl fmt::Debug for CallEnvironment<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CallEnvironment")
            .field("user", &self.user)
            .finish_non_exhaustive()
    }
}

/// A call, and the decision that is expected.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PolicyCase {
    tool: Option<String>,
    args: Option<Box<RawValue>>,
    path: Option<String>,
    uri: Option<String>,
    method: Option<String>,
    backend: Option<String>,
    subject: Option<String>,
    #[serde(default)]
    facts: BTreeMap<String, FactTexts>,
    expect: ExpectedEffect,
    rule: Option<String>,
    note: Option<String>,
}

/// Value of a further fact.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum FactTexts {
    Single(String),
    List(Vec<String>),
}

impl FactTexts {
    fn to_fact(&self, name: &str) -> Result<GivenFact, String> {
        match self {
            Self::Single(text) => GivenFact::of(name, &[text]),
            Self::List(texts) => {
                let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
                GivenFact::of(name, &texts)
            }
        }
    }
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum ExpectedEffect {
    Allow,
    Deny,
    Hitl,
}

impl From<ExpectedEffect> for Effect {
    fn from(expected: ExpectedEffect) -> Self {
        match expected {
            ExpectedEffect::Allow => Self::Allow,
            ExpectedEffect::Deny => Self::Deny,
            ExpectedEffect::Hitl => Self::Hitl,
        }
    }
}

/// Result of one case.
#[derive(Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct CaseReport {
    /// Number in the file, from 1.
    pub case: usize,
    /// Whether the decision is the expected one.
    pub passed: bool,
    /// Note of its author.
    pub note: Option<String>,
    /// The call in a few words.
    pub call: String,
    /// The expected decision.
    pub expect: &'static str,
    /// The expected rule.
    pub expect_rule: Option<String>,
    /// The decision; null if the call cannot be judged.
    pub decision: Option<&'static str>,
    /// The rule that decided.
    pub final_rule: Option<String>,
    /// Decision and reason in words, or why the call cannot be judged.
    pub because: String,
}

/// Reads a list of cases.
///
/// # Errors
/// A sentence: malformed JSON with its position, no cases, or more than [`CASES_MAX`].
pub fn parse_cases(text: &str) -> Result<Vec<PolicyCase>, String> {
    let cases: Vec<PolicyCase> = serde_json::from_str(text)
        .map_err(|error| format!("{error}; see durward policy test --help"))?;
    match cases.len() {
        0 => Err("the file has no cases".into()),
        1..=CASES_MAX => Ok(cases),
        _ => Err(format!("more than {CASES_MAX} cases; split the file")),
    }
}

impl PolicyCase {
    /// Judges the call and compares the decision with the expected one.
    #[must_use]
    pub fn judge(
        &self,
        at: usize,
        policy: &Policy,
        environment: &CallEnvironment<'_>,
    ) -> CaseReport {
        let mut report = CaseReport {
            case: at + 1,
            passed: false,
            note: self.note.clone(),
            call: self.name(),
            expect: Effect::from(self.expect).label(),
            expect_rule: self.rule.clone(),
            decision: None,
            final_rule: None,
            because: String::new(),
        };
        if self.args.is_some() && self.path.is_some() {
            report.because = "a case has either args or path".into();
            return report;
        }
        let backend = self.backend.as_deref().unwrap_or("server");
        let given: Result<Vec<GivenFact>, String> = self
            .facts
            .iter()
            .map(|(name, value)| value.to_fact(name))
            .collect();
        let builtin = (environment.builtin)(backend);
        let facts = given.and_then(|given| {
            let call = HypotheticalCall {
                method: self.method.as_deref().unwrap_or("tools/call"),
                name: self.tool.as_deref(),
                arguments: self.args.as_deref().map(RawValue::get),
                path: self.path.as_deref(),
                uri: self.uri.as_deref(),
                backend,
                builtin: builtin.as_deref(),
                subject: self.subject.as_deref().unwrap_or(environment.user),
                facts: &given,
            };
            call.facts(environment.view)
        });
        let facts = match facts {
            Ok(facts) => facts,
            Err(why) => {
                report.because = why;
                return report;
            }
        };
        let judgement = policy.judge(&facts);
        let verdict = judgement.verdict();
        let rule = self.rule.as_ref();
        let as_ruled = rule.is_none_or(|rule| rule == verdict.final_rule);
        report.passed = verdict.effect == self.expect.into() && as_ruled;
        report.decision = Some(verdict.effect.label());
        report.final_rule = Some(verdict.final_rule.to_owned());
        report.because = format!("{}, because: {}", verdict.effect.label(), because(&verdict));
        report
    }

    /// Returns the call in a few words.
    fn name(&self) -> String {
        let method = self.method.as_deref();
        let what = [method, self.tool.as_deref(), self.uri.as_deref()];
        let mut words: Vec<&str> = what.into_iter().flatten().collect();
        words.extend(self.path.as_deref());
        words.extend(self.args.as_deref().map(RawValue::get));
        words.join(" ")
    }
}
