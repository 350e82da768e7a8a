//! What `durward help` prints: the commands by task, the help of one command, or a reference page.

use std::io::{self, Write};

use clap::Command;
use gate::policy::document::nearest;

use super::{TOPICS, page_of, print};
use crate::cli::Cli;
use crate::help::HelpArgs;

/// Nothing has the name that was given.
const EXIT_UNKNOWN: u8 = 2;

/// Prints what was asked for; gives the exit code.
pub fn run(args: &HelpArgs, out: &mut dyn Write, err: &mut dyn Write) -> u8 {
    let mut root = Cli::line();
    root.build();
    let words: Vec<&str> = args.words.iter().map(String::as_str).collect();
    if let [page] = words.as_slice()
        && page_of(page).is_some()
    {
        return printed(page, &root, out, err);
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
    u8::from(ended(write!(out, "{text}")))
}

fn printed(page: &str, root: &Command, out: &mut dyn Write, err: &mut dyn Write) -> u8 {
    let code = print(page, out, err);
    if code == 0 && root.find_subcommand(page).is_some() {
        let note = format!("\nThe command of this name is described by `durward {page} --help`.");
        return u8::from(ended(writeln!(out, "{note}")));
    }
    code
}

/// Whether writing failed. A reader that has seen enough is no failure.
fn ended(done: io::Result<()>) -> bool {
    done.is_err_and(|error| error.kind() != io::ErrorKind::BrokenPipe)
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
mod tests {
    use clap::CommandFactory as _;

    use super::*;
    use crate::help::{GROUPS, HELP};

    fn help(words: &[&str]) -> (u8, String, String) {
        let args = HelpArgs {
            words: words.iter().map(|word| (*word).to_owned()).collect(),
        };
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let code = run(&args, &mut out, &mut err);
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (code, text(out), text(err))
    }

    #[test]
    fn every_command_is_in_one_group() {
        let line = Cli::command();
        let mut grouped: Vec<&str> = GROUPS
            .iter()
            .flat_map(|(_, names)| *names)
            .copied()
            .collect();
        let mut shown: Vec<&str> = line
            .get_subcommands()
            .filter(|sub| !sub.is_hide_set())
            .map(Command::get_name)
            .collect();
        grouped.sort_unstable();
        shown.sort_unstable();
        assert_eq!(grouped, shown);
    }

    #[test]
    fn commands_and_pages_are_printed() {
        let (code, out, _) = help(&[]);
        assert_eq!(code, 0);
        for part in [
            "Guard your servers:\n  wrap ",
            "Answer:\n",
            "Options:\n",
            "Examples:\n",
        ] {
            assert!(out.contains(part), "{part}: {out}");
        }
        for (words, part) in [
            (&["run"][..], "Usage: durward run "),
            (&["policy", "test"], "Usage: durward policy test "),
            (&["policy"], "# Policy\n"),
            (&["config"], "# Keys"),
            (&["reasons"], "# Reasons\n"),
            (&["events"], "# "),
            (&["glossary"], "# Glossary\n"),
            (&["cookbook"], "# "),
        ] {
            let (code, out, err) = help(words);
            assert_eq!(code, 0, "{words:?}: {err}");
            assert!(out.contains(part), "{words:?}: {out}");
        }
        for topic in TOPICS {
            let line = format!("\n  {} ", topic.name);
            assert!(HELP.contains(&line), "{} is not listed", topic.name);
        }
    }

    #[test]
    fn unknown_words_are_answered_with_the_nearest() {
        for (words, part) in [
            (
                &["polcy"][..],
                "no page \"polcy\"\n  hint: did you mean \"policy\"?",
            ),
            (&["glosary"], "did you mean \"glossary\"?"),
            (
                &["policy", "tset"],
                "no command \"tset\"\n  hint: did you mean \"test\"?",
            ),
            (&["zzzzzzzz"], "`durward help` lists the commands"),
            (&["run", "x\u{1b}y"], "\"x\\u{1b}y\""),
        ] {
            let (code, out, err) = help(words);
            assert_eq!((code, out.as_str()), (EXIT_UNKNOWN, ""));
            assert!(err.contains(part), "{words:?}: {err}");
        }
    }
}
