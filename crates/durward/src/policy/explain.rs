//! `durward policy explain`

use std::io::{self, Write};

use admin::policy::{Explanation, GivenFact, HypotheticalCall, explain};
use clap::Args;
use gate::policy::{ANCESTOR_RULE, DEFAULT_RULE, PROTECTED_RULE, UNREAD_RULE};

use super::source::{self, PolicyFile, Protected};
use super::text::{Plain, list};
use super::{Context, EXIT_FINE, Failure};
use crate::layout;
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

pub fn run(
    args: &ExplainArgs,
    context: &Context<'_>,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> Result<u8, Failure> {
    let file = args.policy.policy.as_deref();
    let policy = source::load(file, Some(&args.backend), Protected::AsRun, context, err)?;
    let places = context.places;
    let builtin = context.builtin(&args.backend);
    let call = HypotheticalCall {
        method: &args.method,
        name: args.tool.as_deref(),
        arguments: args.args.as_deref(),
        path: args.path.as_deref(),
        uri: args.uri.as_deref(),
        backend: &args.backend,
        builtin: builtin.as_deref(),
        subject: args.subject.as_deref().unwrap_or(&places.user),
        facts: &args.facts,
    };
    let view = LocalView::new(places);
    let facts = call.facts(&view).map_err(Failure::Cannot)?;
    let explanation = explain(&policy, &facts, call.listed_facts(&view).as_ref());
    match args.json {
        true => layout::json(&explanation, out)?,
        false => print(&explanation, out)?,
    }
    Ok(EXIT_FINE)
}

fn print(explanation: &Explanation, out: &mut dyn Write) -> io::Result<()> {
    let call = &explanation.call;
    writeln!(
        out,
        "{}  because: {}",
        explanation.decision.to_uppercase(),
        Plain(&explanation.because)
    )?;
    writeln!(out, "\nthe call")?;
    writeln!(out, "  method        {}", Plain(&call.method))?;
    if let Some(tool) = &call.tool {
        writeln!(out, "  tool          {}", Plain(tool))?;
    }
    if let Some(uri) = &call.uri {
        writeln!(out, "  uri           {}", Plain(uri))?;
    }
    writeln!(out, "  server        {}", Plain(&call.server))?;
    writeln!(out, "  caller        {}", Plain(&call.caller))?;
    for (name, texts) in &call.further {
        writeln!(out, "  {name:13} {}", list(texts))?;
    }
    for url in &call.urls {
        for text in &url.texts {
            writeln!(out, "  url           {}", Plain(text))?;
        }
        if url.uncertain {
            writeln!(out, "                and addresses that cannot be known")?;
        }
    }
    writeln!(out, "  operation     {}", explanation.operation)?;
    let effects = explanation.side_effects.as_deref();
    let effects = effects.map_or_else(|| "unknown".to_owned(), list);
    writeln!(out, "  side effects  {effects}")?;
    for path in &explanation.paths {
        let content = if path.content { ", in content" } else { "" };
        writeln!(
            out,
            "  path          {} ({}{content}) may lead to",
            Plain(&path.text),
            path.role
        )?;
        for place in &path.places {
            writeln!(out, "                  {}", Plain(place))?;
        }
        if path.uncertain {
            writeln!(out, "                  and places that cannot be known")?;
        }
    }
    if let Some(listed) = explanation.listed {
        let shown = if listed { "shown" } else { "hidden" };
        writeln!(out, "  in tools/list {shown}")?;
    }
    print_rules(explanation, out)
}

fn print_rules(explanation: &Explanation, out: &mut dyn Write) -> io::Result<()> {
    let decided = explanation.final_rule.as_str();
    writeln!(out, "\nthe rules, in the order in which they decide")?;
    writeln!(
        out,
        "  {:7}  deny   {PROTECTED_RULE}{}",
        explanation.protected,
        mark([PROTECTED_RULE, UNREAD_RULE].contains(&decided))
    )?;
    if explanation.may_move_ancestor {
        let mark = mark(decided == ANCESTOR_RULE);
        writeln!(out, "  yes      hitl   {ANCESTOR_RULE}{mark}")?;
    }
    for rule in &explanation.rules {
        writeln!(
            out,
            "  {:7}  {:5}  {}{}",
            rule.outcome,
            rule.effect,
            Plain(&rule.id),
            mark(rule.id == decided)
        )?;
        for condition in &rule.conditions {
            let asked = condition.asked.as_deref().map_or_else(
                || "each has to match one of the patterns above".to_owned(),
                list,
            );
            let (name, outcome) = (condition.condition, condition.outcome);
            writeln!(out, "             {outcome:7}  {name}: {asked}")?;
        }
    }
    writeln!(
        out,
        "  {:7}  deny   {DEFAULT_RULE}{}",
        "",
        mark(DEFAULT_RULE == decided)
    )
}

/// Marks the rule that decided.
fn mark(decides: bool) -> &'static str {
    if decides { "   <- decides" } else { "" }
}
