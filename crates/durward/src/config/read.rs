//! From the text of the file to settings.

use gate::approval::{PENDING_LIMIT, REMEMBER_S_MAX, TIMEOUT_S_MAX, TIMEOUT_S_MIN};
use gate::limits::{
    CALLS_MAX, JOURNAL_BYTES_MAX, JOURNAL_BYTES_MIN, REQUEST_BYTES_MAX, REQUEST_BYTES_MIN,
    RESPONSE_BYTES_MAX, RESPONSE_BYTES_MIN, UNDER_WAY_MAX, WINDOW_MS_MAX, WINDOW_MS_MIN,
};

use super::agents;
use super::fault::Fault;
use super::identity;
use super::inspect;
use super::keys::SERVERS_ALIAS;
use super::models;
use super::node::{self, Value};
use super::notify;
use super::otel;
use super::section::{ELEMENTS_MAX, Reader, Section};
use super::server::{self, CALL_TIMEOUT_MS, ServerEntry};
use super::settings::{Origin, SESSION_IDLE_S_MAX, Setting, Settings, THREADS_MAX, Tls, Warning};
use super::state_store;
use super::values::{Listen, Size, Span};

/// Most servers in one file.
pub const SERVERS_MAX: usize = 256;
/// Most failures in a row after which a server is spared.
const BREAKER_FAILURES_MAX: u64 = 1_000_000;
/// Shortest and longest time that a server may be spared, in milliseconds.
const BREAKER_OPEN_MS: (u64, u64) = (10, 3_600_000);
/// Longest name of a host or origin, in bytes.
const HOST_BYTES_MAX: usize = 512;

/// Smallest and largest size that a journal may be held to, in bytes: eight segments of 1 MiB, 1 PiB.
const RETAIN_BYTES: (u64, u64) = (8 << 20, 1 << 50);

/// Reads the file's text.
pub fn settings(text: &str, reader: &Reader<'_>) -> Result<Settings, Fault> {
    let root = node::parse(text)?;
    let top = Section::open(reader, &root, "", String::new())?;
    let mut settings = Settings::default();
    let mut warnings = Vec::new();
    replace(
        &mut settings.listen,
        top.read("listen", str::parse::<Listen>)?,
    );
    for entry in servers(&top, &mut warnings)? {
        match entry {
            ServerEntry::Own(server) => settings.servers.push(*server),
            ServerEntry::OfClient(server) => settings.client_servers.push(server),
        }
    }
    read_serving(&top, &mut settings)?;
    settings.identity = identity::read(&top)?;
    settings.models = models::read(&top, &mut warnings)?;
    settings.agents = agents::read(&top, &settings.models, &settings.servers)?;
    let providers = settings.models.providers.iter();
    let servers = settings.servers.iter().map(|server| server.name.as_str());
    let peers: Vec<&str> = servers
        .chain(providers.map(|provider| provider.name.as_str()))
        .collect();
    settings.inspect = inspect::read(&top, &peers, &mut warnings)?;
    if let Some(policy) = top.path("policy")? {
        settings.policy = policy.map(Some);
    }
    read_limits(&top, &mut settings)?;
    read_approval(&top, &mut settings)?;
    read_journal(&top, &mut settings)?;
    replace(
        &mut settings.call_timeout,
        top.within("call_timeout", CALL_TIMEOUT_MS)?,
    );
    if let Some(member) = top.member("tool_timeout") {
        settings.tool_timeout = Setting {
            value: server::tool_timeouts(&top)?,
            origin: Origin::File(member.node.at),
        };
    }
    replace(&mut settings.refusals, top.choice("refusals")?);
    replace(&mut settings.insecure_http, top.choice("insecure_http")?);
    settings.state = state_store::read(&top)?;
    settings.otel = otel::read(&top, settings.insecure_http.value)?;
    replace(&mut settings.watch, top.choice("watch")?);
    read_breaker(&top, &mut settings)?;
    settings.state_dir = top.path("state_dir")?;
    replace(&mut settings.confine, top.choice("confine")?);
    settings.tls = tls(&top)?;
    replace(&mut settings.allowed_hosts, hosts(&top, "allowed_hosts")?);
    replace(
        &mut settings.allowed_origins,
        hosts(&top, "allowed_origins")?,
    );
    let descriptions = top.section("descriptions")?;
    replace(&mut settings.links, descriptions.choice("links")?);
    if let Some(max) = descriptions.number("length_max", 1..=1_000_000)? {
        settings.description_length_max = max.map(Some);
    }
    replace(&mut settings.pin, top.choice("pin")?);
    if !settings.listen.value.is_local() && settings.tls.is_none() {
        warnings.push(Warning {
            line: None,
            message: format!(
                "{} can be reached from other machines, but tls is not configured: calls and keys would be sent without encryption",
                settings.listen.value
            ),
        });
    }
    settings.warnings = warnings;
    Ok(settings)
}

