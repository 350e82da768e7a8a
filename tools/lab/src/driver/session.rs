//! An MCP client over Streamable HTTP on one kept connection: a session in the era that has them.

use super::answer::{CallAnswer, RpcEnvelope};
use super::http::{HttpConnection, HttpReply, events, find_answer};
use super::template::AnswerTemplate;
use super::{ProtocolRevision, RenderedRequest, TimedOperation};
use crate::url::HttpUrl;
use std::io::{self, Write as _};

/// A client, after its handshake.
#[derive(Debug)]
pub(crate) struct HttpSession {
    pub(super) connection: HttpConnection,
    url: HttpUrl,
    head: Vec<u8>,
    /// The name that goes into a header beside `tools/call`, if it may be there unchanged.
    tool: Option<String>,
    next_id: u64,
    frame: Vec<u8>,
    request: Vec<u8>,
    template: AnswerTemplate,
    last: Option<HttpReply>,
    known: bool,
}

impl HttpSession {
    /// Connects and shakes hands; returns a reason in words on failure.
    pub(crate) fn open(
        url: &HttpUrl,
        headers: &[String],
        operation: &TimedOperation,
        protocol: ProtocolRevision,
        timeout_ms: u64,
    ) -> Result<Self, String> {
        let mut head = url.head("POST", headers);
        head.extend_from_slice(b"content-type: application/json\r\n");
        head.extend_from_slice(b"accept: application/json, text/event-stream\r\n");
        let version = format!("mcp-protocol-version: {}\r\n", protocol.revision());
        // Without a negotiation every request names the revision, the first included.
        if protocol == ProtocolRevision::Modern {
            head.extend_from_slice(version.as_bytes());
        }
        let mut session = Self {
            connection: HttpConnection::open(url, timeout_ms).map_err(|error| error.to_string())?,
            url: url.clone(),
            head,
            tool: operation.tool().map(str::to_owned),
            next_id: 1,
            frame: Vec::new(),
            request: Vec::new(),
            template: AnswerTemplate::default(),
            last: None,
            known: false,
        };
        session.shake_hands(protocol)?;
        if protocol == ProtocolRevision::Legacy {
            session.head.extend_from_slice(version.as_bytes());
            session.get_ready(protocol)?;
        }
        Ok(session)
    }

    fn shake_hands(&mut self, protocol: ProtocolRevision) -> Result<(), String> {
        let hello = protocol.hello();
        let failed = |what: String| format!("{}: {what}", hello.name());
        self.ask(&hello)
            .map_err(|(_, error)| failed(error.to_string()))?;
        match self.answer().map_err(failed)? {
            CallAnswer::Result(_) => {}
            CallAnswer::Refused { code, message } => {
                return Err(failed(format!("refused: {code} {message}")));
            }
        }
        if let Some(session) = self.connection.session() {
            let line = format!("mcp-session-id: {session}\r\n");
            self.head.extend_from_slice(line.as_bytes());
        }
        Ok(())
    }

    /// Ends a handshake.
    fn get_ready(&mut self, protocol: ProtocolRevision) -> Result<(), String> {
        let Some(note) = protocol.ready() else {
            return Ok(());
        };
        let name = "notifications/initialized";
        self.fill(note, name);
        let reply = self
            .connection
            .exchange(&self.request)
            .map_err(|(_, error)| format!("{name}: {error}"))?;
        match reply.status {
            200..=299 => Ok(()),
            other => Err(format!("{name} was answered with status {other}")),
        }
    }

    /// One timed call; an error comes with the nanoseconds until then. The answer waits in [`Self::answer`].
    pub(crate) fn ask(
        &mut self,
        question: &RenderedRequest,
    ) -> Result<HttpReply, (u64, io::Error)> {
        self.render(question);
        let reply = self.connection.exchange(&self.request)?;
        self.note(reply);
        Ok(reply)
    }

    /// Sends a call without waiting for its answer.
    pub(super) fn launch(&mut self, question: &RenderedRequest) -> io::Result<()> {
        self.render(question);
        self.connection.begin(&self.request)
    }

    /// Reads what came of a call that was launched; its answer when all of it is there.
    pub(super) fn land(&mut self) -> io::Result<Option<HttpReply>> {
        let reply = self.connection.advance()?;
        if let Some(reply) = reply {
            self.note(reply);
        }
        Ok(reply)
    }

    fn render(&mut self, question: &RenderedRequest) {
        let mut frame = std::mem::take(&mut self.frame);
        question.render(self.next_id, &mut frame);
        self.next_id += 1;
        self.fill(&frame, question.name());
        self.frame = frame;
    }

    fn note(&mut self, reply: HttpReply) {
        let id = self.next_id - 1;
        let body = self.connection.body();
        let text = match reply.is_stream {
            true => events(body).last().unwrap_or_default(),
            false => body,
        };
        self.known = reply.status == 200 && self.template.id_of(text) == Some(id);
        self.last = Some(reply);
    }

    /// Returns the last answer, checked for its id; in words what came instead.
    pub(crate) fn answer(&self) -> Result<CallAnswer<'_>, String> {
        let reply = self.last.ok_or("nothing was asked")?;
        let body = self.connection.body();
        let read = find_answer(body, reply.is_stream, self.next_id - 1)
            .and_then(|text| RpcEnvelope::read(text)?.answer());
        match (reply.status, read) {
            (200..=299, read) => read,
            // A refusal may come with a status of its own.
            (_, Ok(refused @ CallAnswer::Refused { .. })) => Ok(refused),
            (status, _) => {
                let text: String = String::from_utf8_lossy(body).chars().take(120).collect();
                Err(format!("status {status}: {}", text.trim()))
            }
        }
    }

    /// Returns whether the last answer is, byte for byte but for its id, one that was confirmed.
    pub(crate) fn is_known(&self) -> bool {
        self.known
    }

    /// The last answer is good; the same one again is known.
    pub(crate) fn confirm(&mut self) {
        let Some(reply) = self.last else { return };
        let body = self.connection.body();
        if let Ok(text) = find_answer(body, reply.is_stream, self.next_id - 1) {
            self.template.learn(text);
        }
    }

    /// Returns the id of the last call, and the size of its answer in bytes.
    pub(crate) fn last(&self) -> (u64, usize) {
        (self.next_id - 1, self.last.map_or(0, |reply| reply.bytes))
    }

    /// Ends the session at the server and ignores its reply.
    pub(crate) fn close(&mut self) {
        let Some(session) = self.connection.session() else {
            return;
        };
        let mut request = self.url.head("DELETE", &[]);
        let line = format!("mcp-session-id: {session}\r\n\r\n");
        request.extend_from_slice(line.as_bytes());
        let _ = self.connection.exchange(&request);
    }

    /// Puts a request together. Headers that mirror the body are asked for by one revision and read by no
    /// other.
    fn fill(&mut self, frame: &[u8], method: &str) {
        let body = frame.trim_ascii_end();
        let request = &mut self.request;
        request.clear();
        request.extend_from_slice(&self.head);
        request.extend_from_slice(b"mcp-method: ");
        request.extend_from_slice(method.as_bytes());
        if let ("tools/call", Some(tool)) = (method, &self.tool) {
            request.extend_from_slice(b"\r\nmcp-name: ");
            request.extend_from_slice(tool.as_bytes());
        }
        // Writing to a vector does not fail.
        let _ = write!(request, "\r\ncontent-length: {}\r\n\r\n", body.len());
        request.extend_from_slice(body);
    }
}
