//! Tools that do something besides answering: log, report progress, hang up, change what there is.

use super::request::{LogLevel, ReadRequest};
use super::{ConformanceSession, RequestOutcome};
use crate::json::{quote, text_result};
use crate::server::{ChangeEvent, MachineAction, RequestFault, ResultKind, RevisionKind};
use std::time::Duration;

/// The time between two steps of a tool that works in steps.
const STEP: Duration = Duration::from_millis(50);
/// The resource that changes.
const WATCHED: &str = "test://watched-resource";

/// A tool that works.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WorkTool {
    LogThrice,
    LogOnce,
    Progress,
    HangUp,
    NeedSampling,
    ChangeTools,
    ChangePrompts,
    ChangeResource,
}

impl WorkTool {
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

impl ConformanceSession {
    pub(super) fn work(
        &mut self,
        work: WorkTool,
        request: &ReadRequest<'_>,
        actions: &mut Vec<MachineAction>,
    ) -> Result<RequestOutcome, RequestFault> {
        let changed = |event| {
            let answer = text_result("Changed.", false);
            (answer, MachineAction::Publish(event))
        };
        let (answer, publish) = match work {
            WorkTool::LogThrice => {
                let lines = ["Begun.", "Under way.", "Finished."];
                return Ok(self.in_steps(request, &lines.map(log_line), actions));
            }
            WorkTool::LogOnce => {
                return Ok(self.in_steps(request, &[log_line("Called.")], actions));
            }
            WorkTool::Progress => return Ok(self.progress(request, actions)),
            WorkTool::HangUp => {
                actions.push(MachineAction::HangUp);
                self.answer_after(2 * STEP, request, "You came back.", actions);
                return Ok(RequestOutcome::Done);
            }
            WorkTool::NeedSampling if !self.declares(request, "sampling") => {
                return Err(RequestFault::MissingCapability("sampling"));
            }
            WorkTool::NeedSampling => {
                return Ok(RequestOutcome::Result(text_result(
                    "You can sample.",
                    false,
                )));
            }
            WorkTool::ChangeTools => {
                self.shared.change_tools();
                changed(ChangeEvent::Tools)
            }
            WorkTool::ChangePrompts => {
                self.shared.change_prompts();
                changed(ChangeEvent::Prompts)
            }
            WorkTool::ChangeResource => {
                self.shared.change_resource();
                changed(ChangeEvent::Resource(WATCHED.into()))
            }
        };
        let frame = self
            .server
            .success(request.id, request.era, &answer, ResultKind::Plain);
        actions.extend([MachineAction::Send(frame), publish]);
        Ok(RequestOutcome::Done)
    }

    /// Sends log lines a step apart, if the client wants to hear them, then the answer.
    fn in_steps(
        &self,
        request: &ReadRequest<'_>,
        lines: &[Vec<u8>],
        actions: &mut Vec<MachineAction>,
    ) -> RequestOutcome {
        let least = match request.era {
            RevisionKind::Legacy(_) => Some(self.level),
            RevisionKind::Modern => request.log_level(),
        };
        let heard = least.is_some_and(|least| least <= LogLevel::Info);
        self.steps(request, if heard { lines } else { &[] }, actions)
    }

    fn progress(
        &self,
        request: &ReadRequest<'_>,
        actions: &mut Vec<MachineAction>,
    ) -> RequestOutcome {
        let frames: Vec<Vec<u8>> = request.progress_token().map_or(Vec::new(), |token| {
            [0, 50, 100].map(|progress| format!(r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":{token},"progress":{progress},"total":100}}}}"#).into_bytes()).to_vec()
        });
        self.steps(request, &frames, actions)
    }

    /// Sends frames a step apart, then the answer.
    fn steps(
        &self,
        request: &ReadRequest<'_>,
        frames: &[Vec<u8>],
        actions: &mut Vec<MachineAction>,
    ) -> RequestOutcome {
        let mut after = Duration::ZERO;
        for (place, frame) in frames.iter().enumerate() {
            if place > 0 {
                after += STEP;
            }
            actions.push(MachineAction::SendLater {
                id: request.id.to_owned(),
                after,
                frame: frame.clone(),
            });
        }
        self.answer_after(after, request, "Worked in steps.", actions);
        RequestOutcome::Done
    }

    fn answer_after(
        &self,
        after: Duration,
        request: &ReadRequest<'_>,
        text: &str,
        actions: &mut Vec<MachineAction>,
    ) {
        let members = text_result(text, false);
        actions.push(MachineAction::SendLater {
            id: request.id.to_owned(),
            after,
            frame: self
                .server
                .success(request.id, request.era, &members, ResultKind::Plain),
        });
    }
}

fn log_line(text: &str) -> Vec<u8> {
    let text = quote(text);
    format!(r#"{{"jsonrpc":"2.0","method":"notifications/message","params":{{"level":"info","logger":"mock","data":{text}}}}}"#).into_bytes()
}
