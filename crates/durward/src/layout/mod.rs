//! How output is laid out on a terminal: its width, lines that are folded between words, tables that fit.
//!
//! What goes elsewhere than to a terminal is left as it is: a program reads it.

pub mod fold;
pub mod money;
pub mod table;

use std::io::{self, IsTerminal as _, Write};

use serde::Serialize;

use crate::places;

/// Characters on a line of the terminal; nothing where the output goes elsewhere, and then nothing is cut.
pub fn screen_width() -> Option<usize> {
    width_of(io::stdout())
}

/// The same of standard error.
pub fn error_width() -> Option<usize> {
    width_of(io::stderr())
}

/// Says how wide the lines are where no terminal does: for those who show what this program prints in their own.
pub const COLUMNS: &str = "DURWARD_COLUMNS";

fn width_of(stream: impl std::os::fd::AsFd) -> Option<usize> {
    let width = match rustix::termios::tcgetwinsize(&stream) {
        Ok(size) => usize::from(size.ws_col),
        Err(_) => places::variable(COLUMNS)?.to_str()?.parse().ok()?,
    };
    Some(width).filter(|width| *width > 0)
}

/// Colour is for people at a terminal who have not said that they want none.
pub fn is_painted() -> bool {
    io::stdout().is_terminal()
        && places::variable("NO_COLOR").is_none()
        && places::variable("TERM").is_none_or(|term| term != "dumb")
}

/// Prints data as JSON on several lines, the members sorted by name.
pub fn json(data: &impl Serialize, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "{:#}", serde_json::to_value(data)?)
}

/// Prints data as JSON on one line, the members sorted by name.
pub fn json_line(data: &impl Serialize, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "{}", serde_json::to_value(data)?)
}

/// Prints data as JSON on one line, the members in their own order.
pub fn json_as_written(data: &impl Serialize, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "{}", serde_json::to_string(data)?)
}

/// The text, cut to so many characters, with a sign where something is missing.
pub fn cut(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        None => text.to_owned(),
        Some(_) if most == 0 => String::new(),
        Some(_) => text.chars().take(most - 1).chain(['…']).collect(),
    }
}

/// The same, with its beginning left out: of a path the end tells more.
pub fn cut_front(text: &str, most: usize) -> String {
    let characters = text.chars().count();
    match characters <= most {
        true => text.to_owned(),
        false if most == 0 => String::new(),
        false => std::iter::once('…')
            .chain(text.chars().skip(characters - most + 1))
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_cut_has_a_sign_where_something_is_missing() {
        for (most, end, front) in [
            (0, "", ""),
            (1, "…", "…"),
            (4, "/wö…", "….md"),
            (8, "/wörk.md", "/wörk.md"),
        ] {
            assert_eq!(cut("/wörk.md", most), end);
            assert_eq!(cut_front("/wörk.md", most), front);
        }
    }
}
