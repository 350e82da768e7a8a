//! The servers behind: the one place of this crate where frames leave for them.
//!
//! A [`Pool`] opens and shares links; a [`Link`] gives requests their names and sorts what comes back;
//! a [`Peer`] is what a link speaks to: a child, a server over HTTP, or one that is built in. Nothing
//! leaves except through [`Link::request`] and [`Link::send`], which take only the gate's passes.

mod either;
mod exchange;
mod handshakes;
mod kept;
mod link;
mod notifications;
mod pool;
mod process_limit;
mod route;
mod slot;
mod subscribers;
mod verdict;
mod way;

use std::borrow::Cow;
use std::fmt;
use std::io;
use std::sync::Arc;

use gate::approval::Shown;
use gate::approval::change::Seen;
use gate::facts::Facts;
use gate::paths::PathView;
use gate::{Gate, Pass, PeerId, Spent};
use net::outbound::ChildSpec;
use toolkit::mcp::Builtin;
use wire::frame::FRAME_BYTES_MAX;
use wire::jsonrpc::{Envelope, Kind};
use wire::{Bounds, scan_request};

pub use exchange::{Exchange, Incoming, News};
pub use kept::{KEPT_BYTES_MAX, KEPT_BYTES_OF_SERVER_MAX, KEPT_MS_MAX};
pub(crate) use kept::{KeptAs, Page, Recalled};
pub use link::{IN_FLIGHT_MAX, Link, Naming, Unsent};
pub use notifications::{Heard, Hearing};
pub use pool::{CHILDREN_MAX, Means, Pool, SESSIONS_MAX, Share};
pub use process_limit::{QUEUE_MAX, QUEUE_OF_CALLER_MAX, QUEUE_WAIT_MS_MAX};
pub use slot::Slot;
pub(crate) use slot::{Lasting, Subscription};
pub use subscribers::RESOURCES_MAX;
pub(crate) use verdict::spared;
pub use way::http;
pub(crate) use way::{Driver, Turn};
pub use way::{Peer, Reading};

/// Longest message that is taken from a server, in bytes: what may be passed on as a reply, and never less than
/// what else a server may say.
fn message_bytes_max(gate: &Gate) -> usize {
    let reply = usize::try_from(gate.limits().response_bytes_max).unwrap_or(usize::MAX);
    reply.max(FRAME_BYTES_MAX)
}

/// A frame on its way.
#[derive(Clone)]
pub struct Frame {
    /// Its bytes, without a newline.
    pub bytes: Vec<u8>,
    /// What it says to a built-in server, read from the bytes that were judged.
    pub read: Option<Box<toolkit::mcp::Message>>,
    /// The file system that its server sees, where it is ours: for the person who is asked.
    pub view: Option<Arc<dyn PathView>>,
    /// The built-in server that it is for: it looks up what a person is to see.
    pub builtin: Option<Arc<Builtin>>,
    /// What that server has looked up.
    pub seen: Option<Box<Seen>>,
}

impl fmt::Debug for Frame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Frame")
            .field("bytes", &self.bytes)
            .field("read", &self.read)
            .finish_non_exhaustive()
    }
}

impl Frame {
    /// Notes what it is judged by, for a built-in server that holds what it does against that.
    pub fn note_judged(&mut self, facts: &Facts) {
        if let (Some(builtin), Some(message)) = (&self.builtin, &mut self.read) {
            builtin.note_judged(message, facts);
        }
    }
}

impl From<Vec<u8>> for Frame {
    fn from(bytes: Vec<u8>) -> Self {
        Self {
            bytes,
            read: None,
            view: None,
            builtin: None,
            seen: None,
        }
    }
}

impl Shown for Frame {
    fn view(&self) -> Option<&dyn PathView> {
        self.view.as_deref()
    }

