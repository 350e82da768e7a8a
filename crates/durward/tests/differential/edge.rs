//! The ways to a server.

use mocks::ambiguous::{AmbiguousFrame, ArgumentStream, FrameStream, MODERN_META};
use serde_json::json;
use wire::Revision;
use wire::revision::Era;

use crate::place::{LIMITS, Place, binary};
use crate::servers::{Listening, Server};
use crate::{forwarded, http, lines, written};

/// How a client reaches a server.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Edge {
    /// The server itself.
    Direct,
    /// The server itself, with frames as `wire` writes them.
    Written,
    /// The server itself, with those frames as they came that a gate would allow by its own reading of
    /// them: what canonical frames are there to prevent.
    Forwarded,
    /// `durward run`.
    Run,
    /// `durward serve`.
    Serve,
    /// `durward run` in front of several servers at once.
    Together,
    /// `durward serve` at the address of several servers at once.
    ServeAll,
}

/// How Durward reaches a server.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Transport {
    /// As a child, over its standard streams.
    Stdio,
    /// Over Streamable HTTP.
    Http,
}

/// One way to a server, in one revision of the protocol.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Way {
    pub edge: Edge,
    pub transport: Transport,
    pub revision: Revision,
}

impl Edge {
    /// This way, over standard streams, in the revision that every SDK speaks.
    pub const fn plainly(self) -> Way {
        Way {
            edge: self,
            transport: Transport::Stdio,
            revision: Revision::V2025_06_18,
        }
    }

    /// Whether a gate stands between.
    pub fn is_guarded(self) -> bool {
        matches!(
            self,
            Self::Run | Self::Serve | Self::Together | Self::ServeAll
        )
    }
}

impl std::fmt::Display for Way {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let edge = match self.edge {
            Edge::Direct => "direct",
            Edge::Written => "written",
            Edge::Forwarded => "forwarded",
            Edge::Run => "run",
            Edge::Serve => "serve",
            Edge::Together => "together",
            Edge::ServeAll => "serve all",
        };
        let transport = match self.transport {
            Transport::Stdio => "stdio",
            Transport::Http => "http",
        };
        write!(f, "{edge:9} {transport:5} {}", self.revision.name())
    }
}

impl Way {
    /// Every way through Durward to a server. Streamable HTTP begins with 2025-03-26.
    pub fn guarded(server: &Server) -> Vec<Self> {
        use Transport::{Http, Stdio};
        let mut ways = Vec::new();
        for revision in Revision::ALL {
            let (is_modern, is_spoken) = (revision.era() == Era::Modern, revision <= server.newest);
            let has_http = revision > Revision::V2024_11_05;
            for (edge, transport, is_one) in [
                (Edge::Run, Stdio, is_spoken),
                (Edge::Run, Http, is_spoken && has_http),
                (Edge::Serve, Stdio, is_spoken && has_http),
                (Edge::Serve, Http, is_spoken && has_http),
                // Over standard streams there are sessions alone in front of several servers.
                (Edge::Together, Stdio, is_spoken && !is_modern),
                // A server that speaks sessions alone is asked in one there.
                (Edge::ServeAll, Stdio, is_modern || is_spoken && has_http),
                (Edge::ServeAll, Http, is_modern || is_spoken && has_http),
            ] {
                if is_one {
                    ways.push(Self {
                        edge,
                        transport,
                        revision,
                    });
                }
            }
        }
        ways
    }

    /// Whether requests carry their revision.
    pub fn is_modern(&self) -> bool {
        self.revision.era() == Era::Modern
    }

    /// So many frames of a seed.
    pub fn frames(&self, seed: u64, count: usize) -> Vec<AmbiguousFrame> {
        let frames = FrameStream::new(seed);
        let frames = if self.is_modern() {
            frames.modern()
        } else {
            frames
        };
        match self.edge {
            Edge::Together | Edge::ServeAll => frames.of_server(NAME).take(count).collect(),
            _ => frames.take(count).collect(),
        }
    }

