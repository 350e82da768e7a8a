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

/// The difference that all entries make together, in the order of the file; values of variables and headers are not shown.
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
        let masked = secrets
            .iter()
            .fold(text.trim_end().to_owned(), |text, secret| {
                text.replace(secret.as_str(), "***")
            });
        writeln!(out, "{mark} {}", plain(&masked))?;
    }
    Ok(())
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
