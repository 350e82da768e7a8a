//! `durward install`: a guarded server in an MCP client's configuration.
//!
//! Nothing is written without `--write`, nothing is replaced without `--force`, and never without a
//! copy of what was there.

pub mod client;
mod edit;

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{self, Read as _, Write};
use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::{Map, Value, json};

use crate::atomic::{self, Existing};
use crate::config::{Origin, Source};
use crate::failure::EXIT_CONFIGURATION;
use crate::flags::Given;
use crate::places::Places;
use crate::{names, policy};
use client::{Client, Location};
use edit::Edit;

pub const HELP: &str = "\
Examples:
  durward install claude-desktop -- npx -y @modelcontextprotocol/server-filesystem /tmp
  durward install cursor --name files --policy policy.json --write -- npx -y @modelcontextprotocol/server-filesystem /tmp
  durward install vscode --project --write --env API_KEY -- my-mcp-server

Without --write the entry is printed, and where it belongs is said. With --write the file is edited: a
copy FILE.bak-TIME is kept, other servers and everything else stay as they are, and a file that is not
plain JSON is refused.";

/// Largest configuration that is edited, in bytes.
const CONFIG_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// Arguments of `durward install`.
#[derive(Debug, Args)]
pub struct InstallArgs {
    /// The client
    client: Client,
    /// The server's name in the client and in rules (`backend_id`) [default: from the command]
    #[arg(long, value_name = "NAME", value_parser = crate::names::server_name)]
    name: Option<String>,
    /// The rules, as JSON [default: the starter policy]
    #[arg(long, value_name = "FILE")]
    policy: Option<PathBuf>,
    /// Pass this variable on to the server; a value is kept in the client's file; repeatable
    #[arg(long = "env", value_name = "NAME[=VALUE]")]
    environment: Vec<String>,
    /// Edit the client's file
    #[arg(long)]
    write: bool,
    /// Replace a server of the same name
    #[arg(long)]
    force: bool,
    /// Use the file of the project in this directory instead of the user's
    #[arg(long)]
    project: bool,
    /// Use this file
    #[arg(long, value_name = "FILE", conflicts_with = "project")]
    file: Option<PathBuf>,
    /// The server's command
    #[arg(last = true, required = true, value_name = "CMD")]
    command: Vec<OsString>,
}

/// What the command line says for every command, and the entry has to say as well.
#[derive(Debug, Default)]
pub struct Kept(Vec<OsString>);

impl Kept {
    /// The flags that `durward run` needs to work with the same state and configuration.
    pub fn of(given: &Given, source: &Source, places: &Places) -> Self {
        let mut flags: Vec<OsString> = Vec::new();
        if !matches!(given.state_dir, Origin::Default) {
            flags.extend(["--state-dir".into(), places.state.clone().into()]);
        }
        match source {
            Source::None => flags.push("--no-config".into()),
            Source::File(file) => flags.extend(["--config".into(), places.absolute(file).into()]),
            Source::Default => {}
        }
        Self(flags)
    }
}

