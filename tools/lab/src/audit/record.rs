//! One judged call, of any log. Times in milliseconds.

/// A decision, joined with its operation if there is one.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct AuditedCall {
    /// ISO 8601 in UTC.
    pub(super) time: String,
    /// `allow`, `deny` or `hitl`.
    pub(super) decision: String,
    /// Whether a person was asked.
    pub(super) asked: bool,
    pub(super) eval_ms: Option<f64>,
    /// How long the person took.
    pub(super) approval_ms: Option<f64>,
    /// Policy and approval together.
    pub(super) policy_ms: Option<f64>,
    /// The whole call as its log saw it.
    pub(super) duration_ms: Option<f64>,
    /// The server's part, if the log measured it itself.
    pub(super) measured_upstream_ms: Option<f64>,
}

impl AuditedCall {
    pub(super) fn is_approval(&self) -> bool {
        self.asked || self.decision == "hitl"
    }

    /// Returns the server's part: measured, or what policy leaves of the whole.
    pub(super) fn upstream_ms(&self) -> Option<f64> {
        self.measured_upstream_ms
            .or_else(|| Some((self.duration_ms? - self.policy_ms?).max(0.0)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn upstream_is_measured_or_what_is_left() {
        let mut call = AuditedCall {
            duration_ms: Some(10.0),
            policy_ms: Some(0.5),
            ..AuditedCall::default()
        };
        assert_eq!(call.upstream_ms(), Some(9.5));
        call.measured_upstream_ms = Some(9.0);
        assert_eq!(call.upstream_ms(), Some(9.0));
        assert_eq!(AuditedCall::default().upstream_ms(), None);
    }
}
