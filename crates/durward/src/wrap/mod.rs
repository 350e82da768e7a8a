//! `durward wrap` and `durward unwrap`: puts this program in front of the servers that an MCP client has already,
//! and takes it away again.
//!
//! Nothing is written before a person has seen the difference and said yes (or `--yes`), and never without a
//! backup.

mod change;
mod declare;
mod record;
mod show;

use std::io::{self, BufRead as _, IsTerminal as _, Write};
use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::{Map, Value, json};
use toolkit::files::{GuardedFiles, unreadable};

use crate::config::Settings;
use crate::failure::EXIT_CONFIGURATION;
use crate::install::client::Client;
use crate::install::entry::Front;
use crate::install::{self, FileArgs, Kept};
use crate::places::Places;
use change::{Change, File, Outcome};
use record::Record;

pub const WRAP_HELP: &str = "\
Examples:
  durward wrap claude-desktop                         show the changes, ask, then write them
  durward wrap cursor --server github --policy policy.json
  durward wrap vscode --project --yes                 .vscode/mcp.json here, without asking
  durward wrap codex --dry-run                        show the changes only

An entry `npx -y my-server` becomes `durward run --name NAME -- npx -y my-server`; the variables of its `env` are
passed on, and those of an `envFile` that can be read here. An entry with a URL becomes `durward run --url URL`; its
bearer token moves into the entry's `env`. Durward cannot log in to a server (OAuth): an https:// URL without a token is
skipped unless you name it with --server. Entries that are wrapped already are skipped, so you can repeat the command
after adding servers. Secrets are masked in what is shown.

At a terminal the wrapped servers can then be started once, and you are shown what each of their tools seems to do: what
you accept or change is declared in durward.yaml (servers.NAME.tools), which `durward run --name NAME` reads.
--accept-classes declares it without asking.

The file as it was is kept as FILE.bak-TIME; `durward unwrap CLIENT` restores it. --json asks nothing and prints one
object: client, file, written, servers, skipped, notes, backup, and with --accept-classes classes.

Exit codes: 0 done, or nothing to do; 1 nothing was written because nobody said yes; 16 the file or a chosen server
cannot be wrapped.";

pub const UNWRAP_HELP: &str = "\
Examples:
  durward unwrap claude-desktop                       restore the file
  durward unwrap cursor --server github               unwrap one server

If the file has not been changed since it was wrapped, it is restored byte for byte from the backup. Otherwise each
entry that runs `durward run -- CMD` or `durward run --url URL` gets its own command or URL back, and later changes
of the file are kept. --json asks nothing and prints one object: client, file, written, servers, skipped, notes, backup.

Exit codes: 0 done, or nothing to do; 1 nothing was written because nobody said yes; 16 the file cannot be edited.";

/// Nobody said yes.
const EXIT_NOT_CONFIRMED: u8 = 1;

/// Which servers of which client.
#[derive(Debug, Args)]
pub struct ChosenArgs {
    /// The client
    client: Client,
    /// Only this server; repeatable [default: all]
    #[arg(long = "server", value_name = "NAME")]
    servers: Vec<String>,
    /// Write without asking
    #[arg(long, short)]
    yes: bool,
    /// Show the changes and write nothing
    #[arg(long, conflicts_with = "yes")]
    dry_run: bool,
    /// Print one JSON object; needs --yes or --dry-run
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    file: FileArgs,
}

/// Arguments of `durward wrap`.
#[derive(Debug, Args)]
pub struct WrapArgs {
    #[command(flatten)]
    chosen: ChosenArgs,
    /// The rules for these servers, as JSON [default: those of durward.yaml, else the starter policy]
    #[arg(long, value_name = "FILE")]
    policy: Option<PathBuf>,
    /// Pass this variable of the client's environment on to the servers too; repeatable
    #[arg(long = "env", value_name = "NAME")]
    environment: Vec<String>,
    /// Start each wrapped server once, and declare what its tools seem to do without asking
    #[arg(long, conflicts_with = "dry_run")]
    accept_classes: bool,
}

