//! `durward help`: its arguments, the commands by task, and the width of help texts. The pages are printed by
//! `reference::lookup`.

use clap::{Args, Command};

use crate::layout::fold;

pub const HELP: &str = "\
Examples:
  durward help                   the commands, by task
  durward help run               the help of a command
  durward help policy            a reference page
  durward help policy test       the help of a command of a command

Reference pages:
  policy     conditions, effects, `when` in CEL, the starter policy
  config     the keys of durward.yaml and their defaults
  reasons    the labels of refusals, HTTP statuses, exit codes
  events     the records of the journal
  glossary   the words that these pages use
  cookbook   ten policies with their tests";

/// Commands by what a person wants to do.
pub const GROUPS: [(&str, &[&str]); 7] = [
    (
        "Guard your servers",
        &[
            "wrap", "unwrap", "install", "run", "serve", "init", "check", "servers", "policy",
            "keys", "reload",
        ],
    ),
    ("Sign in", &["login", "logout", "whoami"]),
    ("Answer", &["approvals", "pins"]),
    (
        "Look",
        &[
            "logs", "audit", "status", "tools", "call", "models", "budgets", "agents", "runs",
        ],
    ),
    ("Measure", &["lab"]),
    ("Built-in servers", &["demo", "ssh", "sim"]),
    ("Help", &["help", "completions", "man"]),
];

/// Arguments of `durward help`.
#[derive(Debug, Args)]
pub struct HelpArgs {
    /// A command, or a reference page
    #[arg(value_name = "COMMAND|PAGE")]
    pub words: Vec<String>,
}

/// The command line with its commands grouped by task.
pub fn grouped(line: Command) -> Command {
    let template = template(&line, WIDTH);
    line.help_template(template)
}

/// Where the descriptions of commands begin.
const ABOUT: usize = 15;

fn template(line: &Command, width: usize) -> String {
    let mut template = String::from("{about}\n\n{usage-heading} {usage}\n");
    for (heading, names) in GROUPS {
        template.push_str(&format!("\n{heading}:\n"));
        for name in names {
            let about = line.find_subcommand(name).and_then(Command::get_about);
            let about = about.map(ToString::to_string).unwrap_or_default();
            let row = format!("  {name:<12} {about}");
            for line in fold::lines(&row, width, ABOUT) {
                template.push_str(&line);
                template.push('\n');
            }
        }
    }
    template.push_str("\nOptions:\n{options}{after-help}");
    template
}

/// Characters on a line of help that goes to no terminal.
const WIDTH: usize = 100;
/// Longer lines are hard to read, however wide the terminal is.
const WIDTH_MAX: usize = 120;
/// Continuation lines of an example, and the remark of one that is too long for its line.
const INDENT: &str = "      ";

/// The same command line with help for this width of a terminal, that below the options included.
pub fn fitted(line: Command, screen: Option<usize>) -> Command {
    let width = screen.unwrap_or(WIDTH).min(WIDTH_MAX);
    let template = template(&line, width);
    below_options(line, width)
        .help_template(template)
        .term_width(width)
}

fn below_options(command: Command, width: usize) -> Command {
    let command = match command.get_after_help().map(ToString::to_string) {
        Some(text) => command.after_help(folded(&text, width)),
        None => command,
    };
    command.mut_subcommands(|below| below_options(below, width))
}

/// Paragraphs filled to the width. Indented lines are examples and lists: each stays a line, and one that is too long
/// goes on below, its remark first.
fn folded(text: &str, width: usize) -> String {
    let mut lines: Vec<String> = Vec::new();
    let mut paragraph: Vec<&str> = Vec::new();
    for line in text.lines() {
        if !line.is_empty() && !line.starts_with(' ') {
            paragraph.push(line);
            continue;
        }
        filled(&paragraph.join(" "), "", "", width, &mut lines);
        paragraph.clear();
        if line.chars().count() <= width {
            lines.push(line.to_owned());
            continue;
        }
        let typed = line.trim_start();
        let indent: String = line.chars().take_while(|c| *c == ' ').collect();
        let (example, remark) = typed.split_once("  ").unwrap_or((typed, ""));
        match example.starts_with("durward ") {
            true => command(example, &indent, width, &mut lines),
            false => filled(example, &indent, INDENT, width, &mut lines),
        }
        filled(remark.trim_start(), INDENT, INDENT, width, &mut lines);
    }
    filled(&paragraph.join(" "), "", "", width, &mut lines);
    lines.join("\n")
}

