//! What applies: every value with where it came from.

use mcp::describe::ArgumentRoles;
use mcp::federation::Prefix;
use std::collections::HashMap;
use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use gate::flow::{Flow, OfServer, Sessions};
use gate::limits::{Rate, Then};
use mcp::message::refusal::Refusals;
use net::confine::Confine;

use super::agents::AgentsSection;
use super::fault::Position;
use super::identity::Identity;
use super::inspect::Inspect;
use super::models::Models;
use super::notify::Notify;
use super::otel::Otel;
use super::server::{ClientServer, Server};
use super::state_store::StateStore;
use super::values::{Links, Listen, Pin, Share, Size, Span, Sync};
use crate::local::Reads;
use crate::places::WARN_BELOW_DEFAULT;
use crate::policy_source::PolicySource;
use crate::verify::Verify;

/// Where a value came from, strongest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// The command line.
    Flag(&'static str),
    /// A variable of the environment.
    Environment(&'static str),
    /// The file.
    File(Position),
    /// Nobody said anything else.
    Default,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flag(name) | Self::Environment(name) => f.write_str(name),
            Self::File(at) => write!(f, "line {}", at.line),
            Self::Default => f.write_str("default"),
        }
    }
}

/// A value and where it came from.
#[derive(Debug, Clone)]
pub struct Setting<T> {
    pub value: T,
    pub origin: Origin,
}

impl<T> Setting<T> {
    /// The value that holds where nothing is said.
    pub fn default(value: T) -> Self {
        Self {
            value,
            origin: Origin::Default,
        }
    }
}

/// Limits on calls.
#[derive(Debug, Clone)]
pub struct Limits {
    pub rate: Setting<Rate>,
    pub burst: Setting<u64>,
    pub tool_calls: Setting<u64>,
    pub tool_window: Setting<Span>,
    pub tool_then: Setting<Then>,
    /// Absent: no bound of its own.
    pub tool_concurrency: Setting<Option<u64>>,
    pub concurrency: Setting<u64>,
    pub response_bytes: Setting<Size>,
    pub request_bytes: Setting<Size>,
    /// Absent: derived from the rate.
    pub journal_bytes: Setting<Option<Size>>,
}

impl Default for Limits {
    fn default() -> Self {
        let limits = gate::limits::Limits::default();
        Self {
            rate: Setting::default(limits.requests),
            burst: Setting::default(limits.requests_burst.into()),
            tool_calls: Setting::default(limits.tool_calls_max.into()),
            tool_window: Setting::default(Span(limits.tool_window_ms)),
            tool_then: Setting::default(limits.tool_then),
            tool_concurrency: Setting::default(limits.tool_under_way_max.map(u64::from)),
            concurrency: Setting::default(limits.under_way_max.into()),
            response_bytes: Setting::default(Size(limits.response_bytes_max)),
            request_bytes: Setting::default(Size(limits.request_bytes_max)),
            journal_bytes: Setting::default(limits.journal_bytes_max.map(Size)),
        }
    }
}

impl Limits {
    /// As the gate takes them.
    pub fn for_gate(&self) -> gate::limits::Limits {
        let calls = |setting: &Setting<u64>| u32::try_from(setting.value).unwrap_or(u32::MAX);
        gate::limits::Limits {
            requests: self.rate.value,
            requests_burst: calls(&self.burst),
            tool_calls_max: calls(&self.tool_calls),
            tool_window_ms: self.tool_window.value.0,
            tool_then: self.tool_then.value,
            under_way_max: calls(&self.concurrency),
            tool_under_way_max: self
                .tool_concurrency
                .value
                .map(|most| u32::try_from(most).unwrap_or(u32::MAX)),
            response_bytes_max: self.response_bytes.value.0,
            request_bytes_max: self.request_bytes.value.0,
            journal_bytes_max: self.journal_bytes.value.map(|size| size.0),
        }
    }
}

/// When a server is spared because it fails, and for how long.
#[derive(Debug, Clone)]
pub struct Breaker {
    /// In a row.
    pub failures: Setting<u64>,
    pub open: Setting<Span>,
    pub open_max: Setting<Span>,
}

