//! A server of the file, in the shape that MCP clients use.

use std::ffi::OsString;
use std::path::PathBuf;

use gate::effects::OperationSet;
use gate::flow::OfServer;
use mcp::describe::{ArgumentRoles, Said};
use mcp::upstream::http::{Target, TargetFault};
use net::confine::Sandbox;

use super::expand::{Secret, Text};
use super::fault::{Fault, Position};
use super::inspect;
use super::node::Member;
use super::options;
use super::section::Section;
use super::settings::{Setting, Warning};
use super::values::{Pin, Span, Transport, no_network};
use crate::builtin::{self, Configured};
use crate::local::Reads;

/// Header fields that belong to the protocol; a file may not set them.
const OWN_HEADERS: [&str; 9] = [
    "host",
    "connection",
    "content-length",
    "content-type",
    "transfer-encoding",
    "upgrade",
    "accept",
    "accept-encoding",
    "te",
];
/// Shortest and longest time that a server may be given to answer, in milliseconds.
pub const CALL_TIMEOUT_MS: std::ops::RangeInclusive<Span> = Span(1_000)..=Span(86_400_000);

/// Most processes of one server that can be asked for.
const PROCESSES_MAX: u64 = 10_000;

/// A server.
#[derive(Debug, Clone)]
pub struct Server {
    pub name: String,
    /// Where its name stands.
    pub at: Position,
    pub transport: Transport,
    /// How it is started.
    pub command: Option<Command>,
    /// Where it is reached.
    pub http: Option<Http>,
    /// Which built-in server it is.
    pub builtin: Option<Configured>,
    pub policy: Option<Setting<PathBuf>>,
    pub call_timeout: Option<Setting<Span>>,
    /// Of single tools.
    pub tool_timeout: Vec<(String, Span)>,
    /// Most processes of it at once.
    pub processes_max: Option<Setting<u64>>,
    pub pin: Option<Setting<Pin>>,
    /// The labels that its results get.
    pub labels: OfServer,
    /// How it reads its arguments.
    pub reads: Reads,
}

/// A server that is started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Command {
    pub program: Text,
    pub args: Vec<Text>,
    /// Values may be secrets: they are never shown.
    pub environment: Vec<(String, Secret)>,
    pub directory: Option<PathBuf>,
    /// What it may reach, where that is limited.
    pub sandbox: Option<Sandbox>,
}

/// A server that is reached over HTTP.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Http {
    pub url: Text,
    pub headers: Vec<(String, Secret)>,
    pub api_key: Option<Secret>,
    /// The key itself stands in the file.
    pub key_in_file: bool,
    /// Certificate and key come together.
    pub client_cert: Option<PathBuf>,
    pub client_key: Option<PathBuf>,
    pub ca: Option<PathBuf>,
    /// Whether the URL may be one with http:// that leads to another machine, where it says so itself.
    pub insecure: Option<bool>,
}

/// A server that a client's entry starts or reaches, by `durward run --name NAME`: the file says only how it is judged.
#[derive(Debug, Clone)]
pub struct ClientServer {
    pub name: String,
    pub reads: Reads,
}

/// An entry of `servers`.
pub enum ServerEntry {
    Own(Box<Server>),
    OfClient(ClientServer),
}

/// Keys that a server of a client may have.
const OF_CLIENT: [&str; 3] = ["tools", "arguments", "relative_to"];

/// Reads an entry of `servers`.
pub fn read(
    top: &Section<'_>,
    member: &Member,
    warnings: &mut Vec<Warning>,
) -> Result<ServerEntry, Fault> {
    let name = crate::names::server_name(&member.name).map_err(|why| Fault::new(member.at, why))?;
    let section = top.server(member)?;
    if section.member("tools").is_some() && section.names().all(|key| OF_CLIENT.contains(&key)) {
        let reads = reads(&section, None)?;
        return Ok(ServerEntry::OfClient(ClientServer { name, reads }));
    }
    let command = command(&section)?;
    let http = http(&section, warnings)?;
    let builtin = builtin(&section)?;
    let transport = match &builtin {
        Some(_) => Transport::Builtin,
        None => transport(&section, command.is_some(), http.is_some())?,
    };
    let started_in = command.as_ref().and_then(|own| own.directory.clone());
    let reads = reads(&section, started_in)?;
    Ok(ServerEntry::Own(Box::new(Server {
        name,
        at: member.at,
        transport,
        command,
        http,
        builtin,
        policy: section.path("policy")?,
        call_timeout: section.within("call_timeout", CALL_TIMEOUT_MS)?,
        tool_timeout: tool_timeouts(&section)?,
        processes_max: section.number("processes_max", 1..=PROCESSES_MAX)?,
        pin: section.choice("pin")?,
        labels: inspect::labels_of(&section)?,
        reads,
    })))
}

