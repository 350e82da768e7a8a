//! How a server is started or reached: flags before configuration before defaults.

use std::ffi::OsString;
use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use gate::Gate;
use mcp::message::frames::{Failure as Fault, UpstreamFault};
use mcp::upstream::http::{
    ClientOptions, Credential, HeaderName, HttpUpstream, Target, TlsOptions,
};
use mcp::upstream::{self, ServerCommand};
use net::environment::Extra;

use crate::builtin::Configured;
use crate::config;
use crate::config::server::{Http, Server};
use crate::config::values::Transport;
use crate::failure::Failure;
use crate::places::{self, Places};
use crate::{program, sandbox};

/// Largest file of certificates or keys, in bytes.
const PEM_BYTES_MAX: u64 = 1024 * 1024;
/// How long is waited before the second and the third try to reach a server, in milliseconds.
const RETRY_WAITS_MS: [u64; 2] = [2_000, 4_000];

/// How a server is started or reached.
pub enum Launch {
    Command(Command),
    Http(Reached),
    /// HTTP first, else the command.
    Either(Reached, Command),
    /// It is in this process.
    Builtin(Configured),
}

/// A server that is started.
pub struct Command {
    pub program: OsString,
    pub arguments: Vec<OsString>,
    pub directory: Option<PathBuf>,
    pub environment: Vec<Extra>,
    /// What it may reach, where that is limited.
    pub sandbox: Option<net::confine::Sandbox>,
    /// Whether it is kept off our own files; as configured where absent.
    pub confine: Option<net::confine::Confine>,
    /// The file by which its calls are judged.
    pub policy: Option<PathBuf>,
}

/// A server that is reached over HTTP.
pub struct Reached {
    pub upstream: Arc<HttpUpstream>,
    /// The host's name or address.
    pub host: String,
    pub on_this_machine: bool,
}

/// What flags say of a server over HTTP.
#[derive(Debug, Clone, Copy, Default)]
pub struct HttpFlags<'a> {
    pub url: Option<&'a str>,
    pub insecure_http: bool,
    pub api_key_env: Option<&'a str>,
    pub ca: Option<&'a PathBuf>,
    pub client_cert: Option<&'a PathBuf>,
    pub client_key: Option<&'a PathBuf>,
}

impl Command {
    /// A program and its arguments; none without words.
    pub fn of_words(words: &[String]) -> Option<Self> {
        let (program, arguments) = words.split_first()?;
        Some(Self {
            program: program.into(),
            arguments: arguments.iter().map(OsString::from).collect(),
            directory: None,
            environment: Vec::new(),
            sandbox: None,
            confine: None,
            policy: None,
        })
    }

    /// What is wrong with the program where it is not there; none where it is, or where that cannot be told.
    fn missing_program(&self) -> Option<String> {
        if self.environment.iter().any(|extra| extra.name == "PATH") {
            return None;
        }
        let search = places::search_path()?;
        program::missing(&self.program, self.directory.as_deref(), &search)
    }

    /// Returns the environment that the program is started with.
    fn environment(&self) -> Vec<(OsString, OsString)> {
        net::environment::for_child(places::environment(), &self.environment)
    }

    /// What is spawned.
    pub fn spec(&self, places: &Places) -> ServerCommand {
        let wanted = (self.confine, self.sandbox.clone());
        ServerCommand {
            confinement: sandbox::confinement(
                places,
                self.policy.as_deref(),
                &self.program,
                wanted,
            ),
            program: self.program.clone(),
            args: self.arguments.clone(),
            environment: self.environment(),
            directory: self.directory.clone(),
            watcher: places.own_binary.clone(),
            files_max: places.files_of_children,
        }
    }
}

impl Launch {
    /// Returns the environment that the server is started with; nothing if it is not started here.
    pub fn environment(&self) -> Vec<(OsString, OsString)> {
        match self {
            Self::Command(command) | Self::Either(_, command) => command.environment(),
            Self::Http(_) | Self::Builtin(_) => Vec::new(),
        }
    }

    /// What is wrong with the program that is to be started, where it is not there.
    pub fn missing_program(&self) -> Option<String> {
        match self {
            Self::Command(command) => command.missing_program(),
            // A server over HTTP may answer before the command is needed.
            Self::Http(_) | Self::Either(..) | Self::Builtin(_) => None,
        }
    }

    /// Whether the server sees this machine's files.
    pub fn is_local(&self) -> bool {
        match self {
            Self::Command(_) | Self::Either(..) => true,
            Self::Builtin(builtin) => builtin.wired.is_local,
            Self::Http(reached) => reached.on_this_machine,
        }
    }

