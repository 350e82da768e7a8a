//! Workers over HTTP: any request, and MCP over Streamable HTTP.

use super::target::{AnswerJudge, CallReport, CallTarget};
use crate::driver::{
    AnswerEquality, HttpConnection, HttpReply, HttpSession, ProtocolRevision, RenderedRequest,
    TimedOperation,
};
use crate::error::LabError;
use crate::run::CallStatus;
use std::io;

pub(crate) use crate::url::HttpUrl;

/// One kind of request, again and again.
pub(super) struct HttpTarget {
    connection: HttpConnection,
    request: Vec<u8>,
    answers: AnswerEquality,
    expected: Option<Vec<u8>>,
}

impl HttpTarget {
    pub(super) fn open(
        url: &HttpUrl,
        headers: &[String],
        body: Option<&str>,
        answers: AnswerEquality,
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
                .map_err(|error| target_fault(error.to_string()))?,
            request,
            answers,
            expected: None,
        })
    }
}

impl CallTarget for HttpTarget {
    fn call(&mut self) -> CallReport {
        let told = match self.connection.exchange(&self.request) {
            Ok(reply) => reply,
            Err((elapsed_ns, error)) => return lost(elapsed_ns, &error),
        };
        let (mut status, mut complaint) = of_code(&told);
        let body = self.connection.body();
        let judged = status == CallStatus::Ok && self.answers != AnswerEquality::Any;
        match &self.expected {
            Some(expected) if judged && expected != body => {
                status = CallStatus::WrongContent;
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
    question: RenderedRequest,
    judge: AnswerJudge,
    lost: bool,
}

impl McpHttpTarget {
    pub(super) fn open(
        url: &HttpUrl,
        headers: &[String],
        operation: &TimedOperation,
        protocol: ProtocolRevision,
        judge: AnswerJudge,
        timeout_ms: u64,
    ) -> Result<Self, LabError> {
        let session = HttpSession::open(url, headers, operation, protocol, timeout_ms);
        Ok(Self {
            session: session.map_err(target_fault)?,
            question: operation.question(protocol),
            judge,
            lost: false,
        })
    }
}

impl CallTarget for McpHttpTarget {
    fn call(&mut self) -> CallReport {
        match self.session.ask(&self.question) {
            Ok(reply) => judge(&mut self.session, &mut self.judge, &reply),
            Err((elapsed_ns, error)) => {
                self.lost = true;
                lost(elapsed_ns, &error)
            }
        }
    }
}

/// A server may keep a session's resources until the session is ended.
impl Drop for McpHttpTarget {
    fn drop(&mut self) {
        if !self.lost {
            self.session.close();
        }
    }
}

fn target_fault(what: String) -> LabError {
    LabError::Broken {
        arm: "target".into(),
        what,
    }
}

/// Judges the last answer of a session.
pub(super) fn judge(
    session: &mut HttpSession,
    judge: &mut AnswerJudge,
    reply: &HttpReply,
) -> CallReport {
    let (status, complaint) = of_code(reply);
    if status != CallStatus::Ok || session.is_known() {
        return of(reply, status, complaint);
    }
    let judged = session.answer().map(|answer| judge.status(&answer));
    match judged {
        Ok((CallStatus::Ok, _)) => {
            session.confirm();
            of(reply, CallStatus::Ok, None)
        }
        Ok((status, complaint)) => of(reply, status, complaint),
        Err(what) => of(reply, CallStatus::Broken, Some(what)),
    }
}

/// Returns a call without an answer.
fn lost(elapsed_ns: u64, error: &io::Error) -> CallReport {
    let status = match error.kind() {
        io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock => CallStatus::Timeout,
        _ => CallStatus::Broken,
    };
    CallReport::failure(status, elapsed_ns, error.to_string())
}

fn of_code(reply: &HttpReply) -> (CallStatus, Option<String>) {
    match reply.status {
        200..=299 => (CallStatus::Ok, None),
        429 => (CallStatus::Throttled, Some("status 429".into())),
        other => (CallStatus::Error, Some(format!("status {other}"))),
    }
}

fn of(reply: &HttpReply, status: CallStatus, complaint: Option<String>) -> CallReport {
    CallReport {
        elapsed_ns: reply.elapsed_ns,
        bytes: reply.bytes,
        status,
        ttft_ns: reply.is_stream.then_some(reply.first_ns),
        complaint,
    }
}
