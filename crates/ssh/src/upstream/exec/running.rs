//! A command under way, and how it is stopped.

use std::time::Duration;

use russh::{ChannelMsg, Sig};
use tokio::time::Instant;

use super::{Bounds, Ended, Kept, Left, STDERR, name_of};
use crate::end::End;
use crate::outputs::Spill;

/// How long a command has after TERM, and after KILL.
const GRACE: Duration = Duration::from_secs(2);
/// How long output may still come after a command has ended: what it left behind may hold its streams.
const AFTER_END: Duration = Duration::from_millis(300);
#[derive(Clone, Copy, PartialEq)]
enum Stage {
    Running,
    Term,
    Kill,
    /// It has ended; what is left of its output is waited for.
    Over,
}

/// A command under way.
pub(super) struct Running {
    stage: Stage,
    began: Instant,
    /// When something is done about it.
    pub until: Instant,
    /// Why it was stopped.
    stopped: Option<End>,
    /// What the server said of its end.
    pub told: Option<End>,
    stdout: Kept,
    stderr: Kept,
    keep: usize,
    /// Whether the server was asked to set a variable, and what it said.
    pub asked_variable: bool,
    pub has_variable: Option<bool>,
}

impl Running {
    pub fn new(began: Instant, bounds: Bounds) -> Self {
        Self {
            stage: Stage::Running,
            began,
            until: began + bounds.time,
            stopped: None,
            told: None,
            stdout: Kept::default(),
            stderr: Kept::default(),
            keep: bounds.stream_bytes_max,
            asked_variable: false,
            has_variable: None,
        }
    }

    pub fn waits_for_variable(&self) -> bool {
        self.asked_variable && self.has_variable.is_none()
    }

    pub fn may_be_stopped(&self) -> bool {
        self.stage == Stage::Running
    }

    pub fn stop(&mut self, why: End) {
        self.stopped = Some(why);
        self.stage = Stage::Term;
        self.until = Instant::now() + GRACE;
    }

    /// What is sent now that its time is over; `None` where nothing more can be done.
    pub fn next(&mut self) -> Option<Sig> {
        match self.stage {
            Stage::Running => {
                self.stop(End::TimedOut { seen: false });
                Some(Sig::TERM)
            }
            Stage::Term => {
                self.stage = Stage::Kill;
                self.until = Instant::now() + GRACE;
                Some(Sig::KILL)
            }
            Stage::Kill | Stage::Over => None,
        }
    }

    /// Puts output aside once it is too long for an answer: first what came before, then all that comes.
    pub async fn spill(&self, message: &ChannelMsg, spill: &mut Spill) {
        let (stream, data, kept) = match message {
            ChannelMsg::Data { data } => (0, data, &self.stdout),
            ChannelMsg::ExtendedData { data, ext: STDERR } => (1, data, &self.stderr),
            _ => return,
        };
        if !spill.has_begun() {
            if kept.bytes.len() + data.len() <= self.keep {
                return;
            }
            spill.push(0, &self.stdout.bytes).await;
            spill.push(1, &self.stderr.bytes).await;
        }
        spill.push(stream, data).await;
    }

    pub fn take(&mut self, message: ChannelMsg) {
        match message {
            ChannelMsg::Data { data } => self.stdout.push(&data, self.keep),
            ChannelMsg::ExtendedData { data, ext: STDERR } => self.stderr.push(&data, self.keep),
            ChannelMsg::ExitStatus { exit_status } => self.over(End::Exited(exit_status)),
            ChannelMsg::ExitSignal { signal_name, .. } => {
                self.over(End::Signalled(name_of(&signal_name)));
            }
            _ => return,
        }
        if self.stage == Stage::Over {
            self.until = Instant::now() + AFTER_END;
        }
    }

    fn over(&mut self, told: End) {
        self.told = Some(told);
        self.stage = Stage::Over;
    }

    /// How it ended, now that nothing more comes: `closed` by the server, or not.
    pub fn end(&mut self, closed: bool) -> End {
        let seen = self.told.is_some() || closed;
        match (self.stopped.take(), self.told.take()) {
            (Some(End::TimedOut { .. }), _) => End::TimedOut { seen },
            (Some(_), _) => End::Cancelled { seen },
            (None, Some(told)) => told,
            (None, None) if closed => End::Untold,
            (None, None) => End::Lost,
        }
    }

    pub fn ended(self, end: End, open: Option<Left>) -> Ended {
        Ended {
            end,
            stdout: self.stdout,
            stderr: self.stderr,
            time: self.began.elapsed(),
            spilled: None,
            has_variable: self.has_variable,
            open,
        }
    }
}
