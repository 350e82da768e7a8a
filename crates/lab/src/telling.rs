//! How a command tells its progress.

use crate::Context;
use crate::progress::Kind;

/// Options that every measuring command has.
#[derive(Debug, Clone, clap::Args)]
pub struct Telling {
    /// No progress on standard error
    #[arg(long)]
    quiet: bool,
    /// Tell progress line by line, even on a terminal
    #[arg(long)]
    no_tui: bool,
}

impl Telling {
    /// The kind of progress that is wanted and possible.
    pub(crate) fn kind(&self, context: &Context) -> Kind {
        match (self.quiet, self.no_tui || !context.terminal) {
            (true, _) => Kind::Quiet,
            (false, true) => Kind::Lines,
            (false, false) => Kind::Rewrite,
        }
    }
}