impl Default for Breaker {
    fn default() -> Self {
        let default = toolkit::breaker::Settings::default();
        Self {
            failures: Setting::default(default.failures_max.into()),
            open: Setting::default(Span(default.open_ms_min)),
            open_max: Setting::default(Span(default.open_ms_max)),
        }
    }
}

impl Breaker {
    /// As a breaker takes them.
    pub fn settings(&self) -> toolkit::breaker::Settings {
        toolkit::breaker::Settings {
            failures_max: u32::try_from(self.failures.value).unwrap_or(u32::MAX),
            open_ms_min: self.open.value.0,
            open_ms_max: self.open_max.value.0,
            ..toolkit::breaker::Settings::default()
        }
    }
}

/// How a person is asked.
#[derive(Debug, Clone)]
pub struct Approval {
    pub timeout: Setting<Span>,
    pub remember: Setting<Span>,
    pub pending_max: Setting<u64>,
    /// Of one caller.
    pub waiting_max: Setting<u64>,
    /// Of one caller.
    pub per_minute: Setting<u64>,
    /// How a person hears of it.
    pub notify: Setting<Notify>,
}

impl Default for Approval {
    fn default() -> Self {
        let default = gate::approval::Options::default();
        let count = |number| Setting::default(u64::try_from(number).unwrap_or(u64::MAX));
        Self {
            timeout: Setting::default(Span(default.timeout_ms)),
            remember: Setting::default(Span(default.remember_ms)),
            pending_max: count(default.pending_max),
            waiting_max: count(default.waiting_per_caller_max),
            per_minute: count(default.asked_per_minute_max),
            notify: Setting::default(Notify::default()),
        }
    }
}

/// Most threads that may be asked for.
pub const THREADS_MAX: u64 = 64;
/// Longest time that a session may be unused, in seconds.
pub const SESSION_IDLE_S_MAX: u64 = 86_400;

/// What `durward serve` alone is told.
#[derive(Debug, Clone)]
pub struct Serving {
    /// The server that answers at `/` and `/mcp` as well.
    pub root: Setting<Option<String>>,
    /// When the names of several servers' tools carry the name of their server.
    pub prefix: Setting<Prefix>,
    /// Above how many tools of all servers a client searches; absent: never.
    pub search_above: Setting<Option<u64>>,
    /// Nobody is answered without a key, even where there is none yet.
    pub require_key: Setting<bool>,
    pub share: Setting<Share>,
    pub session_idle: Setting<Span>,
    /// Whether requests of clients that write JSON without types are repaired.
    pub lenient: Setting<bool>,
    /// Absent: what is usual on this machine.
    pub threads: Setting<Option<u64>>,
}

impl Default for Serving {
    fn default() -> Self {
        let idle_ms = mcp::http::FaceOptions::default().session_idle_ms_max;
        Self {
            root: Setting::default(None),
            prefix: Setting::default(Prefix::Auto),
            search_above: Setting::default(None),
            require_key: Setting::default(false),
            share: Setting::default(Share::Session),
            session_idle: Setting::default(Span(idle_ms)),
            lenient: Setting::default(false),
            threads: Setting::default(None),
        }
    }
}

/// Certificate and key that `serve` shows.
#[derive(Debug, Clone)]
pub struct Tls {
    pub cert: Setting<PathBuf>,
    pub key: Setting<PathBuf>,
}

