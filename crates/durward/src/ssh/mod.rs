//! `durward ssh`: what becomes of a command, the rules and hosts that decide it, recordings of terminals, and serving the
//! tools.

mod replay;
mod serve;

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use ::ssh::config::Person;
use ::ssh::hosts::Hosts;
use ::ssh::rules;
use clap::{Args, Subcommand};
use gate::effect::Effect;
use serde_json::{Value, json};

use crate::failure::EXIT_CONFIGURATION;
use crate::places::Places;
use crate::policy::source::{self, PolicySource, Protected, ShippedPolicy};
pub use serve::Level;

/// The command would be allowed, or the file is fine.
const EXIT_ALLOWED: u8 = 0;
/// A recording is not as it was written.
const EXIT_CHANGED: u8 = 1;
/// Logins at a host will fail.
const EXIT_FAULTY: u8 = 1;
/// A person would be asked.
const EXIT_ASKS: u8 = 3;
/// The command would be refused.
const EXIT_REFUSED: u8 = 4;

/// What decides where no rule does.
const DEFAULT: &str = "default";

const CHECK_HELP: &str = "\
Examples:
  durward ssh check 'cat /etc/hostname'
  durward ssh check --policy policy.json --host web1 'systemctl restart nginx'

The command is one program and its arguments. Nothing is run, and links on the host are not resolved.

Exit codes: 0 allowed; 3 a person is asked; 4 refused; 16 the policy cannot be used. They are the same with --json.";

const HOSTS_HELP: &str = "\
Examples:
  durward ssh hosts check ssh_hosts.yaml
  durward ssh hosts check ssh_hosts.yaml --json | jq -r '.hosts[] | select(.faults != []) | .name'

The command looks for keys, certificates, secrets, the agent, and the hosts' keys in known_hosts. It makes no connection.

Exit codes: 0 everything is there; 1 logins at some host will fail; 16 the file cannot be read.";

/// Examples of `durward ssh`.
pub const HELP: &str = "\
Examples:
  durward ssh check 'cat /etc/hostname'            would it be allowed, and by which rule?
  durward ssh hosts check ssh_hosts.yaml           can all hosts be logged in to?
  durward ssh serve --hosts ssh_hosts.yaml         serve the tools at port 3000";

const RULES_HELP: &str = "\
Examples:
  durward ssh rules > policy.json      a policy to start from

The rules are ordinary ones: durward policy show, check, explain and test read them.";

/// Arguments of `durward ssh`.
#[derive(Debug, Args)]
pub struct SshArgs {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Check whether a command would be allowed, and by which rule
    #[command(after_help = CHECK_HELP)]
    Check(CheckArgs),
    /// Print the shipped rules as a policy
    #[command(after_help = RULES_HELP)]
    Rules,
    /// Check a file of hosts
    Hosts(HostsArgs),
    /// Check the recording of a terminal, and play it
    #[command(after_help = replay::HELP)]
    Replay(replay::ReplayArgs),
    /// Serve the SSH tools over HTTP, with a built-in configuration
    #[command(after_help = serve::HELP)]
    Serve(serve::SshServeArgs),
}

impl SshArgs {
    /// What `--debug` asks for, where it can be given.
    pub fn level(&self) -> Option<Level> {
        match &self.command {
            Command::Serve(args) => Some(args.debug),
            _ => None,
        }
    }
}

