//! `durward models`; of it `explain`: where the name of a model is routed, and what each target can do. Sends nothing.

use std::io::{self, Write};

use ::models::{Catalogue, Prices, Route, Target};
use clap::{Args, Subcommand};
use serde_json::{Value, json};

use crate::agents::AgentProvider;
use crate::audit::Context;
use crate::config::Settings;
use crate::config::values::{Choice as _, Span};
use crate::failure::Failure;
use crate::layout::money::dollars;
use crate::providers;
use crate::spend::{self, SpendArgs};

pub const HELP: &str = "\
Examples:
  durward models explain smart
  durward models explain openai/gpt-5 --json

Exit codes: 0 the name leads somewhere; 1 it does not; 16 the configuration cannot be used.";

/// Examples of `durward models`.
pub const MODELS_HELP: &str = "\
Examples:
  durward models explain smart      the targets of an alias, in the order in which they are tried
  durward models spend --by team    tokens and cost of each team over the last 30 days";

#[derive(Debug, Args)]
pub struct ModelsArgs {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Explain where a model name is routed: tiers, targets, endpoints, prices
    #[command(after_help = HELP)]
    Explain(ExplainArgs),
    /// Sum tokens and cost of model calls, by caller, team, model, provider, run or day
    #[command(after_help = crate::spend::HELP)]
    Spend(SpendArgs),
}

#[derive(Debug, Args)]
struct ExplainArgs {
    /// An alias, PROVIDER/MODEL, or the name of a model that one provider alone lists
    #[arg(value_name = "MODEL")]
    model: String,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Runs the command and gives its exit code.
pub fn run(
    args: &ModelsArgs,
    settings: &Settings,
    context: &Context,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> u8 {
    let args = match &args.command {
        Command::Spend(args) => return spend::run(args, context, out, err),
        Command::Explain(args) => args,
    };
    match explain(args, settings) {
        Ok(said) => {
            let written = if args.json {
                writeln!(out, "{said:#}")
            } else {
                print(&said, out)
            };
            // A reader that closes the pipe has seen enough.
            let is_fine = written.is_ok_and(|()| out.flush().is_ok());
            u8::from(!is_fine)
        }
        Err(failure) => {
            let _ = writeln!(err, "error: {}", failure.message);
            failure.code
        }
    }
}

fn explain(args: &ExplainArgs, settings: &Settings) -> Result<Value, Failure> {
    let Some(catalogue) = providers::catalogue(
        settings,
        AgentProvider::new(&settings.agents).as_ref(),
        true,
    )?
    else {
        return Err(Failure::other(
            "no model provider is configured; write models: { providers: … } in durward.yaml",
        ));
    };
    let Some(route) = catalogue.find(&args.model) else {
        let names: Vec<String> = catalogue.names().map(|(name, _)| name).collect();
        return Err(Failure::other(format!(
            "\"{}\" is not a known model; the configuration has: {}",
            args.model.escape_debug(),
            names.join(", ")
        )));
    };
    Ok(said(&route, &catalogue, settings))
}

fn said(route: &Route, catalogue: &Catalogue, settings: &Settings) -> Value {
    let prices = providers::prices(settings);
    let tiers = route.tiers().map(|tier| {
        let targets = tier.into_iter();
        let targets = targets.map(|(at, weight)| target(at, weight, &prices, settings));
        targets.collect::<Vec<_>>()
    });
    let overflow = route.overflow().map(|at| target(at, 1, &prices, settings));
    let rotation = ::models::Rotation::WORDS;
    let rotation = rotation.iter().find(|(_, own)| *own == route.rotation());
    json!({
        "name": route.name(),
        "tiers": tiers.collect::<Vec<_>>(),
        "overflow": overflow.collect::<Vec<_>>(),
        "rotate": rotation.map(|(word, _)| word),
        "deadline_ms": route.deadline_ms(),
        "providers": catalogue.providers().len(),
    })
}

fn target(target: &Target, weight: u64, prices: &Prices, settings: &Settings) -> Value {
    let offer = target.provider().offer_of(target.model());
    let name = target.provider().peer().name();
    let mut configured = settings.models.providers.iter();
    let own = configured.find(|own| own.name == name);
    let paths = |translated: bool| {
        let all = offer.endpoints.iter();
        let of_kind = all.filter(|endpoint| offer.translated.contains(endpoint) == translated);
        of_kind.map(|endpoint| endpoint.path()).collect::<Vec<_>>()
    };
    let price = prices.find(target).map(|price| {
        json!({ "input": price.input, "output": price.output, "cached": price.cached, "written": price.written, "reasoning": price.reasoning })
    });
    json!({
        "target": target.name(),
        "reached_by": own.map(|own| own.summary()),
        "keys": own.map(|own| own.keys.len()),
        "weight": weight,
        "serves": paths(false),
        "translates": paths(true),
        "price_micros_for_a_million_tokens": price,
    })
}

fn print(said: &Value, out: &mut dyn Write) -> io::Result<()> {
    let text = |value: &Value| {
        value
            .as_str()
            .unwrap_or_default()
            .escape_debug()
            .to_string()
    };
    let words = |value: &Value| {
        let words = value.as_array().into_iter().flatten();
        words
            .filter_map(Value::as_str)
            .collect::<Vec<_>>()
            .join(", ")
    };
    let deadline = Span(said["deadline_ms"].as_u64().unwrap_or(0));
    writeln!(
        out,
        "{}: rotate {}, all attempts within {deadline}",
        text(&said["name"]),
        text(&said["rotate"])
    )?;
    let weighs = said["rotate"] == "weighted";
    for (number, tier) in said["tiers"].as_array().into_iter().flatten().enumerate() {
        writeln!(out, "  tier {}", number + 1)?;
        for target in tier.as_array().into_iter().flatten() {
            let weight = if weighs {
                format!("  weight {}", target["weight"])
            } else {
                String::new()
            };
            writeln!(
                out,
                "    {}  {}{weight}",
                text(&target["target"]),
                text(&target["reached_by"])
            )?;
            for what in ["serves", "translates"] {
                let endpoints = words(&target[what]);
                if !endpoints.is_empty() {
                    writeln!(out, "      {what} {endpoints}")?;
                }
            }
            let price = &target["price_micros_for_a_million_tokens"];
            if let (Some(input), Some(output)) = (price["input"].as_u64(), price["output"].as_u64())
            {
                writeln!(
                    out,
                    "      ${} read, ${} written, for a million tokens",
                    dollars(input),
                    dollars(output)
                )?;
            }
        }
    }
    Ok(())
}
