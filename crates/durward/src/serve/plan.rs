//! What to serve, where, and by which rules: command line and configuration together.

use std::collections::HashMap;
use std::ffi::OsString;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use mcp::federation::scheme;
use mcp::http::FaceOptions;
use mcp::message::refusal::Refusals;
use net::http::server::{Listener, Names, Options, server_config};

use super::{Further, ServeArgs, descriptors};
use crate::agents::AgentProvider;
use crate::checker;
use crate::config::Settings;
use crate::config::server::Server;
use crate::config::values::Listen;
use crate::failure::Failure;
use crate::launch::{Command, HttpFlags, Launch, choose, of_configuration, reached};
use crate::local::Reads;
use crate::otel::Telemetry;
use crate::places::Places;
use crate::policy::source::PolicySource;
use crate::providers;
use crate::screening;

/// Largest certificate or key file, in bytes.
const PEM_BYTES_MAX: u64 = 1024 * 1024;

/// Largest head of a request where people sign in, in bytes: the longest access token and as much beside it.
const SIGNED_IN_HEADER_BYTES_MAX: usize = 2 * ::identity::TOKEN_BYTES_MAX;

/// How much longer than a call's own time the beginning of its answer is waited for, in milliseconds.
const BEGIN_GRACE_MS: u64 = 2_000;

/// Said where there is neither a server nor a model.
pub const NOTHING_TO_SERVE: &str = "there is no server to serve\n  hint: name one with --server NAME=COMMAND, or put it under servers: in durward.yaml";

/// Everything that is needed to begin.
pub struct Plan {
    pub listen: Listen,
    pub servers: Vec<Planned>,
    /// The server that answers at `/` and `/mcp` as well.
    pub root: Option<String>,
    pub share: mcp::upstream::Share,
    /// Nobody is answered without a key, even where there is none yet.
    pub require_key: bool,
    pub options: Options,
    pub face: FaceOptions,
    pub descriptions: mcp::descriptions::Options,
    pub refusals: Refusals,
    pub limits: gate::limits::Limits,
    pub approval: gate::approval::Options,
    pub inspect: Arc<gate::inspect::Inspection>,
    /// One for all sets of rules: what one server says can be sent to another.
    pub flow: Arc<gate::flow::Flow>,
    pub breaker: toolkit::breaker::Settings,
    /// Where there are model providers.
    pub models: Option<Models>,
    /// Where spans and metrics are exported to; set when it begins to serve.
    pub telemetry: Option<Arc<Telemetry>>,
}

/// Models, made ready.
pub struct Models {
    /// By which rules they are judged.
    pub policy: PolicySource,
    pub catalogue: ::models::Catalogue,
    /// The agents among its providers.
    pub agents: Option<Arc<AgentProvider>>,
    pub options: ::models::FaceOptions,
}

/// A server.
pub struct Planned {
    pub name: String,
    pub policy: PolicySource,
    pub call_timeout_ms: u64,
    pub tool_timeouts_ms: HashMap<String, u64>,
    pub processes_max: usize,
    /// How the server reads its arguments.
    pub reads: Reads,
    pub pins: gate::pins::PinOptions,
    launch: Launch,
}

impl Plan {
    /// The first server that runs simulations: the bridge's own paths are its.
    pub fn simulation(&self) -> Option<&str> {
        let runs = |planned: &&Planned| matches!(&planned.launch, Launch::Builtin(builtin) if builtin.wired.name == "simulation");
        self.servers
            .iter()
            .find(runs)
            .map(|planned| planned.name.as_str())
    }

    /// Puts it together.
    pub fn of(args: &ServeArgs, settings: &Settings, places: &Places) -> Result<Self, Failure> {
        let mut servers = Vec::new();
        for server in &settings.servers {
            servers.push(Planned::of(
                args,
                settings,
                Named::Configured(server),
                places,
            )?);
        }
        for further in &args.servers {
            if servers.iter().any(|server| server.name == further.name) {
                return Err(Failure::configuration(format!(
                    "two servers are called \"{}\"; rename one of them",
                    further.name
                )));
            }
            servers.push(Planned::of(
                args,
                settings,
                Named::Further(further),
                places,
            )?);
        }
        distinct(&servers)?;
        let models = models(args, settings)?;
        let root = args.root.as_ref();
        let root = root.or(settings.serving.root.value.as_ref());
        if let Some(root) = root
            && !servers.iter().any(|server| server.name == *root)
        {
            let given = if args.root.is_some() {
                "--root"
            } else {
                "root"
            };
            return Err(Failure::configuration(format!(
                "{given}: no server is called \"{}\"",
                root.escape_debug()
            )));
        }
        let listen = args.listen.clone();
        let listen = listen.unwrap_or_else(|| settings.listen.value.clone());
        let options = options(args, settings, &listen)?;
        Ok(Self {
            listen,
            servers,
            root: root.cloned(),
            models,
            telemetry: None,
            share: args
                .share
                .map_or(settings.serving.share.value, Into::into)
                .into(),
            options,
            require_key: args.require_key || settings.serving.require_key.value,
            face: face(args, settings),
            approval: args.approval.options(&settings.approval),
            inspect: settings.inspect.for_gate(checker::asking),
            flow: settings.flow(&Arc::default()),
            breaker: settings.breaker.settings(),
            descriptions: screening::descriptions(&args.screening, settings),
            refusals: args.refusals.over(settings),
            limits: args
                .limits
                .over(settings.limits.for_gate())
                .map_err(Failure::configuration)?,
        })
    }