/// All settings.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The file that was read.
    pub file: Option<PathBuf>,
    /// The file that commands write to: the one that was read, or the default one; `None` with `--no-config`.
    pub writable: Option<PathBuf>,
    /// SHA-256 of its text, in hex.
    pub checksum: Option<String>,
    pub listen: Setting<Listen>,
    pub serving: Serving,
    /// In the order of the file.
    pub servers: Vec<Server>,
    /// Sign-in of people.
    pub identity: Identity,
    /// Servers that entries of clients start: how they are judged.
    pub client_servers: Vec<ClientServer>,
    pub models: Models,
    pub agents: AgentsSection,
    pub inspect: Inspect,
    pub policy: Setting<Option<PathBuf>>,
    pub limits: Limits,
    pub approval: Approval,
    pub breaker: Breaker,
    /// Where spans and metrics are exported to.
    pub otel: Otel,
    /// Store that replicas share.
    pub state: Option<StateStore>,
    pub sync: Setting<Sync>,
    /// What a start does about closed segments of the journal.
    pub verify: Setting<Verify>,
    /// The file that is given each head of the journal.
    pub witness: Option<Setting<PathBuf>>,
    /// With less room than this on the journal's disk the operator is warned.
    pub warn_below: Setting<Size>,
    /// How large the journal may become before its oldest segments go. `None`: they stay.
    pub retain: Option<Setting<Size>>,
    pub call_timeout: Setting<Span>,
    /// What a refused tool call is answered with.
    pub refusals: Setting<Refusals>,
    /// Whether a URL with http:// may lead to another machine.
    pub insecure_http: Setting<bool>,
    /// Of single tools, of whichever server.
    pub tool_timeout: Setting<Vec<(String, Span)>>,
    /// Absent: where the environment says.
    pub state_dir: Option<Setting<PathBuf>>,
    /// Whether servers are kept off Durward's own files by the kernel.
    pub confine: Setting<Confine>,
    pub tls: Option<Tls>,
    /// Empty: loopback names.
    pub allowed_hosts: Setting<Vec<String>>,
    /// Empty: loopback names.
    pub allowed_origins: Setting<Vec<String>>,
    pub links: Setting<Links>,
    /// Characters; absent: no limit.
    pub description_length_max: Setting<Option<u64>>,
    pub pin: Setting<Pin>,
    /// Whether changed files are taken up by themselves.
    pub watch: Setting<bool>,
    /// What is allowed and yet looks like a mistake.
    pub warnings: Vec<Warning>,
}

/// Something that is allowed and yet looks like a mistake.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Warning {
    /// Where, if it is about one line.
    pub line: Option<usize>,
    pub message: String,
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "line {line}: {}", self.message),
            None => f.write_str(&self.message),
        }
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            file: None,
            writable: None,
            checksum: None,
            listen: Setting::default(Listen::default()),
            serving: Serving::default(),
            servers: Vec::new(),
            identity: Identity::default(),
            client_servers: Vec::new(),
            models: Models::default(),
            agents: AgentsSection::default(),
            inspect: Inspect::default(),
            policy: Setting::default(None),
            limits: Limits::default(),
            approval: Approval::default(),
            breaker: Breaker::default(),
            otel: Otel::default(),
            state: None,
            sync: Setting::default(Sync::Interval),
            verify: Setting::default(Verify::Stop),
            witness: None,
            warn_below: Setting::default(Size(WARN_BELOW_DEFAULT)),
            retain: None,
            call_timeout: Setting::default(Span(300_000)),
            refusals: Setting::default(Refusals::default()),
            insecure_http: Setting::default(false),
            tool_timeout: Setting::default(Vec::new()),
            state_dir: None,
            confine: Setting::default(Confine::Auto),
            tls: None,
            allowed_hosts: Setting::default(Vec::new()),
            allowed_origins: Setting::default(Vec::new()),
            links: Setting::default(Links::Keep),
            description_length_max: Setting::default(None),
            pin: Setting::default(Pin::Warn),
            watch: Setting::default(true),
            warnings: Vec::new(),
        }
    }
}

impl Settings {
    /// A server by its name.
    pub fn server(&self, name: &str) -> Option<&Server> {
        self.servers.iter().find(|server| server.name == name)
    }

    /// Returns what is declared of the tools and arguments of a server, be it started by this file or by a client's entry.
    pub fn declared_of(&self, name: &str) -> Option<&ArgumentRoles> {
        let of_client = self
            .client_servers
            .iter()
            .find(|server| server.name == name);
        let reads = of_client.map(|server| &server.reads);
        let reads = reads.or_else(|| self.server(name).map(|server| &server.reads));
        reads.map(|reads| &reads.arguments)
    }

