//! `durward keys`: who may call `durward serve`.

use std::io::{self, Write};

use admin::AdminError;
use admin::keys::{IssuedKey, KeyDirectory, KeyEntry};
use clap::{Args, Subcommand};
use gate::identity::{NewKey, Rotation};

use crate::config::Settings;
use crate::config::values::Span;
use crate::failure::{self, CommandFamily};
use crate::layout;
use crate::layout::table::{Column, Long, Table};
use crate::local;
use crate::names::server_name;
use crate::places::Places;

pub const HELP: &str = "\
Examples:
  durward keys create laptop
  durward keys create ci --expires 720h --scope files
  durward keys rotate ci --overlap 1h
  durward keys list

A key is printed once; only a digest is stored. A running `durward serve` picks up a change within a second. Once a
key has been created, requests without a key are refused, even after all keys were revoked. When a key is revoked,
its sessions, streams and waiting calls end. Rotating a key ends them too, unless --overlap keeps the old secret
valid for a while.

With --json, `create` and `rotate` print the key as the member `key` of the object that `list` has for it.

Exit codes: 0 done; 10 the state directory cannot be used; 16 it could not be done.";

const CREATE_HELP: &str = "\
Examples:
  durward keys create laptop
  durward keys create ci --expires 720h --scope files
  durward keys create agent --group team-a --json | jq -r .key";

const LIST_HELP: &str = "\
Examples:
  durward keys list
  durward keys list --json | jq -r '.[].name'";

const ROTATE_HELP: &str = "\
Examples:
  durward keys rotate ci                  the old secret ends at once
  durward keys rotate ci --overlap 1h     both are valid for an hour";

const REVOKE_HELP: &str = "\
Examples:
  durward keys revoke laptop";

/// A name that rules and the journal can have.
fn key_name(text: &str) -> Result<String, String> {
    server_name(text).map_err(|_| {
        "a key's name has 1 to 64 letters, digits, - _ or ., without a double underscore or an underscore at its end"
            .to_owned()
    })
}

