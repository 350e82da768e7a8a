//! Tools that do something besides answering: log, report progress, hang up, change what there is.

use super::request::{Level, Request};
use super::{Conformance, Outcome};
use crate::json::{quote, text_result};
use crate::server::{Action, Era, Event, Fault, Kind};
use std::time::Duration;

/// The time between two steps of a tool that works in steps.
const STEP: Duration = Duration::from_millis(50);
/// The resource that changes.
const WATCHED: &str = "test://watched-resource";

/// A tool that works.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Work {
    LogThrice,
    LogOnce,
    Progress,
    HangUp,
    NeedSampling,
    ChangeTools,
    ChangePrompts,
    ChangeResource,
}

impl Work {
    pub(super) fn of(tool: &str) -> Option<Self> {
        Some(match tool {
            "test_tool_with_logging" => Self::LogThrice,
            "test_logging_tool" => Self::LogOnce,
            "test_tool_with_progress" => Self::Progress,
            "test_reconnection" => Self::HangUp,
            "test_missing_capability" => Self::NeedSampling,
            "test_trigger_tool_change" => Self::ChangeTools,
            "test_trigger_prompt_change" => Self::ChangePrompts,
            "test_trigger_resource_update" => Self::ChangeResource,
            _ => return None,
        })
    }
}

impl Conformance {
    pub(super) fn work(
        &mut self,
        work: Work,
        request: &Request<'_>,
        actions: &mut Vec<Action>,
    ) -> Result<Outcome, Fault> {
        let changed = |event| {
            let answer = text_result("Changed.", false);
            (answer, Action::Publish(event))
        };
        let (answer, publish) = match work {
            Work::LogThrice => {
                let lines = ["Begun.", "Under way.", "Finished."];
                return Ok(self.in_steps(request, &lines.map(log_line), actions));
            }
            Work::LogOnce => {
                return Ok(self.in_steps(request, &[log_line("Called.")], actions));
            }
            Work::Progress => return Ok(self.progress(request, actions)),
            Work::HangUp => {
                actions.push(Action::HangUp);
                self.answer_after(2 * STEP, request, "You came back.", actions);
                return Ok(Outcome::Done);
            }
            Work::NeedSampling if !self.declares(request, "sampling") => {
                return Err(Fault::MissingCapability("sampling"));
            }
            Work::NeedSampling => {
                return Ok(Outcome::Result(text_result("You can sample.", false)));
            }
            Work::ChangeTools => {
                self.shared.change_tools();
                changed(Event::Tools)
            }
            Work::ChangePrompts => {
                self.shared.change_prompts();
                changed(Event::Prompts)
            }
            Work::ChangeResource => {
                self.shared.change_resource();
                changed(Event::Resource(WATCHED.into()))
            }
        };
        let frame = self
            .server
            .success(request.id, request.era, &answer, Kind::Plain);
        actions.extend([Action::Send(frame), publish]);
        Ok(Outcome::Done)
    }

    /// Sends log lines a step apart, if the client wants to hear them, then the answer.
    fn in_steps(
        &self,
        request: &Request<'_>,
        lines: &[Vec<u8>],
        actions: &mut Vec<Action>,
    ) -> Outcome {
        let least = match request.era {
            Era::Legacy(_) => Some(self.level),
            Era::Modern => request.log_level(),
        };
        let heard = least.is_some_and(|least| least <= Level::Info);
        self.steps(request, if heard { lines } else { &[] }, actions)
    }

    fn progress(&self, request: &Request<'_>, actions: &mut Vec<Action>) -> Outcome {
        let frames: Vec<Vec<u8>> = request.progress_token().map_or(Vec::new(), |token| {
            [0, 50, 100].map(|progress| format!(r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":{token},"progress":{progress},"total":100}}}}"#).into_bytes()).to_vec()
        });
        self.steps(request, &frames, actions)
    }

    /// Sends frames a step apart, then the answer.
    fn steps(
        &self,
        request: &Request<'_>,
        frames: &[Vec<u8>],
        actions: &mut Vec<Action>,
    ) -> Outcome {
        let mut after = Duration::ZERO;
        for (place, frame) in frames.iter().enumerate() {
            if place > 0 {
                after += STEP;
            }
            actions.push(Action::SendLater {
                id: request.id.to_owned(),
                after,
                frame: frame.clone(),
            });
        }
        self.answer_after(after, request, "Worked in steps.", actions);
        Outcome::Done
    }

    fn answer_after(
        &self,
        after: Duration,
        request: &Request<'_>,
        text: &str,
        actions: &mut Vec<Action>,
    ) {
        let members = text_result(text, false);
        actions.push(Action::SendLater {
            id: request.id.to_owned(),
            after,
            frame: self
                .server
                .success(request.id, request.era, &members, Kind::Plain),
        });
    }
}

fn log_line(text: &str) -> Vec<u8> {
    let text = quote(text);
    format!(r#"{{"jsonrpc":"2.0","method":"notifications/message","params":{{"level":"info","logger":"mock","data":{text}}}}}"#).into_bytes()
}
