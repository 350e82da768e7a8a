//! The line on standard error that says how far a measurement is: rewritten in place on a terminal, one
//! line after the other elsewhere.

use std::io::Write;
use std::time::{Duration, Instant};

/// Least interval between two rewrites of the line of a terminal.
const REWRITE: Duration = Duration::from_millis(100);
/// How often a line is added elsewhere at most.
const REPEAT: Duration = Duration::from_secs(1);
/// How much of a line a terminal is given, in characters: a line that wraps cannot be rewritten.
const LINE_CHARS_MAX: usize = 110;

/// Output of progress.
pub(crate) struct ProgressOutput<'a> {
    out: &'a mut dyn Write,
    kind: ProgressKind,
    last: Option<Instant>,
    open: bool,
}

/// Form in which progress is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ProgressKind {
    /// In place.
    Rewrite,
    /// Line by line.
    Lines,
    /// Not at all.
    Quiet,
}

impl<'a> ProgressOutput<'a> {
    /// Writes progress to `out`.
    pub(crate) fn new(out: &'a mut dyn Write, kind: ProgressKind) -> Self {
        Self {
            out,
            kind,
            last: None,
            open: false,
        }
    }

    /// Returns whether a further line would be written now; check it before costly work.
    pub(crate) fn is_due(&self) -> bool {
        let period = match self.kind {
            ProgressKind::Rewrite => REWRITE,
            ProgressKind::Lines => REPEAT,
            ProgressKind::Quiet => return false,
        };
        self.last.is_none_or(|last| last.elapsed() >= period)
    }

    /// Writes the present state.
    pub(crate) fn always(&mut self, text: &str) {
        self.last = Some(Instant::now());
        // A failed write of progress is no loss.
        let _ = match self.kind {
            ProgressKind::Rewrite => {
                let text: String = text.chars().take(LINE_CHARS_MAX).collect();
                self.open = true;
                write!(self.out, "\r\x1b[2K{text}").and_then(|()| self.out.flush())
            }
            ProgressKind::Lines => writeln!(self.out, "{text}"),
            ProgressKind::Quiet => Ok(()),
        };
    }

    /// Leaves the line, so that others may write.
    pub(crate) fn finish(&mut self) {
        if std::mem::take(&mut self.open) {
            let _ = writeln!(self.out);
        }
    }
}

impl Drop for ProgressOutput<'_> {
    fn drop(&mut self) {
        self.finish();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_writes_its_way() {
        for (kind, expect) in [
            (ProgressKind::Rewrite, "\r\x1b[2Ka\r\x1b[2Kb\n"),
            (ProgressKind::Lines, "a\nb\n"),
            (ProgressKind::Quiet, ""),
        ] {
            let mut out = Vec::new();
            let mut progress = ProgressOutput::new(&mut out, kind);
            progress.always("a");
            progress.always("b");
            assert!(!progress.is_due(), "too early");
            drop(progress);
            assert_eq!(String::from_utf8(out).unwrap(), expect, "{kind:?}");
        }
    }
}
