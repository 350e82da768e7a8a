//! `durward help`: its arguments, and the commands by task. The pages are printed by `reference::lookup`.

use clap::{Args, Command};

pub const HELP: &str = "\
Examples:
  durward help                   the commands, by task
  durward help run               the help of a command
  durward help policy            a reference page
  durward help policy test       the help of a command of a command

Reference pages:
  policy     conditions, effects, `when` in CEL, the starter policy
  config     the keys of durward.yaml and their defaults
  reasons    the labels of refusals, HTTP statuses, exit codes
  events     the records of the journal
  glossary   the words that these pages use
  cookbook   ten policies with their tests";

/// Commands by what a person wants to do.
pub const GROUPS: [(&str, &[&str]); 6] = [
    (
        "Guard your servers",
        &[
            "wrap", "unwrap", "install", "run", "serve", "init", "check", "policy", "keys",
            "reload",
        ],
    ),
    ("Answer", &["approvals", "pins"]),
    (
        "Look",
        &["logs", "audit", "status", "tools", "call", "models"],
    ),
    ("Measure", &["lab"]),
    ("Built-in servers", &["demo", "ssh", "sim"]),
    ("Help", &["help", "completions", "man"]),
];

/// Arguments of `durward help`.
#[derive(Debug, Args)]
pub struct HelpArgs {
    /// A command, or a reference page
    #[arg(value_name = "COMMAND|PAGE")]
    pub words: Vec<String>,
}

/// The command line with its commands grouped by task.
pub fn grouped(line: Command) -> Command {
    let mut template = String::from("{about}\n\n{usage-heading} {usage}\n");
    for (heading, names) in GROUPS {
        template.push_str(&format!("\n{heading}:\n"));
        for name in names {
            let about = line.find_subcommand(name).and_then(Command::get_about);
            let about = about.map(ToString::to_string).unwrap_or_default();
            template.push_str(&format!("  {name:<12} {about}\n"));
        }
    }
    template.push_str("\nOptions:\n{options}\n{after-help}");
    line.help_template(template)
}
