//! `durward install`: a guarded server in an MCP client's configuration, or the client as one of models.
//!
//! Nothing is written without `--write`, nothing is replaced without `--force`, and never without a
//! copy of what was there.

pub mod client;
pub mod entry;
mod models;
mod server;

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{self, Read as _, Write};
use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::{Value, json};
use toolkit::files::unreadable;

use crate::config::{Origin, Settings, Source};
use crate::failure::EXIT_CONFIGURATION;
use crate::flags::Given;
use crate::local;
use crate::places::Places;
use crate::policy;
use admin::atomic::{self, Existing};
use admin::document::{self, Format};
use client::{Client, Location};
use entry::Front;
use server::Chosen;

pub const HELP: &str = "\
Examples:
  durward install claude-desktop -- npx -y @modelcontextprotocol/server-filesystem /tmp
  durward install cursor files --write               the server \"files\" of durward.yaml
  durward install cursor --write                     all servers of durward.yaml, as one
  durward install vscode --project --write --env API_KEY -- my-mcp-server
  durward install codex --models http://127.0.0.1:8765 --model smart --write
  durward install claude-code --url http://127.0.0.1:8765/mcp --key-env DURWARD_KEY

A command after `--` is written into the entry. A server of durward.yaml is not: the entry holds its name only, so
that its command, variables and policy are kept in one place. With --url the client starts nothing and calls a
running `durward serve`.

Without --write the entry is printed, with the file that it belongs in. With --write the file is edited: a backup
FILE.bak-TIME is kept; other servers, comments and everything else stay as they are. --json prints one object: client,
file, name, entry, backup, and status (printed, added, replaced or unchanged).

`durward wrap CLIENT` guards the servers that a client already has.

Exit codes: 0 done; 16 the entry cannot be made, or the file cannot be edited.";

/// Largest configuration that is edited, in bytes.
const CONFIG_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// Arguments of `durward install`.
#[derive(Debug, Args)]
pub struct InstallArgs {
    /// The client
    client: Client,
    /// A server of durward.yaml [default: all of them, as one server]
    #[arg(value_name = "SERVER", conflicts_with_all = ["command", "url", "models"])]
    server: Option<String>,
    /// Add no server: have the client ask `durward serve` at this URL for models (claude-code, codex, opencode)
    #[arg(long, value_name = "URL", conflicts_with_all = ["name", "policy", "environment", "command", "url"])]
    models: Option<String>,
    /// The model that the client asks
    #[arg(long, value_name = "NAME", requires = "models")]
    model: Option<String>,
    /// The server's name in the client; with a command, also in rules (`backend_id`) [default: from the server]
    #[arg(long, value_name = "NAME", value_parser = crate::names::server_name)]
    name: Option<String>,
    /// The rules, as JSON [default: those of durward.yaml, else the starter policy]
    #[arg(long, value_name = "FILE")]
    policy: Option<PathBuf>,
    /// Pass this variable on to the server; a value is kept in the client's file; repeatable
    #[arg(long = "env", value_name = "NAME[=VALUE]")]
    environment: Vec<String>,
    /// Have the client call `durward serve` at this URL, and start nothing
    #[arg(long, value_name = "URL", conflicts_with_all = ["command", "policy", "environment"])]
    url: Option<String>,
    /// With --url: send the API key that this variable holds now; Codex reads the variable itself
    #[arg(long, value_name = "NAME", requires = "url")]
    key_env: Option<String>,
    /// Edit the client's file
    #[arg(long)]
    write: bool,
    /// Replace a server of the same name, or settings of models that are there
    #[arg(long)]
    force: bool,
    /// Print one JSON object
    #[arg(long, conflicts_with = "models")]
    json: bool,
    #[command(flatten)]
    file: FileArgs,
    /// The server's command
    #[arg(last = true, value_name = "CMD")]
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

    /// This program and the flags that every entry needs.
    pub fn front(&self, policy: Option<&Path>, places: &Places) -> Result<Front, String> {
        let mut flags = Vec::new();
        for flag in &self.0 {
            flags.push(text(flag)?);
        }
        if let Some(file) = policy {
            policy::check_file(file, places)?;
            let file = text(places.absolute(file).as_os_str())?;
            flags.extend(["--policy".to_owned(), file]);
        }
        Ok(Front {
            program: text(places.own_binary.as_os_str())?,
            flags,
            variables: Vec::new(),
        })
    }
}

