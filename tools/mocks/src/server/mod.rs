//! An MCP server without a transport: a frame goes in, actions come out.
//!
//! Both eras are spoken by one [`Server`]: Legacy after `initialize` (2024-11-05 to 2025-11-25), Modern
//! (2026-07-28) for every request whose `_meta` names a version.

mod dispatch;
mod era;
mod fault;
mod surface;

pub(crate) use dispatch::{Kind, Server, text};
pub(crate) use era::{Era, Params};
pub use era::{
    Eras, LEGACY_VERSIONS, META_CAPABILITIES, META_CLIENT, META_SERVER, META_VERSION,
    MODERN_VERSION,
};
pub(crate) use fault::Fault;
pub(crate) use surface::{Called, Identity, Surface};

use std::time::Duration;

/// What a transport is to do for a machine, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Send one frame; the transport adds the framing.
    Send(Vec<u8>),
    /// Send one frame after a wait, unless it is withdrawn first.
    SendLater {
        /// The request it answers, as spelled on the wire.
        id: String,
        /// How long to wait.
        after: Duration,
        /// The frame.
        frame: Vec<u8>,
    },
    /// Forget the delayed frame that answers this request id.
    Withdraw {
        /// The id as spelled on the wire.
        id: String,
    },
    /// Tell every session of the server; each says what it owes its client.
    Publish(Event),
    /// Close the stream of the request at hand, if it has one of its own; its answer waits for the client
    /// to come back.
    HangUp,
    /// Write bytes as they are, without framing.
    SendRaw(Vec<u8>),
    /// Write this many bytes of log lines to standard error.
    Complain {
        /// How many bytes.
        bytes: usize,
    },
    /// Stay alive after the end of input, at most this long.
    Linger(Duration),
    /// End the process with this exit code.
    End(u8),
}

/// A change on the server that clients may have asked to hear of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// The list of tools.
    Tools,
    /// The list of prompts.
    Prompts,
    /// What this resource holds.
    Resource(String),
}

/// Protocol logic that any transport can drive.
pub trait Machine: Send {
    /// Takes one frame and appends what is to be done.
    fn handle(&mut self, frame: &[u8], actions: &mut Vec<Action>);

    /// Takes an event of the server, its own included, and appends what this session owes its client.
    fn event(&mut self, _event: &Event, _actions: &mut Vec<Action>) {}

    /// The parameters of a tool that a Modern request over HTTP repeats in its headers: the name behind
    /// `Mcp-Param-`, and the member of the arguments.
    fn mirrored(&self, _tool: &str) -> &[(&'static str, &'static str)] {
        &[]
    }

    /// Takes the end of input and appends what is to be done; nothing appended ends the process with 0.
    fn end_of_input(&mut self, _actions: &mut Vec<Action>) {}

    /// Takes a frame that was longer than the transport's bound and was dropped.
    fn too_long(&mut self, actions: &mut Vec<Action>) {
        let fault = Fault::InvalidRequest("the frame is longer than 32 MiB; send less".into());
        actions.push(Action::Send(fault.frame("null", Era::Legacy("2025-11-25"))));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::echo::Echo;

    const FRAMES: [&str; 4] = [
        r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2024-11-05","capabilities":{}}}"#,
        r#"{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"name":"echo","arguments":{"text":"\u0041"}}}"#,
        r#"{"jsonrpc":"2.0","id":2,"method":"server/discover","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}"#,
        r#"[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}]"#,
    ];

    /// Whatever comes, every frame that goes out is one line of valid JSON.
    fn check(server: &mut Server<Echo>, frame: &[u8]) {
        let mut actions = Vec::new();
        server.handle(frame, &mut actions);
        for action in actions {
            if let Action::Send(sent) | Action::SendLater { frame: sent, .. } = action {
                assert!(!sent.contains(&b'\n'));
                let sent: Result<serde_json::Value, _> = serde_json::from_slice(&sent);
                assert!(sent.is_ok(), "after {}", String::from_utf8_lossy(frame));
            }
        }
    }

    #[test]
    fn damaged_frames_are_answered_with_valid_frames() {
        let echo = Echo {
            delay: Duration::ZERO,
            reply_bytes: 1,
            ..Echo::default()
        };
        let mut server = Server::new(echo, Eras::Both, None);
        for frame in FRAMES {
            let frame = frame.as_bytes();
            for length in 0..=frame.len() {
                check(&mut server, &frame[..length]);
            }
            for place in 0..frame.len() {
                for byte in *b"\0\"\\{}[],:0-\xff" {
                    let mut damaged = frame.to_vec();
                    damaged[place] = byte;
                    check(&mut server, &damaged);
                }
            }
        }
    }

    #[test]
    fn a_deep_frame_is_answered() {
        let echo = Echo {
            delay: Duration::ZERO,
            reply_bytes: 1,
            ..Echo::default()
        };
        let mut server = Server::new(echo, Eras::Legacy, None);
        check(&mut server, FRAMES[0].as_bytes());
        for deep in [
            "[".repeat(100_000),
            r#"{"id":"#.repeat(100_000),
            format!(
                r#"{{"jsonrpc":"2.0","id":1,"method":"ping","params":{}"#,
                "[".repeat(100_000)
            ),
        ] {
            check(&mut server, deep.as_bytes());
        }
    }
}
