//! The two ends that a message can be sent to, by name. A leaf: it imports nothing of ours.

use std::fmt;
use std::sync::Arc;

/// Which end of a call a peer stands at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Side {
    Server,
    Client,
}

/// The name of a destination. Passes are made out to one, and only a peer of that name can use them.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct PeerId {
    side: Side,
    name: Arc<str>,
}

impl PeerId {
    /// A server, by its name in the configuration (`backend_id` in rules and records). All processes
    /// and sessions of one server have the same name.
    #[must_use]
    pub fn server(name: impl Into<Arc<str>>) -> Self {
        Self {
            side: Side::Server,
            name: name.into(),
        }
    }

    /// A client, by the id of its session.
    #[must_use]
    pub fn client(session_id: impl Into<Arc<str>>) -> Self {
        Self {
            side: Side::Client,
            name: session_id.into(),
        }
    }

    /// The server's name or the session's id.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The same name, to keep.
    #[must_use]
    pub fn shared_name(&self) -> &Arc<str> {
        &self.name
    }

    /// Whether this is a client.
    #[must_use]
    pub fn is_client(&self) -> bool {
        self.side == Side::Client
    }
}

impl fmt::Display for PeerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let side = match self.side {
            Side::Server => "server",
            Side::Client => "client",
        };
        write!(f, "{side} {:?}", &*self.name)
    }
}

impl fmt::Debug for PeerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PeerId({self})")
    }
}

/// How a server is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Transport {
    /// Over the standard streams of a child.
    #[default]
    Stdio,
    /// Over HTTP.
    Http,
    /// In this process.
    Builtin,
}

impl Transport {
    /// All, in order.
    pub const ALL: [Self; 3] = [Self::Stdio, Self::Http, Self::Builtin];

    /// The word used in the journal.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::Stdio => "stdio",
            Self::Http => "http",
            Self::Builtin => "builtin",
        }
    }
}

/// The peers that a call is judged for: usually one, several where a second may take over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Targets(Inner);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Inner {
    One(PeerId),
    Several(Arc<[PeerId]>),
}

impl Targets {
    /// Any one of these. An empty list is nobody: such a call can be judged, but sent nowhere.
    #[must_use]
    pub fn any(peers: impl Into<Arc<[PeerId]>>) -> Self {
        Self(Inner::Several(peers.into()))
    }

    /// The peers, in the order in which they are to be tried.
    #[must_use]
    pub fn peers(&self) -> &[PeerId] {
        match &self.0 {
            Inner::One(peer) => std::slice::from_ref(peer),
            Inner::Several(peers) => peers,
        }
    }

    /// Whether the call is judged for this peer.
    #[must_use]
    pub fn include(&self, peer: &PeerId) -> bool {
        self.peers().contains(peer)
    }
}

impl From<PeerId> for Targets {
    fn from(peer: PeerId) -> Self {
        Self(Inner::One(peer))
    }
}

impl From<&PeerId> for Targets {
    fn from(peer: &PeerId) -> Self {
        peer.clone().into()
    }
}

#[cfg(test)]
mod tests;
