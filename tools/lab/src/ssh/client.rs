//! A client of the tool server: one MCP session, and the calls that scenarios make.

use serde_json::{Value, json};

use super::args::SshPlan;
use crate::driver::{CallAnswer, HttpSession, ProtocolRevision, TimedOperation};

/// The headers of every request; a server that wants a key is not what is measured here.
const HEADERS: [String; 0] = [];
/// How much of an error is kept, in characters.
const ERROR_CHARS_MAX: usize = 200;

/// An MCP session with the server.
pub(super) struct McpClient {
    session: HttpSession,
    timeout_ms: u64,
}

/// A call that is over.
pub(super) struct CallOutcome {
    pub latency_ms: f64,
    /// The result, or the failure with its code and message.
    pub said: Result<Value, CallFailure>,
}

/// Why a call failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CallFailure {
    /// The server's code, or `status_429`, `no_answer`, `wrong_output`.
    pub code: String,
    pub text: String,
}

impl CallFailure {
    pub fn new(code: &str, text: impl Into<String>) -> Self {
        let text: String = text.into();
        Self {
            code: code.into(),
            text: text.chars().take(ERROR_CHARS_MAX).collect(),
        }
    }
}

impl McpClient {
    pub fn open(plan: &SshPlan) -> Result<Self, CallFailure> {
        let session = HttpSession::open(
            &plan.server,
            &HEADERS,
            &TimedOperation::List,
            ProtocolRevision::Legacy,
            plan.timeout_ms,
        );
        Ok(Self {
            session: session.map_err(|what| CallFailure::new("no_session", what))?,
            timeout_ms: plan.timeout_ms,
        })
    }

    /// Calls a tool.
    pub fn call(&mut self, tool: &str, arguments: Value) -> CallOutcome {
        let operation = TimedOperation::Call {
            tool: tool.into(),
            arguments,
        };
        let asked = self
            .session
            .ask(&operation.question(ProtocolRevision::Legacy));
        let (elapsed_ns, said) = match asked {
            Ok(reply) if reply.status == 429 => {
                let said = CallFailure::new("status_429", "HTTP 429: too many calls");
                (reply.elapsed_ns, Err(said))
            }
            Ok(reply) => {
                let read = match self.session.answer() {
                    Ok(CallAnswer::Result(text)) => of_result(text),
                    Ok(CallAnswer::Refused { code, message }) => {
                        Err(CallFailure::new(&format!("error_{code}"), message))
                    }
                    Err(what) => Err(CallFailure::new("no_answer", what)),
                };
                (reply.elapsed_ns, read)
            }
            Err((elapsed_ns, error)) => {
                use std::io::ErrorKind::{TimedOut, WouldBlock};
                let wrong = match error.kind() {
                    TimedOut | WouldBlock => CallFailure::new(
                        "timeout",
                        format!("no answer within {} ms", self.timeout_ms),
                    ),
                    _ => CallFailure::new("no_answer", error.to_string()),
                };
                (elapsed_ns, Err(wrong))
            }
        };
        CallOutcome {
            latency_ms: elapsed_ns as f64 / 1e6,
            said,
        }
    }

    /// Connects to a host; gives the session's name.
    pub fn connect(
        &mut self,
        plan: &SshPlan,
        host: &str,
        alone: bool,
    ) -> (CallOutcome, Option<String>) {
        let mut arguments = json!({"host": host});
        if let Some(members) = arguments.as_object_mut() {
            let mut add = |name: &str, value: Option<Value>| {
                if let Some(value) = value {
                    members.insert(name.into(), value);
                }
            };
            add("user", plan.user.as_deref().map(Into::into));
            add("password", plan.password.as_deref().map(Into::into));
            add("alone", alone.then(|| true.into()));
        }
        let mut called = self.call("ssh_connect", arguments);
        let id = called.said.as_ref().ok().and_then(|said| {
            let id = said.pointer("/structuredContent/session_id")?;
            Some(id.as_str()?.to_owned())
        });
        if called.said.is_ok() && id.is_none() {
            called.said = Err(CallFailure::new(
                "wrong_output",
                "ssh_connect gave no session_id",
            ));
        }
        (called, id)
    }

    pub fn disconnect(&mut self, id: &str) -> CallOutcome {
        self.call("ssh_disconnect", json!({"session_id": id}))
    }

    /// Runs a command; gives its output. An exit code other than 0 is a failure.
    pub fn run(&mut self, id: &str, command: &str) -> (CallOutcome, String) {
        let arguments = json!({"session_id": id, "command": command});
        let mut called = self.call("ssh_run_command", arguments);
        let mut stdout = String::new();
        if let Ok(said) = &called.said {
            let text = said.pointer("/structuredContent/stdout");
            let code = said.pointer("/structuredContent/exit_code");
            match (text.and_then(Value::as_str), code.and_then(Value::as_i64)) {
                (Some(text), Some(0)) => text.clone_into(&mut stdout),
                (_, code) => {
                    let wrong = format!("{command} ended with exit code {code:?}");
                    called.said = Err(CallFailure::new("wrong_output", wrong));
                }
            }
        }
        (called, stdout)
    }
}

impl Drop for McpClient {
    fn drop(&mut self) {
        self.session.close();
    }
}

/// Returns a tool's result, or what it says of a failure.
fn of_result(text: &str) -> Result<Value, CallFailure> {
    let result: Value = serde_json::from_str(text)
        .map_err(|error| CallFailure::new("no_answer", error.to_string()))?;
    if result.get("isError") != Some(&true.into()) {
        return Ok(result);
    }
    let at = |pointers: &[&str]| {
        let mut found = pointers
            .iter()
            .filter_map(|at| result.pointer(at)?.as_str());
        found.next().map(str::to_owned)
    };
    let code = at(&[
        "/_meta/durward~1failure/code",
        "/structuredContent/reason",
        "/_meta/durward~1refusal/reason",
    ]);
    let text = at(&["/content/0/text"]).unwrap_or_default();
    Err(CallFailure::new(
        code.as_deref().unwrap_or("tool_error"),
        text,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_that_says_it_is_an_error_is_a_failure_with_its_code() {
        for (text, code) in [
            (r#"{"content":[],"structuredContent":{"a":1}}"#, None),
            (
                r#"{"content":[{"type":"text","text":"no"}],"isError":true,"_meta":{"durward/failure":{"code":"too_many_connections"}}}"#,
                Some("too_many_connections"),
            ),
            (
                r#"{"content":[],"isError":true,"structuredContent":{"reason":"rate_limited"}}"#,
                Some("rate_limited"),
            ),
            (
                r#"{"content":[],"isError":true,"_meta":{"durward/refusal":{"reason":"denied_by_rule"}}}"#,
                Some("denied_by_rule"),
            ),
            (r#"{"content":[],"isError":true}"#, Some("tool_error")),
            ("{", Some("no_answer")),
        ] {
            let wrong = of_result(text).err().map(|wrong| wrong.code);
            assert_eq!(wrong.as_deref(), code, "{text}");
        }
    }
}
