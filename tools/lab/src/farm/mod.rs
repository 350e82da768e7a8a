//! `lab farm`: the three hosts of the SSH load-testing guide, as network namespaces on one bridge of this machine.
//!
//! The kernel has their only state: interfaces with their names are theirs, so that `down` works after a crash as well,
//! and `up` begins again. Where namespaces cannot be made, loopback stands for all three, and the command says so.

mod groups;
mod net;

use crate::error::LabError;
use std::io::Write;
use std::process::Command;

/// Exit code of a command that could not be started.
const EXIT_NO_COMMAND: u8 = 127;

/// The three hosts of the SSH load-testing guide as network namespaces
#[derive(Debug, clap::Args)]
pub struct FarmArgs {
    #[command(subcommand)]
    action: FarmAction,
}

#[derive(Debug, clap::Subcommand)]
enum FarmAction {
    /// Make the bridge, the three hosts and their limits; what an earlier farm left goes first
    #[command(after_help = "\
Hosts: agent 10.178.0.5 (512 MiB, 2 CPUs), mcp 10.178.0.10 (1 GiB, 4 CPUs), target 10.178.0.20 (1 GiB, 4 CPUs), on a bridge
with 10.178.0.1. It takes root and `ip` of iproute2, and changes nothing else of this machine's network. Without them the hosts
are on loopback. Where the limits (cgroups) cannot be set, the command says so.

Examples:
  durward-lab farm up
  durward-lab farm run target -- durward-lab mock ssh-target --address 10.178.0.20 --dir target
  durward-lab farm down

Exit codes: 0 the hosts are up, or stand on loopback; 1 failed, and nothing is left; 2 wrong usage.")]
    Up,
    /// End what runs in the hosts, and remove them; also what a crash left
    Down,
    /// Run a command in a host and within its limits; where no farm is up, as it is
    #[command(after_help = "\
Examples:
  durward-lab farm run target -- durward-lab mock ssh-target --address 10.178.0.20 --dir target
  durward-lab farm run mcp -- durward ssh serve --hosts target/ssh_hosts.yaml --port 3000
  durward-lab farm run mcp -- durward-lab load ssh --quick

Exit codes: the command's own; 127 it could not be started.")]
    Run {
        /// Which host
        #[arg(value_enum)]
        host: GuideHost,
        /// What to run
        #[arg(last = true, required = true, value_name = "CMD")]
        command: Vec<String>,
    },
}

/// A host of the guide.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum GuideHost {
    /// Where the load comes from
    Agent,
    /// Where the tool server is
    Mcp,
    /// Where commands run
    Target,
}

impl GuideHost {
    const ALL: [Self; 3] = [Self::Agent, Self::Mcp, Self::Target];

    fn name(self) -> &'static str {
        match self {
            Self::Agent => "agent",
            Self::Mcp => "mcp",
            Self::Target => "target",
        }
    }

    fn address(self) -> &'static str {
        match self {
            Self::Agent => "10.178.0.5",
            Self::Mcp => "10.178.0.10",
            Self::Target => "10.178.0.20",
        }
    }

    /// Returns the name of its namespace.
    fn namespace(self) -> String {
        format!("durward-{}", self.name())
    }

    /// Returns the end of its line that is on the bridge.
    fn line(self) -> String {
        format!("dwf-{}", self.name())
    }

    /// Most memory, in MiB.
    fn memory_mib(self) -> u64 {
        match self {
            Self::Agent => 512,
            Self::Mcp | Self::Target => 1_024,
        }
    }

    /// Most processor time, in whole CPUs.
    fn cpus(self) -> u64 {
        match self {
            Self::Agent => 2,
            Self::Mcp | Self::Target => 4,
        }
    }
}

/// Runs `lab farm`; gives its exit code.
pub(crate) fn run(args: &FarmArgs, out: &mut dyn Write) -> Result<u8, LabError> {
    match &args.action {
        FarmAction::Up => up(out),
        FarmAction::Down => {
            let ended = down()?;
            let processes = if ended == 1 { "process" } else { "processes" };
            say(out, &format!("down; {ended} {processes} ended"))?;
            Ok(0)
        }
        FarmAction::Run { host, command } => Ok(run_in(*host, command)),
    }
}

fn say(out: &mut dyn Write, line: &str) -> Result<(), LabError> {
    writeln!(out, "{line}").map_err(|source| LabError::System {
        what: "the output could not be written",
        source,
    })
}

fn up(out: &mut dyn Write) -> Result<u8, LabError> {
    if let Err(why) = net::can() {
        say(out, &format!("no network namespaces here: {why}"))?;
        say(
            out,
            "agent, mcp and target are 127.0.0.1, without limits of their own",
        )?;
        return Ok(0);
    }
    down()?;
    if let Err(error) = net::up() {
        // Half a farm is none.
        down()?;
        return Err(error);
    }
    for host in GuideHost::ALL {
        let limits = match groups::set(host) {
            Ok(()) => format!("{} MiB, {} CPUs", host.memory_mib(), host.cpus()),
            Err(why) => format!("no limits: {why}"),
        };
        let (name, address) = (host.name(), host.address());
        say(
            out,
            &format!(
                "{name:6}  {address:11}  namespace {}  {limits}",
                host.namespace()
            ),
        )?;
    }
    say(
        out,
        "run a command in one of them: durward-lab farm run HOST -- CMD",
    )?;
    Ok(0)
}

/// Removes all that has the farm's names; gives how many processes were ended.
fn down() -> Result<usize, LabError> {
    let ended = net::end_processes()?;
    net::down()?;
    for host in GuideHost::ALL {
        groups::remove(host);
    }
    Ok(ended)
}

/// Runs a command in a host, and gives its exit code.
fn run_in(host: GuideHost, command: &[String]) -> u8 {
    let mut words: Vec<String> = Vec::new();
    if net::is_up(host) {
        let entrances = groups::entrances(host);
        if !entrances.is_empty() {
            // The shell goes in, and becomes the command.
            let script = "while [ \"$1\" != -- ]; do echo $$ > \"$1\" || exit 126; shift; done; shift; exec \"$@\"";
            words.extend(["sh", "-c", script, "sh"].map(str::to_owned));
            words.extend(entrances);
            words.push("--".to_owned());
        }
        words.extend(["ip", "netns", "exec", &host.namespace()].map(str::to_owned));
    }
    words.extend(command.iter().cloned());
    let Some((program, rest)) = words.split_first() else {
        return EXIT_NO_COMMAND;
    };
    match Command::new(program).args(rest).status() {
        Ok(status) => status
            .code()
            .and_then(|code| u8::try_from(code).ok())
            .unwrap_or(1),
        Err(_) => EXIT_NO_COMMAND,
    }
}