/// Adds a command as lines of this width that a shell reads as one; quoted words stay whole.
fn command(example: &str, indent: &str, width: usize, lines: &mut Vec<String>) {
    /// What ends a line that goes on.
    const GOES_ON: &str = " \\";
    let mut line = indent.to_owned();
    let mut is_first = true;
    let mut quote = None;
    let words = example.split(|c: char| {
        match (quote, c) {
            (None, '\'' | '"') => quote = Some(c),
            (Some(open), c) if open == c => quote = None,
            _ => {}
        }
        c == ' ' && quote.is_none()
    });
    for word in words {
        let length = line.chars().count() + 1 + word.chars().count() + GOES_ON.len();
        if is_first {
            line.push_str(word);
        } else if length > width {
            lines.push(format!("{line}{GOES_ON}"));
            line = format!("{INDENT}{word}");
        } else {
            line.push(' ');
            line.push_str(word);
        }
        is_first = false;
    }
    lines.push(line);
}

/// Adds the words of a text as lines of this width.
fn filled(text: &str, first: &str, rest: &str, width: usize, lines: &mut Vec<String>) {
    let mut line = String::new();
    for word in text.split(' ').filter(|word| !word.is_empty()) {
        if line.is_empty() {
            line = format!("{first}{word}");
        } else if line.chars().count() + 1 + word.chars().count() <= width {
            line.push(' ');
            line.push_str(word);
        } else {
            lines.push(std::mem::replace(&mut line, format!("{rest}{word}")));
        }
    }
    if !line.is_empty() {
        lines.push(line);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::Cli;

    fn texts(command: &Command, found: &mut Vec<(String, String)>) {
        if let Some(text) = command.get_after_help() {
            found.push((command.get_name().to_owned(), text.to_string()));
        }
        for below in command.get_subcommands() {
            texts(below, found);
        }
    }

    /// Help wrapped twice has lines of one word in the middle of a paragraph.
    #[test]
    fn p16_help_is_wrapped_once_at_every_width() {
        for width in [60, 100, 120] {
            let mut found = Vec::new();
            texts(&fitted(Cli::line(), Some(width)), &mut found);
            assert!(found.len() > 40, "{}", found.len());
            for (name, text) in found {
                let lines: Vec<&str> = text.lines().collect();
                for pair in lines.windows(2) {
                    let [line, next] = pair else { unreachable!() };
                    let length = line.chars().count();
                    let is_one_word = !line.trim().contains(' ') || line.trim().starts_with('\'');
                    assert!(length <= width || is_one_word, "{name}, {width}: {line}");
                    let word = next.split(' ').next().unwrap_or_default();
                    let in_paragraph = [line, next]
                        .iter()
                        .all(|line| !line.is_empty() && !line.starts_with(' '));
                    assert!(
                        !in_paragraph || length + 1 + word.chars().count() > width,
                        "{name}, {width}: {line} / {next}"
                    );
                }
            }
        }
    }

    #[test]
    fn p16_the_list_of_commands_fits_every_width() {
        for width in [60, 80, 120] {
            let help = fitted(Cli::line(), Some(width)).render_help().to_string();
            for line in help.lines() {
                assert!(line.chars().count() <= width, "{width}: {line}");
            }
            assert!(!help.contains("\n\n\n"), "{help}");
        }
        let narrow = fitted(Cli::line(), Some(60)).render_help().to_string();
        let wrap =
            "  wrap         Guard the servers that an MCP client already\n               has\n";
        assert!(narrow.contains(wrap), "{narrow}");
    }

    #[test]
    fn an_example_that_is_too_long_has_its_remark_below() {
        let text = "Examples:\n  durward run files      one server\n\nOne\ntwo\nthree.";
        assert_eq!(
            folded(text, 26),
            "Examples:\n  durward run files\n      one server\n\nOne two three."
        );
        assert_eq!(folded(text, 40), text.replace("One\ntwo\n", "One two "));
        let long = "  durward call files read '{\"path\": \"/a b\"}' --text      the text";
        assert_eq!(
            folded(long, 30),
            "  durward call files read \\\n      '{\"path\": \"/a b\"}' \\\n      --text\n      the text"
        );
    }

    /// Who reads the reference page by program finds each example on a line of its own.
    #[test]
    fn remarks_are_beside_their_examples_at_the_width_of_the_reference_page() {
        let mut found = Vec::new();
        texts(&Cli::line(), &mut found);
        for (name, text) in found {
            for line in text.lines().filter(|line| line.starts_with("  ")) {
                let has_remark = line.trim_start().contains("  ");
                assert!(
                    !has_remark || line.chars().count() <= WIDTH,
                    "{name}: {line}"
                );
            }
        }
    }
}
