//! What became of a call.

use serde::Serialize;

use super::{Digest, Micros, OpId};

/// How a call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
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

/// The reply's size and keyed digest; never its contents.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct ResponseSummary {
    /// Size in bytes.
    pub size_bytes: u64,
    /// Class digest: the reply's body.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub body_hash: Option<Digest>,
}

/// Where the time went. What the stages do not explain is `unexplained_us`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
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

/// The operation record: written when the reply ends. All text is class plain; bodies appear as a size and a digest only.
#[derive(Debug, Clone, Copy, Default, Serialize)]
#[serde(tag = "event", rename = "operation")]
pub struct Operation<'a> {
    /// The call, as in its decision.
    pub op: OpId,
    /// How it ended.
    pub status: Status,
    /// The client's own id of the request, as text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_id: Option<&'a str>,
    /// The client's session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<&'a str>,
    /// The method, such as `tools/call`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub method: Option<&'a str>,
    /// The tool's own name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_name: Option<&'a str>,
    /// The protocol's error number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error_code: Option<i64>,
    /// The closed label of the outcome's reason.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<&'a str>,
    /// Which client program asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_id: Option<&'a str>,
    /// Which server answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backend_id: Option<&'a str>,
    /// How it was reached: `stdio` or `http`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub transport: Option<&'a str>,
    /// The reply.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response_summary: Option<ResponseSummary>,
    /// From the first byte of the request to the last of the reply.
    pub duration_us: Micros,
    /// Where that time went.
    #[serde(flatten)]
    pub stages: Stages,
    /// [`Stages::unexplained`] of `duration_us`.
    pub unexplained_us: Micros,
    /// The configuration's version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub config_version: Option<&'a str>,
}