    /// How the server of this name is started or reached, where that needs no trying.
    pub fn at_once(&self, name: &str, places: &Places) -> Option<upstream::Means> {
        match self {
            Self::Command(command) => {
                Some(upstream::Means::Command(Box::new(command.spec(places))))
            }
            Self::Http(reached) => Some(upstream::Means::Http(Arc::clone(&reached.upstream))),
            Self::Builtin(builtin) => {
                let builtin = builtin.start(name, places).ok()?;
                builtin.begin();
                Some(upstream::Means::Builtin(builtin))
            }
            Self::Either(..) => None,
        }
    }

    /// Whether a built-in server can be used as it is configured.
    ///
    /// # Errors
    /// Where its options name something that cannot be used.
    pub fn check(&self, name: &str, places: &Places) -> Result<(), Failure> {
        match self {
            Self::Builtin(builtin) => builtin.start(name, places).map(drop),
            Self::Command(_) | Self::Http(_) | Self::Either(..) => Ok(()),
        }
    }

    /// How the server of this name is started or reached, once that is settled; `err` is told what was
    /// tried.
    ///
    /// # Errors
    /// Where a server over HTTP is there and cannot be used.
    pub async fn settled(
        &self,
        name: &str,
        gate: &Arc<Gate>,
        places: &Places,
        err: &mut dyn Write,
    ) -> Result<upstream::Means, Failure> {
        match self {
            Self::Builtin(builtin) => {
                let builtin = builtin.start(name, places)?;
                builtin.begin();
                Ok(upstream::Means::Builtin(builtin))
            }
            Self::Command(command) => Ok(upstream::Means::Command(Box::new(command.spec(places)))),
            Self::Http(reached) => Ok(upstream::Means::Http(Arc::clone(&reached.upstream))),
            Self::Either(reached, command) => {
                if reached.is_there(command, gate, err).await? {
                    Ok(upstream::Means::Http(Arc::clone(&reached.upstream)))
                } else {
                    Ok(upstream::Means::Command(Box::new(command.spec(places))))
                }
            }
        }
    }

    /// What is shown where the server's end is told.
    pub fn shown(&self) -> String {
        match self {
            Self::Command(command) | Self::Either(_, command) => {
                command.program.to_string_lossy().into_owned()
            }
            Self::Http(reached) => reached.upstream.place(),
            Self::Builtin(builtin) => builtin.wired.name.to_owned(),
        }
    }
}

/// Which of what is given is used.
pub fn choose(
    transport: Option<Transport>,
    reached: Option<Reached>,
    command: Option<Command>,
    builtin: Option<Configured>,
) -> Result<Launch, Failure> {
    if let Some(builtin) = builtin {
        return match transport {
            None | Some(Transport::Builtin) => Ok(Launch::Builtin(builtin)),
            Some(Transport::Auto | Transport::Stdio | Transport::Http) => {
                Err(Failure::configuration(
                    "--transport says how to reach a server, but this one is built in",
                ))
            }
        };
    }
    match (transport, reached, command) {
        (Some(Transport::Builtin), _, _) => Err(Failure::configuration(
            "no server was given\n  hint: name a built-in one in durward.yaml with builtin: NAME",
        )),
        (Some(Transport::Http), None, _) => Err(Failure::configuration(
            "--transport http needs a server's --url",
        )),
        (Some(Transport::Stdio), _, None) => Err(Failure::configuration(
            "--transport stdio needs the server's command after --",
        )),
        (_, None, None) => Err(Failure::configuration(
            "no server was given\n  hint: give its command after --, the name of a server of durward.yaml, or --url",
        )),
        (Some(Transport::Stdio) | None | Some(Transport::Auto), None, Some(command))
        | (Some(Transport::Stdio), Some(_), Some(command)) => Ok(Launch::Command(command)),
        (Some(Transport::Http), Some(reached), _)
        | (None | Some(Transport::Auto), Some(reached), None) => Ok(Launch::Http(reached)),
        (None | Some(Transport::Auto), Some(reached), Some(command)) => {
            Ok(Launch::Either(reached, command))
        }
    }
}

/// How a server of the configuration is started, where it is.
pub fn of_configuration(server: &Server) -> Option<Command> {
    let command = server.command.as_ref()?;
    let extra = |(name, value): &(String, config::Secret)| Extra {
        name: name.clone(),
        value: Some(value.reveal().to_owned()),
    };
    Some(Command {
        program: command.program.value.clone().into(),
        arguments: command
            .args
            .iter()
            .map(|arg| arg.value.clone().into())
            .collect(),
        directory: command.directory.clone(),
        environment: command.environment.iter().map(extra).collect(),
        sandbox: command.sandbox.clone(),
        confine: None,
        policy: None,
    })
}