    /// Returns how the server reads its arguments that `durward run --name NAME` starts by `command` or reaches at `url`.
    ///
    /// # Errors
    /// A message if the file has a server of that name that is started otherwise: what is declared of it is of another
    /// program.
    pub fn reads_of_run(
        &self,
        name: &str,
        command: &[OsString],
        url: Option<&str>,
    ) -> Result<Reads, String> {
        if let Some(own) = self.client_servers.iter().find(|own| own.name == name) {
            return Ok(own.reads.clone());
        }
        match self.server(name) {
            Some(own) if own.is_started_by(command, url) => Ok(Reads {
                started_in: None,
                ..own.reads.clone()
            }),
            Some(own) if own.reads != Reads::default() => Err(format!(
                "servers.{name} in durward.yaml is started otherwise than this server, so what it declares (tools, arguments) is not used here; give one of them another name"
            )),
            Some(_) | None => Ok(Reads::default()),
        }
    }

    /// The rules that apply to a server; what the command line or the environment names outranks all.
    /// If none is chosen, a built-in server has the rules that are shipped for it.
    pub fn policy_of(&self, server: Option<&Server>) -> (PolicySource, Origin) {
        let general = &self.policy;
        let outranks = matches!(general.origin, Origin::Flag(_) | Origin::Environment(_));
        let own = server.and_then(|server| server.policy.as_ref());
        if let (Some(own), false) = (own, outranks) {
            return (PolicySource::File(own.value.clone()), own.origin);
        }
        let source = general.value.clone().map_or_else(
            || {
                let builtin = server.and_then(|server| server.builtin.as_ref());
                let shipped = builtin.map(|builtin| builtin.wired.policy);
                PolicySource::Shipped(shipped.unwrap_or_default())
            },
            PolicySource::File,
        );
        (source, general.origin)
    }

    /// Which results are labelled how. What has been labelled stays where it is kept.
    pub fn flow(&self, sessions: &Arc<Sessions>) -> Arc<Flow> {
        let labelled = self
            .servers
            .iter()
            .filter(|server| server.labels != OfServer::default());
        let servers = labelled.map(|server| (server.name.clone(), server.labels.clone()));
        Arc::new(Flow::new(servers.collect(), Arc::clone(sessions)))
    }

    /// How long this server may take to answer.
    pub fn call_timeout_of(&self, server: Option<&Server>) -> Span {
        match self.call_timeout.origin {
            Origin::Flag(_) | Origin::Environment(_) => self.call_timeout.value,
            Origin::File(_) | Origin::Default => server
                .and_then(|server| server.call_timeout.as_ref())
                .map_or(self.call_timeout.value, |own| own.value),
        }
    }

    /// Whether the URL of this server may be one with http:// that leads to another machine.
    pub fn insecure_http_of(&self, server: Option<&Server>) -> bool {
        let own = server.and_then(|server| server.http.as_ref()?.insecure);
        own.unwrap_or(self.insecure_http.value)
    }

    /// How many processes of this server there may be at once.
    pub fn processes_max_of(&self, server: Option<&Server>) -> usize {
        let own = server.and_then(|server| server.processes_max.as_ref());
        own.and_then(|own| usize::try_from(own.value).ok())
            .unwrap_or(mcp::upstream::CHILDREN_MAX)
    }

    /// How long single tools of this server may take, in milliseconds: what `flags` say in seconds, else
    /// the server's own, else what holds for all.
    pub fn tool_timeouts_of(
        &self,
        server: Option<&Server>,
        flags: &[(String, u64)],
    ) -> HashMap<String, u64> {
        let ms = |(tool, span): &(String, Span)| (tool.clone(), span.0);
        let own = server.map_or(&[][..], |server| &server.tool_timeout);
        let flags = flags
            .iter()
            .map(|(tool, seconds)| (tool.clone(), seconds.saturating_mul(1_000)));
        self.tool_timeout
            .value
            .iter()
            .map(ms)
            .chain(own.iter().map(ms))
            .chain(flags)
            .collect()
    }
}
