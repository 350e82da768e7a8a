//! A waiting call as the screen keeps it.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::approvals::text;

/// A call that waits.
pub(super) struct Call {
    pub socket: PathBuf,
    pub id: String,
    /// When it was selected last, and so shown as a whole.
    pub shown: Option<Instant>,
    question: Value,
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
    /// A question as an instance sends it; none where it has no id.
    pub fn of(socket: &Path, question: Value) -> Option<Self> {
        let left = Duration::from_millis(text::number(&question, "remaining_ms"));
        Some(Self {
            socket: socket.to_path_buf(),
            id: text::word(&question, "id")?,
            shown: None,
            ends: Instant::now() + left,
            question,
        })
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
        let word = |name: &str| text::word(&self.question, name);
        let what = word("tool_name")
            .or_else(|| word("uri"))
            .or_else(|| word("mcp_method"));
        [what, word("backend_id"), word("subject_id")].map(Option::unwrap_or_default)
    }

    /// The whole call, line by line.
    pub fn lines(&self) -> Vec<(Kind, String)> {
        /// Where the values stand.
        const VALUE: usize = 14;
        let mut out = Vec::new();
        // Writing to memory does not fail.
        let _ = text::question(&self.question, &mut out);
        let all = String::from_utf8_lossy(&out).into_owned();
        let mut in_change = false;
        let lines = all.lines().skip(1).map(|line| {
            let (label, value) = line.split_at_checked(VALUE).unwrap_or((line, ""));
            if !label.trim().is_empty() {
                in_change = label.trim() == "change";
            }
            let kind = match value.chars().next() {
                Some('+') if in_change => Kind::Added,
                Some('-') if in_change => Kind::Removed,
                _ => Kind::Plain,
            };
            let text = match label.trim().is_empty() && in_change {
                // Signs and the blanks of unchanged lines stand below one another.
                true => format!("  {value}"),
                false => line.trim_start().to_owned(),
            };
            (kind, text)
        });
        lines.collect()
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
        let call = Call::of(Path::new("/s"), question).unwrap();
        assert_eq!(call.columns(), ["write_file", "files", "me"]);
        assert_eq!(call.seconds_left(Instant::now()), 42);
        let lines = call.lines();
        for expect in ["   kept", "  -old", "  +new"] {
            assert!(lines.iter().any(|(_, line)| line == expect), "{lines:?}");
        }
        let kinds: Vec<Kind> = lines.iter().map(|(kind, _)| *kind).collect();
        assert_eq!(kinds.iter().filter(|kind| **kind == Kind::Added).count(), 1);
        assert_eq!(
            kinds.iter().filter(|kind| **kind == Kind::Removed).count(),
            1
        );
        assert!(Call::of(Path::new("/s"), json!({})).is_none());
    }
}
