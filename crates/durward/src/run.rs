//! `durward run`: guard one MCP server for one client over stdio.

mod all;
mod args;
pub mod plan;

use std::io::Write;
use std::sync::Arc;

use gate::journal::{Component, Config, ConfigEvent, Journal, Level, Record, System, SystemEvent};
use gate::paths::PathView;
use gate::policy::Policy;
use gate::{Gate, World};
use mcp::call::ServerOptions;
use mcp::stdio::{Ending, Stdio, StdioOptions};
use mcp::upstream::{Means, Share};
use net::stdio::{FrameReader, FrameWriter};
use tokio::runtime::Runtime;
use tokio::signal::unix::{SignalKind, signal};

use crate::checker;
use crate::config::{self, Settings};
use crate::disk;
use crate::failure::{EXIT_JOURNAL, Failure};
use crate::flags::Given;
use crate::instance::{
    OpenedJournal, bind_control, close_journal, listen, open_journal, split_seed,
};
use crate::instance_state::InstanceState;
use crate::local::{self, LocalView, SystemClock};
use crate::notify;
use crate::otel::Telemetry;
use crate::places::Places;
use crate::policy::history::{self, StartVersion};
use crate::policy::source::{PolicySource, Protected};
use crate::reload::{Asked, ReloadState, Reloader};
use crate::serve::metrics::Sources;
use crate::sign_in;

pub use args::{HELP, RunArgs};
use plan::Plan;

/// How long calls under way may take to end, in milliseconds.
const DRAIN_MS: u64 = 10_000;

/// What the command line asks for: a reload reads the same again.
fn asked(args: &RunArgs, given: &Given, source: config::Source, settings: &Settings) -> Asked {
    Asked {
        server: args.server.clone(),
        policy: args.policy.clone(),
        policy_origin: given.policy,
        source,
        limits: args.limits.clone(),
        approval: args.approval.clone(),
        watch: !args.no_watch && settings.watch.value,
        group: None,
        beside: None,
    }
}

/// Runs until the client, the server or the journal ends it; gives the exit code.
pub fn run(
    args: &RunArgs,
    given: &Given,
    source: config::Source,
    mut settings: Settings,
    places: &Places,
    err: &mut dyn Write,
) -> u8 {
    if args.are_for_all(&settings) {
        return all::all(args, given, source, settings, places, err);
    }
    let asked = asked(args, given, source, &settings);
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
    plan.certificates.check()?;
    if let Some(warning) = &plan.warning {
        let _ = writeln!(err, "durward: {warning}");
    }
    let policy = policy_of(plan, places, err)?;
    let signed_in = sign_in::caller(&settings, places, err)?;
    // The session begins all the same: the client is told by name, in the answer to its first request.
    let missing = plan.server.missing_program();
    let mut seed = [0_u8; 40];
    local::random(&mut seed).map_err(|e| Failure::other(format!("no randomness: {e}")))?;
    let (instance, session, salt) = split_seed(&seed);
    let OpenedJournal { journal, check } = open_journal(plan.sync, places, instance)?;
    let clock = Arc::new(SystemClock::new());
    let digest = policy.digest().to_owned();
    let version = history::record_start(&plan.policy, &policy, places);
    let world = World {
        policy,
        version: version.label(),
        limits: plan.limits,
        approval: plan.approval,
        inspect: settings.inspect.for_gate(checker::asking),
        flow: settings.flow(&Arc::default()),
    };
    let mut socket = bind_control(places, &plan.name).inspect_err(|_| {
        // The journal was opened for nothing; a failure here is the lesser one.
        drop(journal.close(local::now_ms(), "configuration"));
    })?;
    let gate = Arc::new(Gate::new(world, Arc::clone(&journal), clock, salt));
    record_start(&gate, plan, &settings, (&digest, version), &session)?;
    let state = InstanceState {
        reloads: ReloadState::new(),
        journal: check,
        certificates: plan.certificates.clone(),
    };
    let telemetry = exported(&settings, (&gate, &state), places)?;
    let runtime = own_runtime()?;
    let notify = settings.approval.notify.value.clone();
    let ending = runtime.block_on(async {
        let client = net::stdio::own()
            .map_err(|e| Failure::other(format!("standard streams cannot be used: {e}")))?;
        let reloader = Reloader::new(
            asked,
            settings,
            places.clone(),
            (Arc::clone(&gate), state.reloads.clone()),
        )
        .map_err(|e| Failure::other(format!("signals cannot be listened to: {e}")))?;
        listen(
            &mut socket,
            &gate,
            &plan.name,
            (reloader.handle(), state.clone()),
            places,
            None,
        );
        notify::begin(&notify, &gate, &state.reloads);
        tokio::spawn(disk::watch(places.clone()));
        tokio::spawn(plan.certificates.clone().watch());
        let means = tokio::select! {
            settled = plan.server.settled(&plan.name, &gate, places, err) => settled?,
            asked = asked_to_end() => return asked.map(|()| Ending::Signal),
        };
        let reloader = tokio::spawn(reloader.run());
        let caller = signed_in.as_ref().map(|own| own.caller.clone());
        let caller = caller.unwrap_or_else(|| gate::Caller::local(&places.user));
        let ended = match open(plan, places, (session, caller), means, &gate, client) {
            Ok(edge) => tokio::select! {
                ended = edge.run() => ended.map_err(|e| Failure::other(e.to_string())),
                failure = sign_in::end_of(signed_in.as_ref()) => Err(failure),
            },
            Err(failure) => Err(failure),
        };
        reloader.abort();
        ended
    });
    if let Some(telemetry) = &telemetry {
        telemetry.close();
    }
    // Whatever remains (a helper thread that still reads standard input) is not waited for.
    runtime.shutdown_background();
    let ending = ending.inspect_err(|_| {
        // What ended it is said; a failure here is the lesser one.
        drop(journal.close(local::now_ms(), "error"));
    })?;
    named(
        finish(&ending, &journal, &gate, &plan.server.shown()),
        missing,
    )
}

