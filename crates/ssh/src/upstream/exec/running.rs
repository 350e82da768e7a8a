//! A command under way, and how it is stopped.

use std::time::Duration;

use russh::{ChannelMsg, Sig};
use tokio::time::Instant;

use super::{Bounds, Ended, Kept, STDERR, Stopped, name_of};
use crate::end::{End, Missing};
use crate::outputs::Spill;
use crate::processes::Aftermath;

/// How long after its time, or after its cancellation, a command's answer comes at the latest: half of it after TERM,
/// half after KILL.
const GRACE: Duration = Duration::from_secs(2);
/// How long a stopped command that has ended may take to close its channel.
const AFTER_STOP: Duration = Duration::from_millis(300);
/// How long closing a channel that the server has closed may take.
pub(super) const CLOSE_WAIT: Duration = Duration::from_millis(250);

/// What is known of a stopped command before its host is asked.
pub(super) fn not_asked() -> Aftermath {
    Aftermath::unknown("the host could not be asked in time")
}

#[derive(Clone, Copy, PartialEq)]
enum Stage {
    Running,
    Term,
    Kill,
}

/// A command under way.
pub(super) struct Running {
    stage: Stage,
    /// A script passes TERM on, and then KILL: without it nobody does.
    passes_on: bool,
    began: Instant,
    /// When something is done about it.
    pub until: Instant,
    /// Why it was stopped, and when.
    stopped: Option<(End, Instant)>,
    /// How the server says that it ended; its output may still come.
    pub told: Option<End>,
    /// When anything has come last.
    heard: Option<Instant>,
    stdout: Kept,
    stderr: Kept,
    keep: usize,
    /// Whether the server was asked to set a variable, and what it said.
    pub asked_variable: bool,
    pub has_variable: Option<bool>,
}

impl Running {
    pub fn new(began: Instant, bounds: Bounds, passes_on: bool) -> Self {
        Self {
            stage: Stage::Running,
            passes_on,
            began,
            until: began + bounds.time,
            stopped: None,
            told: None,
            heard: None,
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

    /// Something has come.
    pub fn heard(&mut self) {
        self.heard = Some(Instant::now());
    }

    /// Stops it; returns what is sent for that, or none where it has ended already.
    pub fn stop(&mut self, why: End) -> Option<Sig> {
        if !self.may_be_stopped() || self.told.is_some() {
            return None;
        }
        let now = Instant::now();
        self.stopped = Some((why, now));
        self.stage = Stage::Term;
        self.until = now + if self.passes_on { GRACE } else { GRACE / 2 };
        Some(Sig::TERM)
    }

    /// Returns what is sent now that its time is over, or none where it is waited for no longer.
    pub fn next(&mut self) -> Option<Sig> {
        match self.stage {
            Stage::Running => self.stop(End::TimedOut(not_asked())),
            Stage::Term if self.told.is_none() && !self.passes_on => {
                self.stage = Stage::Kill;
                self.until = Instant::now() + GRACE / 2;
                Some(Sig::KILL)
            }
            Stage::Term | Stage::Kill => None,
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
            _ => {}
        }
    }

    fn over(&mut self, told: End) {
        self.told = Some(told);
        if self.stopped.is_some() {
            self.until = self.until.min(Instant::now() + AFTER_STOP);
        }
    }

    /// The result of a command that has closed its channel.
    pub fn closed(mut self) -> Ended {
        let end = match (self.stopped.take(), self.told.take()) {
            (Some((why, at)), _) => return self.stopped_at(why, at, true),
            (None, Some(told)) => told,
            (None, None) => End::Untold,
        };
        self.ended(end)
    }

    /// The result of one on a connection that is lost.
    pub fn lost(mut self) -> Ended {
        let ended = match (self.stopped.take(), self.told.take()) {
            (Some((why, at)), told) => self.stopped_at(why, at, told.is_some()),
            (None, Some(told)) => self.ended(told),
            (None, None) => self.ended(End::Lost),
        };
        Ended {
            missing: Some(Missing::ConnectionLost),
            ..ended
        }
    }

    /// The result of one that is waited for no longer.
    pub fn given_up(mut self) -> Ended {
        match (self.stopped.take(), self.told.take()) {
            (Some((why, at)), told) => Ended {
                is_silent: self.heard.is_none_or(|heard| heard < at),
                ..self.stopped_at(why, at, told.is_some())
            },
            (None, told) => Ended {
                missing: Some(Missing::StreamsOpen),
                ..self.ended(told.unwrap_or(End::Lost))
            },
        }
    }

    fn stopped_at(self, why: End, at: Instant, has_ended: bool) -> Ended {
        let stopped = Stopped {
            began: self.began,
            until: at + GRACE,
            has_ended,
        };
        Ended {
            stopped: Some(stopped),
            ..self.ended(why)
        }
    }

    pub fn ended(self, end: End) -> Ended {
        let missing = match end {
            End::TimedOut(_) => Some(Missing::TimedOut),
            End::Cancelled(_) => Some(Missing::Cancelled),
            End::Lost => Some(Missing::ConnectionLost),
            _ => None,
        };
        Ended {
            end,
            stdout: self.stdout,
            stderr: self.stderr,
            missing,
            is_silent: false,
            stopped: None,
            time: self.began.elapsed(),
            spilled: None,
            has_variable: self.has_variable,
            open: None,
        }
    }
}
