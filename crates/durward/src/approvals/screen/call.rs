//! A waiting call as the screen keeps it.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use admin::approvals::ApprovalQuestion;

use crate::approvals::text;
use crate::layout::fold;

/// A call that waits.
pub(super) struct Call {
    pub socket: PathBuf,
    pub id: String,
    /// When it was selected last, and so shown as a whole.
    pub shown: Option<Instant>,
    question: ApprovalQuestion,
    ends: Instant,
}

/// A line of a call's text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Plain,
    /// What a write would add.
    Added,
    /// What a write would take away.
    Removed,
}

impl Call {
    /// Starts to keep a call that an instance reports.
    pub fn new(socket: PathBuf, question: ApprovalQuestion) -> Self {
        let left = Duration::from_millis(question.remaining_ms);
        Self {
            socket,
            id: text::safe(&question.id),
            shown: None,
            ends: Instant::now() + left,
            question,
        }
    }

    /// Whole seconds to answer.
    pub fn seconds_left(&self, now: Instant) -> u64 {
        self.ends
            .saturating_duration_since(now)
            .as_millis()
            .div_ceil(1_000)
            .try_into()
            .unwrap_or(u64::MAX)
    }

    /// Tool (or method), server and caller.
    pub fn columns(&self) -> [String; 3] {
        let question = &self.question;
        [
            text::what(question),
            text::word(&question.backend_id),
            text::word(&question.subject_id),
        ]
    }

    /// How long a yes can be remembered; nothing where it means once.
    pub fn remembered(&self) -> Option<String> {
        let question = &self.question;
        (question.can_cache).then(|| text::duration(question.cache_ttl_seconds))
    }

    /// The whole call on lines of this width.
    pub fn lines(&self, width: usize) -> Vec<(Kind, String)> {
        /// Column of the values.
        const VALUE: usize = 10;
        /// Where the lines of a change go on: signs and the blanks of unchanged lines are below one another.
        const IN_CHANGE: usize = 3;
        let mut in_change = false;
        let mut out = Vec::new();
        for (label, value) in text::entries(&self.question) {
            let is_first = !label.is_empty();
            if is_first {
                in_change = label == text::CHANGE;
            }
            let kind = match value.chars().next() {
                Some('+') if in_change && !is_first => Kind::Added,
                Some('-') if in_change && !is_first => Kind::Removed,
                _ => Kind::Plain,
            };
            let (line, hang) = match in_change && !is_first {
                true => (format!("  {value}"), IN_CHANGE),
                false => (format!("{label:<VALUE$}{value}"), VALUE),
            };
            let lines = fold::bounded(&line, width, hang);
            out.extend(lines.into_iter().map(|line| (kind, line)));
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_write_is_shown_as_a_difference() {
        let question = json!({
            "id": "k7f2m9qa", "tool_name": "write_file", "backend_id": "files", "subject_id": "me",
            "arguments": "{\"-\":1}", "change": ["/a: 1 line", "@ 1", " kept", "-old", "+new"],
            "remaining_ms": 41_200, "rule": "ask",
        });
        let call = Call::new("/s".into(), serde_json::from_value(question).unwrap());
        assert_eq!(call.columns(), ["write_file", "files", "me"]);
        assert_eq!(call.seconds_left(Instant::now()), 42);
        let lines = call.lines(60);
        for expect in ["   kept", "  -old", "  +new"] {
            assert!(lines.iter().any(|(_, line)| line == expect), "{lines:?}");
        }
        let kinds: Vec<Kind> = lines.iter().map(|(kind, _)| *kind).collect();
        assert_eq!(kinds.iter().filter(|kind| **kind == Kind::Added).count(), 1);
        assert_eq!(
            kinds.iter().filter(|kind| **kind == Kind::Removed).count(),
            1
        );
        let at = |start: &str| {
            lines
                .iter()
                .position(|(_, line)| line.starts_with(start))
                .unwrap()
        };
        assert!(at("change    /a: 1 line") < at("arguments {"), "{lines:?}");
        for width in 1..60 {
            for (_, line) in call.lines(width) {
                assert!(line.chars().count() <= width, "{width}: {line}");
            }
        }
    }
}