/// Prints or writes the entry; gives the exit code.
pub fn run(
    args: &InstallArgs,
    kept: &Kept,
    places: &Places,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> u8 {
    match install(args, kept, places, out, err) {
        Ok(()) => 0,
        Err(message) => {
            let _ = writeln!(err, "error: {message}");
            EXIT_CONFIGURATION
        }
    }
}

fn install(
    args: &InstallArgs,
    kept: &Kept,
    places: &Places,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> Result<(), String> {
    let (program, arguments) = args
        .command
        .split_first()
        .ok_or("no server command was given")?;
    if let Some(file) = &args.policy {
        policy::check_file(file, places)?;
    }
    let name = args
        .name
        .clone()
        .unwrap_or_else(|| names::of_command(program, arguments));
    let entry = entry((args, kept), places, &name, program, arguments)?;
    let location = location(args, places)?;
    let section = args.client.section();
    if args.write {
        return write(args, &location, &name, &entry, out);
    }
    let _ = writeln!(
        err,
        "add this to {} (or run the same command with --write):",
        location.file.display()
    );
    let snippet = json!({ section: { name: entry } });
    writeln!(out, "{snippet:#}").map_err(|error| format!("cannot write: {error}"))
}

fn location(args: &InstallArgs, places: &Places) -> Result<Location, String> {
    if let Some(file) = &args.file {
        return Ok(Location {
            file: places.absolute(file),
            create_folder: false,
        });
    }
    let found = if args.project {
        args.client.of_project(places)
    } else {
        args.client.of_user(places)
    };
    found.ok_or_else(|| {
        if args.project {
            "this client has no configuration for a project; leave --project out".to_owned()
        } else {
            "there is no home directory to look in; name the file with --file".to_owned()
        }
    })
}

/// The client's entry: this program, with the server's own command behind it.
fn entry(
    (args, kept): (&InstallArgs, &Kept),
    places: &Places,
    name: &str,
    program: &OsStr,
    arguments: &[OsString],
) -> Result<Value, String> {
    let text = |what: &OsStr| {
        what.to_str().map(str::to_owned).ok_or_else(|| {
            format!(
                "\"{}\" is not utf-8, and a JSON file cannot hold it",
                what.to_string_lossy()
            )
        })
    };
    let mut line = vec!["run".to_owned(), "--name".to_owned(), name.to_owned()];
    for flag in &kept.0 {
        line.push(text(flag)?);
    }
    if let Some(file) = &args.policy {
        line.extend([
            "--policy".to_owned(),
            text(places.absolute(file).as_os_str())?,
        ]);
    }
    let mut values = Map::new();
    for variable in &args.environment {
        let (name, value) = match variable.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (variable.as_str(), None),
        };
        if name.is_empty() {
            return Err(format!(
                "\"{variable}\" names no variable; write NAME or NAME=VALUE"
            ));
        }
        line.extend(["--env".to_owned(), name.to_owned()]);
        values.extend(value.map(|value| (name.to_owned(), json!(value))));
    }
    line.push("--".to_owned());
    // Clients start elsewhere: a program below this directory would not be found.
    let relative = program.to_string_lossy().contains('/') && Path::new(program).is_relative();
    line.push(if relative {
        text(places.absolute(Path::new(program)).as_os_str())?
    } else {
        text(program)?
    });
    for argument in arguments {
        line.push(text(argument)?);
    }
    let mut entry = Map::new();
    if args.client.states_type() {
        entry.insert("type".into(), json!("stdio"));
    }
    entry.insert(
        "command".into(),
        json!(text(places.own_binary.as_os_str())?),
    );
    entry.insert("args".into(), json!(line));
    if !values.is_empty() {
        entry.insert("env".into(), Value::Object(values));
    }
    Ok(Value::Object(entry))
}

fn write(
    args: &InstallArgs,
    location: &Location,
    name: &str,
    entry: &Value,
    out: &mut dyn Write,
) -> Result<(), String> {
    let file = &location.file;
    let shown = file.display();
    let before = read(file).map_err(|error| format!("{shown}: {error}"))?;
    let text = before.as_deref().unwrap_or_default();
    let section = args.client.section();
    let edited = edit::set(text, section, name, entry, args.force)
        .map_err(|error| format!("{shown}: {error}"))?;
    let mut say = |line: String| writeln!(out, "{line}").map_err(|e| format!("cannot write: {e}"));
    let (edited, done) = match edited {
        Edit::Added(text) => (text, "added"),
        Edit::Replaced(text) => (text, "replaced"),
        Edit::Nothing => {
            return say(format!(
                "{shown}: \"{name}\" is there already; nothing was changed"
            ));
        }
    };
    prepare(location).map_err(|error| format!("{shown}: {error}"))?;
    let existing = match &before {
        Some(_) => Existing::Replace,
        None => Existing::Keep,
    };
    let kept = match &before {
        Some(text) => Some(
            atomic::backup(file, text)
                .map_err(|error| format!("{shown}: cannot keep a copy: {error}"))?,
        ),
        None => None,
    };
    if read(file).map_err(|error| format!("{shown}: {error}"))? != before {
        return Err(format!(
            "{shown} has just been changed by another program; try again"
        ));
    }
    atomic::write(file, edited.as_bytes(), existing)
        .map_err(|error| format!("{shown}: {error}"))?;
    say(format!("{shown}: \"{name}\" {done}"))?;
    if let Some(kept) = kept {
        say(format!("{}: what was there", kept.display()))?;
    }
    say(format!("next: {}", args.client.after()))
}

/// The text of a configuration; `None` where there is none.
fn read(file: &Path) -> io::Result<Option<String>> {
    let open = match fs::File::open(file) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        other => other?,
    };
    let mut text = String::new();
    open.take(CONFIG_BYTES_MAX + 1).read_to_string(&mut text)?;
    if text.len() as u64 > CONFIG_BYTES_MAX {
        return Err(io::Error::other("the file is longer than 16 MiB"));
    }
    Ok(Some(text))
}

/// Sees to it that the folder is there: a project's is created, a client's has to exist.
fn prepare(location: &Location) -> io::Result<()> {
    let Some(folder) = location.file.parent() else {
        return Ok(());
    };
    if location.create_folder {
        return fs::create_dir_all(folder);
    }
    if folder.is_dir() {
        return Ok(());
    }
    Err(io::Error::other(format!(
        "the folder {} is not there, so the client seems not to be installed; start it once, or name the file with --file",
        folder.display()
    )))
}