    async fn look(&mut self) {
        if let (Some(builtin), Some(message)) = (&self.builtin, &mut self.read) {
            self.seen = builtin.preview(message).await.map(Box::new);
            let digest = self.seen.as_ref().and_then(|seen| seen.digest.clone());
            message.note_shown(digest);
        }
    }

    fn seen(&self) -> Option<&Seen> {
        self.seen.as_deref()
    }

    fn weight(&self) -> usize {
        // As a tree each value takes as much, however short it is.
        const VALUE_BYTES: usize = 32;
        let separators = || self.bytes.iter().filter(|byte| **byte == b',').count();
        let read = self.read.as_ref().map_or(0, |_| VALUE_BYTES * separators());
        self.bytes.len().saturating_add(read)
    }

    /// All that the method is given, but `_meta`. Of a tool that is given nothing but arguments, these: its
    /// name is shown beside them.
    fn arguments(&self) -> Option<Cow<'_, str>> {
        let scan = scan_request(&self.bytes, &Bounds::default()).ok()?;
        let envelope = Envelope::of(&scan).ok()?;
        let is_tool =
            matches!(&envelope.kind, Kind::Request { method, .. } if method == "tools/call");
        let is_shown = |name: &str| name != "_meta" && !(is_tool && name == "name");
        let shown: Vec<_> = scan
            .params
            .iter()
            .filter(|(name, _)| is_shown(name))
            .collect();
        match shown.as_slice() {
            [] => None,
            [(name, raw)] if is_tool && name == "arguments" => Some(Cow::Borrowed(raw)),
            _ if shown.len() == scan.params.len() => envelope.payload.map(Cow::Borrowed),
            _ => {
                let members = shown
                    .iter()
                    .map(|(name, raw)| format!("{}:{raw}", serde_json::Value::from(name.as_ref())));
                Some(Cow::Owned(format!(
                    "{{{}}}",
                    members.collect::<Vec<_>>().join(",")
                )))
            }
        }
    }
}

/// What a pass holds, taken out at its destination; nothing where it is made out to another.
pub(crate) fn taken<P: Pass>(pass: P, here: &PeerId) -> Option<(P::Request, P::Open)> {
    let (spent, open) = pass.spend(here).ok()?;
    Some((spent.take(here).ok()?, open))
}

/// The frame of what was spent here.
fn frame_at(here: &PeerId, spent: Spent<Frame>) -> io::Result<Frame> {
    spent.take(here).map_err(elsewhere)
}

/// A pass for another peer came this way. It is dropped, which settles its call as aborted.
fn elsewhere<P>(_unspent: P) -> io::Error {
    let message = "the pass is for another peer";
    io::Error::new(io::ErrorKind::InvalidInput, message)
}

/// What to start as the server. Built by the binary, spent here.
pub type ServerCommand = ChildSpec;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn j14_a_person_sees_all_that_a_method_is_given() {
        for (method, params, shown) in [
            (
                "tools/call",
                r#"{"name":"t","arguments":{"a":1},"_meta":{"x":1}}"#,
                Some(r#"{"a":1}"#),
            ),
            (
                "tools/call",
                r#"{"name":"t","arguments":{"a":1},"task":{"ttl":1}}"#,
                Some(r#"{"arguments":{"a":1},"task":{"ttl":1}}"#),
            ),
            ("tools/call", r#"{"name":"t"}"#, None),
            (
                "prompts/get",
                r#"{"name":"p","arguments":{"a":"b"}}"#,
                Some(r#"{"name":"p","arguments":{"a":"b"}}"#),
            ),
            (
                "sampling/createMessage",
                r#"{"arguments":{"decoy":1},"messages":["real"],"_meta":{}}"#,
                Some(r#"{"arguments":{"decoy":1},"messages":["real"]}"#),
            ),
        ] {
            let frame =
                format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{params}}}"#);
            let frame = Frame::from(frame.into_bytes());
            assert_eq!(frame.arguments().as_deref(), shown, "{method} {params}");
        }
    }
}
