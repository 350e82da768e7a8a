//! Changes as a person reads them.

use std::io::{self, Write};

use gate::approval::change::diff::{Line, lines};
use mcp::descriptions::hidden::spelled_out;

use super::change::{Change, File};

/// Most characters that are shown of a line.
const LINE_CHARS_MAX: usize = 400;

/// The servers that stay as they are.
pub(super) fn skipped(change: &Change, out: &mut dyn Write) -> io::Result<()> {
    for (name, why) in &change.skipped {
        writeln!(out, "{}: not changed: {why}", spelled_out(name))?;
    }
    Ok(())
}

/// What of the servers that change may be lost.
pub(super) fn notes(change: &Change, out: &mut dyn Write) -> io::Result<()> {
    for (name, note) in &change.notes {
        writeln!(out, "{}: note: {note}", spelled_out(name))?;
    }
    Ok(())
}

/// The difference that all entries make together, in the order of the file, without secrets.
pub(super) fn difference(file: &File, change: &Change, out: &mut dyn Write) -> io::Result<()> {
    let secrets = file.secrets();
    for line in lines(&file.text, change.text(file)) {
        let (mark, text) = match line {
            Line::At(number) => {
                writeln!(out, "@ line {number}")?;
                continue;
            }
            Line::Both(text) => (' ', text),
            Line::Old(text) => ('-', text),
            Line::New(text) => ('+', text),
        };
        let masked = masked(text.trim_end(), &secrets);
        writeln!(out, "{mark} {}", plain(&masked))?;
    }
    Ok(())
}

/// What stands in the place of a secret.
const MASK: &str = "***";
/// A shorter secret is masked where it is a word of its own: it stands in other words too.
const ANYWHERE_BYTES_MIN: usize = 4;

/// A line without secrets: those of these values, and those that have the looks of one.
fn masked(line: &str, secrets: &[String]) -> String {
    let mut line = line.to_owned();
    for secret in secrets {
        line = match secret.len() >= ANYWHERE_BYTES_MIN {
            true => line.replace(secret.as_str(), MASK),
            false => without_word(&line, secret),
        };
    }
    let mut ranges = gate::inspect::secrets::all(&line);
    ranges.sort_by_key(|range| std::cmp::Reverse(range.start));
    let mut end = line.len();
    for range in ranges {
        // Kinds may find the same twice.
        if range.end <= end {
            end = range.start;
            line.replace_range(range, MASK);
        }
    }
    line
}

/// The line with a mask for each place at which this stands between other signs than letters and digits.
fn without_word(line: &str, word: &str) -> String {
    let mut out = String::new();
    let mut from = 0;
    for (at, _) in line.match_indices(word) {
        let end = at + word.len();
        let is_part =
            |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || matches!(c, '_' | '-'));
        let before = line.get(..at).and_then(|text| text.chars().next_back());
        let behind = line.get(end..).and_then(|text| text.chars().next());
        if at < from || is_part(before) || is_part(behind) {
            continue;
        }
        out.push_str(line.get(from..at).unwrap_or_default());
        out.push_str(MASK);
        from = end;
    }
    out.push_str(line.get(from..).unwrap_or_default());
    out
}

/// A line without anything that a terminal would act on.
fn plain(line: &str) -> String {
    let shown: String = line.chars().take(LINE_CHARS_MAX).collect();
    let blank: String = shown
        .chars()
        .take_while(|c| matches!(c, ' ' | '\t'))
        .collect();
    let rest = shown.get(blank.len()..).unwrap_or_default();
    let cut = if shown.len() < line.len() { " …" } else { "" };
    format!("{blank}{}{cut}", spelled_out(rest))
}
