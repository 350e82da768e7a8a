//! Checkers of `inspect:` that are asked over HTTP.
//!
//! The question is one signed POST ([`crate::signed`]) with the message; the answer says whether something was found
//! in it, and which texts. No answer in time, a status other than 200, or another body means: not checked.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use gate::Clock as _;
use gate::inspect::{Checked, Checker, Checking, Question, Way};
use net::outbound::http::{HttpClient, HttpOptions};
use serde::Deserialize;
use serde_json::json;
use toolkit::breaker::{Breaker, Settings, Verdict};

use crate::config::inspect::checker::Checker as Configured;
use crate::local::SystemClock;
use crate::signed::Key;

/// Most questions under way at once; further ones wait within their deadline.
const CONNECTIONS_MAX: usize = 32;
/// Longest answer, in bytes.
const ANSWER_BYTES_MAX: usize = 256 * 1024;
/// The version of the question.
const VERSION: u32 = 1;

/// Asks one checker.
struct HttpChecker {
    /// The rule, for the log.
    rule: Arc<str>,
    /// Absent where TLS cannot be set up: why.
    client: Result<HttpClient, String>,
    key: Key,
    deadline_ms: u64,
    breaker: Arc<Breaker>,
    clock: SystemClock,
    is_failing: AtomicBool,
}

/// What asks the checker of a rule.
pub fn asking(rule: &Arc<str>, configured: &Configured) -> Arc<dyn Checker> {
    Arc::new(HttpChecker::new(rule, configured))
}

/// What a checker answers.
#[derive(Debug, Deserialize)]
struct Answer {
    found: bool,
    #[serde(default)]
    texts: Vec<String>,
}

impl HttpChecker {
    fn new(rule: &Arc<str>, configured: &Configured) -> Self {
        let options = HttpOptions {
            connections_max: CONNECTIONS_MAX,
            ..HttpOptions::default()
        };
        let client = HttpClient::new(configured.target.clone(), &options);
        Self {
            rule: Arc::clone(rule),
            client: client.map_err(|fault| fault.to_string()),
            key: Key::new(&configured.secret),
            deadline_ms: configured.deadline.0,
            breaker: Breaker::new(Settings {
                failures_max: 5,
                ..Settings::default()
            }),
            clock: SystemClock::new(),
            is_failing: AtomicBool::new(false),
        }
    }

    async fn ask(&self, question: &Question<'_>) -> Result<Checked, String> {
        let pass = self.breaker.admit(self.clock.mono_ns()).map_err(|spared| {
            let ms = spared.retry_after_ms;
            format!("it failed too often, and is asked again in {ms} ms")
        })?;
        let deadline = Duration::from_millis(self.deadline_ms);
        let answered = tokio::time::timeout(deadline, self.answer(question)).await;
        let answered = answered.unwrap_or_else(|_| {
            let ms = self.deadline_ms;
            Err(format!("it did not answer within {ms} ms"))
        });
        let verdict = match &answered {
            Ok(_) => Verdict::Success,
            Err(_) => Verdict::Failure {
                retry_after_ms: None,
            },
        };
        pass.settle(verdict, self.clock.mono_ns());
        answered
    }

    async fn answer(&self, question: &Question<'_>) -> Result<Checked, String> {
        let client = self.client.as_ref().map_err(Clone::clone)?;
        let message = self.key.message(client, body(question), self.deadline_ms);
        let sent = client.send(message).await;
        let mut reply = sent.map_err(|fault| fault.to_string())?;
        if reply.status().as_u16() != 200 {
            return Err(format!("it answered {}", reply.status()));
        }
        let body = reply.bytes(ANSWER_BYTES_MAX).await;
        let body = body.map_err(|fault| fault.to_string())?;
        let answer: Answer = serde_json::from_slice(&body)
            .map_err(|error| format!("its answer is not {{\"found\": true or false}}: {error}"))?;
        Ok(match answer.found {
            true => Checked::Found(answer.texts),
            false => Checked::Nothing,
        })
    }

    /// Says in the log when it begins to fail, and when it answers again.
    fn tell(&self, answered: &Result<Checked, String>) {
        let is_failing = answered.is_err();
        if self.is_failing.swap(is_failing, Ordering::Relaxed) == is_failing {
            return;
        }
        match answered {
            Err(why) => tracing::warn!("inspect.{}.checker: not checked: {why}", self.rule),
            Ok(_) => tracing::info!("inspect.{}.checker: answers again", self.rule),
        }
    }
}

impl Checker for HttpChecker {
    fn check<'a>(&'a self, question: Question<'a>) -> Checking<'a> {
        Box::pin(async move {
            let answered = self.ask(&question).await;
            self.tell(&answered);
            answered
        })
    }
}

impl fmt::Debug for HttpChecker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HttpChecker({})", self.rule)
    }
}

/// The question as JSON; the content is JSON already.
fn body(question: &Question<'_>) -> String {
    let about = &question.about;
    let mut body = json!({
        "version": VERSION,
        "rule": question.rule,
        "direction": match about.way {
            Way::Request => "request",
            Way::Result => "result",
        },
        "server": about.server,
        "caller": about.caller,
        "method": about.method,
        "name": about.name,
    })
    .to_string();
    body.truncate(body.len().saturating_sub(1));
    body.push_str(",\"content\":");
    body.push_str(question.content);
    body.push('}');
    body
}

#[cfg(test)]
mod tests {
    use gate::inspect::About;
    use serde_json::Value;

    use super::*;

    #[test]
    fn the_question_is_json_with_the_message_as_it_is() {
        let question = Question {
            rule: "dlp",
            about: About {
                way: Way::Request,
                server: "files",
                caller: "me",
                method: "tools/call",
                name: Some("a\"b"),
            },
            content: r#"{"name":"a\"b","arguments":{"n":1.50}}"#,
        };
        let text = body(&question);
        assert!(text.contains("1.50"), "{text}");
        let value: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(value["name"], "a\"b");
        assert_eq!(value["direction"], "request");
        assert_eq!(value["content"]["arguments"]["n"], 1.5);
    }
}
