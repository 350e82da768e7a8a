//! What `durward help` prints: the commands by task, the help of one command, or a reference page.

use std::io::{self, Write};
use std::path::Path;

use clap::Command;
use gate::policy::document::nearest;

use super::{TOPICS, page_of, print};
use crate::cli::Cli;
use crate::help::HelpArgs;

/// Nothing has the name that was given.
const EXIT_UNKNOWN: u8 = 2;

/// Prints what was asked for; gives the exit code.
pub fn run(args: &HelpArgs, own_binary: &Path, out: &mut dyn Write, err: &mut dyn Write) -> u8 {
    let mut root = Cli::fitted();
    root.build();
    let words: Vec<&str> = args.words.iter().map(String::as_str).collect();
    if let [page] = words.as_slice()
        && page_of(page).is_some()
    {
        return printed(page, &root, out, err);
    }
    // The lab's commands are described by a program of its own.
    if let ["lab", below @ ..] = words.as_slice()
        && !below.is_empty()
    {
        return crate::lab::show_help(below, own_binary, err);
    }
    let mut command = &mut root;
    for (depth, word) in words.iter().enumerate() {
        if command.find_subcommand(word).is_none() {
            return unknown(word, depth, command, err);
        }
        let Some(below) = command.find_subcommand_mut(word) else {
            return EXIT_UNKNOWN;
        };
        command = below;
    }
    let text = match words.is_empty() {
        true => command.render_help(),
        false => command.render_long_help(),
    };
    u8::from(ended(write!(out, "{text}").and_then(|()| out.flush()), err))
}

fn printed(page: &str, root: &Command, out: &mut dyn Write, err: &mut dyn Write) -> u8 {
    let code = print(page, out, err);
    if code == 0 && root.find_subcommand(page).is_some() {
        let note = format!("\nThe command of this name is described by `durward {page} --help`.");
        return u8::from(ended(writeln!(out, "{note}"), err));
    }
    code
}

/// Whether writing failed. A reader that has seen enough is no failure.
fn ended(done: io::Result<()>, err: &mut dyn Write) -> bool {
    let failed = done
        .err()
        .filter(|error| error.kind() != io::ErrorKind::BrokenPipe);
    if let Some(error) = &failed {
        let _ = writeln!(err, "error: cannot write: {error}");
    }
    failed.is_some()
}

fn unknown(word: &str, depth: usize, above: &Command, err: &mut dyn Write) -> u8 {
    let shown = above.get_subcommands().filter(|sub| !sub.is_hide_set());
    let mut names: Vec<&str> = shown.map(Command::get_name).collect();
    let what = match depth {
        0 => {
            names.extend(TOPICS.iter().map(|topic| topic.name));
            "there is no command and no page"
        }
        _ => "there is no command",
    };
    let hint = match nearest(word, &names) {
        Some(near) => format!("did you mean \"{near}\"?"),
        None => "`durward help` lists the commands, `durward help help` the pages".to_owned(),
    };
    // Where standard error is gone too, the exit code still tells.
    let _ = writeln!(err, "error: {what} {word:?}\n  hint: {hint}");
    EXIT_UNKNOWN
}

#[cfg(test)]
mod tests;