/// Prints or writes the entry; gives the exit code.
pub fn run(
    args: &InstallArgs,
    (kept, settings): (&Kept, &Settings),
    places: &Places,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> u8 {
    match install(args, (kept, settings), places, out, err) {
        Ok(()) => 0,
        Err(message) => {
            let _ = writeln!(err, "error: {message}");
            EXIT_CONFIGURATION
        }
    }
}

fn install(
    args: &InstallArgs,
    (kept, settings): (&Kept, &Settings),
    places: &Places,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> Result<(), String> {
    if let Some(url) = &args.models {
        return models::install(args, url, places, (out, err));
    }
    let chosen = Chosen::of(args, settings, places)?;
    let name = args.name.clone().unwrap_or_else(|| chosen.name());
    let entry = chosen.entry((args, kept), places, &name)?;
    let location = args.file.location(args.client, places)?;
    if args.write {
        return write(args, &location, &name, &entry, out);
    }
    if args.json {
        return object(args, &location, (&name, &entry), ("printed", None), out);
    }
    let _ = writeln!(
        err,
        "add this to {} (or run the same command with --write):",
        location.file.display()
    );
    let snippet = snippet(args.client, &name, &entry)?;
    writeln!(out, "{snippet}").map_err(|error| format!("cannot write: {error}"))
}

/// What was done, for a program.
fn object(
    args: &InstallArgs,
    location: &Location,
    (name, entry): (&str, &Value),
    (status, backup): (&str, Option<&Path>),
    out: &mut dyn Write,
) -> Result<(), String> {
    let told = json!({
        "client": args.client.name(),
        "file": location.file.display().to_string(),
        "name": name,
        "status": status,
        "entry": entry,
        "backup": backup.map(|path| path.display().to_string()),
    });
    writeln!(out, "{told:#}").map_err(|error| format!("cannot write: {error}"))
}

/// Which file of a client is meant.
#[derive(Debug, Args)]
pub struct FileArgs {
    /// Use the file of the project in this directory instead of the user's
    #[arg(long)]
    project: bool,
    /// Use this file of the client
    #[arg(long, value_name = "FILE", conflicts_with = "project")]
    file: Option<PathBuf>,
}

impl FileArgs {
    /// The file: the one that is named, else the project's or the user's.
    pub fn location(&self, client: Client, places: &Places) -> Result<Location, String> {
        if let Some(file) = &self.file {
            return Ok(Location {
                file: places.absolute(file),
                create_folder: false,
            });
        }
        let found = match self.project {
            true => client.of_project(places),
            false => client.of_user(places),
        };
        found.ok_or_else(|| match self.project {
            true => "this client has no configuration for a project; leave --project out".into(),
            false => "HOME is not set; name the client's file with --file".into(),
        })
    }
}

/// The entry as a person would paste it.
fn snippet(client: Client, name: &str, entry: &Value) -> Result<String, String> {
    if client.format() == Format::Json {
        let snippet = json!({ client.section(): { name: entry } });
        return Ok(format!("{snippet:#}"));
    }
    let text = client.format().set("", &[client.section(), name], entry);
    text.map(|text| text.trim_end().to_owned())
        .map_err(|error| error.to_string())
}

/// A word as a configuration file can hold it.
fn text(what: &OsStr) -> Result<String, String> {
    what.to_str().map(str::to_owned).ok_or_else(|| {
        format!(
            "\"{}\" is not UTF-8, and the client's file cannot hold it",
            what.to_string_lossy()
        )
    })
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
    let wrong = |error: &dyn std::fmt::Display| format!("{shown}: {error}");
    let before = read(file).map_err(|error| wrong(&unreadable(&error)))?;
    let old = before.as_deref().unwrap_or_default();
    let (format, path) = (args.client.format(), [args.client.section(), name]);
    let there = format.parse(old).map_err(|error| wrong(&error))?;
    let there = document::at(&there, &path);
    let what = (name, entry);
    let done = match there {
        Some(there) if there == entry && args.json => {
            return object(args, location, what, ("unchanged", None), out);
        }
        Some(there) if there == entry => {
            return say(
                out,
                &format!("{shown}: \"{name}\" is there already; nothing was changed"),
            );
        }
        Some(_) if !args.force => {
            return Err(format!(
                "{shown}: a server \"{name}\" is there already, and differs; choose another --name, or replace it with --force"
            ));
        }
        Some(_) => "replaced",
        None => "added",
    };
    let edited = format
        .set(old, &path, entry)
        .map_err(|error| wrong(&error))?;
    prepare(location).map_err(|error| wrong(&error))?;
    let kept = replace(file, before.as_deref(), &edited)?;
    if args.json {
        return object(args, location, what, (done, kept.as_deref()), out);
    }
    say(out, &format!("{shown}: \"{name}\" {done}"))?;
    if let Some(kept) = kept {
        say(
            out,
            &format!("{}: backup of the file as it was", kept.display()),
        )?;
    }
    say(out, &format!("next: {}", args.client.after()))
}

fn say(out: &mut dyn Write, line: &str) -> Result<(), String> {
    writeln!(out, "{line}").map_err(|error| format!("cannot write: {error}"))
}

/// Writes the new text of a configuration, unless another program has changed it since it was `before`; gives the
/// backup.
pub fn replace(file: &Path, before: Option<&str>, edited: &str) -> Result<Option<PathBuf>, String> {
    let shown = file.display();
    let (existing, kept) = match before {
        Some(text) => (
            Existing::Replace,
            Some(
                atomic::backup(file, text, local::now_ms())
                    .map_err(|error| format!("{shown}: cannot make a backup: {error}"))?,
            ),
        ),
        None => (Existing::Keep, None),
    };
    ensure_unchanged(file, before)?;
    atomic::write(file, edited.as_bytes(), existing)
        .map_err(|error| format!("{shown}: {error}"))?;
    Ok(kept)
}

/// Whether a configuration is still what was read of it.
pub fn ensure_unchanged(file: &Path, before: Option<&str>) -> Result<(), String> {
    let shown = file.display();
    let now = read(file).map_err(|error| format!("{shown}: {error}"))?;
    if now.as_deref() == before {
        return Ok(());
    }
    Err(format!(
        "{shown} was changed by another program meanwhile; try again"
    ))
}

/// The text of a configuration; `None` where there is none.
pub fn read(file: &Path) -> io::Result<Option<String>> {
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
        "the folder {} does not exist, so the client does not seem to be installed; start it once, or name the file with --file",
        folder.display()
    )))
}