/// Reads how a server reads its arguments, and what its tools do.
fn reads(section: &Section<'_>, started_in: Option<PathBuf>) -> Result<Reads, Fault> {
    Ok(Reads {
        arguments: arguments(section)?,
        relative_to: section.path("relative_to")?.map(|path| path.value),
        started_in,
    })
}

impl Server {
    /// Returns whether this server is started by `command`, or reached at `url`.
    pub fn is_started_by(&self, command: &[OsString], url: Option<&str>) -> bool {
        let own = self.command.as_ref().map(|own| {
            let words = std::iter::once(&own.program).chain(&own.args);
            words
                .map(|word| OsString::from(&word.value))
                .collect::<Vec<_>>()
        });
        let own_url = self.http.as_ref().map(|http| http.url.value.as_str());
        match command {
            [] => url.is_some() && own_url == url,
            command => own.is_some_and(|own| own == command),
        }
    }
}

/// The times of single tools.
pub fn tool_timeouts(section: &Section<'_>) -> Result<Vec<(String, Span)>, Fault> {
    let read = |(tool, text, at): (String, super::expand::Text, Position)| {
        let wrong = |why: String| {
            let name = tool.escape_debug();
            Fault::new(at, format!("tool_timeout of \"{name}\": {why}"))
        };
        let shown = text.written.chars().take(64).collect::<String>();
        let span: Span = text
            .value
            .parse()
            .map_err(|why| wrong(format!("\"{}\" {why}", shown.escape_debug())))?;
        if !CALL_TIMEOUT_MS.contains(&span) {
            let (least, most) = (CALL_TIMEOUT_MS.start(), CALL_TIMEOUT_MS.end());
            return Err(wrong(format!("{span} is outside of {least} to {most}")));
        }
        Ok((tool, span))
    };
    section.map("tool_timeout")?.into_iter().map(read).collect()
}

/// A built-in server is a third kind beside those that are started and those that are reached.
fn builtin(section: &Section<'_>) -> Result<Option<Configured>, Fault> {
    let read = section.read("builtin", |name| {
        builtin::named(name).ok_or_else(|| {
            let names: Vec<&str> = builtin::ALL.iter().map(|wired| wired.name).collect();
            format!("is not one of {}", names.join(", "))
        })
    })?;
    let Some(wired) = read else {
        return Ok(None);
    };
    for other in ["command", "url"] {
        if section.member(other).is_some() {
            let wrong =
                "is for servers outside of Durward, but builtin is given; keep one of the two";
            return Err(section.fault(other, wrong));
        }
    }
    for key in ["transport", "type"] {
        let stated = section.choice::<Transport>(key)?;
        if stated.is_some_and(|stated| stated.value != Transport::Builtin) {
            return Err(section.fault(key, "says how a server is reached, but builtin is given"));
        }
    }
    let found = match wired.value.environment {
        Some((key, word, read))
            if section
                .read(key, |text| Ok(text == word))?
                .is_some_and(|asked| asked.value) =>
        {
            read(section.variable()).map_err(|wrong| {
                section.fault(key, format!("asks for what cannot be used: {wrong}"))
            })?
        }
        _ => toolkit::options::Options::default(),
    };
    Ok(Some(Configured {
        wired: wired.value,
        options: options::read(section, wired.value.options, &found)?,
        base: section.base().to_path_buf(),
    }))
}

/// Reads what the server's arguments are, and what its tools do.
fn arguments(section: &Section<'_>) -> Result<ArgumentRoles, Fault> {
    let mut roles = ArgumentRoles::default();
    for (tool, text, at) in section.map("tools")? {
        let Some(operations) = OperationSet::parse(&text.value) else {
            let (tool, text) = (tool.escape_debug(), text.written.escape_debug());
            let message = format!(
                "tools: \"{tool}\" is \"{text}\"; it must be one or several of {}, as in `{tool}: write, send`",
                OperationSet::WORDS.join(", ")
            );
            return Err(Fault::new(at, message));
        };
        roles.declare(&tool, operations);
    }
    for (name, text, at) in section.map("arguments")? {
        let Some(said) = Said::of(&text.value) else {
            let (name, text) = (name.escape_debug(), text.written.escape_debug());
            let words = Said::WORDS.join(", ");
            let message = format!("arguments: \"{name}\" is \"{text}\"; it must be one of {words}");
            return Err(Fault::new(at, message));
        };
        roles.say(&name, said);
    }
    Ok(roles)
}

