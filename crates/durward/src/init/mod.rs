//! `durward init`: the first configuration and the first policy.
//!
//! Everything is asked and checked before anything is written; each file then is there as a whole or
//! not at all. What is there already stays, unless `--force` is given, and then as a copy.

mod dialog;
mod words;

use std::ffi::OsString;
use std::fs;
use std::io::{self, BufRead as _, IsTerminal as _, Write};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum as _};
use gate::policy::starter::STARTER_POLICY;

use crate::classes::{Declared, ToolClasses};
use crate::config;
use crate::failure::EXIT_CONFIGURATION;
use crate::install::client::Client;
use crate::local;
use crate::places::Places;
use crate::tools::start::definitions;
use admin::atomic::{self, Existing};
use words::quoted;

pub const HELP: &str = "\
Examples:
  durward init                                   asks two questions
  durward init --yes                             asks nothing: a configuration without servers
  durward init --yes --name files -- npx -y @modelcontextprotocol/server-filesystem /tmp
  durward init --yes --name docs --url https://docs.example/mcp

Writes durward.yaml and policy.json into $XDG_CONFIG_HOME/durward, or to the file of --config and beside it. The policy
is the starter policy: tools that are known to only read pass, every other tool waits for a person. At a terminal the
first server is started once, and you are shown what each of its tools seems to do: accept that, or change it, and it is
declared in durward.yaml. --accept-classes declares it without asking.";

/// The policy's name beside the configuration.
const POLICY_NAME: &str = "policy.json";
/// The server's name where nobody gives another and its command tells none.
const SERVER_NAME: &str = "server";

/// Arguments of `durward init`.
#[derive(Debug, Args)]
pub struct InitArgs {
    /// Ask nothing
    #[arg(long, short)]
    yes: bool,
    /// The first server's name in rules and in the journal [default: from the command]
    #[arg(long, value_name = "NAME", value_parser = crate::names::server_name)]
    name: Option<String>,
    /// The first server is reached here, over Streamable HTTP
    #[arg(long, value_name = "URL", conflicts_with = "command")]
    url: Option<String>,
    /// Replace files that are there; copies FILE.bak-TIME are kept
    #[arg(long)]
    force: bool,
    /// Start the first server, and declare what its tools seem to do without asking
    #[arg(long)]
    accept_classes: bool,
    /// The first server's command
    #[arg(last = true, value_name = "CMD")]
    command: Vec<OsString>,
}

/// The first server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct First {
    pub name: String,
    pub reached: Reached,
}

/// How it is started or reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reached {
    Command(Vec<String>),
    Url(String),
}