/// Arguments of `durward keys`.
#[derive(Debug, Args)]
pub struct KeysArgs {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Create a key and print it once
    #[command(after_help = CREATE_HELP)]
    Create {
        /// Its name: callers are `key:NAME` in rules and in the journal
        #[arg(value_name = "NAME", value_parser = key_name)]
        name: String,
        /// When it expires, from now: `12h`, `30m` [default: never]
        #[arg(long, value_name = "SPAN", value_parser = some_time)]
        expires: Option<Span>,
        /// A server or model provider that it may use; repeatable [default: all]
        #[arg(long = "scope", value_name = "SERVER", value_parser = server_name)]
        servers: Vec<String>,
        /// Accept scopes that durward.yaml does not name, for servers of `durward serve --server`
        #[arg(long, requires = "servers")]
        unlisted: bool,
        /// A group that its caller belongs to; repeatable [default: none]
        #[arg(long = "group", value_name = "GROUP", value_parser = group_name)]
        groups: Vec<String>,
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
    /// List the keys, without their secrets
    #[command(after_help = LIST_HELP)]
    List {
        /// Print one JSON array
        #[arg(long)]
        json: bool,
    },
    /// Replace the secret of a key and print it; the old one is revoked
    #[command(after_help = ROTATE_HELP)]
    Rotate {
        /// Its name
        #[arg(value_name = "NAME")]
        name: String,
        /// How long the old secret stays valid, at most 30 days: `1h` [default: it is revoked at once]
        #[arg(long, value_name = "SPAN", value_parser = overlap)]
        overlap: Option<Span>,
        /// When the key expires, from now: `12h`, `30m` [default: as before]
        #[arg(long, value_name = "SPAN", value_parser = some_time)]
        expires: Option<Span>,
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Revoke a key
    #[command(after_help = REVOKE_HELP)]
    Revoke {
        /// Its name
        #[arg(value_name = "NAME")]
        name: String,
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
}

/// Longest time that two texts of a key are good beside each other, in milliseconds.
const OVERLAP_MS_MAX: u64 = 30 * 24 * 3_600_000;

fn some_time(text: &str) -> Result<Span, String> {
    match text.parse::<Span>()? {
        Span(0) => Err("must be longer than 0".to_owned()),
        span => Ok(span),
    }
}

fn group_name(text: &str) -> Result<String, String> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
    if (1..=64).contains(&text.len()) && text.chars().all(plain) {
        Ok(text.to_owned())
    } else {
        Err("a group's name has 1 to 64 letters, digits, - _ or .".to_owned())
    }
}

fn overlap(text: &str) -> Result<Span, String> {
    let span = some_time(text)?;
    if span.0 > OVERLAP_MS_MAX {
        return Err("is longer than 30 days (720h); create a second key instead, and revoke the old one later".to_owned());
    }
    Ok(span)
}

/// Whether the scopes of a new key are servers; those of a configuration are the ones that are known.
fn check_scopes(command: &Command, settings: &Settings, err: &mut dyn Write) -> Result<(), String> {
    let Command::Create {
        servers,
        unlisted: false,
        ..
    } = command
    else {
        return Ok(());
    };
    let providers = settings.models.providers.iter().map(|p| p.name.as_str());
    let servers_known = settings.servers.iter().map(|s| s.name.as_str());
    let known: Vec<&str> = servers_known.chain(providers).collect();
    match servers.iter().find(|name| !known.contains(&name.as_str())) {
        Some(unknown) if !known.is_empty() => Err(format!(
            "durward.yaml has no server \"{unknown}\"; scopes are: {}\n  hint: --unlisted accepts the name of a server of `durward serve --server`",
            known.join(", ")
        )),
        Some(unchecked) => {
            let _ = writeln!(
                err,
                "note: durward.yaml has no servers yet; the scope \"{unchecked}\" was not checked"
            );
            Ok(())
        }
        None => Ok(()),
    }
}

/// Does what is asked; gives the exit code.
pub fn run(
    args: &KeysArgs,
    settings: &Settings,
    places: &Places,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> u8 {
    if let Err(message) = check_scopes(&args.command, settings, err) {
        let _ = writeln!(err, "error: {message}");
        return crate::failure::EXIT_CONFIGURATION;
    }
    let directory = places.keys();
    let keys = KeyDirectory {
        path: &directory,
        now_ms: local::now_ms(),
        random: &local::random,
    };
    let error = match print(&args.command, &keys, out) {
        Ok(Ok(())) => return 0,
        Ok(Err(error)) if error.kind() == io::ErrorKind::BrokenPipe => return 0,
        Ok(Err(error)) => {
            let _ = writeln!(err, "error: cannot write: {error}");
            return 2;
        }
        Err(error) => error,
    };
    let hint = match &error {
        AdminError::Random(_) => "; revoke the key if it is listed",
        _ => "",
    };
    let _ = writeln!(err, "error: {error}{hint}");
    failure::exit_code(CommandFamily::Keys, error.kind())
}

/// Runs the operation and prints its result.
fn print(
    command: &Command,
    keys: &KeyDirectory<'_>,
    out: &mut dyn Write,
) -> Result<io::Result<()>, AdminError> {
    let later = |span: Span| {
        let span_ms = i64::try_from(span.0).unwrap_or(i64::MAX);
        keys.now_ms.saturating_add(span_ms)
    };
    let printed = match command {
        Command::Create {
            name,
            expires,
            servers,
            groups,
            json,
            ..
        } => {
            let issued = keys.create(NewKey {
                name: name.clone(),
                expires_ms: expires.map(later),
                servers: servers.clone(),
                groups: groups.clone(),
            })?;
            print_issued(&issued, *json, out)
        }
        Command::Rotate {
            name,
            overlap,
            expires,
            json,
        } => {
            let rotation = Rotation {
                overlap_until_ms: overlap.map(later),
                expires_ms: expires.map(later),
            };
            print_issued(&keys.rotate(name, rotation)?, *json, out)
        }
        Command::Revoke { name, json } => {
            let entry = keys.revoke(name)?;
            match json {
                true => layout::json(&entry, out),
                false => writeln!(out, "{name} is revoked"),
            }
        }
        Command::List { json: true } => layout::json(&keys.list()?, out),
        Command::List { json: false } => list(&keys.list()?, out),
    };
    Ok(printed.and_then(|()| out.flush()))
}

/// Prints a new secret, this once.
fn print_issued(issued: &IssuedKey, json: bool, out: &mut dyn Write) -> io::Result<()> {
    match json {
        true => layout::json(issued, out),
        false => writeln!(out, "{}", issued.key.reveal()),
    }
}

/// The columns of `keys list`.
const COLUMNS: [Column; 7] = [
    Column::new("NAME", 8, Long::Cut),
    Column::new("STATE", 0, Long::Whole),
    Column::new("SCOPE", 8, Long::Wrap),
    Column::new("GROUPS", 6, Long::Wrap).of_rank(2),
    Column::new("CREATED", 0, Long::Whole).of_rank(3),
    Column::new("EXPIRES", 0, Long::Whole).of_rank(1),
    Column::new("OLD SECRET UNTIL", 0, Long::Whole).of_rank(2),
];

fn list(entries: &[KeyEntry], out: &mut dyn Write) -> io::Result<()> {
    if entries.is_empty() {
        return writeln!(
            out,
            "no keys yet; create one with: durward keys create NAME"
        );
    }
    let utc = gate::journal::format_utc;
    let or_dash = |text: String| match text.as_str() {
        "" => "-".to_owned(),
        _ => text,
    };
    let row = |entry: &KeyEntry| {
        let scope = match entry.servers.as_slice() {
            [] => "all servers".to_owned(),
            servers => servers.join(","),
        };
        let overlap = entry.overlap_until_ms;
        vec![
            entry.name.clone(),
            entry.state.label().to_owned(),
            scope,
            or_dash(entry.groups.join(",")),
            utc(entry.created_ms),
            entry.expires_ms.map_or_else(|| "never".to_owned(), utc),
            overlap.map_or_else(|| "-".to_owned(), utc),
        ]
    };
    let rows: Vec<Vec<String>> = entries.iter().map(row).collect();
    let table = Table::of(&COLUMNS, &rows, layout::screen_width(), 0);
    table.heading(out)?;
    rows.iter().try_for_each(|row| table.row(row, out))
}
