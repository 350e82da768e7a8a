//! The families of model APIs that callers speak.

/// A family of model APIs, by the vendor of its reference.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Dialect {
    /// OpenAI's, and that of compatible servers.
    OpenAi,
    /// Anthropic's.
    Anthropic,
}