fn command(section: &Section<'_>) -> Result<Option<Command>, Fault> {
    let Some(program) = section.program("command")? else {
        for orphan in ["args", "env", "cwd", "sandbox"] {
            if section.member(orphan).is_some() {
                return Err(section.fault(
                    orphan,
                    "is for servers with a command, but no command is given",
                ));
            }
        }
        return Ok(None);
    };
    let environment = section
        .map("env")?
        .into_iter()
        .map(|(name, text, at)| {
            if name.is_empty() || name.contains(['=', '\0']) {
                return Err(Fault::new(
                    at,
                    format!("\"{}\" is not a variable name", name.escape_debug()),
                ));
            }
            Ok((name, Secret::new(text.value)))
        })
        .collect::<Result<_, _>>()?;
    Ok(Some(Command {
        program: program.value,
        args: section
            .list("args")?
            .map_or_else(Vec::new, |list| list.value),
        environment,
        directory: section.path("cwd")?.map(|path| path.value),
        sandbox: sandbox(section)?,
    }))
}

fn sandbox(section: &Section<'_>) -> Result<Option<Sandbox>, Fault> {
    if section.member("sandbox").is_none() {
        return Ok(None);
    }
    let listed = section.section_as("sandbox", "servers.*.sandbox")?;
    let network = listed.read("network", no_network)?;
    Ok(Some(Sandbox {
        read: listed.paths("read")?,
        write: listed.paths("write")?,
        exec: listed.paths("exec")?,
        no_network: network.is_some_and(|network| network.value),
    }))
}

fn http(section: &Section<'_>, warnings: &mut Vec<Warning>) -> Result<Option<Http>, Fault> {
    let Some(url) = section.text("url")? else {
        for orphan in [
            "headers",
            "api_key",
            "client_cert",
            "client_key",
            "ca",
            "insecure_http",
        ] {
            if section.member(orphan).is_some() {
                return Err(section.fault(orphan, "is for servers with a url, but no url is given"));
            }
        }
        return Ok(None);
    };
    let secure = check_url(&url.value.value).map_err(|why| section.fault("url", why))?;
    let api_key = section.secret("api_key")?;
    if let Some((key, at, literal)) = &api_key {
        if key.reveal().chars().any(|c| c.is_control() || c == ' ') {
            return Err(section.fault(
                "api_key",
                "has a character that keys cannot have; is there a line end in it?",
            ));
        }
        if *literal {
            warnings.push(Warning {
                line: Some(at.line),
                message: "the file contains the api key; write ${NAME} and set the variable where Durward is started".into(),
            });
        }
        if !secure {
            warnings.push(Warning {
                line: Some(at.line),
                message: "the api key would be sent without encryption; use https".into(),
            });
        }
    }
    let path = |name| Ok::<_, Fault>(section.path(name)?.map(|path| path.value));
    let (client_cert, client_key) = (path("client_cert")?, path("client_key")?);
    match (&client_cert, &client_key) {
        (Some(_), None) => return Err(section.fault("client_cert", "needs client_key beside it")),
        (None, Some(_)) => return Err(section.fault("client_key", "needs client_cert beside it")),
        _ => {}
    }
    Ok(Some(Http {
        url: url.value,
        headers: headers(section, api_key.is_some())?,
        key_in_file: api_key.as_ref().is_some_and(|(_, _, literal)| *literal),
        api_key: api_key.map(|(key, _, _)| key),
        client_cert,
        client_key,
        ca: path("ca")?,
        insecure: section.choice("insecure_http")?.map(|own| own.value),
    }))
}

/// Whether this is a header that can be set.
pub(super) fn is_header(name: &str, value: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    is_token(name)
        && !OWN_HEADERS.contains(&lower.as_str())
        && !value.chars().any(|c| c.is_control() && c != '\t')
}

fn is_token(name: &str) -> bool {
    let token = |b: u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b);
    !name.is_empty() && name.bytes().all(token)
}

/// The map `headers` of a section.
pub(super) fn headers(
    section: &Section<'_>,
    has_key: bool,
) -> Result<Vec<(String, Secret)>, Fault> {
    section
        .map("headers")?
        .into_iter()
        .map(|(name, text, at)| {
            let lower = name.to_ascii_lowercase();
            let wrong =
                |why: &str| Fault::new(at, format!("header \"{}\" {why}", name.escape_debug()));
            if !is_token(&name) {
                return Err(wrong("has no name that HTTP allows"));
            }
            if OWN_HEADERS.contains(&lower.as_str()) || lower.starts_with("mcp-") {
                return Err(wrong("belongs to the protocol and cannot be set"));
            }
            if has_key && lower == "authorization" {
                return Err(wrong("is what api_key sets; keep one of the two"));
            }
            if text.value.chars().any(|c| c.is_control() && c != '\t') {
                return Err(wrong("holds a control character"));
            }
            Ok((name, Secret::new(text.value)))
        })
        .collect()
}

