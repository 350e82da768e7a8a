//! `durward run`: guard one MCP server over stdio.

use std::ffi::OsString;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use gate::journal::{Config, Journal, JournalOptions, Keys, Record, SyncPolicy, System};
use gate::policy::document::nearest;
use gate::{Gate, World};
use mcp::upstream::{ServerCommand, Upstream};
use mcp::{Ending, Session, SessionOptions};
use net::environment::Extra;

use crate::cli::{Given, RunArgs, Sync};
use crate::config::server::Server;
use crate::config::{self, Settings, values};
use crate::local::{self, LocalView, SystemClock};
use crate::places::{self, Places};
use crate::policy::source::{self, Protected};
use crate::reload::Reloader;
use crate::{EXIT_CONFIGURATION, EXIT_JOURNAL};

/// How long calls under way may take to end, in milliseconds.
const DRAIN_MS: u64 = 10_000;

/// What to run, by which rules.
#[derive(Clone)]
pub struct Plan {
    /// The server's name in rules and in the journal.
    pub name: String,
    program: OsString,
    arguments: Vec<OsString>,
    environment: Vec<Extra>,
    directory: Option<PathBuf>,
    /// The rules; absent: the starter policy.
    pub policy: Option<PathBuf>,
    call_timeout_ms: u64,
    sync: SyncPolicy,
}

/// Why a run could not start or had to end.
struct Failure {
    code: u8,
    message: String,
}

impl Failure {
    fn configuration(message: impl Into<String>) -> Self {
        Self {
            code: EXIT_CONFIGURATION,
            message: message.into(),
        }
    }

    fn journal(message: impl std::fmt::Display) -> Self {
        Self {
            code: EXIT_JOURNAL,
            message: message.to_string(),
        }
    }

    fn other(message: impl Into<String>) -> Self {
        Self {
            code: 1,
            message: message.into(),
        }
    }
}

/// Runs until the client, the server or the journal ends it; gives the exit code.
pub fn run(asked: &Asked, settings: &Settings, err: &mut dyn Write) -> u8 {
    let done = Plan::of(asked, settings.clone())
        .map_err(Failure::configuration)
        .and_then(|plan| guard(asked, settings, &plan, err));
    match done {
        Ok(code) => code,
        Err(failure) => {
            let _ = writeln!(err, "error: {}", failure.message);
            failure.code
        }
    }
}

/// What the command line asks for, and what it is held against when the files change.
#[derive(Clone)]
pub struct Asked {
    pub args: RunArgs,
    pub given: Given,
    pub source: config::Source,
    pub places: Places,
}

impl Plan {
    /// What to run by these settings.
    ///
    /// # Errors
    /// A message, where they have no such server.
    pub fn of(asked: &Asked, mut settings: Settings) -> Result<Self, String> {
        let Asked {
            args,
            given,
            places,
            ..
        } = asked;
        settings.set_policy(args.policy.as_deref(), given.policy);
        let settings = &settings;
        let server = match &args.server {
            Some(name) => Some(find(name, settings, places)?),
            None => None,
        };
        let (program, arguments, directory, mut environment) = match server {
            Some(server) => of_server(server)?,
            None => {
                let (program, arguments) = args
                    .command
                    .split_first()
                    .ok_or("no server command was given")?;
                (program.clone(), arguments.to_vec(), None, Vec::new())
            }
        };
        environment.extend(args.environment.iter().cloned());
        let name = args
            .name
            .clone()
            .or_else(|| args.server.clone())
            .unwrap_or_else(|| name_of(&program, &arguments));
        let sync = match args.sync {
            Some(Sync::Interval) => values::Sync::Interval,
            Some(Sync::Every) => values::Sync::Every,
            Some(Sync::Never) => values::Sync::Never,
            None => settings.sync.value,
        };
        Ok(Self {
            name,
            program,
            arguments,
            environment,
            directory,
            policy: settings.policy_of(server).0.map(Path::to_path_buf),
            call_timeout_ms: args.call_timeout.map_or_else(
                || settings.call_timeout_of(server).0,
                |seconds| seconds.saturating_mul(1_000),
            ),
            sync: match sync {
                values::Sync::Interval => SyncPolicy::Interval { interval_ms: 1_000 },
                values::Sync::Every => SyncPolicy::Every,
                values::Sync::Never => SyncPolicy::Never,
            },
        })
    }

    /// What differs in another plan and cannot be taken up while running, by its keys.
    pub fn needs_restart(&self, other: &Self) -> Vec<&'static str> {
        let same_server = self.program == other.program
            && self.arguments == other.arguments
            && self.environment == other.environment
            && self.directory == other.directory;
        [
            ("servers", same_server),
            (
                "call_timeout",
                self.call_timeout_ms == other.call_timeout_ms,
            ),
            ("journal.sync", self.sync == other.sync),
        ]
        .iter()
        .filter(|(_, same)| !same)
        .map(|(key, _)| *key)
        .collect()
    }
}

