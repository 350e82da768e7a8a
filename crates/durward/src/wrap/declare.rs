//! Declares what the tools of wrapped servers do, as far as a person accepts it.

use std::io::{self, BufRead as _, IsTerminal as _, Write};

use mcp::descriptions::hidden::spelled_out;
use serde_json::{Map, Value};

use super::change::WrappedServer;
use crate::classes::ToolClasses;
use crate::config::Settings;
use crate::install::client::Client;
use crate::install::entry::{self, Front};
use crate::places::Places;
use crate::tools::start::definitions_of_entry;

/// Declares classes of wrapped servers in the configuration.
pub(super) struct Declarer<'a> {
    pub client: Client,
    /// Proposals are declared unseen.
    pub accepts: bool,
    /// A person at a terminal is asked.
    pub asks: bool,
    pub settings: &'a Settings,
    pub places: &'a Places,
}

impl Declarer<'_> {
    /// Starts each server once and declares what a person accepts of what its tools seem to do. Returns the declared classes
    /// by server; `None` if that was not wanted.
    pub fn declare(
        &self,
        servers: &[WrappedServer],
        out: &mut dyn Write,
        err: &mut dyn Write,
    ) -> Result<Option<Map<String, Value>>, String> {
        let is_wanted = self.accepts || self.is_wanted(servers, out)?;
        if !is_wanted {
            return Ok(None);
        }
        let mut declared = Map::new();
        for server in servers {
            match self.declare_one(server, out) {
                Ok(Some(classes)) => {
                    declared.insert(server.name.clone(), classes);
                }
                Ok(None) => {}
                // The client's file is written, and a server that cannot be listed yet may be so later.
                Err(why) => {
                    let name = spelled_out(&server.name);
                    let _ = writeln!(
                        err,
                        "warning: no class of a tool of {name} was declared: {why}\n  hint: durward pins approve {name} --all does it once the client has listed the tools"
                    );
                }
            }
        }
        Ok(Some(declared))
    }

    /// Asks the person at the terminal whether the servers are started.
    fn is_wanted(&self, servers: &[WrappedServer], out: &mut dyn Write) -> Result<bool, String> {
        let is_terminal = io::stdin().is_terminal() && io::stdout().is_terminal();
        if !self.asks || !is_terminal || servers.is_empty() {
            return Ok(false);
        }
        let names: Vec<String> = servers.iter().map(|own| spelled_out(&own.name)).collect();
        let names = names.join(", ");
        let written = write!(
            out,
            "Start {names} once, to see and declare what their tools do? [y/N] "
        );
        written
            .and_then(|()| out.flush())
            .map_err(|error| format!("cannot write: {error}"))?;
        let mut answer = String::new();
        let read = io::stdin().lock().read_line(&mut answer);
        read.map_err(|error| format!("cannot read the answer: {error}"))?;
        Ok(matches!(
            answer.trim().to_ascii_lowercase().as_str(),
            "y" | "yes"
        ))
    }

    fn declare_one(
        &self,
        server: &WrappedServer,
        out: &mut dyn Write,
    ) -> Result<Option<Value>, String> {
        let file = self.settings.writable.as_ref();
        let file = file.ok_or("--no-config leaves no file to declare it in")?;
        let line_of = |flags| {
            let front = Front {
                program: self.places.own_binary.display().to_string(),
                flags,
                variables: server.variables.clone(),
            };
            entry::command_line(self.client, &server.name, &server.entry, &front)
        };
        let tools = definitions_of_entry(&server.name, line_of, self.places)?;
        let tools = tools
            .iter()
            .map(|(name, definition)| (name.as_str(), definition.into()));
        let declared = self.settings.declared_of(&server.name);
        let mut classes = ToolClasses::propose(&server.name, declared, tools);
        if classes.is_empty() {
            return Ok(None);
        }
        if !self.accepts {
            let mut lines = io::stdin().lock().lines();
            if !classes.review(&mut || lines.next(), out)? {
                return Ok(None);
            }
        }
        let written = classes.declare(file, self.places)?;
        written
            .print(file, &server.name, out)
            .map_err(|error| format!("cannot write: {error}"))?;
        Ok(Some(classes.to_json()))
    }
}
