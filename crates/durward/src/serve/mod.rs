//! `durward serve`: guard many servers for many clients, over HTTP.

mod agent;
mod authentication;
mod changes;
mod descriptors;
mod faces;
pub mod metrics;
mod origin;
mod plan;
mod polling;
mod ready;
mod router;
mod signals;
mod streams;
mod threads;
mod words;

use std::ffi::OsStr;
use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;

use gate::journal::{Component, Config, ConfigEvent, Journal, Level, Record, System, SystemEvent};
use gate::{Caller, Gate, World};
use mcp::http::{Activity, Face};
use net::http::server::{self, Listener};
use tokio::signal::unix::SignalKind;
use tokio::sync::Notify;
use toolkit::files::GuardedFiles;

use crate::agents::AgentProvider;
use crate::certificates::Certificates;
use crate::config::settings::{SESSION_IDLE_S_MAX, THREADS_MAX};
use crate::config::values::{self, Listen};
use crate::config::{self, Settings};
use crate::control::server as control;
use crate::disk;
use crate::failure::Failure;
use crate::flags::{
    ApprovalArgs, Given, PrefixArgs, RefusalArgs, ScreeningArgs, Sync, sync_policy, tool_timeout,
};
use crate::instance::{
    OpenedJournal, bind_control, close_journal, listen, open_journal, split_seed,
};
use crate::instance_state::InstanceState;
use crate::journal_check::JournalCheck;
use crate::local::{self, SystemClock};
use crate::names::server_name;
use crate::notices::Notices;
use crate::notify;
use crate::otel::Telemetry;
use crate::places::Places;
use crate::policy::history::{self, StartVersion};
use crate::policy::source::PolicySource;
use crate::program;
use crate::providers;
use crate::reload::{Asked, Beside, Group, ReloadState, Reloader};
use crate::sign_in;
use admin::control::directory::Socket;

pub use agent::{AgentQuestion, ask_agent};
use changes::Changes;
pub use plan::NOTHING_TO_SERVE;
pub use ready::Ready;
pub use streams::all;

use authentication::Authentication;
use faces::Site;
use plan::Plan;
use polling::{Beat, Rhythm};
use ready::Loaded;
use router::Router;
use signals::Signals;

pub const HELP: &str = "\
Examples:
  durward serve                                       every server of durward.yaml
  durward serve --server 'files=npx -y @modelcontextprotocol/server-filesystem /tmp'
  durward serve --server docs=http://127.0.0.1:3010/mcp
  durward serve --listen 127.0.0.1:9000 --policy policy.json

One server is at http://ADDRESS/mcp/NAME, all of them are at http://ADDRESS/mcp, where a tool is called NAME__TOOL.
/health and /metrics report the state.

Exit codes: 0 stopped by a signal; 1 cannot listen; 10 the journal failed, or the state directory
cannot be used; 16 wrong configuration.";

/// Number of the signal for a file that grows beyond its limit (Linux; absent constant in tokio).
const SIGXFSZ: i32 = 25;

