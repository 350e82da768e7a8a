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
    /// A member's name is not a known one, but some readers take it for a known one.
    AmbiguousMember,
    /// An argument's name is one that some readers take for another argument's.
    AmbiguousArgument,
}

impl WireErrorKind {
    /// All, in the order of the reference page.
    pub const ALL: [Self; 10] = [
        Self::NotUtf8,
        Self::Syntax,
        Self::TooDeep,
        Self::DuplicateKey,
        Self::TooLong,
        Self::NotJsonRpc,
        Self::BatchNotAllowed,
        Self::TooMany,
        Self::AmbiguousMember,
        Self::AmbiguousArgument,
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
            Self::AmbiguousMember => "frame_ambiguous_member",
            Self::AmbiguousArgument => "frame_ambiguous_argument",
        }
    }

    /// The JSON-RPC 2.0 error code for this fault: −32700 for text that is not JSON, −32602 for
    /// arguments, else −32600.
    #[must_use]
    pub fn code(self) -> i32 {
        match self {
            Self::NotUtf8 | Self::Syntax => -32700,
            Self::AmbiguousArgument => -32602,
            Self::TooDeep
            | Self::DuplicateKey
            | Self::TooLong
            | Self::NotJsonRpc
            | Self::BatchNotAllowed
            | Self::TooMany
            | Self::AmbiguousMember => -32600,
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
    /// The two names, where a name is ambiguous.
    pub names: Option<Box<Ambiguity>>,
}

/// Two member names that some readers take for one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ambiguity {
    /// The name that is refused, cut to [`NAME_CHARS_MAX`].
    pub name: String,
    /// The name for which it may be taken, cut likewise.
    pub other: String,
}

/// How much of a peer's member name an error repeats, in characters.
pub const NAME_CHARS_MAX: usize = 64;

impl WireError {
    /// A fault at a byte of the frame.
    #[must_use]
    pub fn new(kind: WireErrorKind, at: usize, message: &'static str) -> Self {
        Self {
            kind,
            at,
            message,
            names: None,
        }
    }

    /// A member that may be taken for a known one.
    pub fn ambiguous_member(at: usize, name: &str, known: &str) -> Self {
        let message = "a member name can be read as another; use the protocol's spelling";
        Self::new(WireErrorKind::AmbiguousMember, at, message).with_names(name, known)
    }

    /// An argument that may be taken for another.
    pub(crate) fn ambiguous_argument(at: usize, name: &str, other: &str) -> Self {
        let message = "an argument name can be read as another; use the spelling of the tool's schema, \
             and each name once";
        Self::new(WireErrorKind::AmbiguousArgument, at, message).with_names(name, other)
    }

    fn with_names(self, name: &str, other: &str) -> Self {
        let cut = |name: &str| name.chars().take(NAME_CHARS_MAX).collect();
        let names = Ambiguity {
            name: cut(name),
            other: cut(other),
        };
        Self {
            names: Some(Box::new(names)),
            ..self
        }
    }
}

impl fmt::Display for WireError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.message)?;
        if let Some(names) = &self.names {
            // Debug escapes what a terminal must not see.
            let Ambiguity { name, other } = names.as_ref();
            write!(
                f,
                " ({name:?} is like {other:?} but for case, \"_\" or \"-\")"
            )?;
        }
        write!(f, " at byte {}", self.at)
    }
}

impl std::error::Error for WireError {}
