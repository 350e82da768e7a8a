//! `durward policy explain`

use std::io::{self, Write};

use clap::Args;
use gate::facts::{Fact, Facts};
use gate::policy::{
    ANCESTOR_RULE, DEFAULT_RULE, Judgement, Operation, PROTECTED_RULE, Policy, Reading,
    UNREAD_RULE, Verdict,
};
use gate::urls::UrlReading;
use serde_json::{Value, json};

use super::question::{GivenFact, Question};
use super::source::{self, PolicyFile, Protected};
use super::text::{Plain, by_precedence, list, word};
use super::{Context, EXIT_FINE, Failure};
use crate::local::LocalView;

pub const HELP: &str = "\
Examples:
  durward policy explain --tool read_file --path /etc/hosts
  durward policy explain --policy policy.json --tool move_file --args '{\"source\":\"~/a\",\"destination\":\"/tmp/a\"}'
  durward policy explain --method resources/read --uri file:///etc/hosts
  durward policy explain --method sampling/createMessage

A path is compared in every form that it may have: as written, with .. and links resolved, percent-decoded. deny and
hitl rules match if any of them matches, allow rules only if all match. Arguments that only the tool's schema marks
as paths are not recognised here, because the schema comes from the server.";

/// Arguments of `durward policy explain`.
#[derive(Debug, Args)]
pub struct ExplainArgs {
    /// The tool's own name (or the prompt's, with --method prompts/get)
    #[arg(long, value_name = "NAME")]
    tool: Option<String>,
    /// The call's arguments, a JSON object
    #[arg(long, value_name = "JSON", conflicts_with = "path")]
    args: Option<String>,
    /// Short for --args '{"path": P}'
    #[arg(long, value_name = "P")]
    path: Option<String>,
    /// The resource, with --method resources/read
    #[arg(long, value_name = "URI")]
    uri: Option<String>,
    /// The protocol's method
    #[arg(long, value_name = "M", default_value = "tools/call")]
    method: String,
    /// The server's name (`backend_id`)
    #[arg(long, value_name = "NAME", default_value = "server")]
    backend: String,
    /// The caller (`subject_id`) [default: the local user]
    #[arg(long, value_name = "NAME")]
    subject: Option<String>,
    /// A further fact, as in reference/policy.md, such as `backend_id=files`; lists with commas; repeatable
    #[arg(long = "fact", value_name = "NAME=VALUE", value_parser = GivenFact::parse)]
    facts: Vec<GivenFact>,
    #[command(flatten)]
    policy: PolicyFile,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// All that is said about a call.
struct Answer<'a> {
    policy: &'a Policy,
    facts: &'a Facts,
    judgement: Judgement<'a>,
    readings: Vec<Reading<'a>>,
    listed: Option<bool>,
}

pub fn run(
    args: &ExplainArgs,
    context: &Context<'_>,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> Result<u8, Failure> {
    let file = args.policy.policy.as_deref();
    let policy = source::load(file, Some(&args.backend), Protected::AsRun, context, err)?;
    let places = context.places;
    let question = Question {
        method: &args.method,
        name: args.tool.as_deref(),
        arguments: args.args.as_deref(),
        path: args.path.as_deref(),
        uri: args.uri.as_deref(),
        backend: &args.backend,
        builtin: context
            .settings
            .server(&args.backend)
            .and_then(|server| Some((server.builtin.as_ref()?, places))),
        subject: args.subject.as_deref().unwrap_or(&places.user),
        facts: &args.facts,
    };
    let view = LocalView::new(places);
    let facts = question.facts(&view).map_err(Failure::Cannot)?;
    let listed = question.listed(&view);
    let answer = Answer {
        policy: &policy,
        facts: &facts,
        judgement: policy.judge(&facts),
        readings: by_precedence(policy.readings(&facts), |reading| reading.rule),
        listed: listed.map(|facts| policy.judge(&facts).may_be_listed()),
    };
    if args.json {
        writeln!(out, "{:#}", answer.json())?;
    } else {
        answer.print(out)?;
    }
    Ok(EXIT_FINE)
}

/// Why a verdict is what it is, in a sentence.
pub fn because(verdict: &Verdict<'_>) -> String {
    let rule = Plain(verdict.final_rule);
    match (verdict.final_rule, verdict.unsure) {
        (DEFAULT_RULE, _) => "no rule allows it".into(),
        (PROTECTED_RULE, false) => "it touches a protected path".into(),
        (PROTECTED_RULE, true) => {
            "it may touch a protected path, and a path cannot be resolved".into()
        }
        (ANCESTOR_RULE, _) => {
            "it may move a directory that holds protected paths, and nothing says what the tool does".into()
        }
        (UNREAD_RULE, _) => {
            "its arguments are too large to be searched for protected places".into()
        }
        (_, false) => format!("rule \"{rule}\""),
        (_, true) => format!(
            "rule \"{rule}\" may match, and a path cannot be resolved or its when cannot be judged"
        ),
    }
}