/// Arguments of `durward ssh check`.
#[derive(Debug, Args)]
struct CheckArgs {
    /// The command, as one argument
    #[arg(value_name = "COMMAND", allow_hyphen_values = true)]
    command: String,
    /// The policy [default: the shipped rules]
    #[arg(long, value_name = "FILE")]
    policy: Option<PathBuf>,
    /// The host that it would run on
    #[arg(long, value_name = "NAME")]
    host: Option<String>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Arguments of `durward ssh hosts`.
#[derive(Debug, Args)]
struct HostsArgs {
    #[command(subcommand)]
    command: HostsCommand,
}

#[derive(Debug, Subcommand)]
enum HostsCommand {
    /// Read the file, list its hosts, and name those at which logins will fail
    #[command(after_help = HOSTS_HELP)]
    Check {
        /// The file, as `hosts` names it in the configuration
        #[arg(value_name = "FILE")]
        file: PathBuf,
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
}

/// Runs the command; gives the exit code.
pub fn run(args: &SshArgs, places: &Places, out: &mut dyn Write, err: &mut dyn Write) -> u8 {
    let done = match &args.command {
        Command::Serve(args) => return serve::run(args, places.clone(), out, err),
        Command::Check(args) => check(args, places, out),
        Command::Replay(args) => replay::run(args, out, err).map(|checked| {
            checked.map(|is_unchanged| {
                if is_unchanged {
                    EXIT_ALLOWED
                } else {
                    EXIT_CHANGED
                }
            })
        }),
        Command::Rules => out
            .write_all(rules::policy().as_bytes())
            .map(|()| Ok(EXIT_ALLOWED)),
        Command::Hosts(HostsArgs {
            command: HostsCommand::Check { file, json },
        }) => {
            let person = Person::from_environment(crate::places::text_of);
            hosts(file, *json, &person, out)
        }
    };
    match done {
        Ok(Ok(code)) => code,
        Ok(Err(wrong)) => {
            let _ = writeln!(err, "error: {wrong}");
            EXIT_CONFIGURATION
        }
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => EXIT_ALLOWED,
        Err(error) => {
            let _ = writeln!(err, "error: cannot write: {error}");
            1
        }
    }
}

fn check(args: &CheckArgs, places: &Places, out: &mut dyn Write) -> io::Result<Result<u8, String>> {
    let policy = match &args.policy {
        Some(file) => source::of_file(file, Protected::Nothing, places),
        None => PolicySource::Shipped(ShippedPolicy::Ssh).load(Protected::Nothing, places),
    };
    let policy = match policy {
        Ok(policy) => policy,
        Err(wrong) => return Ok(Err(wrong)),
    };
    let mut facts = match rules::facts(&args.command, args.host.as_deref()) {
        Ok(facts) => facts,
        Err(fault) => {
            match args.json {
                true => writeln!(out, "{:#}", unreadable_command(args, &fault.to_string()))?,
                false => writeln!(out, "REFUSED  it cannot be read: {fault}")?,
            }
            return Ok(Ok(EXIT_REFUSED));
        }
    };
    facts.subject_id.clone_from(&places.user);
    let judgement = policy.judge(&facts);
    let verdict = judgement.verdict();
    let (word, code) = match verdict.effect {
        Effect::Allow => ("ALLOWED", EXIT_ALLOWED),
        Effect::Hitl => ("ASKS", EXIT_ASKS),
        Effect::Deny => ("REFUSED", EXIT_REFUSED),
    };
    let about = judgement
        .deciding_rule()
        .and_then(|rule| rule.description.as_deref());
    if args.json {
        let told = json!({
            "command": args.command,
            "host": args.host,
            "decision": verdict.effect.label(),
            "final_rule": verdict.final_rule,
            "description": about,
            "uncertain": verdict.unsure,
        });
        writeln!(out, "{told:#}")?;
        return Ok(Ok(code));
    }
    match about {
        Some(about) => writeln!(out, "{word}  rule {}: {about}", verdict.final_rule)?,
        None if verdict.final_rule == DEFAULT && verdict.effect == Effect::Deny => {
            writeln!(out, "{word}  rule {DEFAULT}: no rule allows it")?;
            if args.policy.is_none() {
                write_forms(&args.command, out)?;
            }
        }
        None => writeln!(out, "{word}  rule {}", verdict.final_rule)?,
    }
    if verdict.unsure {
        writeln!(
            out,
            "note: a path is relative, or cannot be told; write the whole path"
        )?;
    }
    Ok(Ok(code))
}

/// A command that no rule judges, because it cannot be read.
fn unreadable_command(args: &CheckArgs, why: &str) -> Value {
    json!({
        "command": args.command,
        "host": args.host,
        "decision": Effect::Deny.label(),
        "final_rule": null,
        "description": format!("it cannot be read: {why}"),
        "uncertain": false,
    })
}

/// What the shipped rules allow of a command's program.
fn write_forms(line: &str, out: &mut dyn Write) -> io::Result<()> {
    let forms = rules::forms_of(line);
    if forms.is_empty() {
        return writeln!(
            out,
            "note: the shipped rules do not know this program; `durward ssh rules` prints them"
        );
    }
    writeln!(out, "note: of this program, these forms are allowed:")?;
    for form in forms {
        writeln!(out, "  {form}")?;
    }
    Ok(())
}

fn hosts(
    file: &Path,
    json: bool,
    person: &Person,
    out: &mut dyn Write,
) -> io::Result<Result<u8, String>> {
    let hosts = match Hosts::read(file, person) {
        Ok(hosts) => hosts,
        Err(fault) => return Ok(Err(fault.to_string())),
    };
    let has = |name: &str| crate::places::named_by(name).is_some();
    if json {
        let (told, code) = hosts_object(&hosts, has);
        writeln!(out, "{told:#}")?;
        return Ok(Ok(code));
    }
    let mut code = EXIT_ALLOWED;
    for host in hosts.all() {
        let over: Vec<&str> = host.jump.iter().map(|hop| hop.name.as_str()).collect();
        let over = if over.is_empty() {
            String::new()
        } else {
            format!(" over {}", over.join(", "))
        };
        writeln!(
            out,
            "{}  {}@{}:{} by {}{over}",
            host.name,
            host.credential.user,
            host.address,
            host.port,
            host.credential.kind(),
        )?;
        for wrong in hosts.faults(host, has) {
            code = EXIT_FAULTY;
            writeln!(out, "{}  will fail: {wrong}", host.name)?;
        }
    }
    for (name, why) in hosts.unusable() {
        writeln!(out, "{name}  cannot be used: {why}")?;
    }
    Ok(Ok(code))
}

/// The same as one object.
fn hosts_object(hosts: &Hosts, has: impl Fn(&str) -> bool + Copy) -> (Value, u8) {
    let mut code = EXIT_ALLOWED;
    let mut all = Vec::new();
    for host in hosts.all() {
        let faults: Vec<String> = hosts
            .faults(host, has)
            .iter()
            .map(ToString::to_string)
            .collect();
        if !faults.is_empty() {
            code = EXIT_FAULTY;
        }
        let jump: Vec<&str> = host.jump.iter().map(|hop| hop.name.as_str()).collect();
        all.push(json!({
            "name": host.name,
            "user": host.credential.user,
            "address": host.address,
            "port": host.port,
            "login": host.credential.kind(),
            "jump": jump,
            "faults": faults,
        }));
    }
    let unusable: Vec<Value> = hosts
        .unusable()
        .map(|(name, why)| json!({ "name": name, "why": why }))
        .collect();
    (json!({ "hosts": all, "unusable": unusable }), code)
}
