//! An MCP server without a transport: a frame goes in, actions come out.
//!
//! Both eras are spoken by one [`ProtocolServer`]: Legacy after `initialize` (2024-11-05 to 2025-11-25), Modern
//! (2026-07-28) for every request with a version in its `_meta`.

mod dispatch;
mod era;
mod fault;
mod surface;

pub(crate) use dispatch::{ProtocolServer, ResultKind, text};
pub use era::{
    LEGACY_VERSIONS, META_CAPABILITIES, META_CLIENT, META_SERVER, META_VERSION, MODERN_VERSION,
    RevisionSet,
};
pub(crate) use era::{RevisionKind, RoutingParams};
pub(crate) use fault::RequestFault;
pub(crate) use surface::{ServerIdentity, ServerSurface, ToolResult};

use std::time::Duration;

/// Actions that a transport carries out for a machine, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MachineAction {
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
    /// Publish to every session of the server; each notifies its client.
    Publish(ChangeEvent),
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
pub enum ChangeEvent {
    /// The list of tools.
    Tools,
    /// The list of prompts.
    Prompts,
    /// What this resource holds.
    Resource(String),
}

/// Protocol logic that any transport can drive.
pub trait ProtocolMachine: Send {
    /// Takes one frame and appends what is to be done.
    fn handle(&mut self, frame: &[u8], actions: &mut Vec<MachineAction>);

    /// Takes an event of the server, its own included, and appends what this session owes its client.
    fn event(&mut self, _event: &ChangeEvent, _actions: &mut Vec<MachineAction>) {}

    /// Returns the parameters of a tool that a Modern request over HTTP repeats in its headers: the name behind
    /// `Mcp-Param-`, and the member of the arguments.
    fn mirrored_parameters(&self, _tool: &str) -> &[(&'static str, &'static str)] {
        &[]
    }

    /// Takes the end of input and appends what is to be done; nothing appended ends the process with 0.
    fn end_of_input(&mut self, _actions: &mut Vec<MachineAction>) {}

    /// Takes a frame that was longer than the transport's bound and was dropped.
    fn too_long(&mut self, actions: &mut Vec<MachineAction>) {
        let fault =
            RequestFault::InvalidRequest("the frame is longer than 32 MiB; send less".into());
        actions.push(MachineAction::Send(
            fault.frame("null", RevisionKind::Legacy("2025-11-25")),
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::echo::EchoServer;

    const FRAMES: [&str; 4] = [
        r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2024-11-05","capabilities":{}}}"#,
        r#"{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"name":"echo","arguments":{"text":"\u0041"}}}"#,
        r#"{"jsonrpc":"2.0","id":2,"method":"server/discover","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}"#,
        r#"[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}]"#,
    ];

    /// Checks that every output frame is one line of valid JSON.
    fn check(server: &mut ProtocolServer<EchoServer>, frame: &[u8]) {
        let mut actions = Vec::new();
        server.handle(frame, &mut actions);
        for action in actions {
            if let MachineAction::Send(sent) | MachineAction::SendLater { frame: sent, .. } = action
            {
                assert!(!sent.contains(&b'\n'));
                let sent: Result<serde_json::Value, _> = serde_json::from_slice(&sent);
                assert!(sent.is_ok(), "after {}", String::from_utf8_lossy(frame));
            }
        }
    }

    #[test]
    fn damaged_frames_are_answered_with_valid_frames() {
        let echo = EchoServer {
            delay: Duration::ZERO,
            reply_bytes: 1,
            ..EchoServer::default()
        };
        let mut server = ProtocolServer::new(echo, RevisionSet::Both, None);
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
        let echo = EchoServer {
            delay: Duration::ZERO,
            reply_bytes: 1,
            ..EchoServer::default()
        };
        let mut server = ProtocolServer::new(echo, RevisionSet::Legacy, None);
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
