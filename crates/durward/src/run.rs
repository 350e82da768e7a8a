//! `durward run`: guard one MCP server for one client over stdio.

pub mod plan;
mod reach;

use std::io::Write;
use std::sync::Arc;

use gate::journal::{Config, Journal, JournalOptions, Keys, Record, SyncPolicy, System};
use gate::paths::PathView;
use gate::{Gate, World};
use mcp::{Ending, Session, SessionOptions};
use tokio::signal::unix::{SignalKind, signal};

use crate::cli::RunArgs;
use crate::config::Settings;
use crate::control::directory::Socket;
use crate::control::server::{self, Control};
use crate::local::{self, LocalView, SystemClock};
use crate::places::Places;
use crate::policy::source::{self, Protected};
use crate::reload::{Asked, Handle, Reloader};
use crate::{EXIT_CONFIGURATION, EXIT_JOURNAL};

use plan::Plan;

/// How long calls under way may take to end, in milliseconds.
const DRAIN_MS: u64 = 10_000;

/// Why a run could not start or had to end.
pub struct Failure {
    /// The exit code.
    pub code: u8,
    /// For people.
    pub message: String,
}

impl Failure {
    pub fn configuration(message: impl Into<String>) -> Self {
        Self {
            code: EXIT_CONFIGURATION,
            message: message.into(),
        }
    }

    /// The same, saying first what it is about.
    pub fn about(self, what: &str) -> Self {
        Self {
            code: self.code,
            message: format!("{what}: {}", self.message),
        }
    }

    pub fn journal(message: impl std::fmt::Display) -> Self {
        Self {
            code: EXIT_JOURNAL,
            message: message.to_string(),
        }
    }

    pub fn other(message: impl Into<String>) -> Self {
        Self {
            code: 1,
            message: message.into(),
        }
    }
}

/// Runs until the client, the server or the journal ends it; gives the exit code.
pub fn run(
    args: &RunArgs,
    asked: Asked,
    mut settings: Settings,
    places: &Places,
    err: &mut dyn Write,
) -> u8 {
    settings.set_policy(asked.policy.as_deref(), asked.policy_origin);
    let done = Plan::of(args, &settings, places)
        .and_then(|plan| guard(&plan, asked, settings, places, err));
    match done {
        Ok(code) => code,
        Err(failure) => {
            let _ = writeln!(err, "error: {}", failure.message);
            failure.code
        }
    }
}

fn guard(
    plan: &Plan,
    asked: Asked,
    settings: Settings,
    places: &Places,
    err: &mut dyn Write,
) -> Result<u8, Failure> {
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
        limits: plan.limits,
        approval: plan.approval,
    };
    let mut socket = bind_control(places, &plan.name).inspect_err(|_| {
        // The journal was opened for nothing; a failure here is the lesser one.
        drop(journal.close(local::now_ms(), "configuration"));
    })?;
    let gate = Arc::new(Gate::new(world, Arc::clone(&journal), clock, salt));
    record_start(&gate, plan, &settings, &digest, &session)?;
    let options = session_options(plan, places, session);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|e| Failure::other(format!("cannot start the runtime: {e}")))?;
    let ending = runtime.block_on(async {
        let client = net::stdio::own()
            .map_err(|e| Failure::other(format!("standard streams cannot be used: {e}")))?;
        let reloader = Reloader::new(asked, settings, places.clone(), Arc::clone(&gate))
            .map_err(|e| Failure::other(format!("signals cannot be listened to: {e}")))?;
        listen(
            &mut socket,
            &gate,
            &plan.name,
            reloader.handle(),
            places,
            None,
        );
        let upstream = tokio::select! {
            reached = reach::reach(plan, &gate, places, err) => reached?,
            asked = asked_to_end() => return asked.map(|()| Ending::Signal),
        };
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
    finish(&ending?, &journal, &gate, &plan.server.shown())
}

fn session_options(plan: &Plan, places: &Places, session: String) -> SessionOptions {
    let view: Arc<dyn PathView> = Arc::new(LocalView::new(places));
    SessionOptions {
        backend_id: plan.name.clone(),
        caller: gate::Caller::local(&places.user),
        session_id: session.into(),
        call_timeout_ms: plan.call_timeout_ms,
        tool_timeouts_ms: plan.tool_timeouts_ms.clone(),
        drain_ms: DRAIN_MS,
        // The paths of another machine cannot be looked up here.
        view: plan.server.is_local().then_some(view),
        descriptions: plan.descriptions.clone(),
        pins: plan.pins.clone(),
    }
}

/// Reaching a server may take a while; until the session listens to signals itself, this does.
async fn asked_to_end() -> Result<(), Failure> {
    let failed = |e: std::io::Error| Failure::other(format!("cannot listen to signals: {e}"));
    let mut terminate = signal(SignalKind::terminate()).map_err(failed)?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(failed)?;
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    Ok(())
}

/// The control socket. Without it nobody could approve anything, and a directory that others can
/// change may be somebody's attempt at that: neither is passed over.
pub fn bind_control(places: &Places, name: &str) -> Result<Socket, Failure> {
    let directory = places
        .runtime
        .first()
        .ok_or_else(|| Failure::configuration("there is no runtime directory"))?;
    Socket::bind(directory, name).map_err(|e| Failure::configuration(e.to_string()))
}

/// Serves the control socket beside the session, on the same runtime.
pub fn listen(
    socket: &mut Socket,
    gate: &Arc<Gate>,
    name: &str,
    reload: Handle,
    places: &Places,
    serving: Option<server::Serving>,
) {
    let Some(listener) = socket.take_listener() else {
        return;
    };
    tracing::info!(socket = %socket.path().display(), "listening for approvals");
    let control = Control {
        gate: Arc::clone(gate),
        server: name.to_owned(),
        user: places.user.clone(),
        since: gate::journal::format_utc(local::now_ms()),
        reload,
        serving,
    };
    tokio::spawn(server::serve(listener, Arc::new(control)));
}

/// Ends the journal in order, where it has not failed already.
pub fn close_journal(journal: &Journal, has_failed: bool, why: &str) -> Result<(), Failure> {
    if has_failed {
        let cause = journal
            .healthy()
            .err()
            .map_or_else(String::new, |e| format!(": {e}"));
        return Err(Failure::journal(format!(
            "nothing was forwarded after the journal failed{cause}"
        )));
    }
    journal
        .close(local::now_ms(), why)
        .map_err(Failure::journal)
}

fn finish(ending: &Ending, journal: &Journal, gate: &Gate, server: &str) -> Result<u8, Failure> {
    close_journal(journal, gate.has_failed(), ending.label())?;
    match ending {
        Ending::ServerEnded(how) => {
            Err(Failure::other(format!("the server {server} ended: {how}")))
        }
        Ending::ClientClosed | Ending::Signal | Ending::JournalFailed => Ok(0),
    }
}

pub fn open_journal(
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
            source: Some(&path),
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

/// A name of at most 64 letters, digits, dots and hyphens.
fn plain_name(text: &str) -> String {
    let plain = |c: char| {
        if c.is_ascii_alphanumeric() || c == '.' {
            c
        } else {
            '-'
        }
    };
    text.chars().map(plain).take(64).collect()
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
    let mut clean = plain_name(&named);
    if clean.is_empty() {
        clean = "server".into();
    }
    clean
}

pub fn split_seed(seed: &[u8; 40]) -> ([u8; 16], String, u64) {
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
    use std::ffi::OsString;

    use super::*;

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