    /// So many calls with unusual arguments.
    pub fn arguments(&self, seed: u64, count: usize) -> Vec<AmbiguousFrame> {
        let calls = ArgumentStream::new(seed);
        let calls = if self.is_modern() {
            calls.modern()
        } else {
            calls
        };
        let calls = calls.take(count);
        match self.edge {
            Edge::Together | Edge::ServeAll => calls.map(|call| call.of_server(NAME)).collect(),
            _ => calls.collect(),
        }
    }

    /// What opens a session, or shows in the Modern era that the other side answers.
    pub fn opening(&self) -> String {
        let version = self.revision.name();
        if self.is_modern() {
            return format!(
                r#"{{"jsonrpc":"2.0","id":"open","method":"server/discover","params":{{"_meta":{{{MODERN_META}}}}}}}"#
            );
        }
        format!(
            r#"{{"jsonrpc":"2.0","id":"open","method":"initialize","params":{{"protocolVersion":"{version}","capabilities":{{}},"clientInfo":{{"name":"differential","version":"1"}}}}}}"#
        )
    }

    /// What follows the answer to the opening.
    pub fn opened(&self) -> Option<&'static str> {
        let opened = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
        (!self.is_modern()).then_some(opened)
    }

    /// Sends the frames, each behind the other; gives how often the server had to be started anew.
    pub fn drive(self, server: &Server, place: &Place, frames: &[AmbiguousFrame]) -> usize {
        let listening = (self.transport == Transport::Http).then(|| Listening::of(server, place));
        match self.edge {
            Edge::Direct => lines::drive(self, &server.command, place, frames),
            Edge::Written => lines::drive(self, &server.command, place, &written::all(frames)),
            Edge::Forwarded => lines::drive(self, &server.command, place, &forwarded::all(frames)),
            Edge::Run => {
                let command = run(server, listening.as_ref());
                lines::drive(self, &command, place, frames)
            }
            Edge::Together => {
                let command = together(server, place);
                lines::drive(self, &command, place, frames)
            }
            Edge::Serve | Edge::ServeAll => {
                http::drive(self, server, listening.as_ref(), place, frames);
                0
            }
        }
    }
}

/// The name of the server.
pub const NAME: &str = "s";

/// `durward run` in front of a server and of one that is not there, so that names carry their server's.
fn together(server: &Server, place: &Place) -> Vec<String> {
    let (program, arguments) = server.command.split_first().unwrap();
    let own =
        json!({"command": program, "args": arguments, "env": {"DIFFERENTIAL_LOG": place.book()}});
    let configuration = json!({
        "servers": {NAME: own, "absent": {"command": "false"}},
        "policy": place.dir.join("policy.json"),
    });
    let file = place.dir.join("durward.yaml");
    std::fs::write(file, configuration.to_string()).unwrap();
    let words = ["--config", "durward.yaml", "--state-dir", "state", "run"];
    let words = [&words[..], &LIMITS].concat();
    let own = std::iter::once(binary()).chain(words);
    own.map(str::to_owned).collect()
}

/// `durward run` before a server.
pub fn run(server: &Server, listening: Option<&Listening>) -> Vec<String> {
    let state = ["run", "--no-config", "--state-dir", "state"];
    let policy = ["--policy", "policy.json"];
    let mut command = vec![binary().to_owned()];
    let flags = [&state[..], &policy, &LIMITS].concat();
    command.extend(flags.iter().map(|word| (*word).to_owned()));
    let upstream = match listening {
        Some(listening) => vec!["--url".to_owned(), listening.url.clone()],
        None => {
            let mut words: Vec<String> = ["--env", "DIFFERENTIAL_LOG", "--"]
                .map(str::to_owned)
                .into();
            words.extend(server.command.iter().cloned());
            words
        }
    };
    command.extend(upstream);
    command
}
