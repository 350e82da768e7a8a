//! Workers over HTTP: any request, and MCP over Streamable HTTP.

use super::target::{Judge, Target, Told};
use crate::driver::{
    Answers, HttpConnection, HttpReply, HttpSession, Operation, Protocol, Question,
};
use crate::error::LabError;
use crate::run::Status;
use std::io;

pub(crate) use crate::url::Url;

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
            connection: HttpConnection::open(url, timeout_ms)
                .map_err(|error| broken(error.to_string()))?,
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
    session: HttpSession,
    question: Question,
    judge: Judge,
    lost: bool,
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
        let session = HttpSession::open(url, headers, operation, protocol, timeout_ms);
        Ok(Self {
            session: session.map_err(broken)?,
            question: operation.question(protocol),
            judge,
            lost: false,
        })
    }
}

impl Target for McpHttpTarget {
    fn call(&mut self) -> Told {
        match self.session.ask(&self.question) {
            Ok(reply) => judge(&mut self.session, &mut self.judge, &reply),
            Err((elapsed_ns, error)) => {
                self.lost = true;
                lost(elapsed_ns, &error)
            }
        }
    }
}

/// A server may keep what it started for a session until it is told that it is over.
impl Drop for McpHttpTarget {
    fn drop(&mut self) {
        if !self.lost {
            self.session.close();
        }
    }
}

fn broken(what: String) -> LabError {
    LabError::Broken {
        arm: "target".into(),
        what,
    }
}

/// What the last answer of a session is worth.
pub(super) fn judge(session: &mut HttpSession, judge: &mut Judge, reply: &HttpReply) -> Told {
    let (status, complaint) = of_code(reply);
    if status != Status::Ok || session.is_known() {
        return of(reply, status, complaint);
    }
    let judged = session.answer().map(|answer| judge.status(&answer));
    match judged {
        Ok((Status::Ok, _)) => {
            session.confirm();
            of(reply, Status::Ok, None)
        }
        Ok((status, complaint)) => of(reply, status, complaint),
        Err(what) => of(reply, Status::Broken, Some(what)),
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
