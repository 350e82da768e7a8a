//! Taking up a changed configuration and policy while running.
//!
//! What is new is read and compiled whole before anything changes; what cannot be used leaves the last
//! good in force, is said on standard error and written to the journal. A call keeps the world that it
//! was judged by.

mod group;
mod state;
mod watch;

use std::io;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use gate::closed_set;
use gate::journal::{Component, Config, ConfigEvent, Record};
use gate::limits::Limits;
use gate::policy::Policy;
use gate::{Gate, World};
use net::timers::kept;
use serde_json::{Value, json};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::{mpsc, oneshot};

use crate::checker;
use crate::config::keys::KEYS;
use crate::config::rows::Row;
use crate::config::{self, Origin, Settings};
use crate::flags::ApprovalArgs;
use crate::limits::LimitArgs;
use crate::local;
use crate::notices::Notices;
use crate::places::Places;
use crate::policy::history::record_reload;
use crate::policy::source::{PolicySource, Protected, narrow_policy};
pub use group::Group;
pub use state::{ReloadFailure, ReloadState};
use watch::Watch;

/// How often the files are looked at while they change, or where the kernel gives no notice of changes, in milliseconds.
const LOOK_MS: u64 = 500;
/// How long they are looked at so often after a notice, in milliseconds: until every change has come to rest.
const LINGER_MS: u64 = 6_000;
/// How often they are looked at without a notice, in milliseconds: not every file system gives one.
const REST_MS: u64 = 10_000;
/// Shortest time between two reloads, in milliseconds: a storm of requests becomes a few.
const GAP_MS_MIN: u64 = 100;

closed_set! {
    /// What asked for a reload.
    pub enum Change {
        Sighup "sighup": "the signal SIGHUP";
        File "file": "a file that has changed on disk";
        Command "command": "`durward reload`";
    }
}

impl Change {
    /// Whether someone asked for it: then it is taken up, changed or not. Links that rules lead through
    /// may mean something else now.
    fn is_explicit(self) -> bool {
        match self {
            Self::Sighup | Self::Command => true,
            Self::File => false,
        }
    }
}

/// Requests that may wait for their reload at once.
const REQUESTS_MAX: usize = 16;

/// A request, and where its answer goes.
type Request = oneshot::Sender<Outcome>;

/// Asks for a reload, from anywhere in the process.
#[derive(Debug, Clone)]
pub struct Handle(mpsc::Sender<Request>);

impl Handle {
    /// Asks, and waits for what came of it.
    ///
    /// # Errors
    /// A sentence, where nothing was taken up.
    pub async fn ask(&self) -> Result<Value, String> {
        let gone = |_| "the instance is about to end".to_owned();
        let (sender, receiver) = oneshot::channel();
        let sent = self.0.try_send(sender);
        sent.map_err(|_| "too many reloads are under way; try again".to_owned())?;
        match receiver.await.map_err(gone)? {
            Outcome::Updated {
                version,
                digest,
                restart,
            } => Ok(json!({ "version": version, "digest": digest, "needs_restart": restart })),
            Outcome::Unchanged => Err("nothing has changed".to_owned()),
            Outcome::Failed(message) => Err(message),
        }
    }
}

/// What became of a reload.
#[derive(Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It is in force.
    Updated {
        /// The policy's version.
        version: String,
        /// Its digest.
        digest: String,
        /// Keys whose change waits for a restart.
        restart: Vec<String>,
    },
    /// Nothing has changed.
    Unchanged,
    /// What was in force before still is.
    Failed(String),
}

/// Why nothing was taken up.
#[derive(Debug)]
struct Fault {
    /// `configuration` or `policy`.
    component: Component,
    file: Option<PathBuf>,
    message: String,
}

