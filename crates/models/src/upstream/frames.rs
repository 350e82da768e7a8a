//! A stream of Amazon's frames, each with an event of Anthropic's, as the stream of events that it carries.

use std::task::{Context, Poll, ready};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use dialects::{Endpoint, ErrorText, error_event, members, message_of, text};
use net::outbound::http::Reply as HttpReply;
use wire::eventstream::{Frame, FrameFault, FrameReader};
use wire::sse::push_named_event;

use crate::provider::{ReplyBody, Trouble};

/// The content type of such a stream.
pub(super) const KIND: &str = "application/vnd.amazon.eventstream";
/// Longest frame, in bytes.
const FRAME_BYTES_MAX: usize = 8 * 1024 * 1024;

/// The body of a reply in frames.
pub(super) struct Framed {
    reply: HttpReply,
    frames: FrameReader,
    /// What came behind the events that were handed out last.
    trouble: Option<Trouble>,
}

impl Framed {
    pub fn new(reply: HttpReply) -> Self {
        Self {
            reply,
            frames: FrameReader::new(FRAME_BYTES_MAX),
            trouble: None,
        }
    }

    /// The events of all frames that are there.
    fn events(&mut self) -> Vec<u8> {
        let mut out = Vec::new();
        while self.trouble.is_none() {
            let read = match self.frames.next() {
                Ok(Some(frame)) => event(&frame, &mut out),
                Ok(None) => break,
                Err(FrameFault::TooLong) => Err(Trouble::TooLong),
                Err(FrameFault::Checksum | FrameFault::Malformed) => Err(Trouble::Malformed),
            };
            self.trouble = read.err();
        }
        out
    }
}

impl ReplyBody for Framed {
    fn poll_chunk(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Bytes>, Trouble>> {
        loop {
            let events = self.events();
            if !events.is_empty() {
                return Poll::Ready(Ok(Some(events.into())));
            }
            if let Some(trouble) = self.trouble {
                return Poll::Ready(Err(trouble));
            }
            match ready!(self.reply.poll_chunk(cx)) {
                Ok(Some(bytes)) => self.frames.push(&bytes),
                Ok(None) if self.frames.is_between_frames() => return Poll::Ready(Ok(None)),
                Ok(None) => self.trouble = Some(Trouble::Cut),
                Err(fault) => self.trouble = Some(Trouble::from(&fault)),
            }
        }
    }
}

/// Writes the event that a frame carries.
fn event(frame: &Frame<'_>, out: &mut Vec<u8>) -> Result<(), Trouble> {
    let payload = std::str::from_utf8(frame.payload).map_err(|_| Trouble::Malformed)?;
    match frame.header(":message-type") {
        Some("event") => {}
        Some("exception") => {
            if frame.header(":exception-type") == Some("throttlingException") {
                return Err(Trouble::RateLimited);
            }
            failed(message_of(payload).as_deref(), out);
            return Ok(());
        }
        Some("error") => {
            failed(frame.header(":error-message"), out);
            return Ok(());
        }
        _ => return Err(Trouble::Malformed),
    }
    if frame.header(":event-type") != Some("chunk") {
        // Others have come, and will.
        return Ok(());
    }
    let found = members(payload);
    let member = |name: &str| found.iter().find(|(own, _)| own == name);
    let encoded = member("bytes").and_then(|(_, raw)| text(raw));
    let decoded = encoded.and_then(|text| STANDARD.decode(text.as_bytes()).ok());
    let data = decoded.ok_or(Trouble::Malformed)?;
    let said = std::str::from_utf8(&data).map_err(|_| Trouble::Malformed)?;
    let inner = members(said);
    let kind = inner.iter().find(|(own, _)| own == "type");
    let kind = kind.and_then(|(_, raw)| text(raw));
    push_named_event(out, kind.unwrap_or_default().as_bytes(), &data);
    Ok(())
}

/// An exception in the middle of a stream, as Anthropic words it.
fn failed(said: Option<&str>, out: &mut Vec<u8>) {
    let trouble = Trouble::Failed;
    let error = ErrorText {
        message: said.unwrap_or(trouble.sentence()),
        kind: "api_error",
        code: trouble.label(),
        param: None,
        request_id: "",
    };
    out.extend_from_slice(&error_event(Endpoint::Messages, &error));
}
