//! `durward policy test`

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::PathBuf;

use clap::Args;
use gate::policy::{Effect, Policy};
use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;

use super::explain::because;
use super::question::{GivenFact, Question};
use super::source::{self, PolicyFile, Protected};
use super::text::Plain;
use super::{Context, EXIT_DIFFERENT, EXIT_FINE, Failure};
use crate::local::LocalView;

pub const HELP: &str = "\
Examples:
  durward policy test cases.json --policy policy.json

FILE is a JSON list of calls with the expected decision:
  [
    {\"tool\": \"read_file\",  \"args\": {\"path\": \"/tmp/a.txt\"}, \"expect\": \"allow\"},
    {\"tool\": \"write_file\", \"path\": \"/tmp/a.pem\", \"expect\": \"deny\", \"rule\": \"block-pem\"},
    {\"method\": \"resources/read\", \"uri\": \"file:///etc/hosts\", \"expect\": \"deny\", \"note\": \"outside\"}
  ]
Further keys of a case: backend, subject. Every failure is printed.

Exit codes: 0 all as expected; 1 at least one is not; 16 the policy or the file cannot be used.";

/// Most cases in one file.
const CASES_MAX: usize = 100_000;

/// Arguments of `durward policy test`.
#[derive(Debug, Args)]
pub struct TestArgs {
    /// The cases, as JSON
    #[arg(value_name = "FILE")]
    file: PathBuf,
    #[command(flatten)]
    policy: PolicyFile,
    /// Print one JSON object per case
    #[arg(long)]
    json: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    tool: Option<String>,
    args: Option<Box<RawValue>>,
    path: Option<String>,
    uri: Option<String>,
    method: Option<String>,
    backend: Option<String>,
    subject: Option<String>,
    #[serde(default)]
    facts: BTreeMap<String, Given>,
    expect: Expect,
    rule: Option<String>,
    note: Option<String>,
}

/// The value of a further fact.
#[derive(Deserialize)]
#[serde(untagged)]
enum Given {
    One(String),
    Many(Vec<String>),
}

impl Given {
    fn fact(&self, name: &str) -> Result<GivenFact, String> {
        match self {
            Self::One(text) => GivenFact::of(name, &[text]),
            Self::Many(texts) => {
                let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
                GivenFact::of(name, &texts)
            }
        }
    }
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Expect {
    Allow,
    Deny,
    Hitl,
}

impl Expect {
    fn effect(self) -> Effect {
        match self {
            Self::Allow => Effect::Allow,
            Self::Deny => Effect::Deny,
            Self::Hitl => Effect::Hitl,
        }
    }
}

/// What became of a case.
struct Outcome {
    passed: bool,
    /// The decision and its rule; absent where the call cannot be judged.
    decision: Option<(Effect, String)>,
    /// In words.
    is: String,
}

pub fn run(
    args: &TestArgs,
    context: &Context<'_>,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> Result<u8, Failure> {
    let file = args.policy.policy.as_deref();
    let policy = source::load(file, None, Protected::AsRun, context, err)?;
    let places = context.places;
    let bad = |why: String| Failure::Configuration(format!("{}: {why}", args.file.display()));
    let text = source::text(&args.file).map_err(Failure::Configuration)?;
    let cases: Vec<Case> = serde_json::from_str(&text)
        .map_err(|error| bad(format!("{error}; see durward policy test --help")))?;
    if cases.is_empty() {
        return Err(bad("the file has no cases".into()));
    }
    if cases.len() > CASES_MAX {
        return Err(bad(format!("more than {CASES_MAX} cases; split the file")));
    }
    let view = LocalView::new(places);
    let mut failed = 0_usize;
    for (at, case) in cases.iter().enumerate() {
        let outcome = case.judge(&policy, &view, context);
        failed += usize::from(!outcome.passed);
        if args.json {
            print_json(at, case, &outcome, out)?;
        } else if !outcome.passed {
            print(at, case, &outcome, out)?;
        }
    }
    let all = cases.len();
    if !args.json {
        writeln!(
            out,
            "{all} cases: {} as expected, {failed} not",
            all - failed
        )?;
    }
    Ok(if failed == 0 {
        EXIT_FINE
    } else {
        EXIT_DIFFERENT
    })
}

impl Case {
    fn judge(&self, policy: &Policy, view: &LocalView, context: &Context<'_>) -> Outcome {
        let backend = self.backend.as_deref().unwrap_or("server");
        let server = context.settings.server(backend);
        let given: Result<Vec<GivenFact>, String> = self
            .facts
            .iter()
            .map(|(name, value)| value.fact(name))
            .collect();
        let question = Question {
            method: self.method.as_deref().unwrap_or("tools/call"),
            name: self.tool.as_deref(),
            arguments: self.args.as_deref().map(RawValue::get),
            path: self.path.as_deref(),
            uri: self.uri.as_deref(),
            backend,
            builtin: server.and_then(|server| Some((server.builtin.as_ref()?, context.places))),
            subject: self.subject.as_deref().unwrap_or(&context.places.user),
            facts: given.as_deref().unwrap_or_default(),
        };
        if self.args.is_some() && self.path.is_some() {
            return Outcome {
                passed: false,
                decision: None,
                is: "a case has either args or path".into(),
            };
        }
        let unfit = given.as_ref().err().cloned();
        let facts = match unfit.map_or_else(|| question.facts(view), Err) {
            Ok(facts) => facts,
            Err(is) => {
                return Outcome {
                    passed: false,
                    decision: None,
                    is,
                };
            }
        };
        let judgement = policy.judge(&facts);
        let verdict = judgement.verdict();
        let as_ruled = self
            .rule
            .as_ref()
            .is_none_or(|rule| rule == verdict.final_rule);
        Outcome {
            passed: verdict.effect == self.expect.effect() && as_ruled,
            decision: Some((verdict.effect, verdict.final_rule.to_owned())),
            is: format!("{}, because: {}", verdict.effect.label(), because(&verdict)),
        }
    }

    /// The call in a few words.
    fn name(&self) -> String {
        let method = self.method.as_deref();
        let what = [method, self.tool.as_deref(), self.uri.as_deref()];
        let mut words: Vec<&str> = what.into_iter().flatten().collect();
        words.extend(self.path.as_deref());
        words.extend(self.args.as_deref().map(RawValue::get));
        words.join(" ")
    }
}

fn print(at: usize, case: &Case, outcome: &Outcome, out: &mut dyn Write) -> io::Result<()> {
    let note = case.note.as_deref().map(|n| format!(" ({n})"));
    writeln!(
        out,
        "case {}{}: {}",
        at + 1,
        Plain(&note.unwrap_or_default()),
        Plain(&case.name())
    )?;
    let rule = case
        .rule
        .as_deref()
        .map(|rule| format!(" by rule \"{rule}\""));
    let rule = rule.unwrap_or_default();
    let expected = case.expect.effect().label();
    writeln!(out, "  expected {expected}{}", Plain(&rule))?;
    writeln!(out, "  is       {}", outcome.is)
}

fn print_json(at: usize, case: &Case, outcome: &Outcome, out: &mut dyn Write) -> io::Result<()> {
    let decision = outcome.decision.as_ref();
    let line = json!({
        "case": at + 1,
        "passed": outcome.passed,
        "note": case.note,
        "call": case.name(),
        "expect": case.expect.effect().label(),
        "expect_rule": case.rule,
        "decision": decision.map(|(effect, _)| effect.label()),
        "final_rule": decision.map(|(_, rule)| rule),
        "because": outcome.is,
    });
    writeln!(out, "{line}")
}
