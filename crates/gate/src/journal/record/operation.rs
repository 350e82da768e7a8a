//! What became of a call.

use std::sync::Arc;

use super::members::{Members, key, push_object};
use super::{Digest, Micros, OpId};
use crate::label::Label;
use crate::peer::Transport;

/// How a call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Status {
    /// The server answered with a result.
    Success,
    /// The server, or the way there, failed.
    #[default]
    Failure,
    /// The caller went away or cancelled before the end.
    Cancelled,
    /// It was permitted and never sent.
    Aborted,
}

crate::closed_set! {
    /// Why an outcome stands in the journal of another process than its decision.
    pub enum Recovery {
        Settled "settled_at_recovery": "the process that made the call was killed; what had gone by until then was recorded at the next start";
    }
}

/// The reply's size and keyed digest; never its contents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResponseSummary {
    /// Size in bytes.
    pub size_bytes: u64,
    /// Class digest: the reply's body.
    pub body_hash: Option<Digest>,
}

/// Where the time went. What the stages do not explain is `unexplained_us`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Stages {
    /// Reading and checking the frame.
    pub edge_us: Micros,
    /// Who asks.
    pub identity_us: Micros,
    /// How much they may.
    pub limits_us: Micros,
    /// The policy.
    pub policy_us: Micros,
    /// Waiting for a person.
    pub approval_us: Micros,
    /// Writing the decision.
    pub journal_us: Micros,
    /// The server, from sending to the end of its reply.
    pub upstream_us: Micros,
}

impl Stages {
    /// What of `total` no stage explains.
    #[must_use]
    pub fn unexplained(&self, total: Micros) -> Micros {
        let stages = [
            self.edge_us,
            self.identity_us,
            self.limits_us,
            self.policy_us,
            self.approval_us,
            self.journal_us,
            self.upstream_us,
        ];
        let explained = stages
            .iter()
            .fold(0_u64, |sum, stage| sum.saturating_add(stage.nanos()));
        Micros::from_nanos(total.nanos().saturating_sub(explained))
    }
}

/// One try of a call at one peer. Class: plain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordedAttempt<'a> {
    /// Where.
    pub peer: &'a str,
    /// How it ended.
    pub status: Status,
    /// The closed label of the reason.
    pub reason: Option<Label>,
    /// How long it took.
    pub duration_us: Micros,
}

/// What a call has used, where that is known. Class: plain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Usage {
    /// Tokens that a model has read.
    pub input_tokens: Option<u64>,
    /// Tokens that it has written.
    pub output_tokens: Option<u64>,
    /// How many of the tokens read came from the provider's cache.
    pub cached_tokens: Option<u64>,
    /// How many of the tokens read were put into the provider's cache.
    pub written_tokens: Option<u64>,
    /// How many of the tokens written were reasoning.
    pub reasoning_tokens: Option<u64>,
    /// How many of the tokens read and written were counted by us, because the provider did not tell them.
    pub counted_tokens: Option<u64>,
    /// What it cost, in millionths of the configured currency's unit.
    pub cost_micros: Option<u64>,
}

impl Usage {
    /// Adds what another part of the call has used.
    pub fn add(&mut self, more: Self) {
        for (sum, more) in [
            (&mut self.input_tokens, more.input_tokens),
            (&mut self.output_tokens, more.output_tokens),
            (&mut self.cached_tokens, more.cached_tokens),
            (&mut self.written_tokens, more.written_tokens),
            (&mut self.reasoning_tokens, more.reasoning_tokens),
            (&mut self.counted_tokens, more.counted_tokens),
            (&mut self.cost_micros, more.cost_micros),
        ] {
            if let Some(more) = more {
                *sum = Some(sum.unwrap_or(0).saturating_add(more));
            }
        }
    }
}

/// The operation record: written when the reply ends. All text is class plain; bodies appear as a size and a digest only.
#[derive(Debug, Clone, Copy, Default)]
pub struct Operation<'a> {
    /// The call, as in its decision.
    pub op: OpId,
    /// How it ended.
    pub status: Status,
    /// The client's own id of the request, as text.
    pub request_id: Option<&'a str>,
    /// The client's session.
    pub session_id: Option<&'a str>,
    /// The run that the call belongs to.
    pub run_id: Option<&'a str>,
    /// The method, such as `tools/call`.
    pub method: Option<&'a str>,
    /// The tool's own name.
    pub tool_name: Option<&'a str>,
    /// The protocol's error number.
    pub error_code: Option<i64>,
    /// The closed label of the outcome's reason.
    pub reason: Option<Label>,
    /// Which client program asked.
    pub client_id: Option<&'a str>,
    /// Which server answered, or was asked last.
    pub backend_id: Option<&'a str>,
    /// The provider's name of the model that answered, or was asked last.
    pub model: Option<&'a str>,
    /// How it was reached.
    pub transport: Option<Transport>,
    /// The reply.
    pub response_summary: Option<ResponseSummary>,
    /// From the first byte of the request to the last of the reply.
    pub duration_us: Micros,
    /// Where that time went.
    pub stages: Stages,
    /// [`Stages::unexplained`] of `duration_us`.
    pub unexplained_us: Micros,
    /// The configuration's version.
    pub config_version: Option<&'a str>,
    /// The tries, where there were several or they say more than the whole.
    pub attempts: &'a [RecordedAttempt<'a>],
    /// How many more there were.
    pub attempts_omitted: u64,
    /// What was used.
    pub usage: Usage,
    /// The rules of the inspection that found something in the reply, each with how often.
    pub inspected: &'a [Arc<str>],
}

