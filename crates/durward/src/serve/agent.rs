//! `durward agents run`: everything that `durward serve` would serve, for one question to an agent.

use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;

use ::agents::delta::read_event;
use ::models::door::{ModelEvent, ModelOutcome};
use dialects::Endpoint;
use gate::{Caller, Gate, RunId};
use http::HeaderMap;
use serde_json::json;
use toolkit::door::CallContext;

use super::ready::Ready;
use super::{Clients, ServeArgs, Serving, serve};
use crate::config::{self, Settings};
use crate::failure::Failure;
use crate::flags::Given;
use crate::local;
use crate::places::Places;

/// The agent has no answer.
const EXIT_NO_ANSWER: u8 = 1;

/// A question to an agent.
pub struct AgentQuestion {
    /// The agent, by one of its names.
    pub model: String,
    /// The question.
    pub text: String,
    /// The whole completion is printed.
    pub is_json: bool,
}

/// Asks an agent; gives the exit code.
pub fn ask_agent(
    question: AgentQuestion,
    policy: Option<PathBuf>,
    (given, source): (&Given, config::Source),
    mut settings: Settings,
    places: &Places,
    (out, err): (&mut dyn Write, &mut dyn Write),
) -> u8 {
    let args = &ServeArgs {
        policy,
        ..ServeArgs::default()
    };
    settings.set_policy(args.policy.as_deref(), given.policy);
    let mut has_answer = false;
    let done = Ready::of(args, &settings, places).and_then(|ready| {
        let clients = Clients::Asks(&question, out, &mut has_answer);
        serve(
            (args, given, source),
            &settings,
            ready,
            places,
            (clients, err),
        )
    });
    match super::code_of(done, err) {
        0 if !has_answer => EXIT_NO_ANSWER,
        code => code,
    }
}

impl Serving {
    /// Asks an agent on behalf of `caller`; returns whether it answered.
    pub(super) async fn ask(
        self,
        question: &AgentQuestion,
        caller: Caller,
        (out, err): (&mut dyn Write, &mut dyn Write),
    ) -> Result<(Vec<Arc<Gate>>, bool), Failure> {
        let models = self.models.as_ref();
        let models = models.ok_or_else(|| Failure::configuration("no model is configured"))?;
        let body = json!({
            "model": question.model, "stream": !question.is_json,
            "messages": [{ "role": "user", "content": question.text }],
        });
        let mut context = CallContext::of(caller);
        let mut random = [0_u8; 8];
        local::random(&mut random)
            .map_err(|error| Failure::other(format!("no random bytes: {error}")))?;
        let run = format!("run-{:016x}", u64::from_ne_bytes(random));
        if let Some(run) = RunId::named(&run) {
            context = context.in_run(run);
        }
        let text = body.to_string();
        let headers = HeaderMap::new();
        let stream = models.complete_body(&context, Endpoint::Chat, text.as_bytes(), &headers);
        let mut stream = stream.await;
        let mut ended = None;
        // A reader that closes the pipe has seen enough.
        while let Some(event) = stream.next().await {
            match event {
                ModelEvent::Event(event) if event.starts_with(b":") => {
                    let _ = writeln!(
                        err,
                        "waiting; a call may wait for `durward approvals watch`"
                    );
                }
                ModelEvent::Event(event) => {
                    if let Some(delta) = read_event(&event) {
                        let _ = err.write_all(delta.reasoning.as_bytes());
                        let _ = out.write_all(delta.text.as_bytes());
                        let _ = out.flush();
                    }
                }
                ModelEvent::Reply(reply) => {
                    let _ = out.write_all(&reply.body);
                }
                ModelEvent::Usage(_) => {}
                ModelEvent::End(outcome) => ended = Some(outcome),
            }
        }
        let _ = writeln!(out);
        let is_done = tell_end(ended.as_deref(), &run, err);
        self.face.close().await;
        Ok((self.gates, is_done))
    }
}

fn tell_end(outcome: Option<&ModelOutcome>, run: &str, err: &mut dyn Write) -> bool {
    let Some(outcome) = outcome else {
        let _ = writeln!(err, "error: the run has no end");
        return false;
    };
    let end = &outcome.call.end;
    if !end.is_done() {
        let reason = end.reason().unwrap_or("cancelled");
        let _ = writeln!(err, "error: {end} ({reason})");
    }
    let _ = writeln!(err, "\nits calls: durward runs show {run}");
    end.is_done()
}