fn own_runtime() -> Result<Runtime, Failure> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|e| Failure::other(format!("cannot start the runtime: {e}")))
}

/// The export of what passes the gate, begun, where there is one.
fn exported(
    settings: &Settings,
    (gate, state): (&Arc<Gate>, &InstanceState),
    places: &Places,
) -> Result<Option<Arc<Telemetry>>, Failure> {
    let telemetry = Telemetry::of(&settings.otel)?;
    let sources = Sources {
        face: None,
        models: None,
        gates: vec![Arc::clone(gate)],
        states: vec![state.clone()],
        telemetry: telemetry.clone(),
        journal: places.journal(),
    };
    sources.export()?;
    Ok(telemetry)
}

fn policy_of(plan: &Plan, places: &Places, err: &mut dyn Write) -> Result<Policy, Failure> {
    if let PolicySource::Shipped(shipped) = &plan.policy {
        let _ = writeln!(err, "durward: no --policy given, {}", shipped.summary());
    }
    let policy = plan.policy.load(Protected::AsRun, places);
    policy.map_err(Failure::configuration)
}

/// How it ended; a server that could not be started is told of by its command.
fn named(ended: Result<u8, Failure>, missing: Option<String>) -> Result<u8, Failure> {
    match (ended, missing) {
        (Err(failure), _) if failure.code == EXIT_JOURNAL => Err(failure),
        (_, Some(missing)) => Err(Failure::configuration(missing)),
        (ended, None) => ended,
    }
}

/// Starts or reaches the server for the client of our own standard streams.
fn open(
    plan: &Plan,
    places: &Places,
    (session, caller): (String, gate::Caller),
    means: Means,
    gate: &Arc<Gate>,
    client: (FrameReader, FrameWriter),
) -> Result<Stdio, Failure> {
    let view = LocalView::of(places, &plan.reads).with_environment(plan.server.environment());
    let view: Arc<dyn PathView> = Arc::new(view);
    let server = ServerOptions {
        name: plan.name.clone(),
        gate: Arc::clone(gate),
        means,
        share: Share::Session,
        processes_max: 1,
        call_timeout_ms: plan.call_timeout_ms,
        tool_timeouts_ms: plan.tool_timeouts_ms.clone(),
        breaker: plan.breaker,
        // The paths of another machine cannot be looked up here.
        view: plan.server.is_local().then_some(view),
        roles: plan.reads.arguments.clone(),
        descriptions: plan.descriptions.clone(),
        pins: plan.pins.clone(),
        refusals: plan.refusals,
    };
    let options = StdioOptions {
        caller,
        session_id: session.into(),
        drain_ms: DRAIN_MS,
    };
    Stdio::open(client, server, &options)
        .map_err(|e| Failure::other(format!("cannot start {}: {e}", plan.server.shown())))
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

fn finish(ending: &Ending, journal: &Journal, gate: &Gate, server: &str) -> Result<u8, Failure> {
    close_journal(journal, gate.has_failed(), ending.why().label())?;
    match ending {
        Ending::ServerEnded(how) => {
            Err(Failure::other(format!("the server {server} ended: {how}")))
        }
        Ending::ClientClosed | Ending::Signal | Ending::JournalFailed => Ok(0),
    }
}

fn record_start(
    gate: &Gate,
    plan: &Plan,
    settings: &Settings,
    (digest, version): (&str, StartVersion),
    session: &str,
) -> Result<(), Failure> {
    if let Some(file) = &settings.file {
        let path = file.display().to_string();
        let loaded = Config {
            component: Some(Component::Configuration),
            version: Some("v1"),
            source: Some(&path),
            checksum: settings.checksum.as_deref(),
            ..Config::of(ConfigEvent::Loaded)
        };
        gate.record(&Record::Config(&loaded))
            .map_err(Failure::journal)?;
    }
    let source = plan.policy.label();
    let label = version.label();
    let before = version.changed_from.map(|number| format!("v{number}"));
    let loaded = Config {
        component: Some(Component::Policy),
        version: Some(&label),
        previous_version: before.as_deref(),
        source: Some(&source),
        checksum: Some(digest),
        message: before.as_ref().map(|_| history::CHANGED_WHILE_STOPPED),
        ..Config::of(ConfigEvent::Loaded)
    };
    let started = System {
        level: Some(Level::Info),
        component: Some(Component::Mcp),
        session_id: Some(session),
        backend_id: Some(&plan.name),
        ..System::of(SystemEvent::SessionStarted)
    };
    gate.record(&Record::Config(&loaded))
        .map_err(Failure::journal)?;
    gate.record(&Record::System(&started))
        .map_err(Failure::journal)
}
