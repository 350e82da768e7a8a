//! What to run, by which rules: flags before configuration before defaults.

use std::collections::HashMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use gate::journal::SyncPolicy;
use gate::limits::Limits;
use mcp::upstream::http::{
    ClientOptions, Credential, HeaderName, HttpUpstream, Target, TlsOptions,
};
use net::environment::Extra;

use super::Failure;
use crate::cli::{RunArgs, Sync};
use crate::config::server::{Http, Server};
use crate::config::values::Transport;
use crate::config::{self, Settings, values};
use crate::places::{self, Places};
use crate::screening;

/// Largest file of certificates or keys, in bytes.
const PEM_BYTES_MAX: u64 = 1024 * 1024;

/// What to run, by which rules.
pub(super) struct Plan {
    /// The server's name in rules and in the journal.
    pub name: String,
    /// How it is started or reached.
    pub server: Means,
    pub policy: Option<PathBuf>,
    pub call_timeout_ms: u64,
    pub tool_timeouts_ms: HashMap<String, u64>,
    pub sync: SyncPolicy,
    pub approval: gate::approval::Options,
    pub descriptions: mcp::descriptions::Options,
    pub pins: gate::pins::PinOptions,
    pub limits: Limits,
}

/// How a server is started or reached.
pub(super) enum Means {
    Command(Command),
    Http(Reached),
    /// HTTP first, else the command.
    Either(Reached, Command),
}

/// A server that is started.
pub(super) struct Command {
    pub program: OsString,
    pub arguments: Vec<OsString>,
    pub directory: Option<PathBuf>,
    pub environment: Vec<Extra>,
}

/// A server that is reached over HTTP.
pub(super) struct Reached {
    pub upstream: Arc<HttpUpstream>,
    /// The host's name or address.
    pub host: String,
    pub on_this_machine: bool,
}

impl Plan {
    pub(super) fn of(
        args: &RunArgs,
        settings: &Settings,
        places: &Places,
    ) -> Result<Self, Failure> {
        let server = match &args.server {
            Some(name) => Some(
                settings
                    .named(name, places)
                    .map_err(Failure::configuration)?,
            ),
            None => None,
        };
        let command = command(args, server);
        let call_timeout_ms = args.call_timeout.map_or_else(
            || settings.call_timeout_of(server).0,
            |seconds| seconds.saturating_mul(1_000),
        );
        let own_time = |(tool, seconds): &(String, u64)| (tool.clone(), seconds * 1_000);
        let tool_timeouts_ms: HashMap<_, _> = args.tool_timeout.iter().map(own_time).collect();
        let longest_ms = tool_timeouts_ms.values().copied().max().unwrap_or(0);
        let reached = reached(args, server, longest_ms.max(call_timeout_ms))?;
        let transport = args.transport.map(Into::into);
        let transport = transport.or(server.map(|server| server.transport));
        let default_name = match (&reached, &command) {
            (Some(reached), None) => super::plain_name(&reached.host),
            (_, Some(command)) => super::name_of(&command.program, &command.arguments),
            (None, None) => "server".to_owned(),
        };
        let name = args.name.clone().or_else(|| args.server.clone());
        Ok(Self {
            name: name.unwrap_or(default_name),
            server: means(transport, reached, command)?,
            policy: settings.policy_of(server).0.map(Path::to_path_buf),
            call_timeout_ms,
            tool_timeouts_ms,
            sync: sync_policy(args.sync, settings),
            approval: args.approval.options(&settings.approval),
            descriptions: screening::descriptions(&args.screening, settings),
            pins: screening::pins(&args.screening, settings, server, places),
            limits: args
                .limits
                .over(settings.limits.for_gate())
                .map_err(Failure::configuration)?,
        })
    }
}

/// When journal records are forced to the disk: by the flag, else by the configuration.
pub fn sync_policy(flag: Option<Sync>, settings: &Settings) -> SyncPolicy {
    let sync = match flag {
        Some(Sync::Interval) => values::Sync::Interval,
        Some(Sync::Every) => values::Sync::Every,
        Some(Sync::Never) => values::Sync::Never,
        None => settings.sync.value,
    };
    match sync {
        values::Sync::Interval => SyncPolicy::Interval { interval_ms: 1_000 },
        values::Sync::Every => SyncPolicy::Every,
        values::Sync::Never => SyncPolicy::Never,
    }
}

impl Means {
    /// Whether the server sees this machine's files.
    pub(super) fn is_local(&self) -> bool {
        match self {
            Self::Command(_) | Self::Either(..) => true,
            Self::Http(reached) => reached.on_this_machine,
        }
    }

    /// What is shown where the server's end is told.
    pub(super) fn shown(&self) -> String {
        match self {
            Self::Command(command) | Self::Either(_, command) => {
                command.program.to_string_lossy().into_owned()
            }
            Self::Http(reached) => reached.upstream.place(),
        }
    }
}

