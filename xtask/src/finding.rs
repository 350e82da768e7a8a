//! A finding of a rule, with its place.

use std::fmt;

/// One breach of a rule. Ordered by file, then line, then text.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Finding {
    file: String,
    line: usize,
    wrong: String,
    remedy: String,
}

impl Finding {
    /// `line` counts from 1; `wrong` says what is the matter, `remedy` what to do.
    pub(crate) fn new(
        file: impl Into<String>,
        line: usize,
        wrong: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self {
            file: file.into(),
            line,
            wrong: wrong.into(),
            remedy: remedy.into(),
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}:{}: {}; {}",
            self.file, self.line, self.wrong, self.remedy
        )
    }
}