impl Operation<'_> {
    pub(super) fn write(&self, members: &mut Members<'_>) {
        members.label(key!("event"), "operation");
        members.op(key!("op"), self.op);
        members.label(key!("status"), self.status.name());
        members.maybe_fact(key!("request_id"), self.request_id);
        members.maybe_fact(key!("session_id"), self.session_id);
        members.maybe_fact(key!("run_id"), self.run_id);
        members.maybe_fact(key!("method"), self.method);
        members.maybe_fact(key!("tool_name"), self.tool_name);
        members.number(key!("error_code"), self.error_code);
        members.maybe_label(key!("reason"), self.reason.map(Label::as_str));
        members.maybe_fact(key!("client_id"), self.client_id);
        members.maybe_fact(key!("backend_id"), self.backend_id);
        members.maybe_fact(key!("model"), self.model);
        members.maybe_label(key!("transport"), self.transport.map(Transport::label));
        if let Some(summary) = self.response_summary {
            members.object(key!("response_summary"), |inner| summary.write(inner));
        }
        members.micros(key!("duration_us"), self.duration_us);
        self.stages.write(members);
        members.micros(key!("unexplained_us"), self.unexplained_us);
        members.maybe(key!("config_version"), self.config_version);
        members.each(key!("attempts"), self.attempts, RecordedAttempt::push);
        if self.attempts_omitted > 0 {
            members.count(key!("attempts_omitted"), self.attempts_omitted);
        }
        if self.usage != Usage::default() {
            members.object(key!("usage"), |inner| self.usage.write(inner));
        }
        members.each_text(key!("inspected"), self.inspected.iter().map(AsRef::as_ref));
    }
}

impl RecordedAttempt<'_> {
    fn push(out: &mut Vec<u8>, attempt: &Self) {
        push_object(out, |members| {
            members.text(key!("peer"), attempt.peer);
            members.label(key!("status"), attempt.status.name());
            members.maybe_label(key!("reason"), attempt.reason.map(Label::as_str));
            members.micros(key!("duration_us"), attempt.duration_us);
        });
    }
}

impl Usage {
    fn write(&self, members: &mut Members<'_>) {
        for (key, number) in [
            (key!("input_tokens"), self.input_tokens),
            (key!("output_tokens"), self.output_tokens),
            (key!("cached_tokens"), self.cached_tokens),
            (key!("written_tokens"), self.written_tokens),
            (key!("reasoning_tokens"), self.reasoning_tokens),
            (key!("counted_tokens"), self.counted_tokens),
            (key!("cost_micros"), self.cost_micros),
        ] {
            if let Some(number) = number {
                members.count(key, number);
            }
        }
    }
}

impl Stages {
    pub(super) fn write(&self, members: &mut Members<'_>) {
        members.micros(key!("edge_us"), self.edge_us);
        members.micros(key!("identity_us"), self.identity_us);
        members.micros(key!("limits_us"), self.limits_us);
        members.micros(key!("policy_us"), self.policy_us);
        members.micros(key!("approval_us"), self.approval_us);
        members.micros(key!("journal_us"), self.journal_us);
        members.micros(key!("upstream_us"), self.upstream_us);
    }
}

impl ResponseSummary {
    pub(super) fn write(&self, members: &mut Members<'_>) {
        members.number(
            key!("size_bytes"),
            Some(i64::try_from(self.size_bytes).unwrap_or(i64::MAX)),
        );
        members.digest(key!("body_hash"), self.body_hash);
    }
}

impl Status {
    /// All, in the order of the reference page.
    pub const ALL: [Self; 4] = [Self::Success, Self::Failure, Self::Cancelled, Self::Aborted];

    /// As it stands in the journal.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Status::Success => "Success",
            Status::Failure => "Failure",
            Status::Cancelled => "Cancelled",
            Status::Aborted => "Aborted",
        }
    }
}
