//! The command line.

use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{ArgMatches, CommandFactory as _, FromArgMatches as _};
use std::io::Write as _;
use std::path::PathBuf;

use clap::{Parser, Subcommand};

use crate::config::{Origin, Source};
use crate::flags::Given;

/// A proxy between AI agents and the tools they use: it checks every call, records it, and forwards it.
#[derive(Debug, Parser)]
#[command(name = "durward", version = VERSION, about, after_help = EXAMPLES, propagate_version = true)]
#[command(disable_help_subcommand = true)]
pub struct Cli {
    /// The directory of journal and keys [default: $XDG_STATE_HOME/durward]
    #[arg(
        long,
        global = true,
        help_heading = GLOBAL,
        value_name = "DIR",
        env = "DURWARD_STATE_DIR",
        hide_env_values = true
    )]
    pub state_dir: Option<PathBuf>,
    /// The configuration file [default: $XDG_CONFIG_HOME/durward/durward.yaml, if it exists]
    #[arg(
        long,
        global = true,
        help_heading = GLOBAL,
        value_name = "FILE",
        env = "DURWARD_CONFIG",
        hide_env_values = true
    )]
    pub config: Option<PathBuf>,
    /// Read no configuration
    #[arg(long, global = true, help_heading = GLOBAL)]
    pub no_config: bool,
    /// Print more messages on standard error; -vv prints all
    #[arg(long, short, global = true, help_heading = GLOBAL, action = clap::ArgAction::Count)]
    pub verbose: u8,
    #[command(subcommand)]
    pub command: Command,
}

impl Cli {
    /// The whole command line, as completions and manual pages show it.
    pub fn line() -> clap::Command {
        crate::help::grouped(Self::command())
    }

    /// The same with help that fits the terminal.
    pub fn fitted() -> clap::Command {
        crate::help::fitted(Self::line(), crate::layout::screen_width())
    }

    /// Reads the command line, and where some of its values came from. Ends the process where it
    /// cannot be read; gives nothing where no command is named, and help was printed instead.
    pub fn read() -> Option<(Self, Given)> {
        let matches = match Self::fitted().try_get_matches() {
            Ok(matches) => matches,
            Err(error) if error.kind() == ErrorKind::MissingSubcommand => {
                print_help_at_hand();
                return None;
            }
            Err(error) => error.exit(),
        };
        let below = matches.subcommand().map_or(&matches, |(_, below)| below);
        let given = Given {
            state_dir: origin(&matches, "state_dir", "--state-dir", "DURWARD_STATE_DIR"),
            policy: origin(below, "policy", "--policy", "DURWARD_POLICY"),
        };
        match Self::from_arg_matches(&matches) {
            Ok(cli) => Some((cli, given)),
            Err(error) => error.exit(),
        }
    }

    /// Which configuration is meant.
    pub fn config_source(&self) -> Source {
        match &self.config {
            _ if self.no_config => Source::None,
            Some(file) => Source::File(file.clone()),
            None => Source::Default,
        }
    }
}

/// Prints the help of the command that the line stops at, as nobody can tell what was meant to follow.
fn print_help_at_hand() {
    let mut line = Cli::fitted();
    line.build();
    let mut names: Vec<String> = Vec::new();
    let mut command = &line;
    for word in std::env::args_os().skip(1) {
        // Options stand between the words, and their values name no command.
        if let Some(below) = word.to_str().and_then(|word| command.find_subcommand(word)) {
            names.push(below.get_name().to_owned());
            command = below;
        }
    }
    let found = names
        .iter()
        .try_fold(&mut line, |command, name| command.find_subcommand_mut(name));
    let help = found.map(clap::Command::render_help);
    let _ = write!(std::io::stderr(), "{}", help.unwrap_or_default());
}

fn origin(matches: &ArgMatches, id: &str, flag: &'static str, variable: &'static str) -> Origin {
    match matches
        .try_contains_id(id)
        .map(|_| matches.value_source(id))
    {
        Ok(Some(ValueSource::EnvVariable)) => Origin::Environment(variable),
        Ok(Some(ValueSource::CommandLine)) => Origin::Flag(flag),
        _ => Origin::Default,
    }
}

/// Version, commit and target.
const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), " (", env!("DURWARD_BUILD"), ")");

/// The heading of the options that every command has.
const GLOBAL: &str = "Global options";