    /// The same, where there is anything to serve.
    ///
    /// # Errors
    /// [`NOTHING_TO_SERVE`].
    pub fn with_servers(self) -> Result<Self, Failure> {
        match self.is_empty() {
            true => Err(Failure::configuration(NOTHING_TO_SERVE)),
            false => Ok(self),
        }
    }

    /// Whether there is neither a server nor a model.
    pub fn is_empty(&self) -> bool {
        self.servers.is_empty() && self.models.is_none()
    }

    /// The same with no more connections than there are file descriptors for; says so where that is
    /// fewer than usual.
    pub fn within(mut self, files_max: u64, err: &mut dyn Write) -> Self {
        let connections_max = descriptors::connections(files_max, self.options.connections_max);
        if connections_max < self.options.connections_max {
            // Standard error that is gone keeps nobody from serving.
            let _ = writeln!(
                err,
                "durward: at most {connections_max} connections at once, because this process may have {files_max} files open (ulimit -n)"
            );
        }
        self.options.connections_max = connections_max;
        self
    }

    /// Where it listens, as clients write it.
    pub fn announced(&self, listener: &Listener) -> String {
        let scheme = match self.options.tls {
            Some(_) => "https",
            None => "http",
        };
        match listener.address() {
            Some(address) => format!("{scheme}://{address}"),
            None => self.listen.to_string(),
        }
    }

    /// The names of the servers with these rules.
    pub fn names(&self, policy: &PolicySource) -> String {
        let names = self.names_with(policy);
        let has_models = |models: &Models| models.policy == *policy;
        match names.is_empty() && self.models.as_ref().is_some_and(has_models) {
            true => "models".to_owned(),
            false => names.join(", "),
        }
    }

    /// The same, one by one.
    pub fn names_with(&self, policy: &PolicySource) -> Vec<String> {
        let ruled = |server: &&Planned| server.policy == *policy;
        let servers = self.servers.iter().filter(ruled);
        servers.map(|server| server.name.clone()).collect()
    }

    /// Returns where rules come from, each source once.
    pub fn policies(&self) -> Vec<PolicySource> {
        let mut out: Vec<PolicySource> = Vec::new();
        let servers = self.servers.iter().map(|server| &server.policy);
        let models = self.models.iter().map(|models| &models.policy);
        for policy in servers.chain(models) {
            if !out.contains(policy) {
                out.push(policy.clone());
            }
        }
        out
    }
}

/// Refuses names that would come to the same one in front of the URIs of resources.
fn distinct(servers: &[Planned]) -> Result<(), Failure> {
    for (at, server) in servers.iter().enumerate() {
        let spelled = scheme(&server.name);
        let mut before = servers.iter().take(at);
        if let Some(other) = before.find(|other| scheme(&other.name) == spelled) {
            return Err(Failure::configuration(format!(
                "the servers \"{}\" and \"{}\" would have the same URIs ({spelled}+...) at /mcp, which have no capitals and no underscores\n  hint: rename one of them",
                other.name, server.name
            )));
        }
    }
    Ok(())
}

fn models(args: &ServeArgs, settings: &Settings) -> Result<Option<Models>, Failure> {
    let agents = AgentProvider::new(&settings.agents);
    let insecure = args.insecure_http || settings.insecure_http.value;
    let catalogue = providers::catalogue(settings, agents.as_ref(), insecure)?;
    Ok(catalogue.map(|catalogue| Models {
        agents,
        policy: settings.policy_of(None).0,
        catalogue,
        options: providers::options(settings),
    }))
}

fn face(args: &ServeArgs, settings: &Settings) -> FaceOptions {
    let configured_ms = settings.serving.session_idle.value.0;
    FaceOptions {
        session_idle_ms_max: args
            .session_idle
            .map_or(configured_ms, |seconds| seconds.saturating_mul(1_000)),
        prefix: args.prefix.prefix.unwrap_or(settings.serving.prefix.value),
        search_above: settings
            .serving
            .search_above
            .value
            .map(|most| usize::try_from(most).unwrap_or(usize::MAX)),
        is_lenient: settings.serving.lenient.value,
        ..FaceOptions::default()
    }
}

fn timeout(args: &ServeArgs, configured_ms: u64) -> u64 {
    args.call_timeout
        .map_or(configured_ms, |seconds| seconds.saturating_mul(1_000))
}

