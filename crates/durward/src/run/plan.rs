//! What to run, by which rules: flags before configuration before defaults.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use gate::journal::SyncPolicy;
use gate::limits::Limits;
use mcp::message::refusal::Refusals;
use toolkit::files::GuardedFiles;

use super::RunArgs;
use crate::certificates::Certificates;
use crate::config::Settings;
use crate::config::server::Server;
use crate::failure::Failure;
use crate::flags::sync_policy;
use crate::launch::{Command, HttpFlags, Launch, choose, of_configuration, reached};
use crate::local::Reads;
use crate::names;
use crate::places::Places;
use crate::policy::source::PolicySource;
use crate::{program, sandbox, screening};

/// What to run, by which rules.
pub(super) struct Plan {
    /// The server's name in rules and in the journal.
    pub name: String,
    /// Why something of the configuration does not apply.
    pub warning: Option<String>,
    /// How it is started or reached.
    pub server: Launch,
    /// Our own certificate, where one is shown to the server.
    pub certificates: Certificates,
    pub policy: PolicySource,
    pub call_timeout_ms: u64,
    pub tool_timeouts_ms: HashMap<String, u64>,
    pub breaker: toolkit::breaker::Settings,
    /// How the server reads its arguments.
    pub reads: Reads,
    pub sync: SyncPolicy,
    pub approval: gate::approval::Options,
    pub descriptions: mcp::descriptions::Options,
    pub pins: gate::pins::PinOptions,
    pub refusals: Refusals,
    pub limits: Limits,
}

impl RunArgs {
    /// Returns the files that the flags and the command name or run.
    pub fn guarded(&self, places: &Places) -> GuardedFiles {
        let words: Vec<&OsStr> = self.command.iter().map(OsString::as_os_str).collect();
        let absolute = |file: &PathBuf| places.absolute(file);
        let public = [&self.client_cert, &self.ca];
        let public = public.into_iter().flatten().map(absolute);
        let mut read_only = program::files(&words, places.current.as_deref());
        read_only.extend(public);
        GuardedFiles {
            closed: self.client_key.iter().map(absolute).collect(),
            read_only,
        }
    }
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
        let policy = settings.policy_of(server).0;
        let command = command(args, server, places).map(|command| Command {
            policy: policy.file().map(Path::to_path_buf),
            ..command
        });
        let call_timeout_ms = args.call_timeout.map_or_else(
            || settings.call_timeout_of(server).0,
            |seconds| seconds.saturating_mul(1_000),
        );
        let tool_timeouts_ms = settings.tool_timeouts_of(server, &args.tool_timeout);
        let longest_ms = tool_timeouts_ms.values().copied().max().unwrap_or(0);
        let reached = reached(
            &http_flags(args, settings.insecure_http_of(server)),
            server,
            longest_ms.max(call_timeout_ms),
        )?;
        let transport = args.transport.map(Into::into);
        let transport = transport.or(server.map(|server| server.transport));
        let builtin = server.and_then(|server| server.builtin.clone());
        let default_name = match (&reached, &command) {
            (Some(reached), None) => names::plain(&reached.host),
            (_, Some(command)) => names::of_command(&command.program, &command.arguments),
            (None, None) => "server".to_owned(),
        };
        let name = args.name.clone().or_else(|| args.server.clone());
        let name = name.unwrap_or(default_name);
        let reads = match server {
            Some(server) => Ok(server.reads.clone()),
            None => settings.reads_of_run(&name, &args.command, args.url.as_deref()),
        };
        let (reads, warning) = match reads {
            Ok(reads) => (reads, None),
            Err(warning) => (Reads::default(), Some(warning)),
        };
        Ok(Self {
            name,
            warning,
            server: choose(transport, reached, command, builtin)?,
            policy,
            call_timeout_ms,
            tool_timeouts_ms,
            breaker: settings.breaker.settings(),
            reads,
            sync: sync_policy(args.sync, settings),
            approval: args.approval.options(&settings.approval),
            descriptions: screening::descriptions(&args.screening, settings),
            pins: screening::pins(&args.screening, settings, server, places),
            refusals: args.refusals.over(settings),
            certificates: Certificates::of_run(args.client_cert.as_ref(), server),
            limits: args
                .limits
                .over(settings.limits.for_gate())
                .map_err(Failure::configuration)?,
        })
    }
}

/// What flags say of a server over HTTP; `insecure` is what the configuration says of `http://`.
fn http_flags(args: &RunArgs, insecure: bool) -> HttpFlags<'_> {
    HttpFlags {
        url: args.url.as_deref(),
        insecure_http: args.insecure_http || insecure,
        api_key_env: args.api_key_env.as_deref(),
        ca: args.ca.as_ref(),
        client_cert: args.client_cert.as_ref(),
        client_key: args.client_key.as_ref(),
    }
}

fn command(args: &RunArgs, server: Option<&Server>, places: &Places) -> Option<Command> {
    let mut command = match server {
        Some(server) => of_configuration(server)?,
        None => {
            let (program, arguments) = args.command.split_first()?;
            Command {
                program: program.clone(),
                arguments: arguments.to_vec(),
                directory: None,
                environment: Vec::new(),
                sandbox: None,
                confine: None,
                policy: None,
            }
        }
    };
    command.confine = args.confine;
    if let Some(sandbox) = sandbox::joined(&args.sandbox, places) {
        command.sandbox = Some(sandbox);
    }
    command.environment.extend(args.environment.iter().cloned());
    Some(command)
}
