//! What an entry is for: a command, servers of `durward.yaml`, or the URL of a running `durward serve`.

use std::ffi::{OsStr, OsString};
use std::path::Path;

use net::outbound::http::Target;
use serde_json::{Map, Value, json};

use super::client::Client;
use super::entry::{self, Key};
use super::{InstallArgs, Kept, text};
use crate::config::Settings;
use crate::names;
use crate::places::{self, Places};

/// The client's name for all servers of a configuration.
const ALL: &str = "durward";

/// What is installed.
pub(super) enum Chosen<'a> {
    /// A server's own command.
    Command(&'a OsStr, &'a [OsString]),
    /// A server of `durward.yaml`, or all of them.
    Configured(Option<&'a str>),
    /// What `durward serve` has at this URL.
    Url(&'a str),
}

impl<'a> Chosen<'a> {
    /// What the command line asks for, checked against the configuration.
    pub fn of(args: &'a InstallArgs, settings: &Settings, places: &Places) -> Result<Self, String> {
        if let Some((program, arguments)) = args.command.split_first() {
            return Ok(Self::Command(program, arguments));
        }
        if let Some(url) = &args.url {
            Target::parse(url, false).map_err(|fault| format!("--url: {fault}"))?;
            return Ok(Self::Url(url));
        }
        if !args.environment.is_empty() {
            return Err("--env is for a server's own command; variables of a server of durward.yaml are its key env".into());
        }
        match &args.server {
            Some(name) => {
                settings.named(name, places)?;
            }
            None if settings.servers.is_empty() => {
                return Err("there is no server to install\n  hint: give its command after --, the name of a server of durward.yaml, or --url".into());
            }
            None => {}
        }
        Ok(Self::Configured(args.server.as_deref()))
    }

    /// The client's name for it, unless the command line gives one.
    pub fn name(&self) -> String {
        match self {
            Self::Command(program, arguments) => names::of_command(program, arguments),
            Self::Configured(server) => server.unwrap_or(ALL).to_owned(),
            Self::Url(url) => of_url(url),
        }
    }

    /// The client's entry.
    pub fn entry(
        &self,
        (args, kept): (&InstallArgs, &Kept),
        places: &Places,
        name: &str,
    ) -> Result<Value, String> {
        let front = || kept.front(args.policy.as_deref(), places);
        match self {
            Self::Command(program, arguments) => {
                let mut line = front()?.line(name);
                let values = variables(&args.environment, &mut line)?;
                line.push("--".to_owned());
                line.push(program_of(program, places)?);
                for argument in *arguments {
                    line.push(text(argument)?);
                }
                Ok(entry::new(args.client, name, line, values))
            }
            Self::Configured(server) => {
                let mut line = front()?.configured();
                line.extend(server.map(str::to_owned));
                Ok(entry::new(args.client, name, line, Map::new()))
            }
            Self::Url(url) => {
                if args.client == Client::ClaudeDesktop {
                    return Err("Claude Desktop reads no URL from its file\n  hint: install a server of durward.yaml: durward install claude-desktop NAME".into());
                }
                let key = args.key_env.as_deref().map(key).transpose()?;
                Ok(entry::at_url(args.client, name, url, key.as_ref()))
            }
        }
    }
}

/// The last part of a path like `/mcp/files`.
fn of_url(url: &str) -> String {
    let path = url.split(['?', '#']).next().unwrap_or_default();
    let below = path.split_once("/mcp/").map(|(_, name)| name);
    below
        .and_then(|name| names::server_name(name.trim_end_matches('/')).ok())
        .unwrap_or_else(|| ALL.to_owned())
}

/// The key that a variable of the environment holds.
fn key(variable: &str) -> Result<Key, String> {
    let held = places::named_by(variable).unwrap_or_default();
    let text = held.to_str().unwrap_or_default().trim().to_owned();
    if text.is_empty() {
        return Err(format!(
            "the variable {variable} is not set\n  hint: set it to a key of `durward keys create`; the key is written into the client's file"
        ));
    }
    if !text.chars().all(|c| c.is_ascii_graphic()) {
        return Err(format!(
            "the variable {variable} holds characters that cannot be sent in a header"
        ));
    }
    Ok(Key {
        variable: variable.to_owned(),
        text,
    })
}

/// Adds `--env` for each variable; gives the values that the client's file keeps.
fn variables(given: &[String], line: &mut Vec<String>) -> Result<Map<String, Value>, String> {
    let mut values = Map::new();
    for variable in given {
        let (name, value) = match variable.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (variable.as_str(), None),
        };
        if name.is_empty() {
            return Err(format!(
                "\"{variable}\" is not a variable; write NAME or NAME=VALUE"
            ));
        }
        line.extend(["--env".to_owned(), name.to_owned()]);
        values.extend(value.map(|value| (name.to_owned(), json!(value))));
    }
    Ok(values)
}

/// Clients start elsewhere: a program below this directory would not be found.
fn program_of(program: &OsStr, places: &Places) -> Result<String, String> {
    let relative = program.to_string_lossy().contains('/') && Path::new(program).is_relative();
    match relative {
        true => text(places.absolute(Path::new(program)).as_os_str()),
        false => text(program),
    }
}