/// Where a server is named.
#[derive(Clone, Copy)]
enum Named<'a> {
    Configured(&'a Server),
    Further(&'a Further),
}

impl Planned {
    /// Returns the environment that the server is started with.
    pub fn environment(&self) -> Vec<(OsString, OsString)> {
        self.launch.environment()
    }

    fn of(
        args: &ServeArgs,
        settings: &Settings,
        named: Named<'_>,
        places: &Places,
    ) -> Result<Self, Failure> {
        let (name, server, command, url) = match named {
            Named::Configured(server) => {
                (&server.name, Some(server), of_configuration(server), None)
            }
            Named::Further(further) => (
                &further.name,
                None,
                Command::of_words(&further.words),
                further.url.as_deref(),
            ),
        };
        let policy = settings.policy_of(server).0;
        let command = command.map(|command| Command {
            policy: policy.file().map(Path::to_path_buf),
            ..command
        });
        let flags = HttpFlags {
            url,
            insecure_http: args.insecure_http || settings.insecure_http_of(server),
            ..HttpFlags::default()
        };
        let call_timeout_ms = timeout(args, settings.call_timeout_of(server).0);
        // The call's own time ends it first, and the server is told; this bound is behind that one.
        let tool_timeouts_ms = settings.tool_timeouts_of(server, &args.tool_timeout);
        let longest_ms = tool_timeouts_ms.values().copied().max().unwrap_or(0);
        let begin_ms_max = longest_ms
            .max(call_timeout_ms)
            .saturating_add(BEGIN_GRACE_MS);
        let reached = reached(&flags, server, begin_ms_max)
            .map_err(|failure| failure.about(&format!("the server \"{name}\"")))?;
        let builtin = server.and_then(|server| server.builtin.clone());
        Ok(Self {
            name: name.clone(),
            policy,
            call_timeout_ms,
            tool_timeouts_ms,
            processes_max: settings.processes_max_of(server),
            reads: server
                .map(|server| server.reads.clone())
                .unwrap_or_default(),
            pins: screening::pins(&args.screening, settings, server, places),
            launch: choose(
                server.map(|server| server.transport),
                reached,
                command,
                builtin,
            )?,
        })
    }

    /// Whether the server sees this machine's files.
    pub fn is_local(&self) -> bool {
        self.launch.is_local()
    }

    /// How it is started or reached.
    pub fn launch(&self) -> &Launch {
        &self.launch
    }
}

fn options(args: &ServeArgs, settings: &Settings, listen: &Listen) -> Result<Options, Failure> {
    let configured = settings
        .tls
        .as_ref()
        .map(|tls| (tls.cert.value.clone(), tls.key.value.clone()));
    let tls = args
        .tls_cert
        .clone()
        .zip(args.tls_key.clone())
        .or(configured);
    let tls = tls.map(|(cert, key)| tls_of(&cert, &key)).transpose()?;
    if !listen.is_local() && tls.is_none() {
        return Err(Failure::configuration(format!(
            "{listen} can be reached from other machines, and without TLS anybody on the network could read and change calls\n  hint: listen on 127.0.0.1, or give --tls-cert and --tls-key"
        )));
    }
    let mut names = Names::loopback();
    let hosts = settings
        .allowed_hosts
        .value
        .iter()
        .chain(&args.allowed_hosts);
    for host in hosts {
        names.allow_host(host).map_err(|why| {
            Failure::configuration(format!("host \"{}\": {why}", host.escape_debug()))
        })?;
    }
    let origins = settings
        .allowed_origins
        .value
        .iter()
        .chain(&args.allowed_origins);
    for origin in origins {
        names.allow_origin(origin).map_err(|why| {
            Failure::configuration(format!("origin \"{}\": {why}", origin.escape_debug()))
        })?;
    }
    let public_url = settings.identity.public_url.value.as_deref();
    if let Some(host) = public_url.and_then(|url| url.split('/').nth(2)) {
        names
            .allow_host(host)
            .map_err(|why| Failure::configuration(format!("identity.public_url: {why}")))?;
    }
    let (public_paths, header_bytes_max): (&[&str], usize) = match settings.identity.is_on() {
        true => (&[::identity::WELL_KNOWN], SIGNED_IN_HEADER_BYTES_MAX),
        false => (&[], Options::default().header_bytes_max),
    };
    Ok(Options {
        names,
        tls,
        public_paths,
        header_bytes_max,
        ..Options::default()
    })
}

fn tls_of(cert: &Path, key: &Path) -> Result<Arc<net::http::server::TlsConfig>, Failure> {
    let read = |file: &Path| {
        let size = std::fs::metadata(file).map(|found| found.len());
        let text = match size {
            Ok(size) if size > PEM_BYTES_MAX => Err("the file is longer than 1 MiB".to_owned()),
            Ok(_) => std::fs::read(file).map_err(|e| e.to_string()),
            Err(error) => Err(error.to_string()),
        };
        text.map_err(|why| Failure::configuration(format!("{}: {why}", file.display())))
    };
    server_config(&read(cert)?, &read(key)?).map_err(|fault| {
        Failure::configuration(format!(
            "{} with {}: {fault}",
            cert.display(),
            key.display()
        ))
    })
}
