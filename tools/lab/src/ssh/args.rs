//! The command line of `lab load ssh`.

use std::path::PathBuf;
use std::time::Duration;

use super::scenario::{LATENCY_PORTS, SshScenario};
use crate::error::LabError;
use crate::url::HttpUrl;

/// Longest phase, in seconds.
const DURATION_S_MAX: u64 = 7 * 24 * 3_600;
/// Workers of a quick run, and its length in seconds.
const QUICK: (u32, u64) = (3, 30);

/// Load an SSH tool server with one of five scenarios, and report as the load-testing guide does
#[derive(Debug, Clone, clap::Args)]
#[command(after_help = "\
Examples:
  durward-lab load ssh list
  durward-lab load ssh --quick
  durward-lab load ssh command_throughput 60 5 --mcp-port 3000
  durward-lab load ssh latency_test --duration 10 --results-dir results
  durward-lab load ssh --full

The server must run: `durward ssh serve --hosts target/ssh_hosts.yaml --profile loadtest --calls-per-minute 1000000`, and
its hosts: `durward-lab mock ssh-target --dir target`. Hosts are named by the server's list; without --target-host the
names are those of the mock's ports. docs/guides/ssh-load-test.md walks through all of it.

Exit codes: 0 done; 1 the server was not reached, a call failed, or a verdict is FAIL; 2 wrong usage; 97 stopped by
Ctrl-C.")]
pub struct SshLoadArgs {
    /// The scenario, or list
    #[arg(value_name = "SCENARIO", value_parser = parse_scenario, conflicts_with_all = ["quick", "full", "metrics_only", "scenario"])]
    what: Option<ScenarioName>,
    /// How long, in seconds
    #[arg(value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=DURATION_S_MAX), conflicts_with = "duration")]
    seconds: Option<u64>,
    /// How many workers
    #[arg(value_name = "WORKERS", value_parser = clap::value_parser!(u32).range(1..=1_024), conflicts_with = "workers")]
    worker_count: Option<u32>,
    /// The scenario
    #[arg(long, value_enum)]
    scenario: Option<SshScenario>,
    /// List the scenarios
    #[arg(long)]
    list_scenarios: bool,
    /// Commands for 30 seconds by 3 workers
    #[arg(long, conflicts_with_all = ["scenario", "full", "metrics_only"])]
    quick: bool,
    /// All five scenarios, one after the other
    #[arg(long, conflicts_with_all = ["scenario", "metrics_only"])]
    full: bool,
    /// Print the server's metrics, and load nothing
    #[arg(long)]
    metrics_only: bool,
    /// How long, in seconds, instead of the scenario's; each number of workers and each host so long
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=DURATION_S_MAX))]
    duration: Option<u64>,
    /// How many workers, instead of the scenario's
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_024))]
    workers: Option<u32>,
    /// Where the server is
    #[arg(long, value_name = "HOST", default_value = "127.0.0.1")]
    mcp_host: String,
    /// Its port
    #[arg(long, value_name = "PORT", default_value_t = 3000)]
    mcp_port: u16,
    /// The host to run commands on, by its name in the server's list [default: by --target-port]
    #[arg(long, value_name = "NAME")]
    target_host: Option<String>,
    /// A port of `mock ssh-target`, which names the host: 2222 to 2228, 2322 to 2328
    #[arg(long, value_name = "PORT", default_value_t = 2222)]
    target_port: u16,
    /// Hosts of latency_test, the one without a bad line first [default: those of ports 2222 and 2322 to 2325]
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    latency_hosts: Vec<String>,
    /// The user that the server has for the host; another one is refused
    #[arg(long, value_name = "NAME")]
    user: Option<String>,
    /// A password, where the host takes its caller's
    #[arg(long, value_name = "TEXT")]
    password: Option<String>,
    /// Load that comes first and is not counted, in seconds [default: 10, for commands]
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(0..=3_600))]
    warmup: Option<u64>,
    /// Where the results go, each run in a directory of its own
    #[arg(long, value_name = "DIR", default_value = "loadtest_results")]
    pub(super) results_dir: PathBuf,
    /// Processors of the machine for which the rate is estimated
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..=4_096))]
    target_cpus: u32,
    /// Processors of the server's machine [default: those of this one]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=4_096))]
    server_cpus: Option<u32>,
    /// How long an answer may take, in milliseconds
    #[arg(long, value_name = "MILLISECONDS", default_value_t = 60_000, value_parser = clap::value_parser!(u64).range(1..=3_600_000))]
    timeout_ms: u64,
    /// Print one JSON document for each scenario
    #[arg(long)]
    pub(crate) json: bool,
}