const EXAMPLES: &str = "\
Examples:
  durward demo                     take a tour with built-in servers
  durward wrap claude-desktop      guard the servers that a client has already
  durward approvals watch          answer the calls that wait, on a live screen
  durward logs --refused           see what was refused, and why
  durward audit verify             verify that the journal has not been altered

`durward help COMMAND` describes a command. Reference pages: `durward help policy`, config, reasons,
events, glossary, cookbook.";

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Guard MCP servers for one client, over stdio
    #[command(after_help = crate::run::HELP)]
    Run(Box<crate::run::RunArgs>),
    /// Guard MCP servers for many clients, over HTTP
    #[command(after_help = crate::serve::HELP)]
    Serve(Box<crate::serve::ServeArgs>),
    /// Create, list, rotate and revoke the API keys of `durward serve`
    #[command(after_help = crate::keys::HELP)]
    Keys(crate::keys::KeysArgs),
    /// Sign in at an issuer of durward.yaml, with a browser
    #[command(after_help = crate::sign_in::LOGIN_HELP)]
    Login(crate::sign_in::LoginArgs),
    /// Sign out: revoke and delete the stored tokens
    #[command(after_help = crate::sign_in::LOGOUT_HELP)]
    Logout(crate::sign_in::LogoutArgs),
    /// Show who is signed in
    #[command(after_help = crate::sign_in::WHOAMI_HELP)]
    Whoami(crate::sign_in::WhoamiArgs),
    /// Show the budgets that replicas share, release quota of a lost replica, end a freeze
    #[command(after_help = crate::budgets::HELP)]
    Budgets(crate::budgets::BudgetsArgs),
    /// Validate the configuration and print the effective settings
    #[command(after_help = crate::check::HELP)]
    Check(crate::check::CheckArgs),
    /// Take a guided tour with built-in servers, in a temporary directory
    #[command(after_help = crate::demo::HELP)]
    Demo,
    /// Write, check, explain and test policies
    #[command(after_help = crate::policy::HELP)]
    Policy(crate::policy::PolicyArgs),
    /// Show where a model name is routed, and what calls have cost
    #[command(after_help = crate::route::MODELS_HELP)]
    Models(crate::route::ModelsArgs),
    /// List, add, archive and restore the servers of the configuration
    #[command(after_help = crate::servers::HELP)]
    Servers(crate::servers::ServersArgs),
    /// Check, list and run agents
    #[command(after_help = crate::agents_command::HELP)]
    Agents(crate::agents_command::AgentsArgs),
    /// Show the calls of a run as a tree
    #[command(after_help = crate::runs::HELP)]
    Runs(crate::runs::RunsArgs),
    /// Review and approve changed tool definitions
    #[command(after_help = crate::pins::HELP)]
    Pins(crate::pins::PinsArgs),
    /// Read and verify the journal
    #[command(after_help = crate::audit::HELP)]
    Audit(crate::audit::AuditArgs),
    /// Reload policy and configuration in running instances
    #[command(after_help = crate::control::reload::HELP)]
    Reload(crate::control::reload::ReloadArgs),
    /// Write a first configuration and policy
    #[command(after_help = crate::init::HELP)]
    Init(crate::init::InitArgs),
    /// Show decisions, operations and policy changes as tables
    #[command(after_help = crate::logs::HELP)]
    Logs(crate::logs::LogsArgs),
    /// Add a guarded server to an MCP client's configuration
    #[command(after_help = crate::install::HELP)]
    Install(crate::install::InstallArgs),
    /// List the tools of the configured servers, with the policy's decision on each
    #[command(after_help = crate::tools::HELP)]
    Tools(crate::tools::ToolsArgs),
    /// Call one tool of a configured server, through the gate
    #[command(after_help = crate::tools::call::HELP)]
    Call(crate::tools::call::CallArgs),
    /// Guard the servers that an MCP client already has
    #[command(after_help = crate::wrap::WRAP_HELP)]
    Wrap(crate::wrap::WrapArgs),
    /// Undo `durward wrap`
    #[command(after_help = crate::wrap::UNWRAP_HELP)]
    Unwrap(crate::wrap::UnwrapArgs),
    /// Show the state directory, the journal and running instances
    #[command(after_help = crate::status::HELP)]
    Status(crate::status::StatusArgs),
    /// Print a shell's completions
    #[command(after_help = crate::completions::COMPLETIONS_HELP)]
    Completions(crate::completions::CompletionsArgs),
    /// Print the manual page, or write all of them
    #[command(after_help = crate::completions::MAN_HELP)]
    Man(crate::completions::ManArgs),
    /// List and answer the calls that wait for approval
    #[command(after_help = crate::approvals::HELP)]
    Approvals(crate::approvals::ApprovalsArgs),
    /// Serve SSH hosts as tools; explain and print the rules for commands
    #[command(after_help = crate::ssh::HELP)]
    Ssh(crate::ssh::SshArgs),
    /// Read, run and analyse Open Systems Pharmacology models
    Sim(pbpk::cli::Args),
    /// Measure overhead and load, and run mock servers
    #[command(after_help = crate::lab::HELP, disable_help_flag = true, disable_version_flag = true)]
    Lab(crate::lab::LabArgs),
    /// Print the help of a command, or a reference page
    #[command(after_help = crate::help::HELP)]
    Help(crate::help::HelpArgs),
    /// Print a page of docs/reference
    #[command(name = "__docs", hide = true)]
    Docs {
        /// commands, reasons, policy or keys
        page: String,
    },
}

