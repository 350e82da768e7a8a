//! `durward models`; of it `explain`: where the name of a model is routed, and what each target can do. Sends nothing.

use std::io::{self, Write};

use admin::models::{ModelRoute, ProviderSummary, explain_route};
use clap::{Args, Subcommand};

use crate::agents::AgentProvider;
use crate::audit::Context;
use crate::config::Settings;
use crate::config::values::{Choice as _, Span};
use crate::failure::Failure;
use crate::layout;
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
        Ok(route) => {
            let written = match args.json {
                true => layout::json(&route, out),
                false => print(&route, out),
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

fn explain(args: &ExplainArgs, settings: &Settings) -> Result<ModelRoute, Failure> {
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
    let configured = settings.models.providers.iter();
    let summaries: Vec<ProviderSummary> = configured
        .map(|own| ProviderSummary {
            name: own.name.clone(),
            reached_by: own.summary(),
            keys: own.keys.len(),
        })
        .collect();
    let prices = providers::prices(settings);
    let word = |rotation: ::models::Rotation| {
        let mut words = ::models::Rotation::WORDS.iter();
        words
            .find(|(_, own)| *own == rotation)
            .map(|(word, _)| *word)
    };
    explain_route(&args.model, &catalogue, &prices, &summaries, word).ok_or_else(|| {
        let names: Vec<String> = catalogue.names().map(|(name, _)| name).collect();
        Failure::other(format!(
            "\"{}\" is not a known model; the configuration has: {}",
            args.model.escape_debug(),
            names.join(", ")
        ))
    })
}

fn print(route: &ModelRoute, out: &mut dyn Write) -> io::Result<()> {
    let text =
        |text: Option<&String>| text.map_or_else(String::new, |own| own.escape_debug().to_string());
    let rotate = route.rotate.as_ref();
    writeln!(
        out,
        "{}: rotate {}, all attempts within {}",
        text(Some(&route.name)),
        text(rotate),
        Span(route.deadline_ms)
    )?;
    let weighs = rotate.is_some_and(|rotate| rotate == "weighted");
    for (number, tier) in route.tiers.iter().enumerate() {
        writeln!(out, "  tier {}", number + 1)?;
        for target in tier {
            let weight = match weighs {
                true => format!("  weight {}", target.weight),
                false => String::new(),
            };
            writeln!(
                out,
                "    {}  {}{weight}",
                text(Some(&target.target)),
                text(target.reached_by.as_ref())
            )?;
            for (what, endpoints) in [
                ("serves", &target.serves),
                ("translates", &target.translates),
            ] {
                if !endpoints.is_empty() {
                    writeln!(out, "      {what} {}", endpoints.join(", "))?;
                }
            }
            if let Some(price) = &target.price_micros_for_a_million_tokens {
                writeln!(
                    out,
                    "      ${} read, ${} written, for a million tokens",
                    dollars(price.input),
                    dollars(price.output)
                )?;
            }
        }
    }
    Ok(())
}