/// First argument: a scenario, or `list`.
#[derive(Debug, Clone, Copy)]
enum ScenarioName {
    List,
    One(SshScenario),
}

fn parse_scenario(text: &str) -> Result<ScenarioName, String> {
    if text == "list" {
        return Ok(ScenarioName::List);
    }
    let found = SshScenario::ALL.into_iter().find(|of| of.name() == text);
    let names: Vec<&str> = SshScenario::ALL.iter().map(|of| of.name()).collect();
    found.map(ScenarioName::One).ok_or_else(|| {
        format!(
            "there is no such scenario; there are {}, and list shows them",
            names.join(", ")
        )
    })
}

/// Request of the command line.
pub(super) enum SshRequest {
    List,
    Metrics(HttpUrl),
    Run(Vec<SshPlan>),
}

/// One scenario with its parameters.
#[derive(Debug, Clone)]
pub(super) struct SshPlan {
    pub scenario: SshScenario,
    pub server: HttpUrl,
    /// The host; for latency_test all of them.
    pub hosts: Vec<String>,
    pub duration: Duration,
    pub warmup: Duration,
    pub workers: Vec<u32>,
    pub user: Option<String>,
    pub password: Option<String>,
    pub target_cpus: u32,
    pub server_cpus: u32,
    pub timeout_ms: u64,
}

impl SshLoadArgs {
    pub(super) fn parse_request(&self) -> Result<SshRequest, LabError> {
        let server: HttpUrl = format!("http://{}:{}/mcp", self.mcp_host, self.mcp_port).parse()?;
        if self.list_scenarios || matches!(self.what, Some(ScenarioName::List)) {
            return Ok(SshRequest::List);
        }
        if self.metrics_only {
            return Ok(SshRequest::Metrics(server));
        }
        let one = match self.what {
            Some(ScenarioName::One(scenario)) => Some(scenario),
            _ => self.scenario,
        };
        let scenarios = match one {
            Some(scenario) => vec![scenario],
            None if self.full => SshScenario::ALL.to_vec(),
            None if self.quick => vec![SshScenario::CommandThroughput],
            None => {
                let wrong = "name a scenario, or use --quick or --full; `durward-lab load ssh list` lists them";
                return Err(LabError::Usage(wrong.into()));
            }
        };
        let plans = scenarios.into_iter().map(|of| self.plan(of, &server));
        Ok(SshRequest::Run(plans.collect::<Result<_, _>>()?))
    }

    fn plan(&self, scenario: SshScenario, server: &HttpUrl) -> Result<SshPlan, LabError> {
        let quick = self.quick.then_some(QUICK);
        let seconds = self.duration.or(self.seconds).or(quick.map(|(_, s)| s));
        let workers = self.workers.or(self.worker_count).or(quick.map(|(w, _)| w));
        let warmup = match scenario {
            SshScenario::CommandThroughput | SshScenario::SustainedLoad => {
                self.warmup.unwrap_or(10)
            }
            // What these measure begins with a connection.
            _ => self.warmup.unwrap_or(0),
        };
        Ok(SshPlan {
            scenario,
            server: server.clone(),
            hosts: self.hosts(scenario)?,
            duration: seconds.map_or(scenario.duration(), Duration::from_secs),
            warmup: Duration::from_secs(warmup),
            workers: workers.map_or_else(|| scenario.workers().to_vec(), |count| vec![count]),
            user: self.user.clone(),
            password: self.password.clone(),
            target_cpus: self.target_cpus,
            server_cpus: self.server_cpus.unwrap_or_else(own_cpus),
            timeout_ms: self.timeout_ms,
        })
    }

    fn hosts(&self, scenario: SshScenario) -> Result<Vec<String>, LabError> {
        let of_port = |port: u16| {
            mocks::ssh_target_name(port).ok_or_else(|| {
                let wrong = format!(
                    "no host of lab mock ssh-target has port {port}; name one with --target-host"
                );
                LabError::Usage(wrong)
            })
        };
        match (scenario, &self.target_host) {
            (SshScenario::LatencyTest, _) if !self.latency_hosts.is_empty() => {
                Ok(self.latency_hosts.clone())
            }
            (SshScenario::LatencyTest, _) => LATENCY_PORTS.into_iter().map(of_port).collect(),
            (_, Some(name)) => Ok(vec![name.clone()]),
            (_, None) => Ok(vec![of_port(self.target_port)?]),
        }
    }
}

fn own_cpus() -> u32 {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    u32::try_from(cores).unwrap_or(u32::MAX)
}
