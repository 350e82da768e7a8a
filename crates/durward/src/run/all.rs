//! `durward run` without a server: all of them.

use std::io::Write;

use super::RunArgs;
use crate::config::{self, Settings};
use crate::failure::Failure;
use crate::flags::Given;
use crate::places::Places;
use crate::serve::{self, ServeArgs};

impl RunArgs {
    /// Whether no server is named in any way, while the configuration has some.
    pub(super) fn are_for_all(&self, settings: &Settings) -> bool {
        let names_one = self.server.is_some() || self.url.is_some() || !self.command.is_empty();
        !names_one && !settings.servers.is_empty()
    }

    /// The first flag given that is about one server.
    fn about_one(&self) -> Option<&'static str> {
        [
            (self.name.is_some(), "--name"),
            (!self.environment.is_empty(), "--env"),
            (self.confine.is_some(), "--confine"),
            (!self.sandbox.is_empty(), "--sandbox"),
            (self.transport.is_some(), "--transport"),
            (self.api_key_env.is_some(), "--api-key-env"),
            (self.client_cert.is_some(), "--client-cert"),
            (self.ca.is_some(), "--ca"),
        ]
        .into_iter()
        .find_map(|(is_given, flag)| is_given.then_some(flag))
    }

    /// The same for all servers.
    fn of_all(&self) -> Result<ServeArgs, Failure> {
        if let Some(flag) = self.about_one() {
            return Err(Failure::configuration(format!(
                "{flag} is for one server, but all servers of the configuration are run\n  hint: name the server (durward run NAME), or put the setting under it in durward.yaml"
            )));
        }
        Ok(ServeArgs {
            // Nothing listens; whether the configured address may be listened at is of no matter.
            listen: Some(config::values::Listen::default()),
            policy: self.policy.clone(),
            insecure_http: self.insecure_http,
            call_timeout: self.call_timeout,
            tool_timeout: self.tool_timeout.clone(),
            sync: self.sync,
            threads: Some(1),
            screening: self.screening.clone(),
            approval: self.approval.clone(),
            refusals: self.refusals,
            prefix: self.prefix,
            limits: self.limits.clone(),
            ..ServeArgs::default()
        })
    }
}

/// Guards all servers of the configuration for one client; gives the exit code.
pub(super) fn all(
    args: &RunArgs,
    given: &Given,
    source: config::Source,
    mut settings: Settings,
    places: &Places,
    err: &mut dyn Write,
) -> u8 {
    settings.watch.value &= !args.no_watch;
    match args.of_all() {
        Ok(args) => serve::all(&args, given, source, settings, places, err),
        Err(failure) => {
            let _ = writeln!(err, "error: {}", failure.message);
            failure.code
        }
    }
}
