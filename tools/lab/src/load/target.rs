//! What is called: a server behind pipes, an MCP server over HTTP, any HTTP server. Each worker has its own.

use super::http::{HttpTarget, McpHttpTarget, Url};
use crate::driver::{self, Answer, Answers, Connection, Operation, Protocol, Question};
use crate::error::LabError;
use crate::run::Status;
use crate::variant::Variant;
use serde_json::Value;

/// Where calls go, and what they are.
#[derive(Debug, Clone)]
pub(crate) enum Aim {
    Stdio {
        arm: Variant,
        operation: Operation,
        protocol: Protocol,
        answers: Answers,
    },
    McpHttp {
        url: Url,
        headers: Vec<String>,
        operation: Operation,
        protocol: Protocol,
        answers: Answers,
    },
    Http {
        url: Url,
        headers: Vec<String>,
        body: Option<String>,
        answers: Answers,
    },
}

/// What came of one call.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Told {
    pub(crate) elapsed_ns: u64,
    pub(crate) bytes: usize,
    pub(crate) status: Status,
    /// From the request to the first part of a streamed answer.
    pub(crate) ttft_ns: Option<u64>,
    /// What was wrong, for people.
    pub(crate) complaint: Option<String>,
}

impl Told {
    pub(crate) fn failed(status: Status, elapsed_ns: u64, complaint: String) -> Self {
        Self {
            elapsed_ns,
            bytes: 0,
            status,
            ttft_ns: None,
            complaint: Some(complaint),
        }
    }

    /// Whether the connection is of no more use.
    pub(crate) fn is_lost(&self) -> bool {
        matches!(self.status, Status::Timeout | Status::Broken)
    }
}

/// A connection that is ready for calls.
pub(crate) trait Target: Send {
    /// Makes one call and judges its answer.
    fn call(&mut self) -> Told;

    /// The process behind it, where it is our child.
    fn pid(&self) -> Option<u32> {
        None
    }
}

impl Aim {
    /// Connects.
    pub(crate) fn open(&self, timeout_ms: u64) -> Result<Box<dyn Target>, LabError> {
        match self {
            Self::Stdio {
                arm,
                operation,
                protocol,
                answers,
            } => {
                let mut connection = Connection::new(driver::spawn(arm, timeout_ms)?);
                connection.open(*protocol)?;
                Ok(Box::new(StdioTarget {
                    connection,
                    question: operation.question(*protocol),
                    judge: Judge::new(*answers),
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
                Judge::new(*answers),
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
pub(crate) struct Judge {
    answers: Answers,
    raw: Option<String>,
    value: Option<Value>,
}

impl Judge {
    pub(crate) fn new(answers: Answers) -> Self {
        Self {
            answers,
            raw: None,
            value: None,
        }
    }

    /// What an answer is worth, and what is wrong with it.
    pub(crate) fn status(&mut self, answer: &Answer<'_>) -> (Status, Option<String>) {
        let raw = match answer {
            Answer::Refused { code, message } => {
                return (Status::Error, Some(format!("{code} {message}")));
            }
            Answer::Result(raw) if self.raw.as_deref() == Some(*raw) => return (Status::Ok, None),
            Answer::Result(raw) => *raw,
        };
        let result: Value = match serde_json::from_str(raw) {
            Ok(result) => result,
            Err(error) => return (Status::Broken, Some(format!("a result {error}"))),
        };
        if result.get("isError") == Some(&Value::Bool(true)) {
            let text = raw.chars().take(200).collect();
            return (Status::ToolError, Some(text));
        }
        let value = self.answers.part(result);
        match &self.value {
            Some(known) if *known != value => {
                let what = driver::difference(known, &value);
                (Status::WrongContent, Some(what))
            }
            _ => {
                self.raw = Some(raw.into());
                self.value = Some(value);
                (Status::Ok, None)
            }
        }
    }
}

struct StdioTarget {
    connection: Connection,
    question: Question,
    judge: Judge,
}

impl Target for StdioTarget {
    fn call(&mut self) -> Told {
        let start = std::time::Instant::now();
        let elapsed_ns = match self.connection.ask(&self.question) {
            Ok(elapsed_ns) => elapsed_ns,
            Err(error) => {
                let status = match error {
                    LabError::Silent { .. } => Status::Timeout,
                    _ => Status::Broken,
                };
                let elapsed = u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX);
                return Told::failed(status, elapsed, error.to_string());
            }
        };
        let (_, bytes) = self.connection.last();
        let (status, complaint) = if self.connection.is_known() {
            (Status::Ok, None)
        } else {
            match self.connection.answer() {
                Ok(answer) => self.judge.status(&answer),
                Err(error) => (Status::Broken, Some(error.to_string())),
            }
        };
        if status == Status::Ok && !self.connection.is_known() {
            self.connection.confirm();
        }
        Told {
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
        let mut judge = Judge::new(Answers::Content);
        let mut check = |raw: &str, expect: Status| {
            assert_eq!(judge.status(&Answer::Result(raw)).0, expect, "{raw}");
        };
        check(r#"{"content":[],"isError":true}"#, Status::ToolError);
        check(r#"{"content":[1]}"#, Status::Ok);
        check(r#"{"content":[1],"more":2}"#, Status::Ok);
        check(r#"{"content":[2]}"#, Status::WrongContent);
        check("{", Status::Broken);
        let refusal = Answer::Refused {
            code: -31_001,
            message: "denied".into(),
        };
        let (status, complaint) = judge.status(&refusal);
        assert_eq!(status, Status::Error);
        assert_eq!(complaint.as_deref(), Some("-31001 denied"));
    }
}
