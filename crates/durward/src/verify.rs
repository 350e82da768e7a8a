//! What a start does about closed segments of the journal: the word of `journal.verify`.

/// What a start does about closed segments of the journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verify {
    /// Verifies them, and does not start where one was changed.
    Stop,
    /// Verifies them, and reports one that was changed.
    Report,
    /// Verifies nothing.
    Off,
}