fn find<'s>(name: &str, settings: &'s Settings, places: &Places) -> Result<&'s Server, String> {
    if let Some(server) = settings.server(name) {
        return Ok(server);
    }
    let shown = name.escape_debug();
    let Some(file) = &settings.file else {
        let looked = places.config.join(config::FILE_NAME);
        return Err(format!(
            "there is no server \"{shown}\": no configuration was read, and there is none at {}\n  hint: name it with --config, or put the server's own command behind --",
            looked.display()
        ));
    };
    let names: Vec<&str> = settings.servers.iter().map(|s| s.name.as_str()).collect();
    let hint = match nearest(name, &names) {
        Some(near) => format!("did you mean \"{near}\"?"),
        None if names.is_empty() => "it has no servers yet".into(),
        None => format!("it has {}", names.join(", ")),
    };
    Err(format!(
        "{}: there is no server \"{shown}\"\n  hint: {hint}",
        file.display()
    ))
}

/// How a server of the configuration is started.
type Start = (OsString, Vec<OsString>, Option<PathBuf>, Vec<Extra>);

fn of_server(server: &Server) -> Result<Start, String> {
    let Some(command) = &server.command else {
        return Err(format!(
            "the server \"{}\" is reached over http, which this version cannot do yet",
            server.name
        ));
    };
    let extra = |(name, value): &(String, config::Secret)| Extra {
        name: name.clone(),
        value: Some(value.reveal().to_owned()),
    };
    Ok((
        command.program.value.clone().into(),
        command
            .args
            .iter()
            .map(|arg| arg.value.clone().into())
            .collect(),
        command.directory.clone(),
        command.environment.iter().map(extra).collect(),
    ))
}

fn guard(
    asked: &Asked,
    settings: &Settings,
    plan: &Plan,
    err: &mut dyn Write,
) -> Result<u8, Failure> {
    let Plan { name, program, .. } = plan;
    let places = &asked.places;
    let view: Arc<LocalView> = Arc::new(LocalView::new(places));
    if plan.policy.is_none() {
        let _ = writeln!(
            err,
            "durward: no --policy given, the starter policy applies: reads pass, all else needs approval"
        );
    }
    let policy = source::of_file(plan.policy.as_deref(), Protected::AsRun, places)
        .map_err(Failure::configuration)?;
    let mut seed = [0_u8; 40];
    local::random(&mut seed).map_err(|e| Failure::other(format!("no randomness: {e}")))?;
    let (instance, session, salt) = split_seed(&seed);
    let journal = open_journal(plan.sync, places, instance)?;
    let clock = Arc::new(SystemClock::new());
    let digest = policy.digest().to_owned();
    let world = World {
        policy,
        version: "v1".into(),
    };
    let gate = Arc::new(Gate::new(world, Arc::clone(&journal), clock, salt));
    record_start(&gate, plan, settings, &digest, &session)?;
    let command = ServerCommand {
        program: program.clone(),
        args: plan.arguments.clone(),
        environment: net::environment::for_child(places::environment(), &plan.environment),
        directory: plan.directory.clone(),
        watcher: places.own_binary.clone(),
    };
    let options = SessionOptions {
        backend_id: name.clone(),
        subject_id: places.user.clone(),
        session_id: session.into(),
        call_timeout_ms: plan.call_timeout_ms,
        drain_ms: DRAIN_MS,
        view: Some(view),
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|e| Failure::other(format!("cannot start the runtime: {e}")))?;
    let ending = runtime.block_on(async {
        let client = net::stdio::own()
            .map_err(|e| Failure::other(format!("standard streams cannot be used: {e}")))?;
        let reloader = Reloader::new(asked.clone(), settings, plan.clone(), Arc::clone(&gate))
            .map_err(|e| Failure::other(format!("signals cannot be listened to: {e}")))?;
        let upstream = Upstream::start(&command, name).map_err(|e| {
            Failure::other(format!("cannot start {}: {e}", program.to_string_lossy()))
        })?;
        let reloader = tokio::spawn(reloader.run());
        let ended = Session::new(Arc::clone(&gate), client, upstream, options)
            .run()
            .await
            .map_err(|e| Failure::other(e.to_string()));
        reloader.abort();
        ended
    });
    // Whatever remains (a helper thread that still reads standard input) is not waited for.
    runtime.shutdown_background();
    finish(&ending?, &journal, &gate, program)
}