/// Arguments of `durward unwrap`.
#[derive(Debug, Args)]
pub struct UnwrapArgs {
    #[command(flatten)]
    chosen: ChosenArgs,
}

/// Returns the clients' files that are wrapped: whoever changes one puts another program in the place of this one.
pub fn guarded(state: &Path) -> GuardedFiles {
    GuardedFiles {
        closed: Vec::new(),
        read_only: Record::files(state),
    }
}

/// Wraps; gives the exit code.
pub fn wrap(
    args: &WrapArgs,
    (kept, settings): (&Kept, &Settings),
    places: &Places,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> u8 {
    let front = match front(args, kept, places) {
        Ok(front) => front,
        Err(message) => return failed(&message, err),
    };
    let plan = |file: &File| change::wrap(file, &args.chosen.servers, &front, &places.own_binary);
    let nothing = "the client has no servers yet\n  hint: `durward install` adds one; --file names another file";
    let declarer = declare::Declarer {
        client: args.chosen.client,
        accepts: args.accept_classes,
        asks: !args.chosen.yes,
        settings,
        places,
    };
    let declare = |change: &Change, out: &mut dyn Write, err: &mut dyn Write| {
        declarer.declare(&change.wrapped, out, err)
    };
    apply(&args.chosen, (&plan, nothing, &declare), places, out, err)
        .unwrap_or_else(|message| failed(&message, err))
}

/// Unwraps; gives the exit code.
pub fn unwrap(args: &UnwrapArgs, places: &Places, out: &mut dyn Write, err: &mut dyn Write) -> u8 {
    let plan = |file: &File| change::unwrap(file, &args.chosen.servers, &places.own_binary);
    let nothing = "there is nothing to unwrap\n  hint: --file names another file, --project that of this directory";
    let declare = |_: &Change, _: &mut dyn Write, _: &mut dyn Write| Ok(None);
    apply(&args.chosen, (&plan, nothing, &declare), places, out, err)
        .unwrap_or_else(|message| failed(&message, err))
}

fn failed(message: &str, err: &mut dyn Write) -> u8 {
    let _ = writeln!(err, "error: {message}");
    EXIT_CONFIGURATION
}

fn front(args: &WrapArgs, kept: &Kept, places: &Places) -> Result<Front, String> {
    if let Some(wrong) = args
        .environment
        .iter()
        .find(|name| name.is_empty() || name.contains('='))
    {
        return Err(format!(
            "\"{wrong}\" is not the name of a variable; write --env NAME"
        ));
    }
    Ok(Front {
        variables: args.environment.clone(),
        ..kept.front(args.policy.as_deref(), places)?
    })
}

/// What is to be changed in a file.
type Plan<'a> = dyn Fn(&File) -> Result<Change, String> + 'a;
/// Declares what the tools of changed servers do; returns their classes by server, if that was wanted.
type Declare<'a> = dyn Fn(&Change, &mut dyn Write, &mut dyn Write) -> Result<Option<Map<String, Value>>, String>
    + 'a;

fn apply(
    args: &ChosenArgs,
    (plan, nothing, declare): (&Plan<'_>, &str, &Declare<'_>),
    places: &Places,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> Result<u8, String> {
    let path = args.file.location(args.client, places)?.file;
    let shown = path.display();
    let unprinted = |error: io::Error| format!("cannot write: {error}");
    let text = install::read(&path).map_err(|error| format!("{shown}: {}", unreadable(&error)))?;
    let text = text.ok_or_else(|| format!("{shown} does not exist: {nothing}"))?;
    let record = Record::find(&path, &places.state);
    let mut file =
        File::new(args.client, text, record).map_err(|error| format!("{shown}: {error}"))?;
    // A file of a project lies in a folder of the client's within it.
    file.workspace = path.parent().and_then(Path::parent).map(Path::to_path_buf);
    let change = plan(&file).map_err(|error| format!("{shown}: {error}"))?;
    if args.json {
        return as_object(args, (&path, &file), (&change, declare), places, (out, err));
    }
    show::skipped(&change, out).map_err(unprinted)?;
    show::notes(&change, out).map_err(unprinted)?;
    if change.steps.is_empty() {
        writeln!(out, "{shown}: nothing to change").map_err(unprinted)?;
        return Ok(0);
    }
    writeln!(out, "{shown}:").map_err(unprinted)?;
    show::difference(&file, &change, out).map_err(unprinted)?;
    if args.dry_run {
        writeln!(out, "nothing was written (--dry-run)").map_err(unprinted)?;
        return Ok(0);
    }
    if !args.yes && !confirmed(out, err).map_err(unprinted)? {
        return Ok(EXIT_NOT_CONFIRMED);
    }
    let told = change::write(&path, &file, &change, &places.state)?;
    done(args.client, &shown.to_string(), &change, told, out).map_err(unprinted)?;
    declare(&change, out, err)?;
    Ok(0)
}

/// The same for a program: nothing is asked, and what was done is one object.
fn as_object(
    args: &ChosenArgs,
    (path, file): (&Path, &File),
    (change, declare): (&Change, &Declare<'_>),
    places: &Places,
    (out, err): (&mut dyn Write, &mut dyn Write),
) -> Result<u8, String> {
    if !args.yes && !args.dry_run {
        return Err("--json asks nothing; give --yes to write, or --dry-run to look".into());
    }
    let written = !change.steps.is_empty() && args.yes;
    let outcome = match written {
        true => Some(change::write(path, file, change, &places.state)?),
        false => None,
    };
    // A backup that the file was restored from is gone.
    let backup = match &outcome {
        Some(Outcome::Edited(backup)) => Some(backup.display().to_string()),
        Some(Outcome::Restored(_)) | None => None,
    };
    let servers: Vec<&str> = change.steps.iter().map(|step| step.name.as_str()).collect();
    let skipped = change.skipped.iter();
    let skipped: Vec<Value> = skipped
        .map(|(name, why)| json!({ "server": name, "why": why }))
        .collect();
    let notes = change.notes.iter();
    let notes: Vec<Value> = notes
        .map(|(name, note)| json!({ "server": name, "note": note }))
        .collect();
    let classes = match written {
        true => declare(change, &mut io::sink(), err)?,
        false => None,
    };
    let mut told = json!({
        "client": args.client.name(),
        "file": path.display().to_string(),
        "written": written,
        "servers": servers,
        "skipped": skipped,
        "notes": notes,
        "backup": backup,
    });
    if let (Some(classes), Some(members)) = (classes, told.as_object_mut()) {
        members.insert("classes".into(), Value::Object(classes));
    }
    writeln!(out, "{told:#}").map_err(|error| format!("cannot write: {error}"))?;
    Ok(0)
}

fn done(
    client: Client,
    file: &str,
    change: &Change,
    outcome: Outcome,
    out: &mut dyn Write,
) -> io::Result<()> {
    let names: Vec<&str> = change.steps.iter().map(|step| step.name.as_str()).collect();
    writeln!(out, "{file}: {} {}", change.verb, names.join(", "))?;
    match outcome {
        Outcome::Edited(backup) => {
            writeln!(out, "{}: backup of the file as it was", backup.display())?;
        }
        Outcome::Restored(backup) => {
            writeln!(
                out,
                "restored byte for byte; the backup {} was removed",
                backup.display()
            )?;
        }
    }
    writeln!(out, "next: {}", client.after())
}

/// Asks the person at the terminal.
fn confirmed(out: &mut dyn Write, err: &mut dyn Write) -> io::Result<bool> {
    if !io::stdin().is_terminal() {
        let _ = writeln!(
            err,
            "error: nothing was written: standard input is not a terminal\n  hint: --yes writes without asking, --dry-run only shows the changes"
        );
        return Ok(false);
    }
    write!(out, "Write these changes? [y/N] ")?;
    out.flush()?;
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer)?;
    let yes = matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes");
    if !yes {
        writeln!(out, "nothing was written")?;
    }
    Ok(yes)
}