impl Answer<'_> {
    fn print(&self, out: &mut dyn Write) -> io::Result<()> {
        let facts = self.facts;
        let verdict = self.judgement.verdict();
        writeln!(
            out,
            "{}  because: {}",
            verdict.effect.label().to_uppercase(),
            because(&verdict)
        )?;
        writeln!(out, "\nthe call")?;
        writeln!(out, "  method        {}", Plain(&facts.method))?;
        if let Fact::Known(tool) = &facts.tool_name {
            writeln!(out, "  tool          {}", Plain(tool))?;
        }
        if let Fact::Known(uri) = &facts.uri {
            writeln!(out, "  uri           {}", Plain(uri))?;
        }
        writeln!(out, "  server        {}", Plain(&facts.backend_id))?;
        writeln!(out, "  caller        {}", Plain(&facts.subject_id))?;
        for (row, value) in facts.kept_beside() {
            let texts: Vec<&str> = value
                .known()
                .iter()
                .flat_map(|value| value.texts())
                .collect();
            writeln!(out, "  {:13} {}", row.name, list(&texts))?;
        }
        for url in facts.reach.urls.list() {
            for text in url.readings.iter().flat_map(UrlReading::texts) {
                writeln!(out, "  url           {}", Plain(&text))?;
            }
            if url.uncertain || url.ambiguous {
                writeln!(out, "                and addresses that cannot be known")?;
            }
        }
        writeln!(out, "  operation     {}", self.operation())?;
        let effects = self.judgement.side_effects;
        writeln!(
            out,
            "  side effects  {}",
            effects.map_or_else(|| "unknown".to_owned(), list)
        )?;
        self.print_paths(out)?;
        if let Some(listed) = self.listed {
            let shown = if listed { "shown" } else { "hidden" };
            writeln!(out, "  in tools/list {shown}")?;
        }
        self.print_rules(out)
    }

    fn operation(&self) -> &'static str {
        self.judgement.operation.map_or("unknown", Operation::label)
    }

    fn print_paths(&self, out: &mut dyn Write) -> io::Result<()> {
        for argument in self.facts.paths.known().into_iter().flatten() {
            let content = if argument.content { ", in content" } else { "" };
            writeln!(
                out,
                "  path          {} ({}{content}) may lead to",
                Plain(&argument.text),
                argument.role.label()
            )?;
            for place in &argument.meaning.places {
                writeln!(out, "                  {}", Plain(place))?;
            }
            if argument.meaning.uncertain {
                writeln!(out, "                  and places that cannot be known")?;
            }
        }
        Ok(())
    }

    fn print_rules(&self, out: &mut dyn Write) -> io::Result<()> {
        let decided = self.judgement.verdict().final_rule;
        writeln!(out, "\nthe rules, in the order in which they decide")?;
        let protected = word(self.judgement.protected());
        writeln!(
            out,
            "  {protected:7}  deny   {PROTECTED_RULE}{}",
            mark([PROTECTED_RULE, UNREAD_RULE].contains(&decided))
        )?;
        if self.judgement.may_move_ancestor() {
            let mark = mark(decided == ANCESTOR_RULE);
            writeln!(out, "  yes      hitl   {ANCESTOR_RULE}{mark}")?;
        }
        for reading in &self.readings {
            let rule = reading.rule;
            writeln!(
                out,
                "  {:7}  {:5}  {}{}",
                word(reading.outcome),
                rule.effect.label(),
                Plain(&rule.id),
                mark(rule.id == decided)
            )?;
            for (name, value) in &reading.conditions {
                let asked = rule.conditions.list(name).map_or_else(
                    || "each has to match one of the patterns above".to_owned(),
                    list,
                );
                writeln!(out, "             {:7}  {name}: {asked}", word(*value))?;
            }
        }
        writeln!(
            out,
            "  {:7}  deny   {DEFAULT_RULE}{}",
            "",
            mark(DEFAULT_RULE == decided)
        )
    }

    fn json(&self) -> Value {
        let verdict = self.judgement.verdict();
        let paths: Vec<Value> = self
            .facts
            .paths
            .known()
            .into_iter()
            .flatten()
            .map(|argument| {
                json!({
                    "text": argument.text,
                    "role": argument.role.label(),
                    "content": argument.content,
                    "places": argument.meaning.places,
                    "uncertain": argument.meaning.uncertain,
                })
            })
            .collect();
        let rules: Vec<Value> = self
            .readings
            .iter()
            .map(|reading| {
                let conditions: Vec<Value> = reading
                    .conditions
                    .iter()
                    .map(|(name, value)| {
                        json!({
                            "condition": name,
                            "asked": reading.rule.conditions.list(name),
                            "outcome": word(*value),
                        })
                    })
                    .collect();
                json!({
                    "id": reading.rule.id,
                    "effect": reading.rule.effect.label(),
                    "outcome": word(reading.outcome),
                    "conditions": conditions,
                })
            })
            .collect();
        json!({
            "decision": verdict.effect.label(),
            "final_rule": verdict.final_rule,
            "unsure": verdict.unsure,
            "because": because(&verdict),
            "protected": word(self.judgement.protected()),
            "may_move_ancestor": self.judgement.may_move_ancestor(),
            "operation": self.operation(),
            "side_effects": self.judgement.side_effects,
            "listed": self.listed,
            "paths": paths,
            "rules": rules,
            "policy_digest": self.policy.digest(),
        })
    }
}

/// Marks the rule that decided.
fn mark(decides: bool) -> &'static str {
    if decides { "   <- decides" } else { "" }
}