/// Arguments of `durward serve`.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct ServeArgs {
    /// Where to listen: ADDRESS:PORT, localhost:PORT or unix:PATH [default: 127.0.0.1:8765]
    #[arg(long, value_name = "ADDRESS")]
    pub listen: Option<Listen>,
    /// The policy, as JSON [default: the starter policy, or that of durward.yaml]
    #[arg(
        long,
        value_name = "FILE",
        env = "DURWARD_POLICY",
        hide_env_values = true
    )]
    pub policy: Option<PathBuf>,
    /// A further server: its name, and the command that starts it or its URL; repeatable
    #[arg(long = "server", value_name = "NAME=COMMAND|URL", value_parser = further)]
    pub servers: Vec<Further>,
    /// Allow http:// URLs to other machines; anyone on the network path can read and change calls
    #[arg(long)]
    pub insecure_http: bool,
    /// Who shares a server's process, or the session with a server over HTTP [default: session]
    #[arg(long, value_enum)]
    pub share: Option<Share>,
    /// How long a server may take to answer a call, in seconds [default: 300]
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub call_timeout: Option<u64>,
    /// The same for one tool, of whichever server; repeatable
    #[arg(long, value_name = "TOOL=SECONDS", value_parser = tool_timeout)]
    pub tool_timeout: Vec<(String, u64)>,
    /// How long a session may be unused before it ends, in seconds [default: 1800]
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=SESSION_IDLE_S_MAX))]
    pub session_idle: Option<u64>,
    /// When journal records are forced to the disk [default: interval]
    #[arg(long, value_enum)]
    pub sync: Option<Sync>,
    /// Threads that serve [default: one for each processor up to 16; 16 with --sync every, where each waits for the disk]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=THREADS_MAX))]
    pub threads: Option<u64>,
    /// A further value of Host to accept; repeatable
    #[arg(long = "allow-host", value_name = "HOST[:PORT]")]
    pub allowed_hosts: Vec<String>,
    /// A page of this origin may call as well, with :* at its end from every port; repeatable
    #[arg(long = "allow-origin", value_name = "ORIGIN")]
    pub allowed_origins: Vec<String>,
    /// The server that is also at /, and at /mcp instead of all servers
    #[arg(long, value_name = "NAME")]
    pub root: Option<String>,
    #[command(flatten)]
    pub prefix: PrefixArgs,
    /// Refuse requests without a key, even while there are no keys yet
    #[arg(long)]
    pub require_key: bool,
    /// What is done about what servers say of themselves
    #[command(flatten)]
    pub screening: ScreeningArgs,
    /// How calls wait for a person
    #[command(flatten)]
    pub approval: ApprovalArgs,
    /// How refused calls are answered
    #[command(flatten)]
    pub refusals: RefusalArgs,
    /// How much callers may
    #[command(flatten)]
    pub limits: crate::limits::LimitArgs,
    /// TLS certificate (PEM); needs --tls-key
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub tls_cert: Option<PathBuf>,
    /// Its private key (PEM)
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub tls_key: Option<PathBuf>,
}

/// Who shares a server's process.
#[derive(Debug, Clone, Copy, clap::ValueEnum)]
pub enum Share {
    /// One per session; for clients without sessions, one per caller
    Session,
    /// One per caller
    Caller,
    /// One for all
    All,
}

impl From<Share> for values::Share {
    fn from(share: Share) -> Self {
        match share {
            Share::Session => Self::Session,
            Share::Caller => Self::Caller,
            Share::All => Self::All,
        }
    }
}

impl ServeArgs {
    /// Returns the files that the flags name or run.
    pub fn guarded(&self, places: &Places) -> GuardedFiles {
        let mut files = GuardedFiles::default();
        for server in &self.servers {
            let words: Vec<&OsStr> = server.words.iter().map(OsStr::new).collect();
            let folder = places.current.as_deref();
            files.read_only.extend(program::files(&words, folder));
        }
        let absolute = |file: &PathBuf| places.absolute(file);
        files.closed.extend(self.tls_key.as_ref().map(absolute));
        files.read_only.extend(self.tls_cert.as_ref().map(absolute));
        files
    }
}

/// A server of the command line.
#[derive(Debug, Clone)]
pub struct Further {
    /// Its name.
    pub name: String,
    /// Its command; empty where there is a URL.
    pub words: Vec<String>,
    /// Where it is, if it is not started.
    pub url: Option<String>,
}

fn further(text: &str) -> Result<Further, String> {
    let (name, command) = text
        .split_once('=')
        .ok_or("a server is written NAME=COMMAND or NAME=URL")?;
    let scheme = |c: char| c.is_ascii_alphanumeric() || "+-.".contains(c);
    // Of any other scheme it is said later that it is wrong.
    if command
        .split_once("://")
        .is_some_and(|(before, _)| before.chars().all(scheme))
    {
        return Ok(Further {
            name: server_name(name)?,
            words: Vec::new(),
            url: Some(command.to_owned()),
        });
    }
    let words = words::split(command)?;
    if words.is_empty() {
        return Err("the command is missing after NAME=".into());
    }
    Ok(Further {
        name: server_name(name)?,
        words,
        url: None,
    })
}

