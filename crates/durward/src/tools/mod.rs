//! `durward tools` and `durward call`: the tools of the configured servers, from the command line, through the gate.

pub mod call;
pub(crate) mod session;
pub(crate) mod start;
pub(crate) mod verdict;

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::Args;
use mcp::descriptions::hidden::spelled_out;
use serde_json::{Value, json};

use crate::config::Settings;
use crate::config::server::Server;
use crate::failure::EXIT_CONFIGURATION;
use crate::layout;
use crate::layout::table::{Column, Long, Table};
use crate::places::Places;
use crate::policy::source::{PolicySource, Protected};
use session::{Begin, Session};
use verdict::Verdict;

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

/// A tool and what the policy says of it.
pub(crate) struct Listed {
    pub name: String,
    pub verdict: Option<Verdict>,
    /// As the server describes it.
    pub tool: Value,
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
            true => writeln!(out, "{}", object(&server.name, &tools)),
            false => print(&server.name, &tools, out),
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
) -> Result<Vec<Listed>, String> {
    let source = match policy {
        Some(file) => PolicySource::File(file.to_path_buf()),
        None => begin.settings.policy_of(Some(server)).0,
    };
    let rules = source.load(Protected::AsRun, begin.places)?;
    let mut session = Session::begin(&server.name, begin)?;
    let tools = session.tools(&server.name);
    session.end();
    let named = tools?.into_iter().filter_map(|tool| {
        let name = tool.get("name")?.as_str()?.to_owned();
        Some((name, tool))
    });
    let listed = named.map(|(name, tool)| Listed {
        verdict: Verdict::of(
            &rules,
            &server.name,
            server.builtin.as_ref(),
            &name,
            begin.places,
        ),
        name,
        tool,
    });
    Ok(listed.collect())
}

/// A server with its tools, as lines.
pub(crate) fn print(server: &str, tools: &[Listed], out: &mut dyn Write) -> io::Result<()> {
    let noun = if tools.len() == 1 { "tool" } else { "tools" };
    writeln!(out, "{server}  {} {noun}", tools.len())?;
    let rows: Vec<Vec<String>> = tools
        .iter()
        .map(|listed| {
            let (word, rules) = match &listed.verdict {
                Some(verdict) => (verdict.word, verdict.rules.join(", ")),
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
fn about(tool: &Value) -> Option<String> {
    let about = tool.get("description")?.as_str()?;
    let first = about.lines().find(|line| !line.trim().is_empty())?;
    Some(spelled_out(&layout::cut(
        first.trim(),
        DESCRIPTION_CHARS_MAX + 1,
    )))
}

/// A server with its tools, as JSON.
pub(crate) fn object(server: &str, tools: &[Listed]) -> Value {
    let tools = tools.iter().map(|listed| {
        let mut tool = listed.tool.clone();
        if let (Some(members), Some(verdict)) = (tool.as_object_mut(), &listed.verdict) {
            members.insert("policy".into(), verdict.json());
        }
        tool
    });
    json!({ "server": server, "tools": tools.collect::<Vec<_>>() })
}
