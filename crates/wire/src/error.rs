//! What can be wrong with bytes that claim to be a message.

use std::fmt;

/// The closed set of ways in which a frame can be refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WireErrorKind {
    /// The frame is not UTF-8.
    NotUtf8,
    /// The frame is not JSON (RFC 8259), or ends in the middle of a value.
    Syntax,
    /// The frame nests deeper than the bound.
    TooDeep,
    /// An object has the same member name twice (after unescaping).
    DuplicateKey,
    /// The frame is longer than the bound.
    TooLong,
    /// The frame is JSON but not a JSON-RPC 2.0 message.
    NotJsonRpc,
    /// The frame is an array, and the revision in use has no batches.
    BatchNotAllowed,
    /// More values, members or leaves than the bound.
    TooMany,
}

impl WireErrorKind {
    /// All, in the order of the reference page.
    pub const ALL: [Self; 8] = [
        Self::NotUtf8,
        Self::Syntax,
        Self::TooDeep,
        Self::DuplicateKey,
        Self::TooLong,
        Self::NotJsonRpc,
        Self::BatchNotAllowed,
        Self::TooMany,
    ];

    /// The closed reason label, as it stands in journals and metrics.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::NotUtf8 => "frame_not_utf8",
            Self::Syntax => "frame_not_json",
            Self::TooDeep => "frame_too_deep",
            Self::DuplicateKey => "frame_duplicate_key",
            Self::TooLong => "frame_too_long",
            Self::NotJsonRpc => "frame_not_jsonrpc",
            Self::BatchNotAllowed => "batch_not_allowed",
            Self::TooMany => "frame_too_many_members",
        }
    }

    /// The JSON-RPC 2.0 error code for this fault: −32700 for text that is not JSON, else −32600.
    #[must_use]
    pub fn code(self) -> i32 {
        match self {
            Self::NotUtf8 | Self::Syntax => -32700,
            Self::TooDeep
            | Self::DuplicateKey
            | Self::TooLong
            | Self::NotJsonRpc
            | Self::BatchNotAllowed
            | Self::TooMany => -32600,
        }
    }
}

/// A refused frame: what was wrong and at which byte.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WireError {
    /// What was wrong.
    pub kind: WireErrorKind,
    /// Byte offset in the frame.
    pub at: usize,
    /// One lowercase sentence.
    pub message: &'static str,
}

impl WireError {
    pub(crate) fn new(kind: WireErrorKind, at: usize, message: &'static str) -> Self {
        Self { kind, at, message }
    }
}

impl fmt::Display for WireError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at byte {}", self.message, self.at)
    }
}

impl std::error::Error for WireError {}
