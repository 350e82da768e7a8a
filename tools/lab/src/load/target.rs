//! Targets of calls: a server behind pipes, an MCP server over HTTP, any HTTP server. Each worker has its own.

use super::http::{HttpTarget, HttpUrl, McpHttpTarget};
use crate::driver::{
    self, AnswerEquality, CallAnswer, ProtocolRevision, RenderedRequest, TimedOperation,
    VariantConnection,
};
use crate::error::LabError;
use crate::run::CallStatus;
use crate::variant::Variant;
use serde_json::Value;

/// Where calls go, and what they are.
#[derive(Debug, Clone)]
pub(crate) enum LoadTarget {
    Stdio {
        arm: Variant,
        operation: TimedOperation,
        protocol: ProtocolRevision,
        answers: AnswerEquality,
    },
    McpHttp {
        url: HttpUrl,
        headers: Vec<String>,
        operation: TimedOperation,
        protocol: ProtocolRevision,
        answers: AnswerEquality,
    },
    Http {
        url: HttpUrl,
        headers: Vec<String>,
        body: Option<String>,
        answers: AnswerEquality,
    },
}

/// What came of one call.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct CallReport {
    pub(crate) elapsed_ns: u64,
    pub(crate) bytes: usize,
    pub(crate) status: CallStatus,
    /// From the request to the first part of a streamed answer.
    pub(crate) ttft_ns: Option<u64>,
    /// Description of the fault, for people.
    pub(crate) complaint: Option<String>,
}

impl CallReport {
    pub(crate) fn failure(status: CallStatus, elapsed_ns: u64, complaint: String) -> Self {
        Self {
            elapsed_ns,
            bytes: 0,
            status,
            ttft_ns: None,
            complaint: Some(complaint),
        }
    }

    /// Returns whether the connection is of no more use.
    pub(crate) fn is_lost(&self) -> bool {
        matches!(self.status, CallStatus::Timeout | CallStatus::Broken)
    }
}

/// A connection that is ready for calls.
pub(crate) trait CallTarget: Send {
    /// Makes one call and judges its answer.
    fn call(&mut self) -> CallReport;

    /// Returns the process behind it, if it is our child.
    fn pid(&self) -> Option<u32> {
        None
    }
}

impl LoadTarget {
    /// Connects.
    pub(crate) fn open(&self, timeout_ms: u64) -> Result<Box<dyn CallTarget>, LabError> {
        match self {
            Self::Stdio {
                arm,
                operation,
                protocol,
                answers,
            } => {
                let mut connection = VariantConnection::new(driver::spawn(arm, timeout_ms)?);
                connection.open(*protocol)?;
                Ok(Box::new(StdioTarget {
                    connection,
                    question: operation.question(*protocol),
                    judge: AnswerJudge::new(*answers),
                }))
            }
            Self::McpHttp {
                url,
                headers,
                operation,
                protocol,
                answers,
            } => Ok(Box::new(McpHttpTarget::open(
                url,
                headers,
                operation,
                *protocol,
                AnswerJudge::new(*answers),
                timeout_ms,
            )?)),
            Self::Http {
                url,
                headers,
                body,
                answers,
            } => Ok(Box::new(HttpTarget::open(
                url,
                headers,
                body.as_deref(),
                *answers,
                timeout_ms,
            )?)),
        }
    }

    /// What calls of this kind are called in records.
    pub(crate) fn operation(&self) -> String {
        match self {
            Self::Stdio { operation, .. } | Self::McpHttp { operation, .. } => operation.name(),
            Self::Http { body: None, .. } => "GET".into(),
            Self::Http { body: Some(_), .. } => "POST".into(),
        }
    }
}

/// Judges answers by the first good one.
#[derive(Debug)]
pub(crate) struct AnswerJudge {
    answers: AnswerEquality,
    raw: Option<String>,
    value: Option<Value>,
}

impl AnswerJudge {
    pub(crate) fn new(answers: AnswerEquality) -> Self {
        Self {
            answers,
            raw: None,
            value: None,
        }
    }

    /// What an answer is worth, and what is wrong with it.
    pub(crate) fn status(&mut self, answer: &CallAnswer<'_>) -> (CallStatus, Option<String>) {
        let raw = match answer {
            CallAnswer::Refused { code, message } => {
                return (CallStatus::Error, Some(format!("{code} {message}")));
            }
            CallAnswer::Result(raw) if self.raw.as_deref() == Some(*raw) => {
                return (CallStatus::Ok, None);
            }
            CallAnswer::Result(raw) => *raw,
        };
        let result: Value = match serde_json::from_str(raw) {
            Ok(result) => result,
            Err(error) => return (CallStatus::Broken, Some(format!("a result {error}"))),
        };
        if result.get("isError") == Some(&Value::Bool(true)) {
            let text = raw.chars().take(200).collect();
            return (CallStatus::ToolError, Some(text));
        }
        let value = self.answers.part(result);
        match &self.value {
            Some(known) if *known != value => {
                let what = driver::difference(known, &value);
                (CallStatus::WrongContent, Some(what))
            }
            _ => {
                self.raw = Some(raw.into());
                self.value = Some(value);
                (CallStatus::Ok, None)
            }
        }
    }
}

struct StdioTarget {
    connection: VariantConnection,
    question: RenderedRequest,
    judge: AnswerJudge,
}

impl CallTarget for StdioTarget {
    fn call(&mut self) -> CallReport {
        let start = std::time::Instant::now();
        let elapsed_ns = match self.connection.ask(&self.question) {
            Ok(elapsed_ns) => elapsed_ns,
            Err(error) => {
                let status = match error {
                    LabError::Silent { .. } => CallStatus::Timeout,
                    _ => CallStatus::Broken,
                };
                let elapsed = u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX);
                return CallReport::failure(status, elapsed, error.to_string());
            }
        };
        let (_, bytes) = self.connection.last();
        let (status, complaint) = if self.connection.is_known() {
            (CallStatus::Ok, None)
        } else {
            match self.connection.answer() {
                Ok(answer) => self.judge.status(&answer),
                Err(error) => (CallStatus::Broken, Some(error.to_string())),
            }
        };
        if status == CallStatus::Ok && !self.connection.is_known() {
            self.connection.confirm();
        }
        CallReport {
            elapsed_ns,
            bytes,
            status,
            ttft_ns: None,
            complaint,
        }
    }

    fn pid(&self) -> Option<u32> {
        Some(self.connection.process().pid())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_held_against_the_first() {
        let mut judge = AnswerJudge::new(AnswerEquality::Content);
        let mut check = |raw: &str, expect: CallStatus| {
            assert_eq!(judge.status(&CallAnswer::Result(raw)).0, expect, "{raw}");
        };
        check(r#"{"content":[],"isError":true}"#, CallStatus::ToolError);
        check(r#"{"content":[1]}"#, CallStatus::Ok);
        check(r#"{"content":[1],"more":2}"#, CallStatus::Ok);
        check(r#"{"content":[2]}"#, CallStatus::WrongContent);
        check("{", CallStatus::Broken);
        let refusal = CallAnswer::Refused {
            code: -31_001,
            message: "denied".into(),
        };
        let (status, complaint) = judge.status(&refusal);
        assert_eq!(status, CallStatus::Error);
        assert_eq!(complaint.as_deref(), Some("-31001 denied"));
    }
}