/// Whether nobody on the way can read what is sent: https, or this machine.
pub(super) fn check_url(url: &str) -> Result<bool, &'static str> {
    if url.contains('#') {
        return Err("has a fragment, which no server would see");
    }
    let target = Target::parse(url, true).map_err(|fault| match fault {
        TargetFault::NotAUrl => "is not a URL; write http://HOST/PATH or https://HOST/PATH",
        TargetFault::Scheme => "is neither http nor https",
        TargetFault::UserInfo => "holds a user or a password; use api_key or headers",
        TargetFault::InTheClear => "can be read and changed on the network; use https",
    })?;
    Ok(target.is_secure() || target.is_on_this_machine())
}

fn transport(section: &Section<'_>, command: bool, url: bool) -> Result<Transport, Fault> {
    let stated = section.choice::<Transport>("transport")?;
    let typed = section.read("type", |text| match text {
        "stdio" => Ok(Transport::Stdio),
        "http" | "streamable-http" | "streamableHttp" => Ok(Transport::Http),
        "sse" => Err("is the transport before Streamable HTTP, which is not supported; use http if the server has it".into()),
        _ => Err("is not one of stdio, http".to_owned()),
    })?;
    if let (Some(one), Some(other)) = (&stated, &typed)
        && one.value != other.value
    {
        return Err(section.fault(
            "type",
            "says something else than transport; keep one of the two",
        ));
    }
    let key = if stated.is_some() {
        "transport"
    } else {
        "type"
    };
    match (stated.or(typed).map(|setting| setting.value), command, url) {
        (_, false, false) => Err(section
            .own_fault("has neither command nor url nor builtin")
            .hint("write command: PROGRAM to start a server, url: https://… to reach one, or builtin: NAME for one that is built in")),
        (Some(Transport::Builtin), _, _) => {
            Err(section.fault(key, "is builtin, but the key builtin is not given"))
        }
        (Some(Transport::Stdio), false, _) => {
            Err(section.fault(key, "is stdio, but no command is given"))
        }
        (Some(Transport::Http), _, false) => {
            Err(section.fault(key, "is http, but no url is given"))
        }
        (Some(stated), _, _) => Ok(stated),
        (None, true, true) => Ok(Transport::Auto),
        (None, true, false) => Ok(Transport::Stdio),
        (None, false, true) => Ok(Transport::Http),
    }
}

impl Server {
    /// Whether it is started or reached in the same way.
    pub fn is_reached_like(&self, other: &Self) -> bool {
        self.transport == other.transport
            && self.command == other.command
            && self.http == other.http
            && self.builtin == other.builtin
    }

    /// Whether it is started, reached and pinned in the same way.
    pub fn is_served_like(&self, other: &Self) -> bool {
        let pin = |server: &Self| server.pin.as_ref().map(|pin| pin.value);
        self.is_reached_like(other) && pin(self) == pin(other) && self.reads == other.reads
    }

    /// The keys about its time to answer and its number of processes that say something else.
    pub fn bounded_otherwise(&self, other: &Self) -> Vec<&'static str> {
        let span = |server: &Self| server.call_timeout.as_ref().map(|own| own.value);
        let mut keys = Vec::new();
        if span(self) != span(other) {
            keys.push("call_timeout");
        }
        if self.tool_timeout != other.tool_timeout {
            keys.push("tool_timeout");
        }
        let processes = |server: &Self| server.processes_max.as_ref().map(|own| own.value);
        if processes(self) != processes(other) {
            keys.push("processes_max");
        }
        keys
    }

    /// How it is started or reached, as written: values of the environment do not show.
    pub fn summary(&self) -> String {
        let command = self.command.as_ref().map(|command| {
            let mut words = vec![command.program.written.clone()];
            words.extend(command.args.iter().map(|arg| arg.written.clone()));
            words.join(" ")
        });
        let url = self.http.as_ref().map(|http| http.url.written.clone());
        if let Some(builtin) = &self.builtin {
            return builtin.wired.name.to_owned();
        }
        match (self.transport, command, url) {
            (Transport::Stdio, Some(command), _) => command,
            (Transport::Http, _, Some(url)) => url,
            (_, command, url) => url
                .into_iter()
                .chain(command)
                .collect::<Vec<_>>()
                .join(", else "),
        }
    }
}