fn finish(
    ending: &Ending,
    journal: &Journal,
    gate: &Gate,
    program: &std::ffi::OsStr,
) -> Result<u8, Failure> {
    if gate.has_failed() {
        let cause = journal
            .healthy()
            .err()
            .map_or_else(String::new, |e| format!(": {e}"));
        return Err(Failure::journal(format!(
            "nothing was forwarded after the journal failed{cause}"
        )));
    }
    journal
        .close(local::now_ms(), ending.label())
        .map_err(Failure::journal)?;
    match ending {
        Ending::ServerEnded(how) => Err(Failure::other(format!(
            "the server {} ended: {how}",
            program.to_string_lossy()
        ))),
        Ending::ClientClosed | Ending::Signal | Ending::JournalFailed => Ok(0),
    }
}

fn open_journal(
    sync: SyncPolicy,
    places: &Places,
    instance: [u8; 16],
) -> Result<Arc<Journal>, Failure> {
    let mut failed = None;
    let mut random = |bytes: &mut [u8]| {
        if let Err(error) = local::random(bytes) {
            failed = Some(error);
        }
    };
    let options = JournalOptions {
        sync,
        ..JournalOptions::default()
    };
    let keys = Keys::open(&places.keys(), &mut random).map_err(Failure::journal)?;
    let journal = Journal::open(
        &places.journal(),
        &keys,
        options,
        instance,
        local::now_ms(),
        &mut random,
    )
    .map_err(Failure::journal)?;
    match failed {
        Some(error) => Err(Failure::other(format!("no randomness: {error}"))),
        None => Ok(Arc::new(journal)),
    }
}

fn record_start(
    gate: &Gate,
    plan: &Plan,
    settings: &Settings,
    digest: &str,
    session: &str,
) -> Result<(), Failure> {
    if let Some(file) = &settings.file {
        let path = file.display().to_string();
        let loaded = Config {
            event: "loaded",
            component: Some("configuration"),
            version: Some("v1"),
            path: Some(&path),
            checksum: settings.checksum.as_deref(),
            ..Config::default()
        };
        gate.record(&Record::Config(&loaded))
            .map_err(Failure::journal)?;
    }
    let source = plan.policy.as_ref().map(|p| p.display().to_string());
    let loaded = Config {
        event: "loaded",
        component: Some("policy"),
        version: Some("v1"),
        source: Some(source.as_deref().unwrap_or("starter")),
        checksum: Some(digest),
        ..Config::default()
    };
    let started = System {
        event: "session_started",
        level: Some("info"),
        component: Some("mcp"),
        session_id: Some(session),
        backend_id: Some(&plan.name),
        ..System::default()
    };
    gate.record(&Record::Config(&loaded))
        .map_err(Failure::journal)?;
    gate.record(&Record::System(&started))
        .map_err(Failure::journal)
}

/// The server's name out of its command: the last word that names a program or package, without
/// directories, versions and extensions.
pub fn name_of(program: &std::ffi::OsStr, arguments: &[std::ffi::OsString]) -> String {
    const RUNNERS: [&str; 9] = [
        "npx", "node", "python", "python3", "uvx", "uv", "bun", "deno", "pipx",
    ];
    let base = |text: &std::ffi::OsStr| {
        let text = text.to_string_lossy();
        let name = text.rsplit('/').next().unwrap_or_default();
        let name = name
            .split('@')
            .find(|part| !part.is_empty())
            .unwrap_or_default();
        name.trim_end_matches(".js")
            .trim_end_matches(".py")
            .to_owned()
    };
    let own = base(program);
    let named = if RUNNERS.contains(&own.as_str()) {
        arguments
            .iter()
            .find(|a| !a.to_string_lossy().starts_with('-'))
            .map_or(own, |a| base(a))
    } else {
        own
    };
    let mut clean: String = named
        .chars()
        .map(|c| {
            if c.is_ascii_alphanumeric() || c == '.' {
                c
            } else {
                '-'
            }
        })
        .take(64)
        .collect();
    if clean.is_empty() {
        clean = "server".into();
    }
    clean
}

fn split_seed(seed: &[u8; 40]) -> ([u8; 16], String, u64) {
    let mut instance = [0; 16];
    let mut salt = [0; 8];
    let (first, rest) = seed.split_at(16);
    let (second, third) = rest.split_at(16);
    instance.copy_from_slice(first);
    salt.copy_from_slice(third);
    let session = second.iter().map(|b| format!("{b:02x}")).collect();
    (instance, session, u64::from_le_bytes(salt))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::OsString;

    #[test]
    fn names_come_from_commands() {
        let cases = [
            (
                &[
                    "npx",
                    "-y",
                    "@modelcontextprotocol/server-filesystem",
                    "/tmp",
                ][..],
                "server-filesystem",
            ),
            (&["npx", "server-x@1.2.3"], "server-x"),
            (&["/usr/bin/my_server"], "my-server"),
            (&["python3", "dir/echo.py"], "echo"),
            (&["node"], "node"),
        ];
        for (command, name) in cases {
            let words: Vec<OsString> = command.iter().map(OsString::from).collect();
            assert_eq!(name_of(&words[0], &words[1..]), name);
        }
    }
}