/// Who is served.
enum Clients<'o> {
    /// Those that connect; where, is written here.
    Connect(&'o mut dyn Write),
    /// The one of our own standard streams.
    Streams,
    /// One question to an agent: the answer is written here, and whether there is one.
    Asks(&'o AgentQuestion, &'o mut dyn Write, &'o mut bool),
}

/// Serves until a signal or the journal ends it; gives the exit code.
pub fn run(
    args: &ServeArgs,
    given: &Given,
    source: config::Source,
    mut settings: Settings,
    places: &Places,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> u8 {
    settings.set_policy(args.policy.as_deref(), given.policy);
    let files = descriptors::raised();
    let places = &Places {
        files_of_children: files.before,
        ..places.clone()
    };
    let done = Ready::of(args, &settings, places)
        .map(|ready| ready.within(files.max, err))
        .inspect(|ready| ready.warn(err))
        .and_then(|ready| {
            let clients = Clients::Connect(out);
            serve(
                (args, given, source),
                &settings,
                ready,
                places,
                (clients, err),
            )
        });
    code_of(done, err)
}

fn code_of(done: Result<u8, Failure>, err: &mut dyn Write) -> u8 {
    match done {
        Ok(code) => code,
        Err(failure) => {
            let _ = writeln!(err, "error: {}", failure.message);
            failure.code
        }
    }
}

/// Longest wait for the store at the end.
const STORE_CLOSE: std::time::Duration = std::time::Duration::from_secs(2);

fn serve(
    (args, given, source): (&ServeArgs, &Given, config::Source),
    settings: &Settings,
    ready: Ready,
    places: &Places,
    (clients, err): (Clients<'_>, &mut dyn Write),
) -> Result<u8, Failure> {
    let Ready {
        mut plan,
        policies,
        certificates,
    } = ready;
    let mut seed = [0_u8; 40];
    local::random(&mut seed).map_err(|e| Failure::other(format!("no randomness: {e}")))?;
    let (instance, session, _) = split_seed(&seed);
    let budgets = match plan.models {
        Some(_) => providers::budgets(settings, places)?,
        None => None,
    };
    let (budgets, shared) = match budgets {
        Some((budgets, shared)) => (Some(budgets), shared),
        None => (None, None),
    };
    let accounts = budgets.as_ref().and_then(models::Budgets::accounts);
    // Who speaks over our own standard streams shows no token.
    let takes_tokens = settings.identity.is_on() && matches!(clients, Clients::Connect(_));
    let issuers = takes_tokens.then(|| {
        let options = settings.identity.options();
        Arc::new(::identity::Issuers::new(options))
    });
    let authentication = Authentication::open(places, plan.require_key)?
        .with_accounts(accounts)
        .with_issuers(issuers.as_ref());
    let signed_in = match &clients {
        Clients::Connect(_) => None,
        Clients::Streams | Clients::Asks(..) => sign_in::caller(settings, places, err)?,
    };
    let sync = sync_policy(args.sync, settings);
    let runtime = threads::runtime()?;
    if let Some(issuers) = &issuers {
        let started = runtime.block_on(issuers.start(local::now_ms()));
        started.map_err(|fault| Failure::configuration(fault.to_string()))?;
    }
    let listener = match &clients {
        Clients::Connect(_) => {
            let asked = args.threads.or(settings.serving.threads.value);
            plan.options.threads = Some(threads::started(asked, sync)?);
            Some(runtime.block_on(bound(&plan.listen))?)
        }
        Clients::Streams | Clients::Asks(..) => None,
    };
    plan.telemetry = Telemetry::of(&settings.otel)?;
    let OpenedJournal { journal, check } = open_journal(sync, places, instance)?;
    // One for all: what one gate has stamped another may compare.
    let clock = Arc::new(SystemClock::new());
    let policies = policies.into_iter().enumerate();
    let ruled = policies.map(|(number, loaded)| {
        Ruled::new(
            loaded,
            number,
            &plan,
            (args, places),
            (&journal, &clock),
            (&check, &certificates),
        )
    });
    // The journal was opened for nothing; a failure here is the lesser one.
    let ruled = ruled.collect::<Result<Vec<_>, _>>();
    let mut ruled = ruled.inspect_err(|_| drop(journal.close(local::now_ms(), "configuration")))?;
    let served = runtime.block_on(async {
        let models = modelled(&mut plan, &ruled, (settings, places), budgets)?;
        let callers = (authentication, issuers);
        let serving = Serving::new(&plan, &ruled, models, callers, places, err).await?;
        let groups = ruled
            .iter()
            .map(|of| (Arc::clone(&of.gate), of.group.clone()));
        let changes = Changes::new(args, settings, &serving.face, groups.collect(), places);
        let mut beside: Option<Arc<dyn Beside>> = Some(Arc::new(changes));
        for of in &mut ruled {
            let told = listener.as_ref().map(|at| serving.told(&plan, at));
            let asked = asked((args, given, &source), settings, &of.group, beside.take());
            of.begin(asked, settings, places, told)?;
        }
        tokio::spawn(disk::watch(places.clone()));
        tokio::spawn(certificates.clone().watch());
        let keys = Notices::of(&[places.keys()]);
        match (clients, listener) {
            (Clients::Connect(out), Some(listener)) => {
                serving.run(&plan, listener, keys, out).await
            }
            (Clients::Asks(question, out, has_answer), _) => {
                let caller = signed_in.as_ref().map(|own| own.caller.clone());
                let caller = caller.unwrap_or_else(|| Caller::local(&places.user));
                let (gates, answered) = serving.ask(question, caller, (out, err)).await?;
                *has_answer = answered;
                Ok(gates)
            }
            _ => {
                let person = (places, signed_in);
                serving.speak(&plan, session, keys, person).await
            }
        }
    });
    plan.telemetry.iter().for_each(|export| export.close());
    runtime.shutdown_background();
    if let Some(Err(error)) = shared.map(|counter| counter.close(STORE_CLOSE)) {
        tracing::warn!(
            "budgets: {error}; the unused quota of this replica counts as used until it is back"
        );
    }
    let gates = served.inspect_err(|_| {
        // What ended it is said; a failure here is the lesser one.
        drop(journal.close(local::now_ms(), "error"));
    })?;
    finish(gates, &journal)
}

/// What the command line asks for of one set of rules: a reload reads the same again.
fn asked(
    (args, given, source): (&ServeArgs, &Given, &config::Source),
    settings: &Settings,
    group: &Group,
    beside: Option<Arc<dyn Beside>>,
) -> Asked {
    Asked {
        server: None,
        policy: args.policy.clone(),
        policy_origin: given.policy,
        source: source.clone(),
        limits: args.limits.clone(),
        approval: args.approval.clone(),
        watch: settings.watch.value,
        group: Some(group.clone()),
        beside,
    }
}

async fn bound(place: &Listen) -> Result<Listener, Failure> {
    let listening = match place {
        Listen::Address(address) => Listener::at(*address).await,
        Listen::Socket(path) => Listener::at_path(path),
    };
    listening.map_err(|error| {
        let hint = match error.kind() {
            std::io::ErrorKind::AddrInUse => {
                "\n  hint: another program uses this address; stop it, or choose another address with --listen"
            }
            _ => "",
        };
        Failure::other(format!("cannot listen on {place}: {error}{hint}"))
    })
}

/// A set of rules with its gate, its servers, and the socket at which its questions are answered.
struct Ruled {
    source: PolicySource,
    gate: Arc<Gate>,
    state: InstanceState,
    names: String,
    group: Group,
    socket: Socket,
}

impl Ruled {
    fn new(
        (source, policy): Loaded,
        number: usize,
        plan: &Plan,
        (args, places): (&ServeArgs, &Places),
        (journal, clock): (&Arc<Journal>, &Arc<SystemClock>),
        (check, certificates): (&JournalCheck, &Certificates),
    ) -> Result<Self, Failure> {
        let mut random = [0_u8; 8];
        local::random(&mut random).map_err(|e| Failure::other(format!("no randomness: {e}")))?;
        let version = history::record_start(&source, &policy, places);
        record_policy(journal, &source, policy.digest(), version)?;
        let world = World {
            policy,
            version: version.label(),
            limits: plan.limits,
            approval: plan.approval,
            inspect: Arc::clone(&plan.inspect),
            flow: Arc::clone(&plan.flow),
        };
        let salt = u64::from_le_bytes(random);
        let gate = Gate::new(world, Arc::clone(journal), Arc::clone(clock) as _, salt);
        let further: Vec<String> = args.servers.iter().map(|s| s.name.clone()).collect();
        Ok(Self {
            gate: Arc::new(gate),
            state: InstanceState {
                reloads: ReloadState::new(),
                journal: check.clone(),
                certificates: certificates.clone(),
            },
            names: plan.names(&source),
            group: Group::new(plan.names_with(&source), &further),
            // Each set of rules has its own questions, and so its own socket.
            socket: bind_control(places, &format!("serve-{number}"))?,
            source,
        })
    }
}

impl Ruled {
    /// Follows changes of its rules, and answers at its socket.
    fn begin(
        &mut self,
        asked: Asked,
        settings: &Settings,
        places: &Places,
        told: Option<control::Serving>,
    ) -> Result<(), Failure> {
        let (own, gate) = (settings.clone(), Arc::clone(&self.gate));
        let reloads = self.state.reloads.clone();
        let reloader = Reloader::new(asked, own, places.clone(), (gate, reloads))
            .map_err(|e| Failure::other(format!("signals cannot be listened to: {e}")))?;
        let handle = reloader.handle();
        listen(
            &mut self.socket,
            &self.gate,
            &self.names,
            (handle, self.state.clone()),
            places,
            told,
        );
        tokio::spawn(reloader.run());
        notify::begin(
            &settings.approval.notify.value,
            &self.gate,
            &self.state.reloads,
        );
        Ok(())
    }
}

/// The faces of the model APIs and of accounts.
#[derive(Default)]
struct Modelled {
    face: Option<Arc<models::Face>>,
    accounts: Option<Arc<models::AccountsFace>>,
    agents: Option<Arc<AgentProvider>>,
}

/// The faces of the model APIs and of accounts, behind the gate of their rules.
fn modelled(
    plan: &mut Plan,
    ruled: &[Ruled],
    (settings, places): (&Settings, &Places),
    budgets: Option<models::Budgets>,
) -> Result<Modelled, Failure> {
    let Some(own) = plan.models.take() else {
        return Ok(Modelled::default());
    };
    let gate = ruled.iter().find(|of| of.source == own.policy);
    let gate = gate.ok_or_else(|| Failure::other("the models have no policy"))?;
    let mut random = [0_u8; 8];
    local::random(&mut random).map_err(|e| Failure::other(format!("no randomness: {e}")))?;
    let salt = u64::from_le_bytes(random);
    let (underway, left) = providers::underway(places)?;
    let counter = budgets.as_ref().map(models::Budgets::counter);
    let settled = models::settle_left(&gate.gate, counter, left).map_err(|error| {
        Failure::other(format!(
            "calls that ended with a kill cannot be recorded: {error}"
        ))
    })?;
    if settled > 0 {
        tracing::warn!(
            "{settled} streams that ended with a kill were accounted for by what had been sent"
        );
    }
    let accounts = budgets.as_ref().and_then(models::Budgets::accounts);
    let accounts = accounts.map(|accounts| {
        let (accounts, gate) = (Arc::clone(accounts), Arc::clone(&gate.gate));
        Arc::new(models::AccountsFace::new(accounts, gate, !salt))
    });
    let face = models::Face::new(
        Arc::clone(&gate.gate),
        own.catalogue,
        budgets,
        providers::prices(settings),
        own.options,
        salt,
    )
    .with_notes(underway)
    .with_cache(settings.models.cache.as_ref().map(|cache| cache.options()));
    Ok(Modelled {
        face: Some(Arc::new(face)),
        accounts,
        agents: own.agents,
    })
}

fn finish(gates: Vec<Arc<Gate>>, journal: &Journal) -> Result<u8, Failure> {
    for gate in &gates {
        // A journal that fails here fails the gate as well.
        drop(gate.flush());
    }
    let has_failed = gates.iter().any(|gate| gate.has_failed());
    close_journal(journal, has_failed, "signal")?;
    Ok(0)
}

fn record_policy(
    journal: &Journal,
    source: &PolicySource,
    digest: &str,
    version: StartVersion,
) -> Result<(), Failure> {
    let source = source.label();
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
    journal
        .append(local::now_ms(), &Record::Config(&loaded))
        .map_err(Failure::journal)?;
    Ok(())
}

/// Everything that serves, put together.
struct Serving {
    gates: Vec<Arc<Gate>>,
    face: Arc<Face>,
    models: Option<Arc<models::Face>>,
    router: Arc<Router>,
    rhythm: Arc<Rhythm>,
}

impl Serving {
    async fn new(
        plan: &Plan,
        ruled: &[Ruled],
        models: Modelled,
        (authentication, issuers): (Authentication, Option<Arc<::identity::Issuers>>),
        places: &Places,
        err: &mut dyn Write,
    ) -> Result<Self, Failure> {
        let mut servers = Vec::new();
        for server in &plan.servers {
            let gate = ruled
                .iter()
                .find(|of| of.source == server.policy)
                .map(|of| Arc::clone(&of.gate))
                .ok_or_else(|| Failure::other("a server has no policy"))?;
            let means = server
                .launch()
                .settled(&server.name, &gate, places, err)
                .await?;
            servers.push(changes::options(server, means, gate, plan, places));
        }
        let gates: Vec<Arc<Gate>> = ruled.iter().map(|of| Arc::clone(&of.gate)).collect();
        let first = gates
            .first()
            .ok_or_else(|| Failure::configuration(NOTHING_TO_SERVE))?;
        let face = Arc::new(Face::new(
            Arc::clone(first),
            servers,
            plan.face.clone(),
            Box::new(local::random),
        ));
        if let Some((agents, models)) = models.agents.as_ref().zip(models.face.as_ref()) {
            agents.connect(models, &face);
        }
        let site = Site {
            mcp: Arc::clone(&face),
            models: models.face.clone(),
            accounts: models.accounts,
            issuers,
            is_secure: plan.options.tls.is_some(),
            gates: gates.clone(),
            states: ruled.iter().map(|of| of.state.clone()).collect(),
            telemetry: plan.telemetry.clone(),
            simulation: plan.simulation().map(str::to_owned),
            root: plan.root.clone(),
            journal: places.journal(),
        };
        site.sources().export()?;
        let rhythm = Arc::new(Rhythm::default());
        let faces = faces::of(&site);
        let router = Router::new(faces, authentication, Arc::clone(&rhythm), site.is_secure)
            .map_err(|clash| Failure::configuration(clash.to_string()))?;
        Ok(Self {
            gates,
            face,
            models: models.face,
            router: Arc::new(router),
            rhythm,
        })
    }

    /// What `durward status` says of it.
    fn told(&self, plan: &Plan, listener: &Listener) -> control::Serving {
        let face = Arc::clone(&self.face);
        let models = self.models.clone();
        control::Serving {
            address: plan.announced(listener),
            counts: Box::new(move || {
                let counts = face.counts();
                (counts.sessions, counts.servers)
            }),
            resting_keys: Box::new(move || {
                models
                    .as_ref()
                    .map_or_else(Vec::new, |models| models.resting_keys())
            }),
        }
    }

    /// Serves until the end, and ends in order: nothing new, what is under way, sessions, servers.
    async fn run(
        self,
        plan: &Plan,
        listener: Listener,
        keys: Notices,
        out: &mut dyn Write,
    ) -> Result<Vec<Arc<Gate>>, Failure> {
        let address = plan.announced(&listener);
        self.record_start(plan, &format!("listening at {address}"))?;
        let _ = writeln!(out, "listening at {address}");
        if plan.root.is_none() {
            let _ = match listener.address() {
                Some(_) => writeln!(out, "  all servers  {address}/mcp"),
                None => writeln!(out, "  all servers  {address}  /mcp"),
            };
        }
        for name in self.face.names() {
            let _ = match listener.address() {
                Some(_) => writeln!(out, "  {name}  {address}/mcp/{name}"),
                None => writeln!(out, "  {name}  {address}  /mcp/{name}"),
            };
        }
        if self.models.is_some() {
            let _ = writeln!(out, "  models  {address}/v1");
        }
        let _ = out.flush();
        let failed = Arc::new(Notify::new());
        let looking_after = tokio::spawn(self.look_after(keys, Arc::clone(&failed)));
        let signals = Signals::listen()?;
        let end = self.asked_to_end(signals.asked(1), failed)?;
        let hurry = signals.asked(2);
        let (options, router) = (plan.options.clone(), Arc::clone(&self.router));
        let drained = server::serve(listener, options, router, end, hurry);
        let drained = drained.await;
        if drained.cut_off > 0 {
            tracing::warn!("{} connections were cut off", drained.cut_off);
        }
        looking_after.abort();
        self.face.close().await;
        if let Some(gate) = self.gates.first() {
            // What was refused since the last time.
            self.router.tick(gate);
        }
        Ok(self.gates)
    }

    fn record_start(&self, plan: &Plan, message: &str) -> Result<(), Failure> {
        let names: Vec<&str> = plan.servers.iter().map(|s| s.name.as_str()).collect();
        let started = System {
            level: Some(Level::Info),
            component: Some(Component::Serve),
            message: Some(message),
            backend_id: Some(&names.join(", ")),
            ..System::of(SystemEvent::ServeStarted)
        };
        match self.gates.first() {
            Some(gate) => gate
                .record(&Record::System(&started))
                .map_err(Failure::journal),
            None => Ok(()),
        }
    }

    /// Gives keys, faces and the journal their time until it is dropped; tells where the journal has failed. Begins again with
    /// whatever happens: a request, a record, a change of the keys.
    fn look_after(
        &self,
        keys: Notices,
        failed: Arc<Notify>,
    ) -> impl Future<Output = ()> + Send + use<> {
        let (gates, router) = (self.gates.clone(), Arc::clone(&self.router));
        let (face, rhythm) = (Arc::clone(&self.face), Arc::clone(&self.rhythm));
        for gate in &gates {
            let rhythm = Arc::clone(&rhythm);
            gate.on_record(move || rhythm.touch());
        }
        async move {
            let mut beat = Beat::new(Arc::clone(&rhythm));
            let (mut activity, mut ended) = (Activity::Nothing, false);
            loop {
                let mut next = std::pin::pin!(beat.next(activity));
                loop {
                    tokio::select! {
                        () = &mut next => break,
                        () = keys.next() => rhythm.touch(),
                    }
                }
                if let Some(gate) = gates.first() {
                    router.tick(gate);
                }
                if !ended {
                    ended = !kept(&gates);
                    if ended {
                        failed.notify_one();
                    }
                }
                // Where there are no notices about the keys, they are looked at all the time.
                let is_due = !keys.are_given() || !gates.iter().all(|gate| gate.has_nothing_due());
                activity = match face.look_after() {
                    _ if is_due => Activity::UnderWay,
                    of_face => of_face,
                };
            }
        }
    }

    /// Ready when a signal asks for the end or the journal has failed; from then on every call is
    /// refused.
    fn asked_to_end<A: Future<Output = ()> + Send>(
        &self,
        asked: A,
        failed: Arc<Notify>,
    ) -> Result<impl Future<Output = ()> + Send + use<A>, Failure> {
        // A file-size limit would end the process before it could say why.
        let file_size = signals::listen_to(SignalKind::from_raw(SIGXFSZ))?;
        let (gates, router) = (self.gates.clone(), Arc::clone(&self.router));
        Ok(async move {
            let _file_size = file_size;
            tokio::select! {
                () = asked => {
                    tracing::info!(
                        target: "serve",
                        "ending: calls under way have 10 s to end; a second signal ends them at once"
                    );
                }
                () = failed.notified() => {}
            }
            for gate in &gates {
                gate.drain();
            }
            router.quiet();
        })
    }
}

/// Gives the journal its time; whether it still takes records.
fn kept(gates: &[Arc<Gate>]) -> bool {
    for gate in gates {
        // A journal that fails here fails the gate as well.
        if let Err(error) = gate.tick() {
            tracing::error!(reason = error.label(), "{error}");
        }
    }
    !gates.iter().any(|gate| gate.has_failed())
}