/// What the command line asks for: a reload reads the same again.
#[derive(Debug, Clone)]
pub struct Asked {
    /// The server of the configuration, where it is one.
    pub server: Option<String>,
    /// The rules, where the command line or the environment names them.
    pub policy: Option<PathBuf>,
    pub policy_origin: Origin,
    pub source: config::Source,
    /// They outrank the configuration's.
    pub limits: LimitArgs,
    /// So do these.
    pub approval: ApprovalArgs,
    /// Changed files are taken up by themselves.
    pub watch: bool,
    /// Under `durward serve`, the servers that the rules are for.
    pub group: Option<Group>,
    /// Who takes up what else has changed there: one of the groups does it for all.
    pub beside: Option<Arc<dyn Beside>>,
}

impl Asked {
    /// Whether it is this that tells what waits for a restart.
    fn tells(&self) -> bool {
        self.group.is_none() || self.beside.is_some()
    }
}

/// Puts in force what was prepared; gives the keys whose change waits for a restart.
pub type TakeUp = Box<dyn FnOnce() -> Pin<Box<dyn Future<Output = Vec<String>> + Send>> + Send>;

/// What changes with the configuration beside the rules: the servers of `durward serve`.
pub trait Beside: std::fmt::Debug + Send + Sync {
    /// Makes ready what these settings ask for, and changes nothing yet.
    ///
    /// # Errors
    /// A sentence, where it could not be had.
    fn prepare(self: Arc<Self>, settings: &Settings, places: &Places) -> Result<TakeUp, String>;
}

/// All that a reload brings, ready to be put in force.
struct Prepared {
    settings: Settings,
    source: PolicySource,
    policy: Policy,
    limits: Limits,
    approval: gate::approval::Options,
    /// What else has changed, where that is looked after here.
    beside: Option<TakeUp>,
}

/// What is in force.
struct InForce {
    policy_version: u64,
    policy_digest: String,
    config_version: u64,
    config_checksum: Option<String>,
    /// The policy's file.
    policy_file: Option<PathBuf>,
    /// What was started with: changes are held against it, not against the file before.
    started: Settings,
}

/// Takes up changes for one guarded server.
pub struct Reloader {
    asked: Asked,
    places: Places,
    gate: Arc<Gate>,
    /// Shows others what the latest reload resulted in.
    state: ReloadState,
    in_force: InForce,
    hangup: Signal,
    requests: mpsc::Receiver<Request>,
    handle: Handle,
    watch: Option<Watch>,
    notices: Notices,
    start: Instant,
}

impl Reloader {
    /// From now on SIGHUP no longer ends the process.
    ///
    /// # Errors
    /// Where the signal cannot be taken.
    pub fn new(
        asked: Asked,
        settings: Settings,
        places: Places,
        (gate, state): (Arc<Gate>, ReloadState),
    ) -> io::Result<Self> {
        let watch = asked.watch.then(Watch::default);
        let world = gate.world();
        let (config_file, policy_file) = (
            settings.file.clone(),
            policy_of(&asked, &settings)
                .ok()
                .and_then(|source| source.file().map(Path::to_path_buf)),
        );
        let (sender, requests) = mpsc::channel(REQUESTS_MAX);
        let mut reloader = Self {
            requests,
            handle: Handle(sender),
            in_force: InForce {
                policy_version: version_of(&world),
                policy_digest: world.policy.digest().to_owned(),
                config_version: 1,
                config_checksum: settings.checksum.clone(),
                policy_file: policy_file.clone(),
                started: settings,
            },
            hangup: signal(SignalKind::hangup())?,
            asked,
            places,
            gate,
            state,
            watch,
            notices: Notices::of(&[]),
            start: Instant::now(),
        };
        reloader.watch_files(config_file, policy_file);
        Ok(reloader)
    }

    /// Asks it for reloads.
    pub fn handle(&self) -> Handle {
        self.handle.clone()
    }

    fn watch_files(&mut self, config: Option<PathBuf>, policy: Option<PathBuf>) {
        if let Some(watch) = &mut self.watch {
            let places = &self.places;
            let files = config.into_iter().chain(policy);
            let files: Vec<PathBuf> = files.map(|file| places.absolute(&file)).collect();
            self.notices = Notices::of_files(files.iter().map(PathBuf::as_path));
            watch.set(files, local::now_ms());
        }
    }

