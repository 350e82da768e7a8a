//! MCP revisions and the two eras.
//!
//! *Legacy*: a session opened by `initialize` (to 2025-11-25). *Modern*: no session, each request
//! carries its revision in `_meta` (from 2026-07-28). Source: the published MCP specifications.

/// A published revision of the Model Context Protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Revision {
    /// 2024-11-05, the first.
    V2024_11_05,
    /// 2025-03-26: Streamable HTTP; the last with batches.
    V2025_03_26,
    /// 2025-06-18: no batches.
    V2025_06_18,
    /// 2025-11-25, the last of the Legacy era.
    V2025_11_25,
    /// 2026-07-28, the first of the Modern era.
    V2026_07_28,
}

/// Which of the two ways a peer speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Era {
    /// Opened by `initialize`.
    Legacy,
    /// Revision in each request's `_meta`.
    Modern,
}

impl Revision {
    /// All revisions, oldest first.
    pub const ALL: [Self; 5] = [
        Self::V2024_11_05,
        Self::V2025_03_26,
        Self::V2025_06_18,
        Self::V2025_11_25,
        Self::V2026_07_28,
    ];

    /// The revision of this name, if it is a published one.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|revision| revision.name() == name)
    }

    /// The name on the wire.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::V2024_11_05 => "2024-11-05",
            Self::V2025_03_26 => "2025-03-26",
            Self::V2025_06_18 => "2025-06-18",
            Self::V2025_11_25 => "2025-11-25",
            Self::V2026_07_28 => "2026-07-28",
        }
    }

    /// The era of this revision.
    #[must_use]
    pub fn era(self) -> Era {
        if self >= Self::V2026_07_28 {
            Era::Modern
        } else {
            Era::Legacy
        }
    }

    /// Whether JSON-RPC batches are part of this revision.
    #[must_use]
    pub fn has_batches(self) -> bool {
        self <= Self::V2025_03_26
    }
}

impl Era {
    /// The word used in journals and metrics.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::Legacy => "legacy",
            Self::Modern => "modern",
        }
    }
}

/// The `_meta` member that names the revision of a Modern request.
pub const META_PROTOCOL_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