/// The server over HTTP, where there is a URL. `call_ms_max` is how long it may take to begin an answer.
pub fn reached(
    flags: &HttpFlags<'_>,
    server: Option<&Server>,
    call_ms_max: u64,
) -> Result<Option<Reached>, Failure> {
    let configured = server.and_then(|server| server.http.as_ref());
    let url = flags.url;
    let Some(url) = url.or(configured.map(|http| http.url.value.as_str())) else {
        return Ok(None);
    };
    let target = Target::parse(url, flags.insecure_http)
        .map_err(|fault| Failure::configuration(format!("the server's url: {fault}")))?;
    let mut options = ClientOptions {
        tls: TlsOptions {
            authorities: pem(flags.ca, configured.and_then(|h| h.ca.as_ref()))?,
            identity: identity(flags, configured)?,
        },
        credential: credential(flags, configured)?,
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

fn credential(
    flags: &HttpFlags<'_>,
    configured: Option<&Http>,
) -> Result<Option<Credential>, Failure> {
    let wrong = |what: &str| {
        Failure::configuration(format!(
            "{what} is not a key: it is empty, or has characters that keys cannot have"
        ))
    };
    if let Some(name) = flags.api_key_env {
        let value = places::environment()
            .find(|(n, _)| n == name)
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

fn identity(flags: &HttpFlags<'_>, configured: Option<&Http>) -> Result<Option<Identity>, Failure> {
    let certificate = pem(
        flags.client_cert,
        configured.and_then(|http| http.client_cert.as_ref()),
    )?;
    let key = pem(
        flags.client_key,
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

impl Reached {
    /// Whether the server is there. If nobody is, `command` is to be started instead; `err` is told
    /// which it is.
    ///
    /// # Errors
    /// Where it is there and cannot be used.
    pub async fn is_there(
        &self,
        command: &Command,
        gate: &Arc<Gate>,
        err: &mut dyn Write,
    ) -> Result<bool, Failure> {
        let upstream = &self.upstream;
        let place = upstream.place();
        match probe(upstream, gate).await {
            Ok(()) => {
                let _ = writeln!(err, "durward: the server is reached at {place}");
                Ok(true)
            }
            Err(fault) if may_fall_back(fault.fault) => {
                let _ = writeln!(
                    err,
                    "durward: no server at {place} ({}); starting {}",
                    told(&fault),
                    command.program.to_string_lossy()
                );
                Ok(false)
            }
            Err(fault) => Err(Failure::other(format!(
                "the server at {place} answers, but cannot be used: {}\n  hint: --transport stdio (in durward.yaml, transport: stdio) starts the command instead",
                told(&fault)
            ))),
        }
    }
}

async fn probe(upstream: &Arc<HttpUpstream>, gate: &Arc<Gate>) -> Result<(), Fault> {
    let mut outcome = upstream.probe(gate).await;
    for wait_ms in RETRY_WAITS_MS {
        match &outcome {
            Err(fault) if may_fall_back(fault.fault) => {
                tokio::time::sleep(Duration::from_millis(wait_ms)).await;
                outcome = upstream.probe(gate).await;
            }
            _ => break,
        }
    }
    outcome
}

/// Whether nobody seems to be there. A server that is there but refuses us, or cannot prove who it
/// is, is a mistake to be told of, not to be passed over by starting another server.
fn may_fall_back(fault: UpstreamFault) -> bool {
    match fault {
        UpstreamFault::Unreachable
        | UpstreamFault::Timeout
        | UpstreamFault::Broken
        | UpstreamFault::Died
        | UpstreamFault::NoAnswer
        | UpstreamFault::Busy => true,
        UpstreamFault::Garbage
        | UpstreamFault::Oversize
        | UpstreamFault::TooLarge
        | UpstreamFault::NoPlace
        | UpstreamFault::Tls
        | UpstreamFault::Unauthorized
        | UpstreamFault::Overloaded
        | UpstreamFault::HttpStatus
        | UpstreamFault::Redirected
        | UpstreamFault::UnfitReply
        | UpstreamFault::SessionLost
        | UpstreamFault::CircuitOpen
        | UpstreamFault::EraMismatch
        | UpstreamFault::Stopping => false,
    }
}

fn told(fault: &Fault) -> String {
    match &fault.detail {
        Some(detail) => detail.clone(),
        None => fault.fault.sentence().to_owned(),
    }
}