    /// Waits for changes and takes them up, until it is dropped.
    pub async fn run(mut self) {
        let linger = Duration::from_millis(LINGER_MS);
        let mut awake_until = Instant::now() + linger;
        let gap = Duration::from_millis(GAP_MS_MIN);
        loop {
            let mut request = None;
            let change = tokio::select! {
                asked = self.requests.recv() => {
                    request = asked;
                    Some(Change::Command)
                }
                asked = self.hangup.recv() => asked.map(|()| Change::Sighup),
                noticed = due(&self.notices, awake_until), if self.watch.is_some() => {
                    if noticed {
                        awake_until = Instant::now() + linger;
                    }
                    self.look()
                }
            };
            if let Some(change) = change {
                let outcome = self.reload(change).await;
                tell(change, &outcome);
                if !matches!(outcome, Outcome::Failed(_)) {
                    self.state.succeed(change);
                }
                // Who asked may have gone.
                let _ = request.map(|request| request.send(outcome));
                kept(|| tokio::time::sleep(gap)).await;
            }
        }
    }

    fn look(&mut self) -> Option<Change> {
        let mono_ms = u64::try_from(self.start.elapsed().as_millis()).unwrap_or(u64::MAX);
        let found = self.watch.as_mut()?.look(mono_ms, local::now_ms());
        for file in found.gone {
            let message = format!(
                "{}: the file is gone; its last contents stay in force",
                file.display()
            );
            tracing::warn!(target: "reload", "{message}");
            self.record_fault(
                Change::File,
                &Fault {
                    component: self.component_of(&file),
                    file: Some(file),
                    message,
                },
            );
        }
        found.changed.then_some(Change::File)
    }

    fn component_of(&self, file: &Path) -> Component {
        let policy = self.in_force.policy_file.as_ref();
        if policy.is_some_and(|policy| self.places.absolute(policy) == file) {
            Component::Policy
        } else {
            Component::Configuration
        }
    }

    async fn reload(&mut self, change: Change) -> Outcome {
        let (asked, places) = (self.asked.clone(), self.places.clone());
        // Compiling a large policy takes longer than a call may wait.
        let prepared = tokio::task::spawn_blocking(move || prepare(&asked, places)).await;
        let prepared = prepared.unwrap_or_else(|error| {
            Err(Fault {
                component: Component::Policy,
                file: None,
                message: error.to_string(),
            })
        });
        match prepared {
            Ok(mut prepared) => {
                let beside = prepared.beside.take();
                let mut outcome = self.put_in_force(change, prepared);
                if let (Outcome::Updated { restart, .. }, Some(take_up)) = (&mut outcome, beside) {
                    restart.extend(take_up().await);
                }
                outcome
            }
            Err(fault) => {
                self.record_fault(change, &fault);
                Outcome::Failed(fault.message)
            }
        }
    }

    /// Written down first, then in force.
    fn put_in_force(&mut self, change: Change, prepared: Prepared) -> Outcome {
        let Prepared {
            settings,
            source,
            policy,
            limits,
            approval,
            beside: _,
        } = prepared;
        let explicit = change.is_explicit();
        let new_policy = explicit || policy.digest() != self.in_force.policy_digest;
        let new_config = settings.checksum != self.in_force.config_checksum
            || (explicit && settings.file.is_some());
        if !new_policy && !new_config {
            return Outcome::Unchanged;
        }
        let digest = policy.digest().to_owned();
        if new_config {
            self.record_configuration(change, &settings);
        }
        if new_policy {
            let file = source.file().map(|file| file.display().to_string());
            let before = self.in_force.policy_version;
            let now = record_reload(&source, &policy, &self.places, before, explicit);
            let versions = (before, now);
            let source = file.as_deref().unwrap_or("starter");
            self.record_update(
                change,
                Component::Policy,
                versions,
                Some(source),
                Some(&digest),
            );
            self.in_force.policy_version = versions.1;
        }
        let version = format!("v{}", self.in_force.policy_version);
        self.gate.reload(World {
            policy,
            version: version.clone(),
            limits,
            approval,
            inspect: settings.inspect.for_gate(checker::asking),
            flow: settings.flow(self.gate.world().flow.sessions()),
        });
        let restart = needs_restart(&self.asked, &self.in_force.started, &settings);
        self.in_force.policy_digest.clone_from(&digest);
        self.in_force.config_checksum = settings.checksum;
        let policy_file = source.file().map(Path::to_path_buf);
        self.in_force.policy_file.clone_from(&policy_file);
        self.watch_files(settings.file, policy_file);
        Outcome::Updated {
            version,
            digest,
            restart,
        }
    }

