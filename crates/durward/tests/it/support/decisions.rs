//! The decision tables: rows and sweeps, read from `tests/decisions`, and what each row demands of an answer.

use std::collections::BTreeMap;
use std::fs;

use serde::Deserialize;
use serde_json::Value;

use super::components::repository;
use super::refusals::{refusal_text, told};
use super::world::World;

/// One table: one server under every policy.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Table {
    /// Which server, for people.
    pub server: String,
    /// Which tools each policy shows. The policies of the table are the keys.
    pub tools_list: BTreeMap<String, Vec<String>>,
    cases: Vec<Row>,
    sweeps: Vec<Sweep>,
}

#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    policy: String,
    #[serde(flatten)]
    call: Call,
    decision: Decision,
    rule: Option<String>,
    /// What the server's own answer must hold.
    contains: Option<String>,
    #[serde(default, rename = "note")]
    _note: Option<String>,
}

/// Every call with every trick in the place of `{TRICK}`, under every policy: one expectation.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Sweep {
    name: String,
    policies: Vec<String>,
    decision: Decision,
    rule: Option<String>,
    calls: Vec<Call>,
    tricks: BTreeMap<String, Value>,
}

#[derive(Clone, Deserialize)]
struct Call {
    tool: String,
    arguments: Value,
}

/// What a policy says, as it is spelled on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Decision {
    Allow,
    Deny,
    Hitl,
}

impl Decision {
    pub fn label(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Deny => "deny",
            Self::Hitl => "hitl",
        }
    }
}

/// One call with its expectation, in one world.
pub struct Case {
    /// Where it comes from, for a message.
    pub origin: String,
    pub tool: String,
    pub arguments: Value,
    pub decision: Decision,
    pub rule: Option<String>,
    pub contains: Option<String>,
}

impl Table {
    /// Reads `tests/decisions/NAME.json`.
    pub fn read(name: &str) -> Self {
        let path = repository()
            .join("tests/decisions")
            .join(name)
            .with_extension("json");
        let table: Self = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
        let known = |policy: &String| {
            assert!(
                table.tools_list.contains_key(policy),
                "{policy} is not in the table"
            )
        };
        table.cases.iter().for_each(|row| known(&row.policy));
        table
            .sweeps
            .iter()
            .flat_map(|sweep| &sweep.policies)
            .for_each(known);
        table
    }

    /// The text of `tests/policies/NAME.json`; the starter policy is what applies without a file.
    pub fn policy(name: &str) -> Option<String> {
        let path = repository()
            .join("tests/policies")
            .join(name)
            .with_extension("json");
        (name != "starter").then(|| fs::read_to_string(path).unwrap())
    }

    /// Every row under one policy, filled in for one world.
    pub fn cases(&self, policy: &str, world: &World) -> Vec<Case> {
        let rows = self
            .cases
            .iter()
            .filter(|row| row.policy == policy)
            .map(|row| Case {
                origin: "row".to_owned(),
                tool: row.call.tool.clone(),
                arguments: fill(&row.call.arguments, None, world),
                decision: row.decision,
                rule: row.rule.clone(),
                contains: row.contains.as_deref().map(|text| world.fill(text)),
            });
        let sweeps = self
            .sweeps
            .iter()
            .filter(|sweep| sweep.policies.iter().any(|name| name == policy));
        let swept = sweeps.flat_map(|sweep| {
            sweep.calls.iter().flat_map(move |call| {
                sweep.tricks.iter().map(move |(trick, value)| Case {
                    origin: format!("{}, {trick}", sweep.name),
                    tool: call.tool.clone(),
                    arguments: fill(&call.arguments, Some(value), world),
                    decision: sweep.decision,
                    rule: sweep.rule.clone(),
                    contains: None,
                })
            })
        });
        rows.chain(swept)
            .filter(|case| !case.arguments.to_string().contains("/no/policy"))
            .collect()
    }
}

/// Puts a trick in its place and fills in the places of the world.
fn fill(value: &Value, trick: Option<&Value>, world: &World) -> Value {
    match value {
        Value::String(text) if text == "{TRICK}" => fill(trick.unwrap(), None, world),
        Value::String(text) => Value::String(world.fill(text)),
        Value::Array(items) => items.iter().map(|item| fill(item, trick, world)).collect(),
        Value::Object(members) => members
            .iter()
            .map(|(k, v)| (k.clone(), fill(v, trick, world)))
            .collect(),
        other => other.clone(),
    }
}

impl Case {
    /// Compares an answer from outside with the expectation.
    pub fn judge(&self, answer: &Value) -> Result<(), String> {
        let complain = |what: String| {
            let Self {
                origin,
                tool,
                arguments,
                decision,
                rule,
                ..
            } = self;
            let rule = rule.as_deref().unwrap_or("any rule");
            Err(format!(
                "{tool} {arguments}\n    expected {} by {rule} ({origin}), {what}",
                decision.label()
            ))
        };
        let data = told(answer);
        let refused = (!data["reason"].is_null()).then_some(answer);
        match (self.decision, refused) {
            (Decision::Allow, None) => {}
            (Decision::Allow, Some(answer)) => return complain(format!("got {answer}")),
            (_, None) => return complain("but the server answered".to_owned()),
            (decision, Some(answer)) => {
                let rule = self
                    .rule
                    .as_deref()
                    .is_none_or(|rule| data["final_rule"] == rule);
                let tool = data["tool_name"] == self.tool.as_str();
                let said = !refusal_text(answer).is_empty();
                if data["decision"] != decision.label() || !rule || !tool || !said {
                    return complain(format!("got {answer}"));
                }
            }
        }
        match (&self.contains, answer) {
            (Some(text), _) if answer["result"].to_string().contains(text.as_str()) => Ok(()),
            (Some(text), _) => complain(format!("the answer does not hold {text:?}: {answer:?}")),
            (None, _) => Ok(()),
        }
    }

    /// Compares the decision record of this call with the expectation.
    pub fn judge_record(&self, record: &Value) -> Result<(), String> {
        let rule = self
            .rule
            .as_deref()
            .is_none_or(|rule| record["final_rule"] == rule);
        if record["tool_name"] == self.tool.as_str()
            && record["decision"] == self.decision.label()
            && rule
        {
            return Ok(());
        }
        Err(format!(
            "{} {}\n    the journal says {record}",
            self.tool, self.arguments
        ))
    }
}
