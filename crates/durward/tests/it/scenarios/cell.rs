//! The cells of a row: an edge, an era and a kind of upstream.

use std::fmt;

/// How the client is connected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Edge {
    /// `durward run`, over standard input and output.
    Stdio,
    /// `durward serve`, over Streamable HTTP.
    Http,
}

/// Which era client and server speak.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Era {
    /// With `initialize`: 2024-11-05 to 2025-11-25.
    Legacy,
    /// 2026-07-28: every request carries its `_meta`.
    Modern,
}

/// What is behind the gate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Peer {
    /// A process that is started, over its standard streams.
    Child,
    /// A server that is reached over Streamable HTTP.
    Http,
    /// A server inside the binary.
    Builtin,
}

/// One place in a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Cell {
    pub(crate) edge: Edge,
    pub(crate) era: Era,
    pub(crate) peer: Peer,
}

impl Cell {
    /// Every cell of a row, in the order of the printed table.
    pub(crate) fn all() -> Vec<Self> {
        let mut all = Vec::new();
        for edge in [Edge::Stdio, Edge::Http] {
            for era in [Era::Legacy, Era::Modern] {
                for peer in [Peer::Child, Peer::Http, Peer::Builtin] {
                    all.push(Self { edge, era, peer });
                }
            }
        }
        all
    }

    fn words(self) -> [&'static str; 3] {
        let edge = match self.edge {
            Edge::Stdio => "stdio",
            Edge::Http => "http",
        };
        let era = match self.era {
            Era::Legacy => "legacy",
            Era::Modern => "modern",
        };
        let peer = match self.peer {
            Peer::Child => "child",
            Peer::Http => "http",
            Peer::Builtin => "builtin",
        };
        [edge, era, peer]
    }

    /// Whether a pattern of the form `EDGE/ERA/PEER` means this cell; `*` means any.
    pub(crate) fn fits(self, pattern: &str) -> bool {
        let parts: Vec<&str> = pattern.split('/').collect();
        assert_eq!(parts.len(), 3, "{pattern} is not EDGE/ERA/PEER");
        let known = ["*", "stdio", "http", "legacy", "modern", "child", "builtin"];
        for part in &parts {
            assert!(known.contains(part), "{part} in {pattern} names no cell");
        }
        let own = self.words();
        parts.iter().zip(own).all(|(p, w)| *p == "*" || *p == w)
    }

    /// The transport that records of this cell name: that of the peer.
    pub(crate) fn transport(self) -> &'static str {
        match self.peer {
            Peer::Child => "stdio",
            Peer::Http => "http",
            Peer::Builtin => "builtin",
        }
    }

    /// The era as records name it.
    pub(crate) fn era_label(self) -> &'static str {
        self.words()[1]
    }
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.words().join("/"))
    }
}