    fn record_configuration(&mut self, change: Change, settings: &Settings) {
        let file = settings.file.as_ref();
        let file = file.map(|file| file.display().to_string());
        let version = self.in_force.config_version;
        let checksum = settings.checksum.as_deref();
        let (component, versions) = (Component::Configuration, (version, version + 1));
        self.record_update(change, component, versions, file.as_deref(), checksum);
        self.in_force.config_version = versions.1;
    }

    fn record_update(
        &self,
        change: Change,
        component: Component,
        (before, now): (u64, u64),
        source: Option<&str>,
        checksum: Option<&str>,
    ) {
        let (before, now) = (format!("v{before}"), format!("v{now}"));
        self.record(&Config {
            component: Some(component),
            version: Some(&now),
            previous_version: Some(&before),
            change_type: Some(change.into()),
            source,
            checksum,
            ..Config::of(ConfigEvent::Updated)
        });
    }

    fn record_fault(&self, change: Change, fault: &Fault) {
        let version = match fault.component {
            Component::Policy => self.in_force.policy_version,
            _ => self.in_force.config_version,
        };
        let version = format!("v{version}");
        let file = fault.file.as_ref().map(|file| file.display().to_string());
        self.record(&Config {
            component: Some(fault.component),
            version: Some(&version),
            change_type: Some(change.into()),
            source: file.as_deref(),
            message: Some(&fault.message),
            ..Config::of(ConfigEvent::ValidationFailed)
        });
        let failure = ReloadFailure {
            message: fault.message.clone(),
            is_announced_elsewhere: fault.component == Component::Configuration
                && !self.asked.tells(),
        };
        self.state.fail(change, failure);
    }

    /// A journal that fails here fails the gate, which the session sees.
    fn record(&self, record: &Config<'_>) {
        if let Err(error) = self.gate.record(&Record::Config(record)) {
            tracing::error!(target: "reload", reason = error.label(), "{error}");
        }
    }
}

/// Returns the number of the policy's version.
fn version_of(world: &World) -> u64 {
    let number = world.version.strip_prefix('v');
    number.and_then(|number| number.parse().ok()).unwrap_or(1)
}

/// Waits until the files are to be looked at; gives whether that is because of a notice.
async fn due(notices: &Notices, awake_until: Instant) -> bool {
    let pause = |ms| kept(|| tokio::time::sleep(Duration::from_millis(ms)));
    if !notices.are_given() || Instant::now() < awake_until {
        pause(LOOK_MS).await;
        return false;
    }
    tokio::select! {
        () = notices.next() => true,
        () = pause(REST_MS) => false,
    }
}

/// The rules that apply by these settings.
fn policy_of(asked: &Asked, settings: &Settings) -> Result<PolicySource, String> {
    if let Some(group) = &asked.group {
        return group.policy(settings).map(|(source, _)| source);
    }
    let server = asked.server.as_ref().and_then(|name| settings.server(name));
    Ok(settings.policy_of(server).0)
}

