//! `durward tools` and `durward call`: the tools of the configured servers, from the command line, through the gate.

pub mod call;
pub(crate) mod session;
pub(crate) mod start;

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use admin::policy::HypotheticalCall;
use admin::tools::{ListedTool, ServerTools, ToolVerdict};
use clap::Args;
use mcp::descriptions::hidden::spelled_out;
use serde_json::{Map, Value};

use crate::config::Settings;
use crate::config::server::Server;
use crate::failure::EXIT_CONFIGURATION;
use crate::layout;
use crate::layout::table::{Column, Long, Table};
use crate::local::LocalView;
use crate::places::Places;
use crate::policy::builtin_of;
use crate::policy::source::{PolicySource, Protected};
use session::{Begin, Session};

pub const HELP: &str = "\
Examples:
  durward tools                    the tools of every server in durward.yaml
  durward tools files --json       those of one server, with their schemas

Each server is started as by `durward run SERVER`, its tools are listed, and it is stopped. Tools that the policy hides
are left out; `durward check --start` lists those too.

  passes    calls pass with any arguments
  asks      a person is asked
  depends   the arguments decide: see `durward policy explain --tool TOOL --args JSON`

Exit codes: 0 done; 1 a server could not be listed; 16 wrong configuration.";

/// Name, what happens to a call, by which rules, and what the server says of the tool.
const COLUMNS: [Column; 4] = [
    Column::new("tool", 20, Long::Cut),
    Column::new("", 0, Long::Whole),
    Column::new("rule", 16, Long::Cut).of_rank(1),
    Column::new("description", 24, Long::Cut).of_rank(2),
];
/// Most characters that are shown of a description.
const DESCRIPTION_CHARS_MAX: usize = 80;
/// A server could not be listed.
const EXIT_NOT_LISTED: u8 = 1;

/// Arguments of `durward tools`.
#[derive(Debug, Args)]
pub struct ToolsArgs {
    /// The server, as durward.yaml names it [default: all]
    #[arg(value_name = "SERVER")]
    server: Option<String>,
    /// The rules, as JSON [default: the configuration's, else the starter policy]
    #[arg(long, value_name = "FILE")]
    policy: Option<PathBuf>,
    /// Print one JSON object for each server
    #[arg(long)]
    json: bool,
}

/// Lists the tools; gives the exit code.
pub fn run(
    args: &ToolsArgs,
    settings: &Settings,
    places: &Places,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> u8 {
    let servers = match chosen(args.server.as_deref(), settings, places) {
        Ok(servers) => servers,
        Err(message) => {
            let _ = writeln!(err, "error: {message}");
            return EXIT_CONFIGURATION;
        }
    };
    let mut code = 0;
    for server in servers {
        let begin = Begin {
            settings,
            places,
            policy: args.policy.clone(),
            state: None,
            flags: &[],
        };
        let policy = args.policy.as_deref();
        let printed = list(server, policy, &begin).map(|tools| match args.json {
            true => layout::json_line(&tools, out),
            false => print(&tools, out),
        });
        match printed {
            Ok(Ok(())) => {}
            Ok(Err(error)) if error.kind() == io::ErrorKind::BrokenPipe => return code,
            Ok(Err(error)) => {
                let _ = writeln!(err, "error: cannot write: {error}");
                return EXIT_NOT_LISTED;
            }
            Err(message) => {
                let _ = writeln!(err, "error: {message}");
                code = EXIT_NOT_LISTED;
            }
        }
    }
    code
}

/// The server of this name, or all.
fn chosen<'s>(
    name: Option<&str>,
    settings: &'s Settings,
    places: &Places,
) -> Result<Vec<&'s Server>, String> {
    match name {
        Some(name) => Ok(vec![settings.named(name, places)?]),
        None if settings.servers.is_empty() => Err(
            "no server is configured\n  hint: `durward init` writes a configuration; add servers under its key `servers`".into(),
        ),
        None => Ok(settings.servers.iter().collect()),
    }
}

/// Starts a server and lists its tools with what this policy (or the configured one) says of them.
pub(crate) fn list(
    server: &Server,
    policy: Option<&Path>,
    begin: &Begin<'_>,
) -> Result<ServerTools, String> {
    let source = match policy {
        Some(file) => PolicySource::File(file.to_path_buf()),
        None => begin.settings.policy_of(Some(server)).0,
    };
    let rules = source.load(Protected::AsRun, begin.places)?;
    let mut session = Session::begin(&server.name, begin)?;
    let tools = session.tools(&server.name);
    session.end();
    let named = tools?.into_iter().filter_map(|tool| {
        let Value::Object(tool) = tool else {
            return None;
        };
        let name = tool.get("name")?.as_str()?.to_owned();
        Some((name, tool))
    });
    let view = LocalView::new(begin.places);
    let builtin = builtin_of(begin.settings, &server.name, begin.places);
    let listed = named.map(|(name, tool)| {
        let call = HypotheticalCall {
            method: "tools/call",
            name: Some(&name),
            backend: &server.name,
            builtin: builtin.as_deref(),
            subject: &begin.places.user,
            ..HypotheticalCall::default()
        };
        let facts = call.listed_facts(&view);
        ListedTool {
            policy: facts.map(|facts| ToolVerdict::of(&rules, &facts)),
            name,
            tool,
        }
    });
    Ok(ServerTools {
        server: server.name.clone(),
        tools: listed.collect(),
    })
}

/// Prints a server with its tools, as lines.
pub(crate) fn print(listed: &ServerTools, out: &mut dyn Write) -> io::Result<()> {
    let ServerTools { server, tools } = listed;
    let noun = if tools.len() == 1 { "tool" } else { "tools" };
    writeln!(out, "{server}  {} {noun}", tools.len())?;
    let rows: Vec<Vec<String>> = tools
        .iter()
        .map(|listed| {
            let (word, rules) = match &listed.policy {
                Some(policy) => (policy.verdict.label(), policy.rules.join(", ")),
                None => ("unknown", String::new()),
            };
            vec![
                spelled_out(&listed.name),
                word.to_owned(),
                spelled_out(&rules),
                about(&listed.tool).unwrap_or_default(),
            ]
        })
        .collect();
    let table = Table::of(&COLUMNS, &rows, layout::screen_width(), 2);
    rows.iter().try_for_each(|row| table.row(row, out))
}

/// The first line of a tool's description.
fn about(tool: &Map<String, Value>) -> Option<String> {
    let about = tool.get("description")?.as_str()?;
    let first = about.lines().find(|line| !line.trim().is_empty())?;
    Some(spelled_out(&layout::cut(
        first.trim(),
        DESCRIPTION_CHARS_MAX + 1,
    )))
}