/// Which of what is given is used.
fn means(
    transport: Option<Transport>,
    reached: Option<Reached>,
    command: Option<Command>,
) -> Result<Means, Failure> {
    match (transport, reached, command) {
        (Some(Transport::Http), None, _) => Err(Failure::configuration(
            "--transport http needs a server's --url",
        )),
        (Some(Transport::Stdio), _, None) => Err(Failure::configuration(
            "--transport stdio needs a server's command behind --",
        )),
        (_, None, None) => Err(Failure::configuration(
            "there is no server to guard\n  hint: put its own command behind --, name one of durward.yaml, or say where it is with --url",
        )),
        (Some(Transport::Stdio) | None | Some(Transport::Auto), None, Some(command))
        | (Some(Transport::Stdio), Some(_), Some(command)) => Ok(Means::Command(command)),
        (Some(Transport::Http), Some(reached), _)
        | (None | Some(Transport::Auto), Some(reached), None) => Ok(Means::Http(reached)),
        (None | Some(Transport::Auto), Some(reached), Some(command)) => {
            Ok(Means::Either(reached, command))
        }
    }
}

fn command(args: &RunArgs, server: Option<&Server>) -> Option<Command> {
    let (program, arguments, directory, mut environment) = match server {
        Some(server) => of_configuration(server)?,
        None => {
            let (program, arguments) = args.command.split_first()?;
            (program.clone(), arguments.to_vec(), None, Vec::new())
        }
    };
    environment.extend(args.environment.iter().cloned());
    Some(Command {
        program,
        arguments,
        directory,
        environment,
    })
}

/// How a server of the configuration is started: program, arguments, directory, environment.
pub type Start = (OsString, Vec<OsString>, Option<PathBuf>, Vec<Extra>);

/// How a server of the configuration is started, where it is.
pub fn of_configuration(server: &Server) -> Option<Start> {
    let command = server.command.as_ref()?;
    let extra = |(name, value): &(String, config::Secret)| Extra {
        name: name.clone(),
        value: Some(value.reveal().to_owned()),
    };
    Some((
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

fn reached(
    args: &RunArgs,
    server: Option<&Server>,
    call_ms_max: u64,
) -> Result<Option<Reached>, Failure> {
    let configured = server.and_then(|server| server.http.as_ref());
    let url = args.url.as_deref();
    let Some(url) = url.or(configured.map(|http| http.url.value.as_str())) else {
        return Ok(None);
    };
    let target = Target::parse(url, args.insecure_http)
        .map_err(|fault| Failure::configuration(format!("the server's url: {fault}")))?;
    let mut options = ClientOptions {
        tls: TlsOptions {
            authorities: pem(args.ca.as_ref(), configured.and_then(|h| h.ca.as_ref()))?,
            identity: identity(args, configured)?,
        },
        credential: credential(args, configured)?,
        ..ClientOptions::default()
    };
    for (name, value) in configured.into_iter().flat_map(|http| &http.headers) {
        let wrong =
            || Failure::configuration(format!("the header \"{name}\" cannot be sent as it is"));
        let value = Credential::header_value(value.reveal()).ok_or_else(wrong)?;
        let name = HeaderName::try_from(name.as_str()).map_err(|_| wrong())?;
        options.headers.append(name, value);
    }
    let (host, on_this_machine) = (target.host().to_owned(), target.is_on_this_machine());
    let upstream = HttpUpstream::new(target, &options, call_ms_max)
        .map_err(|fault| Failure::configuration(fault.to_string()))?;
    Ok(Some(Reached {
        upstream: Arc::new(upstream),
        host,
        on_this_machine,
    }))
}

fn credential(args: &RunArgs, configured: Option<&Http>) -> Result<Option<Credential>, Failure> {
    let wrong = |what: &str| {
        Failure::configuration(format!(
            "{what} holds no key: it is empty, or has characters that no key has"
        ))
    };
    if let Some(name) = &args.api_key_env {
        let value = places::environment()
            .find(|(n, _)| n == name.as_str())
            .map(|(_, value)| value)
            .ok_or_else(|| {
                Failure::configuration(format!("the variable {name} of --api-key-env is not set"))
            })?;
        let key = value.to_str().and_then(Credential::bearer);
        return match key {
            Some(key) => Ok(Some(key)),
            None => Err(wrong(&format!("the variable {name}"))),
        };
    }
    match configured.and_then(|http| http.api_key.as_ref()) {
        None => Ok(None),
        Some(key) => Credential::bearer(key.reveal())
            .map(Some)
            .ok_or_else(|| wrong("api_key")),
    }
}

/// A certificate and its key, as PEM.
type Identity = (Vec<u8>, Vec<u8>);

fn identity(args: &RunArgs, configured: Option<&Http>) -> Result<Option<Identity>, Failure> {
    let certificate = pem(
        args.client_cert.as_ref(),
        configured.and_then(|http| http.client_cert.as_ref()),
    )?;
    let key = pem(
        args.client_key.as_ref(),
        configured.and_then(|http| http.client_key.as_ref()),
    )?;
    Ok(certificate.zip(key))
}

fn pem(given: Option<&PathBuf>, configured: Option<&PathBuf>) -> Result<Option<Vec<u8>>, Failure> {
    let Some(path) = given.or(configured) else {
        return Ok(None);
    };
    let wrong = |why: String| Err(Failure::configuration(format!("{}: {why}", path.display())));
    match std::fs::metadata(path) {
        Ok(found) if found.len() > PEM_BYTES_MAX => return wrong("is longer than 1 MiB".into()),
        Ok(_) => {}
        Err(error) => return wrong(error.to_string()),
    }
    match std::fs::read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) => wrong(error.to_string()),
    }
}