/// Reads and compiles everything anew. Nothing is changed by it.
fn prepare(asked: &Asked, mut places: Places) -> Result<Prepared, Fault> {
    let of_config = |message| Fault {
        component: Component::Configuration,
        file: None,
        message,
    };
    let mut settings = config::load(&asked.source, &places).map_err(of_config)?;
    settings.set_policy(asked.policy.as_deref(), asked.policy_origin);
    if let Some(name) = &asked.server {
        settings.named(name, &places).map_err(of_config)?;
    }
    let limits = asked.limits.over(settings.limits.for_gate());
    let limits = limits.map_err(of_config)?;
    let approval = asked.approval.options(&settings.approval);
    let source = policy_of(asked, &settings).map_err(of_config)?;
    // The state stays where it is; what the configuration names may be other files now.
    settings.protect(&mut places);
    let beside = asked.beside.as_ref();
    let beside = beside.map(|beside| Arc::clone(beside).prepare(&settings, &places));
    let beside = beside.transpose().map_err(of_config)?;
    // The agents of `durward run` are none.
    let policy = source.load(Protected::AsRun, &places);
    let policy = policy.and_then(|policy| match asked.group {
        Some(_) => narrow_policy(policy, &settings.agents),
        None => Ok(policy),
    });
    match policy {
        Ok(policy) => Ok(Prepared {
            settings,
            source,
            policy,
            limits,
            approval,
            beside,
        }),
        Err(message) => Err(Fault {
            component: Component::Policy,
            file: source.file().map(Path::to_path_buf),
            message,
        }),
    }
}

/// Keys that only `durward serve` looks at.
const OF_SERVE: [&str; 11] = [
    "listen",
    "root",
    "require_key",
    "share",
    "session_idle",
    "lenient",
    "threads",
    "tls.cert",
    "tls.key",
    "allowed_hosts",
    "allowed_origins",
];

/// Keys that have changed since the start and cannot be taken up while running.
fn needs_restart(asked: &Asked, started: &Settings, now: &Settings) -> Vec<String> {
    if !asked.tells() {
        return Vec::new();
    }
    let here = |key: &str| {
        let is_of_serve = OF_SERVE.contains(&key)
            || key.starts_with("models.")
            || key.starts_with("state.")
            || (key.starts_with("identity.") && key != "identity.required");
        asked.group.is_some() || !is_of_serve
    };
    let live = |key: &str| KEYS.iter().any(|known| known.path == key && known.live);
    let (before, after) = (started.rows(), now.rows());
    let mut keys: Vec<&'static str> = after
        .iter()
        .chain(&before)
        .filter(|row| !live(row.key) && here(row.key))
        .filter(|row| {
            let value = |rows: &[Row]| {
                let row = rows.iter().find(|other| other.key == row.key);
                row.map(|row| row.value.clone())
            };
            value(&before) != value(&after)
        })
        .map(|row| row.key)
        .collect();
    if asked.group.is_some() {
        keys.extend(started.models.differ(&now.models));
        keys.extend(started.identity.differ(&now.identity));
        if started.agents != now.agents {
            keys.push("agents");
        }
    }
    keys.sort_unstable();
    keys.dedup();
    let servers = asked.server.as_ref();
    let servers = servers.and_then(|name| started.server(name).zip(now.server(name)));
    if let Some((before, after)) = servers {
        if !before.is_reached_like(after) {
            keys.push("servers");
        }
        let timeouts = (
            started.call_timeout_of(Some(before)),
            now.call_timeout_of(Some(after)),
        );
        if timeouts.0 != timeouts.1 && !keys.contains(&"call_timeout") {
            keys.push("call_timeout");
        }
        if before.tool_timeout != after.tool_timeout && !keys.contains(&"tool_timeout") {
            keys.push("tool_timeout");
        }
    }
    keys.into_iter().map(str::to_owned).collect()
}

fn tell(change: Change, outcome: &Outcome) {
    match outcome {
        Outcome::Updated {
            version,
            digest,
            restart,
        } => {
            tracing::info!(target: "reload", change = change.label(), version, digest, "in force");
            if !restart.is_empty() {
                tracing::warn!(target: "reload", keys = restart.join(", "), "changed, and needs a restart");
            }
        }
        Outcome::Unchanged => {}
        Outcome::Failed(message) => {
            tracing::error!(target: "reload", change = change.label(), "{message}\n  the earlier rules and settings stay in force");
        }
    }
}