fn replace<T>(setting: &mut Setting<T>, found: Option<Setting<T>>) {
    if let Some(found) = found {
        *setting = found;
    }
}

impl<T> Setting<T> {
    fn map<U>(self, with: impl FnOnce(T) -> U) -> Setting<U> {
        Setting {
            value: with(self.value),
            origin: self.origin,
        }
    }
}

fn servers(top: &Section<'_>, warnings: &mut Vec<Warning>) -> Result<Vec<ServerEntry>, Fault> {
    let name = match (top.member("servers"), top.member(SERVERS_ALIAS)) {
        (Some(_), Some(second)) => {
            return Err(
                Fault::new(second.at, "servers and mcpServers are two names of one key")
                    .hint("keep one of the two"),
            );
        }
        (Some(_), None) => "servers",
        (None, Some(_)) => SERVERS_ALIAS,
        (None, None) => return Ok(Vec::new()),
    };
    let Some(member) = top.member(name) else {
        return Ok(Vec::new());
    };
    let members = match &member.node.value {
        Value::Map(members) => members,
        Value::Nothing => return Ok(Vec::new()),
        other => {
            return Err(top
                .fault(
                    name,
                    format!("is {}; it must be a map of servers by name", other.kind()),
                )
                .hint("write servers: { files: { command: npx, args: [...] } }"));
        }
    };
    if members.len() > SERVERS_MAX {
        return Err(top.fault(
            name,
            format!(
                "has {} servers; at most {SERVERS_MAX} are allowed",
                members.len()
            ),
        ));
    }
    members
        .iter()
        .map(|member| server::read(top, member, warnings))
        .collect()
}

/// What `durward serve` alone is told. The servers have been read.
fn read_serving(top: &Section<'_>, settings: &mut Settings) -> Result<(), Fault> {
    let serving = &mut settings.serving;
    if let Some(root) = top.text("root")? {
        serving.root = root.map(|text| Some(text.value));
    }
    replace(&mut serving.prefix, top.choice("prefix")?);
    if let Some(most) = top.number("search_above", 1..=100_000)? {
        serving.search_above = most.map(Some);
    }
    replace(&mut serving.require_key, top.choice("require_key")?);
    replace(&mut serving.share, top.choice("share")?);
    let idle = Span(1_000)..=Span(SESSION_IDLE_S_MAX * 1_000);
    let idle = top.within("session_idle", idle)?;
    replace(&mut serving.session_idle, idle);
    replace(&mut serving.lenient, top.choice("lenient")?);
    if let Some(threads) = top.number("threads", 1..=THREADS_MAX)? {
        serving.threads = threads.map(Some);
    }
    Ok(())
}

fn read_breaker(top: &Section<'_>, settings: &mut Settings) -> Result<(), Fault> {
    let breaker = &mut settings.breaker;
    let section = top.section("breaker")?;
    let span = || Span(BREAKER_OPEN_MS.0)..=Span(BREAKER_OPEN_MS.1);
    let failures = section.number("failures", 1..=BREAKER_FAILURES_MAX)?;
    replace(&mut breaker.failures, failures);
    replace(&mut breaker.open, section.within("open", span())?);
    replace(&mut breaker.open_max, section.within("open_max", span())?);
    Ok(())
}

