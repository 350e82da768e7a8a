//! `durward check --start`: starts every configured server, lists its tools, and says what the policy makes of each.
//!
//! The servers run behind a gate that shows every tool and is asked for no call; journal and keys of that are kept in a
//! directory that is removed afterwards.

use std::ffi::OsString;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde_json::Value;
use state::directory;

use super::session::{Begin, Session};
use super::{list, print};
use crate::config::Settings;
use crate::config::server::Server;
use crate::install::entry::CommandLine;
use crate::places::Places;

/// Shows every tool; nothing is called.
const SHOW_ALL: &str = r#"{"version":"1","default_action":"deny","rules":[{"id":"show-all","effect":"allow","conditions":{"tool_name":"*"}}]}"#;

/// A directory that is removed when this is dropped.
struct Scratch(PathBuf);

impl Scratch {
    fn new(places: &Places) -> Result<Self, String> {
        let path = places.state.join(format!("check-{}", std::process::id()));
        directory::create_private(&places.state).map_err(|error| error.to_string())?;
        directory::create_private(&path).map_err(|error| error.to_string())?;
        let scratch = Self(path);
        fs::write(scratch.policy(), SHOW_ALL)
            .map_err(|error| format!("{}: {error}", scratch.0.display()))?;
        Ok(scratch)
    }

    /// Returns how a session is begun that shows all tools and keeps nothing.
    fn begin<'a>(&self, settings: &'a Settings, places: &'a Places) -> Begin<'a> {
        Begin {
            settings,
            places,
            policy: Some(self.policy()),
            state: Some(self.state()),
            flags: &["--pin", "off"],
        }
    }

    fn state(&self) -> PathBuf {
        self.0.join("state")
    }

    fn policy(&self) -> PathBuf {
        self.0.join("policy.json")
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        drop(fs::remove_dir_all(&self.0));
    }
}

/// Starts a server and returns the definitions of its tools by name, as JSON.
pub(crate) fn definitions(
    server: &Server,
    settings: &Settings,
    places: &Places,
) -> Result<Vec<(String, String)>, String> {
    let scratch = Scratch::new(places)?;
    let tools = list(server, None, &scratch.begin(settings, places))?;
    let definitions = tools
        .tools
        .into_iter()
        .map(|listed| (listed.name, Value::Object(listed.tool).to_string()));
    Ok(definitions.collect())
}

/// Starts the server of a client's entry and returns the definitions of its tools by name, as JSON. `line_of` makes the
/// command line from the flags of `durward run`.
pub(crate) fn definitions_of_entry(
    name: &str,
    line_of: impl FnOnce(Vec<String>) -> Result<CommandLine, String>,
    places: &Places,
) -> Result<Vec<(String, String)>, String> {
    let scratch = Scratch::new(places)?;
    let text = |path: PathBuf| path.into_os_string().into_string();
    let (Ok(state), Ok(policy)) = (text(scratch.state()), text(scratch.policy())) else {
        return Err("the state directory is not UTF-8".into());
    };
    let flags = ["--no-config", "--state-dir", &state, "--policy", &policy];
    let flags = flags.into_iter().chain(["--pin", "off", "--no-watch"]);
    let (line, env) = line_of(flags.map(str::to_owned).collect())?;
    let line = line.into_iter().skip(1).map(OsString::from).collect();
    let mut session = Session::spawn(name, places, line, env)?;
    let tools = session.tools(name);
    session.end();
    let definitions = tools?.into_iter().filter_map(|tool| {
        let name = tool.get("name")?.as_str()?.to_owned();
        Some((name, tool.to_string()))
    });
    Ok(definitions.collect())
}

/// What was found.
pub(crate) struct Started {
    /// Servers with their tools, as JSON.
    pub servers: Vec<Value>,
    /// Why servers could not be started or listed.
    pub failed: Vec<String>,
}

/// Starts each server in turn and lists its tools on `out`, unless they are printed as JSON later.
pub(crate) fn start(
    settings: &Settings,
    policy: Option<&Path>,
    places: &Places,
    mut out: Option<&mut dyn Write>,
) -> Result<Started, String> {
    let scratch = Scratch::new(places)?;
    let mut started = Started {
        servers: Vec::new(),
        failed: Vec::new(),
    };
    for server in &settings.servers {
        match list(server, policy, &scratch.begin(settings, places)) {
            Ok(tools) => {
                if let Some(out) = &mut out {
                    print(&tools, *out).or_else(|error| match error.kind() {
                        io::ErrorKind::BrokenPipe => Ok(()),
                        _ => Err(format!("cannot write: {error}")),
                    })?;
                }
                let printed = serde_json::to_value(&tools);
                let printed = printed.map_err(|error| format!("{}: {error}", server.name))?;
                started.servers.push(printed);
            }
            Err(message) => started.failed.push(message),
        }
    }
    Ok(started)
}
