//! Output of a command's progress.

use crate::LabContext;
use crate::progress::ProgressKind;

/// Options that every measuring command has.
#[derive(Debug, Clone, clap::Args)]
pub struct ProgressFlags {
    /// No progress on standard error
    #[arg(long)]
    quiet: bool,
    /// Print progress line by line, even on a terminal
    #[arg(long)]
    no_tui: bool,
}

impl ProgressFlags {
    /// Returns the kind of progress that is wanted and possible.
    pub(crate) fn kind(&self, context: &LabContext) -> ProgressKind {
        match (self.quiet, self.no_tui || !context.terminal) {
            (true, _) => ProgressKind::Quiet,
            (false, true) => ProgressKind::Lines,
            (false, false) => ProgressKind::Rewrite,
        }
    }
}

/// Text of others for a terminal: control characters, which could move or colour what follows, are replaced;
/// lines stay lines.
pub(crate) fn plain(text: &str) -> String {
    let shown = |c: char| match c {
        '\n' => '\n',
        c if c.is_control() => '\u{fffd}',
        c => c,
    };
    text.chars().map(shown).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_others_wrote_cannot_command_the_terminal() {
        assert_eq!(
            plain("a\u{1b}[31mb\r\nc\u{9b}d"),
            "a\u{fffd}[31mb\u{fffd}\nc\u{fffd}d"
        );
    }
}