#[cfg(test)]
mod tests {
    use clap::{Arg, CommandFactory as _};

    use super::Cli;
    use crate::config::keys::{KEYS, Key};
    use crate::config::values::Span;

    /// Flags that `durward.yaml` has no key for, and why.
    const WITHOUT_KEY: [(&str, &str); 7] = [
        ("config", "says which file is read"),
        ("no-config", "says that none is read"),
        (
            "verbose",
            "is about what one start prints, not about what it does",
        ),
        (
            "name",
            "a server of the file has the name that it is written under",
        ),
        ("SERVER", "names a server of the file"),
        ("help", "prints and ends"),
        ("version", "prints and ends"),
    ];

    /// The name of a flag, or what stands for an argument without one.
    fn name(arg: &Arg) -> String {
        let id = || arg.get_id().to_string();
        let value = || arg.get_value_names().and_then(|names| names.first());
        match arg.get_long() {
            Some(long) => long.to_owned(),
            None if arg.is_last_set() => id(),
            None => value().map_or_else(id, ToString::to_string),
        }
    }

    /// What `run` and `serve` take, each once.
    fn flags() -> Vec<(String, Arg)> {
        let mut root = Cli::command();
        root.build();
        let mut found: Vec<(String, Arg)> = Vec::new();
        for command in ["run", "serve"] {
            let command = root.find_subcommand(command).unwrap();
            for arg in command.get_arguments() {
                if !found.iter().any(|(known, _)| *known == name(arg)) {
                    found.push((name(arg), arg.clone()));
                }
            }
        }
        found
    }

    fn keys_of(flag: &str) -> Vec<&'static Key> {
        KEYS.iter().filter(|key| key.flag == Some(flag)).collect()
    }

    #[test]
    fn p11_every_flag_of_run_and_serve_has_a_key_and_every_named_flag_is_there() {
        let flags = flags();
        assert!(flags.len() > 40, "{}", flags.len());
        for (flag, _) in &flags {
            let excepted = WITHOUT_KEY.iter().any(|(without, _)| without == flag);
            assert_ne!(
                keys_of(flag).is_empty(),
                !excepted,
                "--{flag} needs a key in config/keys/table.rs, or a reason here: one of the two"
            );
        }
        let named = KEYS.iter().filter_map(|key| key.flag);
        for flag in named.chain(WITHOUT_KEY.iter().map(|(flag, _)| *flag)) {
            assert!(
                flags.iter().any(|(known, _)| known == flag),
                "neither durward run nor durward serve has --{flag}"
            );
        }
    }

    #[test]
    fn a_flag_and_its_key_have_one_default() {
        let mut compared = 0;
        for (flag, arg) in flags() {
            let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
            let Some((_, default)) = help.rsplit_once("[default: ") else {
                continue;
            };
            let default = default.trim_end_matches(']');
            let default = default
                .split_once([',', ';'])
                .map_or(default, |(first, _)| first);
            // A key of one server says what holds for all where it is not given.
            for key in keys_of(&flag).iter().filter(|key| !key.path.contains('*')) {
                let seconds = |text: &str| text.parse::<Span>().map(|span| span.0 / 1_000);
                let is_same = key.default == default
                    || seconds(key.default).is_ok_and(|s| s.to_string() == default);
                assert!(
                    is_same,
                    "--{flag}: {default}, {}: {}",
                    key.path, key.default
                );
                compared += 1;
            }
        }
        assert!(compared > 20, "{compared}");
    }
}