fn read_limits(top: &Section<'_>, settings: &mut Settings) -> Result<(), Fault> {
    let limits = &mut settings.limits;
    let section = top.section("limits")?;
    let requests = section.section("requests")?;
    let calls = 1..=CALLS_MAX.into();
    replace(&mut limits.rate, requests.parsed("rate")?);
    replace(&mut limits.burst, requests.number("burst", calls.clone())?);
    let per_tool = section.section("per_tool")?;
    replace(&mut limits.tool_calls, per_tool.number("calls", calls)?);
    let window = Span(WINDOW_MS_MIN)..=Span(WINDOW_MS_MAX);
    replace(&mut limits.tool_window, per_tool.within("window", window)?);
    replace(&mut limits.tool_then, per_tool.choice("then")?);
    let under_way = 1..=UNDER_WAY_MAX.into();
    if let Some(most) = per_tool.number("concurrency", under_way)? {
        limits.tool_concurrency = most.map(Some);
    }
    replace(
        &mut limits.concurrency,
        section.number("concurrency", 1..=UNDER_WAY_MAX.into())?,
    );
    let size = Size(RESPONSE_BYTES_MIN)..=Size(RESPONSE_BYTES_MAX);
    replace(
        &mut limits.response_bytes,
        section.within("response_bytes", size)?,
    );
    let size = Size(REQUEST_BYTES_MIN)..=Size(REQUEST_BYTES_MAX);
    replace(
        &mut limits.request_bytes,
        section.within("request_bytes", size)?,
    );
    let size = Size(JOURNAL_BYTES_MIN)..=Size(JOURNAL_BYTES_MAX);
    if let Some(most) = section.within("journal_bytes", size)? {
        limits.journal_bytes = most.map(Some);
    }
    Ok(())
}

fn read_journal(top: &Section<'_>, settings: &mut Settings) -> Result<(), Fault> {
    let journal = top.section("journal")?;
    replace(&mut settings.sync, journal.choice("sync")?);
    replace(&mut settings.verify, journal.choice("verify")?);
    settings.witness = journal.file("witness", "a witness")?;
    let room = Size(0)..=Size(1 << 40);
    replace(
        &mut settings.warn_below,
        journal.within("warn_below", room)?,
    );
    let kept = Size(RETAIN_BYTES.0)..=Size(RETAIN_BYTES.1);
    settings.retain = journal.within("retain", kept)?;
    Ok(())
}

fn read_approval(top: &Section<'_>, settings: &mut Settings) -> Result<(), Fault> {
    let approval = &mut settings.approval;
    let section = top.section("approval")?;
    let ms = |seconds: u64| Span(seconds * 1_000);
    let timeout = ms(TIMEOUT_S_MIN)..=ms(TIMEOUT_S_MAX);
    replace(&mut approval.timeout, section.within("timeout", timeout)?);
    let remember = Span(0)..=ms(REMEMBER_S_MAX);
    replace(
        &mut approval.remember,
        section.within("remember", remember)?,
    );
    let count = 1..=PENDING_LIMIT as u64;
    replace(
        &mut approval.pending_max,
        section.number("pending_max", count.clone())?,
    );
    replace(
        &mut approval.waiting_max,
        section.number("waiting_max", count.clone())?,
    );
    replace(
        &mut approval.per_minute,
        section.number("per_minute", count)?,
    );
    if let Some(member) = section.member("notify") {
        approval.notify = Setting {
            value: notify::read(&section)?,
            origin: Origin::File(member.node.at),
        };
    }
    Ok(())
}

fn tls(top: &Section<'_>) -> Result<Option<Tls>, Fault> {
    let section = top.section("tls")?;
    match (section.path("cert")?, section.path("key")?) {
        (None, None) => Ok(None),
        (Some(cert), Some(key)) => Ok(Some(Tls { cert, key })),
        (Some(_), None) => Err(section.fault("cert", "needs tls.key beside it")),
        (None, Some(_)) => Err(section.fault("key", "needs tls.cert beside it")),
    }
}

fn hosts(top: &Section<'_>, name: &str) -> Result<Option<Setting<Vec<String>>>, Fault> {
    let Some(list) = top.list(name)? else {
        return Ok(None);
    };
    debug_assert!(list.value.len() <= ELEMENTS_MAX);
    for text in &list.value {
        let value = &text.value;
        let unfit = |c: char| c.is_whitespace() || c.is_control() || c == '*';
        if value.is_empty() || value.len() > HOST_BYTES_MAX || value.contains(unfit) {
            return Err(top
                .fault(
                    name,
                    format!(
                        "holds \"{}\", which is not a host name",
                        text.written.escape_debug()
                    ),
                )
                .hint("write whole names, each on its own; there are no wildcards"));
        }
    }
    Ok(Some(list.map(|texts| {
        texts.into_iter().map(|text| text.value).collect()
    })))
}
