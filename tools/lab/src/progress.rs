//! The line on standard error that says how far a measurement is: rewritten in place on a terminal, one
//! line after the other elsewhere.

use std::io::Write;
use std::time::{Duration, Instant};

/// How often the line of a terminal is written anew at most.
const REWRITE: Duration = Duration::from_millis(100);
/// How often a line is added elsewhere at most.
const REPEAT: Duration = Duration::from_secs(1);
/// How much of a line a terminal is given, in characters: a line that wraps cannot be rewritten.
const LINE_CHARS_MAX: usize = 110;

/// Where progress is told.
pub(crate) struct Progress<'a> {
    out: &'a mut dyn Write,
    kind: Kind,
    last: Option<Instant>,
    open: bool,
}

/// How progress is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// In place.
    Rewrite,
    /// Line by line.
    Lines,
    /// Not at all.
    Quiet,
}

impl<'a> Progress<'a> {
    /// Tells it to `out`.
    pub(crate) fn new(out: &'a mut dyn Write, kind: Kind) -> Self {
        Self {
            out,
            kind,
            last: None,
            open: false,
        }
    }

    /// Whether a further line would be told now; whoever has to work for it asks first.
    pub(crate) fn is_due(&self) -> bool {
        let period = match self.kind {
            Kind::Rewrite => REWRITE,
            Kind::Lines => REPEAT,
            Kind::Quiet => return false,
        };
        self.last.is_none_or(|last| last.elapsed() >= period)
    }

    /// Tells where it stands.
    pub(crate) fn always(&mut self, text: &str) {
        self.last = Some(Instant::now());
        // Progress that nobody reads is not missed.
        let _ = match self.kind {
            Kind::Rewrite => {
                let text: String = text.chars().take(LINE_CHARS_MAX).collect();
                self.open = true;
                write!(self.out, "\r\x1b[2K{text}").and_then(|()| self.out.flush())
            }
            Kind::Lines => writeln!(self.out, "{text}"),
            Kind::Quiet => Ok(()),
        };
    }

    /// Leaves the line, so that others may write.
    pub(crate) fn finish(&mut self) {
        if std::mem::take(&mut self.open) {
            let _ = writeln!(self.out);
        }
    }
}

impl Drop for Progress<'_> {
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
            (Kind::Rewrite, "\r\x1b[2Ka\r\x1b[2Kb\n"),
            (Kind::Lines, "a\nb\n"),
            (Kind::Quiet, ""),
        ] {
            let mut out = Vec::new();
            let mut progress = Progress::new(&mut out, kind);
            progress.always("a");
            progress.always("b");
            assert!(!progress.is_due(), "too early");
            drop(progress);
            assert_eq!(String::from_utf8(out).unwrap(), expect, "{kind:?}");
        }
    }
}
