//! `durward keys`: who may call `durward serve`.

use std::io::{self, Write};

use clap::{Args, Subcommand};
use gate::identity::{Entry, KeyRing, NewKey, RingError, Rotation};

use crate::config::Settings;
use crate::config::values::Span;
use crate::failure::Failure;
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
    let mut broken = None;
    let mut random = |bytes: &mut [u8]| {
        if let Err(error) = local::random(bytes) {
            broken = Some(error);
        }
    };
    let done = act(&args.command, places, &mut random);
    // A text without randomness behind it must not be used.
    let failed = match (done, broken) {
        (_, Some(error)) => Failure::configuration(format!(
            "no random bytes: {error}; revoke the key if it is listed"
        )),
        (Err(error), None) => Failure::of_keys(&error),
        (Ok(text), None) => {
            return match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
                Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
                    let _ = writeln!(err, "error: cannot write: {error}");
                    2
                }
                _ => 0,
            };
        }
    };
    let _ = writeln!(err, "error: {}", failed.message);
    failed.code
}

fn act(
    command: &Command,
    places: &Places,
    random: &mut dyn FnMut(&mut [u8]),
) -> Result<String, RingError> {
    let now_ms = local::now_ms();
    let later = |span: Span| now_ms.saturating_add(i64::try_from(span.0).unwrap_or(i64::MAX));
    let mut ring = KeyRing::open(&places.keys(), random)?;
    match command {
        Command::Create {
            name,
            expires,
            servers,
            groups,
            json,
            ..
        } => {
            let expires_ms = expires.map(later);
            let new = NewKey {
                name: name.clone(),
                expires_ms,
                servers: servers.clone(),
                groups: groups.clone(),
            };
            let text = ring.create(new, now_ms, random)?;
            Ok(made(&ring, (name, &text), *json, now_ms))
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
            let text = ring.rotate(name, rotation, now_ms, random)?;
            Ok(made(&ring, (name, &text), *json, now_ms))
        }
        Command::Revoke { name, json } => {
            ring.revoke(name, now_ms)?;
            Ok(match json {
                true => format!("{:#}\n", one(&ring, name, now_ms)),
                false => format!("{name} is revoked\n"),
            })
        }
        Command::List { json: true } => {
            let entries: Vec<serde_json::Value> =
                ring.entries().iter().map(|e| object(e, now_ms)).collect();
            Ok(format!("{:#}\n", serde_json::Value::from(entries)))
        }
        Command::List { json: false } => Ok(list(ring.entries(), now_ms)),
    }
}

/// A new text of a key, which is printed this once.
fn made(ring: &KeyRing, (name, text): (&str, &str), json: bool, now_ms: i64) -> String {
    if !json {
        return format!("{text}\n");
    }
    let mut key = one(ring, name, now_ms);
    if let Some(members) = key.as_object_mut() {
        members.insert("key".into(), text.into());
    }
    format!("{key:#}\n")
}

/// A key as `list` has it.
fn one(ring: &KeyRing, name: &str, now_ms: i64) -> serde_json::Value {
    let entry = ring.entries().iter().rev().find(|entry| entry.name == name);
    entry.map_or(serde_json::Value::Null, |entry| object(entry, now_ms))
}

fn state(entry: &Entry, now_ms: i64) -> &'static str {
    match entry.good_at(now_ms) {
        Ok(()) => "good",
        Err(_) if entry.revoked_ms.is_some() => "revoked",
        Err(_) => "expired",
    }
}

fn object(entry: &Entry, now_ms: i64) -> serde_json::Value {
    serde_json::json!({
        "name": entry.name,
        "state": state(entry, now_ms),
        "created_ms": entry.created_ms,
        "expires_ms": entry.expires_ms,
        "revoked_ms": entry.revoked_ms,
        "overlap_until_ms": entry.overlap_until_ms().filter(|end| now_ms < *end),
        "servers": entry.servers,
        "groups": entry.groups,
    })
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

fn list(entries: &[Entry], now_ms: i64) -> String {
    if entries.is_empty() {
        return "no keys yet; create one with: durward keys create NAME\n".to_owned();
    }
    let utc = gate::journal::format_utc;
    let mut rows = Vec::with_capacity(entries.len());
    let or_dash = |text: String| {
        if text.is_empty() {
            "-".to_owned()
        } else {
            text
        }
    };
    for entry in entries {
        let scope = match entry.servers.as_slice() {
            [] => "all servers".to_owned(),
            servers => servers.join(","),
        };
        let overlap = entry.overlap_until_ms().filter(|end| now_ms < *end);
        rows.push(vec![
            entry.name.clone(),
            state(entry, now_ms).to_owned(),
            scope,
            or_dash(entry.groups.join(",")),
            utc(entry.created_ms),
            entry.expires_ms.map_or_else(|| "never".to_owned(), utc),
            overlap.map_or_else(|| "-".to_owned(), utc),
        ]);
    }
    let table = Table::of(&COLUMNS, &rows, layout::screen_width(), 0);
    let mut out = Vec::new();
    // Writing to memory does not fail.
    let _ = table.heading(&mut out);
    for row in &rows {
        let _ = table.row(row, &mut out);
    }
    String::from_utf8_lossy(&out).into_owned()
}
