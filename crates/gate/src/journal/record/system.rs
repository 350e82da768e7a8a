//! The program itself.

use super::event::{Component, Level};
use super::members::{Members, key};
use super::{Micros, OpId};
use crate::label::Label;

/// How a job went that a call began. Class: plain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordedJob<'a> {
    /// Its name, as its caller knows it.
    pub id: &'a str,
    /// What sort of job it is: a word of a closed set.
    pub kind: &'static str,
    /// The state that it ended in: a word of a closed set.
    pub status: &'static str,
    /// From its submission until a worker first took it, or until its end where none did.
    pub queue_wait_us: Micros,
    /// From then until its end; none where no worker took it.
    pub ran_us: Option<Micros>,
}

impl RecordedJob<'_> {
    fn write(&self, members: &mut Members<'_>) {
        members.text(key!("job_id"), self.id);
        members.text(key!("job_kind"), self.kind);
        members.label(key!("job_status"), self.status);
        members.micros(key!("queue_wait_us"), self.queue_wait_us);
        if let Some(ran) = self.ran_us {
            members.micros(key!("ran_us"), ran);
        }
    }
}

/// A record about the program: start, stop, a child that died, a backend that is gone. The events of the journal itself
/// ([`JournalEvent`](super::JournalEvent)) are refused here.
#[derive(Debug, Clone, Copy)]
pub struct System<'a> {
    /// What happened.
    pub event: Label,
    /// How grave it is.
    pub level: Option<Level>,
    /// The part of the program.
    pub component: Option<Component>,
    /// A sentence for people.
    pub message: Option<&'a str>,
    /// The closed label of the reason.
    pub reason: Option<Label>,
    /// The sort of error.
    pub error_type: Option<&'a str>,
    /// The error in words.
    pub error_message: Option<&'a str>,
    /// The call concerned.
    pub op: Option<OpId>,
    /// The session concerned.
    pub session_id: Option<&'a str>,
    /// The server concerned.
    pub backend_id: Option<&'a str>,
    /// The tool concerned.
    pub tool_name: Option<&'a str>,
    /// Digest of the tool's definition as its server lists it.
    pub definition_digest: Option<&'a str>,
    /// Digest of the definition that was approved.
    pub approved_digest: Option<&'a str>,
    /// Exit code, where something ended.
    pub exit_code: Option<i32>,
    /// The job that has ended.
    pub job: Option<RecordedJob<'a>>,
}

impl System<'_> {
    /// A record that says no more than what happened.
    #[must_use]
    pub fn of(event: impl Into<Label>) -> Self {
        Self {
            event: event.into(),
            level: None,
            component: None,
            message: None,
            reason: None,
            error_type: None,
            error_message: None,
            op: None,
            session_id: None,
            backend_id: None,
            tool_name: None,
            definition_digest: None,
            approved_digest: None,
            exit_code: None,
            job: None,
        }
    }

    pub(super) fn write(&self, members: &mut Members<'_>) {
        members.label(key!("event"), self.event.as_str());
        members.maybe_label(key!("level"), self.level.map(Level::label));
        members.maybe_label(key!("component"), self.component.map(Component::label));
        members.maybe(key!("message"), self.message);
        members.maybe_label(key!("reason"), self.reason.map(Label::as_str));
        members.maybe(key!("error_type"), self.error_type);
        members.maybe(key!("error_message"), self.error_message);
        if let Some(op) = self.op {
            members.op(key!("op"), op);
        }
        members.maybe(key!("session_id"), self.session_id);
        members.maybe(key!("backend_id"), self.backend_id);
        members.maybe(key!("tool_name"), self.tool_name);
        members.maybe(key!("definition_digest"), self.definition_digest);
        members.maybe(key!("approved_digest"), self.approved_digest);
        members.number(key!("exit_code"), self.exit_code.map(i64::from));
        if let Some(job) = &self.job {
            job.write(members);
        }
    }
}
