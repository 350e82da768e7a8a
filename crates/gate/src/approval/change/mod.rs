//! What a call would change in a file, for the person who is asked: the difference between what stands
//! there and what would.
//!
//! Files are read by the view of the server's side alone, without following a link. What cannot be shown is
//! said: nobody is to take no difference for no change.

pub mod diff;
mod write;

use super::display;
use crate::facts::{Fact, Facts};
use crate::paths::view::FileText;
use crate::paths::{PathArgument, PathView, Role};
use diff::Line;
use write::Write;

/// Longest file that is read, in bytes.
pub const FILE_BYTES_MAX: usize = 256 * 1024;
/// Most lines that are shown.
pub const LINES_MAX: usize = 200;
/// Most characters that are shown of a line.
pub const LINE_CHARS_MAX: usize = 200;

/// What is shown of a change.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Change {
    /// The first says what it is about; the others begin with `-`, `+`, a blank, or `@` and a number.
    pub lines: Vec<String>,
    /// Whether some of it is missing.
    pub is_cut: bool,
}

/// A file that a call would write whole, looked up by the server that would write it: what stands there, and what
/// would.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen {
    /// The path at the machine where it is written.
    pub place: String,
    /// What stands there, at most [`FILE_BYTES_MAX`] of it.
    pub old: FileText,
    /// What would stand there, as much of it.
    pub new: FileText,
    /// By what the server knows again what would stand there: the call that a person allowed brings it back.
    pub digest: Option<String>,
}

impl Seen {
    fn change(&self) -> Option<Change> {
        let place = &self.place;
        match &self.new {
            FileText::Text(text) => compared(place, place, &self.old, &Write::Whole(text.clone())),
            FileText::Binary => told(place, "what would be written is not text"),
            FileText::TooLong => told(
                place,
                "what would be written is longer than 256 KiB, and no difference is shown",
            ),
            FileText::Missing | FileText::NotAFile | FileText::Unreadable => told(
                place,
                "what would be written cannot be read, and no difference is shown",
            ),
        }
    }
}

fn told(place: &str, why: &str) -> Option<Change> {
    let place = display::text(place, LINE_CHARS_MAX);
    Some(Change {
        lines: vec![format!("{place}: {why}")],
        is_cut: false,
    })
}

/// What a call would change; none where it writes no text to one file. `arguments` is what would be sent.
pub(super) fn of(
    facts: &Facts,
    arguments: &str,
    view: Option<&dyn PathView>,
    seen: Option<&Seen>,
) -> Option<Change> {
    if let Some(seen) = seen {
        return seen.change();
    }
    let argument = target(facts)?;
    let write = Write::of(facts.tool_name.known()?, arguments)?;
    let named = argument.meaning.places.first().unwrap_or(&argument.text);
    let Some(view) = view else {
        if let Write::Replaced(edits) = &write {
            return Some(replaced(argument, edits));
        }
        return told(
            named,
            "the file is the server's own and cannot be read from here",
        );
    };
    let (place, found) = found(argument, view);
    if found == FileText::Missing && argument.meaning.uncertain {
        return told(named, "it cannot be told which file this is");
    }
    compared(named, place, &found, &write)
}

/// What is written beside what stands at `place`, which was asked for as `named`.
fn compared(named: &str, place: &str, found: &FileText, write: &Write) -> Option<Change> {
    let old = match found {
        FileText::Text(text) => text,
        FileText::Missing => return Some(difference(place, "a new file", "", &write.applied("")?)),
        FileText::Binary => {
            return told(
                named,
                "what is there is no text, and would be replaced or changed",
            );
        }
        FileText::TooLong => {
            return told(
                named,
                "the file is longer than 256 KiB, and no difference is shown",
            );
        }
        FileText::NotAFile => return told(named, "there is something there that is not a file"),
        FileText::Unreadable => {
            return told(
                named,
                "the file cannot be read here, and no difference is shown",
            );
        }
    };
    match write.applied(old) {
        Some(new) if new == *old => told(named, "nothing would change"),
        Some(new) => Some(difference(place, "", old, &new)),
        None => told(
            named,
            "a text that would be replaced does not stand in the file as it is",
        ),
    }
}

/// The one place that is written to.
fn target(facts: &Facts) -> Option<&PathArgument> {
    let Fact::Known(paths) = &facts.paths else {
        return None;
    };
    let mut plain = paths.iter().filter(|argument| !argument.content);
    let only = plain.next()?;
    let fits = matches!(only.role, Role::Path | Role::Destination);
    (fits && plain.next().is_none()).then_some(only)
}

/// The place at which there is something, and what it is. A place behind a link is another one of the
/// argument's places.
fn found<'a>(argument: &'a PathArgument, view: &dyn PathView) -> (&'a str, FileText) {
    let mut best = (argument.text.as_str(), FileText::Missing);
    for (number, place) in argument.meaning.places.iter().enumerate() {
        match view.read_text(place, FILE_BYTES_MAX) {
            FileText::Missing if number > 0 => {}
            found @ FileText::Text(_) => return (place, found),
            found => best = (place, found),
        }
    }
    best
}

/// Texts that take the place of others in a file that cannot be read from here: where they stand in it is not known.
fn replaced(argument: &PathArgument, edits: &[(String, String)]) -> Change {
    let all: Vec<Line<'_>> = edits
        .iter()
        .flat_map(|(old, new)| {
            // Alone, a text begins at a line 1 that says nothing.
            let lines = diff::lines(old, new).into_iter();
            lines.filter(|line| !matches!(line, Line::At(_)))
        })
        .collect();
    let texts = if edits.len() == 1 { "text" } else { "texts" };
    let what = format!("{} {texts} of the file replaced", edits.len());
    let place = argument.meaning.places.first().unwrap_or(&argument.text);
    rendered(place, &what, &all)
}

fn difference(place: &str, what: &str, old: &str, new: &str) -> Change {
    rendered(place, what, &diff::lines(old, new))
}

fn rendered(place: &str, what: &str, all: &[Line<'_>]) -> Change {
    let count = |wanted: fn(&Line<'_>) -> bool| all.iter().filter(|line| wanted(line)).count();
    let taken = count(|line| matches!(line, Line::Old(_)));
    let added = count(|line| matches!(line, Line::New(_)));
    let place = display::text(place, LINE_CHARS_MAX);
    let what = if what.is_empty() {
        String::new()
    } else {
        format!("{what}, ")
    };
    let mut change = Change {
        lines: vec![format!(
            "{place}: {what}{taken} {} removed, {added} added",
            if taken == 1 { "line" } else { "lines" }
        )],
        is_cut: false,
    };
    for line in all.iter().take(LINES_MAX) {
        let (mark, text) = match line {
            Line::At(number) => {
                change.lines.push(format!("@ line {number}"));
                continue;
            }
            Line::Both(text) => (' ', text),
            Line::Old(text) => ('-', text),
            Line::New(text) => ('+', text),
        };
        let text = text.strip_suffix('\n').unwrap_or(text);
        change.is_cut |= display::is_cut(text, LINE_CHARS_MAX);
        change
            .lines
            .push(format!("{mark}{}", display::text(text, LINE_CHARS_MAX)));
    }
    if all.len() > LINES_MAX {
        change.is_cut = true;
        change
            .lines
            .push(format!("…[{} more lines not shown]", all.len() - LINES_MAX));
    }
    change
}

#[cfg(test)]
mod tests;
