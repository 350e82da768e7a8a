//! Compares what was executed with what was recorded as allowed.

use std::collections::BTreeMap;
use std::fmt;

use mocks::ambiguous::Ambiguous;
use serde_json::Value;
use wire::jsonrpc::member;
use wire::{Bounds, scan_request};

use crate::edge::Edge;
use crate::place::Place;
use crate::{forwarded, written};

/// What became of all frames.
pub struct Verdict {
    /// Frames whose own call was executed.
    pub executed: usize,
    /// Calls that were executed although the policy denies them.
    pub denied: usize,
    /// Executed and not recorded as allowed, by the form of the frame.
    pub differences: BTreeMap<&'static str, Vec<String>>,
}

impl Verdict {
    /// Every difference.
    pub fn in_full(&self) -> String {
        let forms = self.differences.iter();
        let forms = forms.map(|(form, found)| format!("\n  {form}:\n    {}", found.join("\n    ")));
        forms.collect()
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "executed {:4}  denied {:3}  different",
            self.executed, self.denied
        )?;
        let count: usize = self.differences.values().map(Vec::len).sum();
        write!(f, " {count:3}")?;
        for (form, found) in &self.differences {
            write!(f, "\n    {:3} {form}", found.len())?;
        }
        Ok(())
    }
}

/// Judges one run. Without a gate nothing is recorded, and nothing is held against that.
pub fn judge(place: &Place, edge: Edge, frames: &[Ambiguous]) -> Verdict {
    let mut allowed = allowed(place, edge, frames);
    let mut verdict = Verdict {
        executed: 0,
        denied: 0,
        differences: BTreeMap::new(),
    };
    let mut seen = std::collections::BTreeSet::new();
    for line in place.executed() {
        let (tool, path) = call(&line, "tool");
        let frame =
            number(&line.to_string()).and_then(|n| frames.iter().find(|frame| frame.number == n));
        let Some(frame) = frame else {
            panic!("no frame is of this call: {line}");
        };
        let is_denied = written::is_denied(&tool, &path);
        verdict.denied += usize::from(is_denied);
        if !is_denied && seen.insert(frame.number) {
            verdict.executed += 1;
        }
        if edge == Edge::Direct {
            continue;
        }
        let left = allowed.get_mut(&(tool, path)).filter(|left| **left > 0);
        let is_recorded = left.map(|left| *left -= 1).is_some();
        let is_let_through = is_denied && edge != Edge::Written && edge != Edge::Forwarded;
        if is_let_through || !is_recorded || !same_arguments(&line, frame) {
            let sent = String::from_utf8_lossy(&frame.bytes).into_owned();
            let found = format!("{line} of {sent:?}");
            verdict
                .differences
                .entry(frame.form)
                .or_default()
                .push(found);
        }
    }
    verdict
}

/// What may be executed, and how often: what was recorded as allowed, or without a gate what the
/// frames say.
fn allowed(place: &Place, edge: Edge, frames: &[Ambiguous]) -> BTreeMap<(String, String), usize> {
    let calls: Vec<(String, String)> = match edge {
        Edge::Direct => Vec::new(),
        Edge::Written => frames.iter().filter_map(written::call).collect(),
        Edge::Forwarded => frames.iter().filter_map(forwarded::call).collect(),
        Edge::Run | Edge::Serve => {
            let decisions = place.decisions().into_iter();
            let allowed = decisions.filter(|decision| decision["decision"] == "allow");
            allowed
                .map(|decision| call(&decision, "tool_name"))
                .collect()
        }
    };
    let mut allowed = BTreeMap::new();
    for call in calls {
        *allowed.entry(call).or_default() += 1;
    }
    allowed
}

fn call(of: &Value, tool: &str) -> (String, String) {
    let text = |name: &str| of[name].as_str().unwrap_or_default().to_owned();
    (text(tool), text("path"))
}

/// The number in the first path of what was written down is that of its frame.
fn number(line: &str) -> Option<u64> {
    let (_, path) = line.split_once("/notes/")?;
    let from = path.find(|c: char| c.is_ascii_digit())?;
    let digits: String = path
        .get(from..)?
        .chars()
        .take_while(char::is_ascii_digit)
        .collect();
    digits.parse().ok()
}

/// Where a server wrote down all arguments: whether they are those that the gate reads.
fn same_arguments(line: &Value, frame: &Ambiguous) -> bool {
    let Some(executed) = line.get("arguments") else {
        return true;
    };
    // A newline makes two frames of one; each was judged for itself.
    let own = frame
        .bytes
        .split(|byte| *byte == b'\n')
        .next()
        .unwrap_or_default();
    // What the writer refuses never leaves as a canonical frame; until then the scan is what counts.
    let Ok(scan) = scan_request(own, &Bounds::default()) else {
        return false;
    };
    let Some(arguments) = member(&scan.params, "arguments") else {
        return false;
    };
    let read: Value = serde_json::from_str(arguments).unwrap();
    as_floats(&read) == as_floats(executed)
}

/// Numbers as floats, which is how Go writes them down.
fn as_floats(value: &Value) -> Value {
    match value {
        Value::Number(n) => n.as_f64().map_or(Value::Null, |n| (n + 0.0).into()),
        Value::Array(items) => items.iter().map(as_floats).collect(),
        Value::Object(members) => {
            let members = members
                .iter()
                .map(|(name, value)| (name.clone(), as_floats(value)));
            Value::Object(members.collect())
        }
        other => other.clone(),
    }
}
