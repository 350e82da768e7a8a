//! Workers over HTTP: any request, and MCP over Streamable HTTP.

use super::target::{Judge, Target, Told};
use crate::driver::{
    Answers, HttpConnection, HttpReply, Operation, Protocol, Question, read_answer,
};
use crate::error::LabError;
use crate::run::Status;
use std::io;
use std::sync::Arc;

pub(crate) use crate::driver::Url;

/// One kind of request, again and again.
pub(super) struct HttpTarget {
    connection: HttpConnection,
    request: Vec<u8>,
    answers: Answers,
    expected: Option<Vec<u8>>,
}

impl HttpTarget {
    pub(super) fn open(
        url: &Url,
        headers: &[String],
        body: Option<&str>,
        answers: Answers,
        timeout_ms: u64,
    ) -> Result<Self, LabError> {
        let method = if body.is_some() { "POST" } else { "GET" };
        let mut request = url.head(method, headers);
        if let Some(body) = body {
            request.extend_from_slice(format!("content-length: {}\r\n", body.len()).as_bytes());
        }
        request.extend_from_slice(b"\r\n");
        request.extend_from_slice(body.unwrap_or_default().as_bytes());
        Ok(Self {
            connection: HttpConnection::open(url, timeout_ms)?,
            request,
            answers,
            expected: None,
        })
    }
}

impl Target for HttpTarget {
    fn call(&mut self) -> Told {
        let told = match self.connection.exchange(&self.request) {
            Ok(reply) => reply,
            Err((elapsed_ns, error)) => return lost(elapsed_ns, &error),
        };
        let (mut status, mut complaint) = of_code(&told);
        let body = self.connection.body();
        let judged = status == Status::Ok && self.answers != Answers::Any;
        match &self.expected {
            Some(expected) if judged && expected != body => {
                status = Status::WrongContent;
                complaint = Some("the body differs from the first one".into());
            }
            None if judged => self.expected = Some(body.to_vec()),
            _ => {}
        }
        of(&told, status, complaint)
    }
}

/// A tool of an MCP server over Streamable HTTP.
pub(super) struct McpHttpTarget {
    connection: HttpConnection,
    head: Vec<u8>,
    /// The name that goes into a header beside `tools/call` (2026-07-28).
    tool: Option<String>,
    question: Arc<Question>,
    judge: Judge,
    next_id: u64,
    frame: Vec<u8>,
    request: Vec<u8>,
}

impl McpHttpTarget {
    pub(super) fn open(
        url: &Url,
        headers: &[String],
        operation: &Operation,
        protocol: Protocol,
        judge: Judge,
        timeout_ms: u64,
    ) -> Result<Self, LabError> {
        let mut head = url.head("POST", headers);
        head.extend_from_slice(b"content-type: application/json\r\n");
        head.extend_from_slice(b"accept: application/json, text/event-stream\r\n");
        let mut target = Self {
            connection: HttpConnection::open(url, timeout_ms)?,
            head,
            tool: operation.tool().map(str::to_owned),
            question: Arc::new(operation.question(protocol)),
            judge,
            next_id: 1,
            frame: Vec::new(),
            request: Vec::new(),
        };
        target.shake_hands(protocol)?;
        Ok(target)
    }

    fn shake_hands(&mut self, protocol: Protocol) -> Result<(), LabError> {
        let broken = |what: String| LabError::Broken {
            arm: "target".into(),
            what,
        };
        let hello = protocol.hello();
        let id = self.next_id;
        let reply = self.post(&hello);
        let reply = reply.map_err(|(_, error)| broken(format!("{}: {error}", hello.name())))?;
        if !(200..300).contains(&reply.status) {
            let what = format!("{} was answered with status {}", hello.name(), reply.status);
            return Err(broken(what));
        }
        read_answer(self.connection.body(), reply.is_stream, id, |_| ())
            .map_err(|what| broken(format!("{}: {what}", hello.name())))?;
        if let Some(session) = self.connection.session() {
            let line = format!("mcp-session-id: {session}\r\n");
            self.head.extend_from_slice(line.as_bytes());
        }
        let version = format!("mcp-protocol-version: {}\r\n", protocol.revision());
        self.head.extend_from_slice(version.as_bytes());
        if let Some(note) = protocol.ready() {
            self.fill(note, "notifications/initialized");
            let sent = self.connection.exchange(&self.request);
            sent.map_err(|(_, error)| broken(format!("notifications/initialized: {error}")))?;
        }
        Ok(())
    }

    fn post(&mut self, question: &Question) -> Result<HttpReply, (u64, io::Error)> {
        let mut frame = std::mem::take(&mut self.frame);
        question.render(self.next_id, &mut frame);
        self.next_id += 1;
        self.fill(&frame, question.name());
        self.frame = frame;
        self.connection.exchange(&self.request)
    }

    /// Puts a request together. Headers that mirror the body are asked for by one revision and read by no
    /// other.
    fn fill(&mut self, frame: &[u8], method: &str) {
        let body = frame.trim_ascii_end();
        self.request.clear();
        self.request.extend_from_slice(&self.head);
        let mut lines = format!("mcp-method: {method}\r\n");
        if let ("tools/call", Some(tool)) = (method, &self.tool) {
            lines.push_str(&format!("mcp-name: {tool}\r\n"));
        }
        lines.push_str(&format!("content-length: {}\r\n\r\n", body.len()));
        self.request.extend_from_slice(lines.as_bytes());
        self.request.extend_from_slice(body);
    }
}

impl Target for McpHttpTarget {
    fn call(&mut self) -> Told {
        let id = self.next_id;
        let question = Arc::clone(&self.question);
        let told = match self.post(&question) {
            Ok(reply) => reply,
            Err((elapsed_ns, error)) => return lost(elapsed_ns, &error),
        };
        let (status, complaint) = of_code(&told);
        if status != Status::Ok {
            return of(&told, status, complaint);
        }
        let judge = &mut self.judge;
        let judged = read_answer(self.connection.body(), told.is_stream, id, |answer| {
            judge.status(answer)
        });
        match judged {
            Ok((status, complaint)) => of(&told, status, complaint),
            Err(what) => of(&told, Status::Broken, Some(what)),
        }
    }
}

/// A call without an answer.
fn lost(elapsed_ns: u64, error: &io::Error) -> Told {
    let status = match error.kind() {
        io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock => Status::Timeout,
        _ => Status::Broken,
    };
    Told::failed(status, elapsed_ns, error.to_string())
}

fn of_code(reply: &HttpReply) -> (Status, Option<String>) {
    match reply.status {
        200..=299 => (Status::Ok, None),
        429 => (Status::Throttled, Some("status 429".into())),
        other => (Status::Error, Some(format!("status {other}"))),
    }
}

fn of(reply: &HttpReply, status: Status, complaint: Option<String>) -> Told {
    Told {
        elapsed_ns: reply.elapsed_ns,
        bytes: reply.bytes,
        status,
        ttft_ns: reply.is_stream.then_some(reply.first_ns),
        complaint,
    }
}