/// Writes the files; gives the exit code.
pub fn run(
    args: &InitArgs,
    source: &config::Source,
    places: &Places,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> u8 {
    match init(args, source, places, out, err) {
        Ok(()) => 0,
        Err(message) => {
            let _ = writeln!(err, "error: {message}");
            EXIT_CONFIGURATION
        }
    }
}

fn init(
    args: &InitArgs,
    source: &config::Source,
    places: &Places,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> Result<(), String> {
    let file = match source {
        config::Source::File(file) => places.absolute(file),
        config::Source::Default => places.config.join(config::FILE_NAME),
        config::Source::None => {
            return Err("--no-config leaves nothing to write; name the file with --config".into());
        }
    };
    let folder = file.parent().unwrap_or(Path::new("/")).to_path_buf();
    let policy = folder.join(POLICY_NAME);
    let existing: Vec<String> = [&file, &policy]
        .iter()
        .filter(|path| fs::symlink_metadata(path).is_ok())
        .map(|path| path.display().to_string())
        .collect();
    if !args.force && !existing.is_empty() {
        let exists = if existing.len() == 1 {
            "exists"
        } else {
            "exist"
        };
        return Err(format!(
            "{} {exists} already; nothing was written\n  hint: --force replaces them and keeps backups; --config names another file",
            existing.join(" and ")
        ));
    }
    let first = first(args, err)?;
    let text = render(first.as_ref());
    config::check_text(&text, &file, places)?;
    create(&folder)?;
    let copies = write_both(&policy, &file, &text)?;
    if let Some(first) = &first {
        // The files are written, and a server that cannot be listed yet may be so later.
        if let Err(why) = classes(args, &first.name, &file, places, err) {
            let _ = writeln!(
                err,
                "warning: no class of a tool was declared: {why}\n  hint: durward pins approve {} --all does it once a client has listed the tools",
                quoted(&first.name)
            );
        }
    }
    told(&file, &policy, &copies, first.as_ref(), places, out)
        .map_err(|error| format!("cannot write: {error}"))
}

/// Starts the first server, proposes what its tools do, and declares what a person accepts of that.
fn classes(
    args: &InitArgs,
    name: &str,
    file: &Path,
    places: &Places,
    err: &mut dyn Write,
) -> Result<(), String> {
    let input = io::stdin();
    let asks = !args.yes && input.is_terminal() && io::stderr().is_terminal();
    if !asks && !args.accept_classes {
        return Ok(());
    }
    let settings = config::load(&config::Source::File(file.to_path_buf()), places)?;
    let server = settings.named(name, places)?;
    let tools = definitions(server, &settings, places)?;
    let tools = tools
        .iter()
        .map(|(name, definition)| (name.as_str(), definition.into()));
    let mut classes = ToolClasses::propose(name, Some(&server.reads.arguments), tools);
    if classes.is_empty() {
        return Ok(());
    }
    if !args.accept_classes {
        let mut lines = input.lock().lines();
        if !classes.review(&mut || lines.next(), err)? {
            return Ok(());
        }
    }
    // The file is new, and needs no backup.
    if let Declared::In(Some(backup)) = classes.declare(file, places)? {
        drop(fs::remove_file(backup));
    }
    Ok(())
}

/// The first server: from the flags, or asked for.
fn first(args: &InitArgs, err: &mut dyn Write) -> Result<Option<First>, String> {
    let command: Option<Vec<String>> = args
        .command
        .iter()
        .map(|word| word.to_str().map(str::to_owned))
        .collect();
    let command = command.ok_or("the command is not UTF-8, and the file cannot hold it")?;
    let reached = match (&args.url, command.is_empty()) {
        (Some(url), _) => Some(Reached::Url(url.clone())),
        (None, false) => Some(Reached::Command(command)),
        (None, true) => None,
    };
    if let Some(reached) = reached {
        let name = args.name.clone().unwrap_or_else(|| name_of(&reached));
        return Ok(Some(First { name, reached }));
    }
    if args.yes {
        return match &args.name {
            Some(_) => {
                Err("--name is given without a server; give its command after --, or --url".into())
            }
            None => Ok(None),
        };
    }
    let input = io::stdin();
    if !input.is_terminal() || !io::stderr().is_terminal() {
        return Err("standard input is not a terminal, so nothing can be asked\n  hint: give --yes, and the server's command after -- or its --url".into());
    }
    let mut lines = input.lock().lines();
    dialog::first(args.name.as_deref(), &mut || lines.next(), err)
}

fn name_of(reached: &Reached) -> String {
    let name = match reached {
        Reached::Command(words) => {
            let words: Vec<OsString> = words.iter().map(OsString::from).collect();
            words
                .split_first()
                .map(|(program, arguments)| crate::names::of_command(program, arguments))
        }
        Reached::Url(url) => url
            .split("://")
            .nth(1)
            .and_then(|rest| rest.split(['/', ':', '?']).next())
            .map(str::to_owned),
    };
    let name = name.unwrap_or_default();
    crate::names::server_name(name.trim_end_matches('_')).unwrap_or_else(|_| SERVER_NAME.to_owned())
}

/// The text of the configuration.
fn render(first: Option<&First>) -> String {
    let mut text = String::from(
        "# Durward's configuration. `durward check` prints the effective settings; all keys: `durward help config`\n",
    );
    match first {
        None => text.push_str("#\n# servers:\n#   files: { command: npx, args: [-y, \"@modelcontextprotocol/server-filesystem\", /tmp] }\n"),
        Some(First { name, reached }) => {
            text.push_str(&format!("servers:\n  {}:\n", literal(name)));
            match reached {
                Reached::Url(url) => text.push_str(&format!("    url: {}\n", literal(url))),
                Reached::Command(words) => {
                    let mut words = words.iter().map(|word| literal(word));
                    let program = words.next().unwrap_or_default();
                    text.push_str(&format!("    command: {program}\n"));
                    let args: Vec<String> = words.collect();
                    if !args.is_empty() {
                        text.push_str(&format!("    args: [{}]\n", args.join(", ")));
                    }
                }
            }
        }
    }
    text.push_str(&format!("policy: {POLICY_NAME}\n"));
    text
}

/// A text as the file has to spell it: `${` would be a variable.
fn literal(text: &str) -> String {
    serde_json::Value::from(text.replace("${", "$${")).to_string()
}

fn create(folder: &Path) -> Result<(), String> {
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder)
        .map_err(|error| format!("cannot create {}: {error}", folder.display()))
}

/// Writes the policy, then the configuration that names it; gives the copies of what was there.
fn write_both(policy: &Path, file: &Path, text: &str) -> Result<Vec<PathBuf>, String> {
    let mut copies = Vec::new();
    for (path, text) in [(policy, STARTER_POLICY), (file, text)] {
        let failed = |error: io::Error| format!("cannot write {}: {error}", path.display());
        let existing = match fs::read_to_string(path) {
            Ok(before) => {
                copies.push(atomic::backup(path, &before, local::now_ms()).map_err(failed)?);
                Existing::Replace
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Existing::Keep,
            Err(error) => return Err(failed(error)),
        };
        if let Err(error) = atomic::write(path, text.as_bytes(), existing) {
            // A policy that nothing names is worse than none: the next try would stumble over it.
            if path == file && copies.is_empty() {
                let _ = fs::remove_file(policy);
            }
            return Err(failed(error));
        }
    }
    Ok(copies)
}

fn told(
    file: &Path,
    policy: &Path,
    copies: &[PathBuf],
    first: Option<&First>,
    places: &Places,
    out: &mut dyn Write,
) -> io::Result<()> {
    writeln!(out, "{}: the configuration", file.display())?;
    writeln!(out, "{}: the starter policy", policy.display())?;
    for copy in copies {
        writeln!(out, "{}: backup of the file as it was", copy.display())?;
    }
    let flag = if file == places.config.join(config::FILE_NAME) {
        String::new()
    } else {
        format!(" --config {}", quoted(&file.display().to_string()))
    };
    // One copy of the truth: what is installed names the server, and the configuration has the rest.
    let (check, installed) = match first {
        None => ("", "-- CMD".to_owned()),
        Some(first) => (" --start", quoted(&first.name)),
    };
    writeln!(out, "\nnext:\n  durward check{flag}{check}")?;
    let found: Vec<Client> = Client::value_variants()
        .iter()
        .copied()
        .filter(|client| client.of_user(places).is_some_and(|at| at.file.is_file()))
        .collect();
    if found.is_empty() {
        return writeln!(out, "  durward install{flag} CLIENT --write {installed}");
    }
    for client in found {
        let word = client.to_possible_value();
        let word = word.as_ref().map_or("CLIENT", |value| value.get_name());
        writeln!(out, "  durward install{flag} {word} --write {installed}")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_spells_what_was_given() {
        let first = First {
            name: "no".into(),
            reached: Reached::Command(
                ["sh", "-c", "echo ${HOME}: # \"x\"", "", "é"]
                    .map(str::to_owned)
                    .to_vec(),
            ),
        };
        let text = render(Some(&first));
        assert!(text.contains("  \"no\":\n    command: \"sh\"\n"), "{text}");
        assert!(
            text.contains(r##"args: ["-c", "echo $${HOME}: # \"x\"", "", "é"]"##),
            "{text}"
        );
        assert!(render(None).ends_with("policy: policy.json\n"));
    }

    #[test]
    fn names_come_from_what_is_reached() {
        let command =
            |words: &[&str]| Reached::Command(words.iter().map(|w| (*w).to_owned()).collect());
        for (reached, name) in [
            (command(&["npx", "-y", "@a/server-files"]), "server-files"),
            (command(&["/bin/__"]), "--"),
            (
                Reached::Url("https://docs.example:1/mcp".into()),
                "docs.example",
            ),
            (Reached::Url("nonsense".into()), SERVER_NAME),
        ] {
            assert_eq!(name_of(&reached), name, "{reached:?}");
        }
    }
}
