//! What the transport has to know of a frame, read from the frame itself, so that headers cannot say
//! something else than the body.

use std::borrow::Cow;

use wire::id::IdKey;
use wire::jsonrpc::{Envelope, Kind, member, string};
use wire::revision::META_PROTOCOL_VERSION;
use wire::scan::Member;
use wire::{Bounds, Id, scan_reply};

use crate::message::method;

/// The method that calls a tool.
const TOOLS_CALL: &str = "tools/call";

/// What a frame is to the transport.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Outline {
    /// The id of a request, as spelled and by value.
    pub id: Option<(String, IdKey)>,
    /// The method; empty in an answer.
    pub method: Cow<'static, str>,
    /// The revision in `_meta`: the frame is of the Modern era.
    pub version: Option<String>,
    /// The tool, prompt or resource that the frame names.
    pub name: Option<String>,
    /// The arguments of a tool call, as they came.
    pub arguments: Option<String>,
    /// The headers that repeat arguments, where the client has given them; else they are found out.
    pub mirrored: Option<super::Headers>,
    /// The client's headers that name its run.
    pub trace: Option<Box<super::Headers>>,
}

impl Outline {
    /// Of the call of a tool under a number of ours, whose frame was read when it was judged and has no `_meta`.
    pub(super) fn of_call(number: &str, tool: &str) -> Self {
        Self {
            id: Id::from_raw(number).map(|id| (number.to_owned(), id.key())),
            method: Cow::Borrowed(TOOLS_CALL),
            version: None,
            name: Some(tool.to_owned()),
            arguments: None,
            mirrored: None,
            trace: None,
        }
    }

    /// Reads a frame that the session has checked before; of any other, nothing is known.
    pub(super) fn of(frame: &[u8]) -> Self {
        let mut outline = Self {
            id: None,
            method: Cow::Borrowed(""),
            version: None,
            name: None,
            arguments: None,
            mirrored: None,
            trace: None,
        };
        let bounds = Bounds::default();
        let Ok(scan) = scan_reply(frame, &bounds) else {
            return outline;
        };
        let Ok(envelope) = Envelope::of(&scan) else {
            return outline;
        };
        let (id, method) = match envelope.kind {
            Kind::Request { id, method } => (Some(id), method),
            Kind::Notification { method } => (None, method),
            Kind::Response { .. } => return outline,
        };
        outline.id = id.map(|id| (id.raw().to_owned(), id.key()));
        outline.version = version(&scan.params);
        outline.name = method::of(&method)
            .named_by
            .and_then(|key| member(&scan.params, key))
            .and_then(string)
            .map(Cow::into_owned);
        if method == TOOLS_CALL && outline.version.is_some() {
            outline.arguments = member(&scan.params, "arguments").map(str::to_owned);
        }
        outline.method = Cow::Owned(method.into_owned());
        outline
    }

    /// Whether the frame wants an answer.
    pub(super) fn is_request(&self) -> bool {
        self.id.is_some()
    }
}

fn version(params: &[Member<'_>]) -> Option<String> {
    let meta = member(params, "_meta")?;
    let scan = scan_reply(meta.as_bytes(), &Bounds::default()).ok()?;
    string(member(&scan.members, META_PROTOCOL_VERSION)?).map(Cow::into_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_that_was_read_before_is_outlined_as_its_frame_is() {
        let frame = r#"{"jsonrpc":"2.0","id":17,"method":"tools/call","params":{"name":"t\"A","arguments":{"a":1}}}"#;
        let read = Outline::of(frame.as_bytes());
        assert_eq!(Outline::of_call("17", "t\"A"), read);
        assert_eq!(read.id, Some(("17".into(), IdKey::Number(17))));
    }

    #[test]
    fn frames_are_outlined() {
        let of = |frame: &str| Outline::of(frame.as_bytes());
        let call = of(
            r#"{"jsonrpc":"2.0","id":1.0,"method":"tools/call","params":{"name":"t\u0041","arguments":{"a":1},
            "_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}"#,
        );
        assert_eq!(call.id, Some(("1.0".into(), IdKey::Number(1))));
        assert_eq!(call.name.as_deref(), Some("tA"));
        assert_eq!(call.version.as_deref(), Some("2026-07-28"));
        assert_eq!(call.arguments.as_deref(), Some(r#"{"a":1}"#));
        let read = of(
            r#"{"jsonrpc":"2.0","id":"x","method":"resources/read","params":{"uri":"file:///a"}}"#,
        );
        assert_eq!(read.name.as_deref(), Some("file:///a"));
        assert_eq!(read.version, None);
        let cancel = of(
            r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"x"}}"#,
        );
        assert!(!cancel.is_request());
        for other in [r#"{"jsonrpc":"2.0","id":1,"result":{}}"#, "garbage", "[]"] {
            let outline = of(other);
            assert!(!outline.is_request() && outline.method.is_empty());
        }
    }
}
