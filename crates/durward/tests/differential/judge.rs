//! Compares what was executed with what was recorded as allowed.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use mocks::ambiguous::AmbiguousFrame;
use serde_json::Value;

use crate::edge::{Edge, Way};
use crate::place::Place;
use crate::same::same_arguments;
use crate::written::{is_denied, led};
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

/// A call that may be executed, once: the tool, and the places that it may open.
struct Allowed {
    tool: String,
    paths: BTreeSet<String>,
    is_used: bool,
}

/// Judges one run. Without a gate nothing is recorded, and nothing is held against that.
pub fn judge(place: &Place, way: Way, frames: &[AmbiguousFrame]) -> Verdict {
    let mut allowed = allowed(place, way.edge, frames);
    let mut verdict = Verdict {
        executed: 0,
        denied: 0,
        differences: BTreeMap::new(),
    };
    let mut seen = BTreeSet::new();
    for line in place.executed() {
        let (tool, paths) = opened(&line, "tool");
        let is_denied = is_denied(&tool, &paths);
        verdict.denied += usize::from(is_denied);
        let frame = frame(&paths, frames);
        if !is_denied && frame.is_some_and(|frame| seen.insert(frame.number)) {
            verdict.executed += 1;
        }
        if way.edge == Edge::Direct {
            continue;
        }
        let covers = |call: &&mut Allowed| {
            let known = paths.iter().all(|path| call.paths.contains(path));
            !call.is_used && call.tool == tool && known
        };
        let is_recorded = allowed.iter_mut().find(covers);
        let is_recorded = is_recorded.map(|call| call.is_used = true).is_some();
        let is_let_through = is_denied && way.edge.is_guarded();
        let is_same = frame.is_some_and(|frame| same_arguments(&line, frame));
        if is_let_through || !is_recorded || !is_same {
            let sent = frame.map(|frame| String::from_utf8_lossy(&frame.bytes).into_owned());
            let form = frame.map_or("a path without a frame's number", |frame| frame.form);
            let found = format!("{line} of {sent:?} (recorded: {is_recorded}, same: {is_same})");
            verdict.differences.entry(form).or_default().push(found);
        }
    }
    verdict
}

/// What may be executed: what was recorded as allowed, or without a gate what the frames say.
fn allowed(place: &Place, edge: Edge, frames: &[AmbiguousFrame]) -> Vec<Allowed> {
    let calls: Vec<(String, Vec<String>)> = match edge {
        Edge::Direct => Vec::new(),
        Edge::Written => frames.iter().filter_map(written::call).collect(),
        Edge::Forwarded => frames.iter().filter_map(forwarded::call).collect(),
        Edge::Run | Edge::Serve | Edge::Together | Edge::ServeAll => {
            let decisions = place.decisions().into_iter();
            let allowed = decisions.filter(|decision| decision["decision"] == "allow");
            allowed
                .map(|decision| opened(&decision, "tool_name"))
                .collect()
        }
    };
    let allowed = |(tool, paths): (String, Vec<String>)| Allowed {
        tool,
        paths: paths.into_iter().collect(),
        is_used: false,
    };
    calls.into_iter().map(allowed).collect()
}

/// The tool and the places of a line of the book or of a record.
fn opened(of: &Value, tool: &str) -> (String, Vec<String>) {
    let list = of["paths"].as_array().into_iter().flatten();
    let all = list.chain([&of["path"]]).filter_map(Value::as_str);
    // Go reads null as an empty string, which nothing can be opened by.
    let all = all.filter(|path| !path.is_empty());
    let tool = of[tool].as_str().unwrap_or_default().to_owned();
    (tool, all.map(led).collect())
}

/// The frame whose number stands in one of these places.
fn frame<'a>(paths: &[String], frames: &'a [AmbiguousFrame]) -> Option<&'a AmbiguousFrame> {
    let first = frames.first()?.number;
    let numbers = paths.iter().flat_map(|path| {
        path.split(|c: char| !c.is_ascii_digit())
            .filter_map(|digits| digits.parse::<u64>().ok())
    });
    let at = |number: u64| usize::try_from(number.checked_sub(first)?).ok();
    numbers.filter_map(at).find_map(|at| frames.get(at))
}
