//! Status and usage of the calls that decisions let through, joined by the id of the call.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use gate::journal::audit::{Look, Reach, back};
use gate::journal::{Line, parse_utc};
use serde::Deserialize;
use serde_json::{Map, Value};

/// How far back outcomes are looked for. Beyond it a decision is shown without its outcome.
const REACH: Reach = Reach {
    bytes_max: 256 << 20,
    segments_max: 64,
};

/// Members of an operation that are shown beside its decision.
const SHOWN: [&str; 2] = ["status", "usage"];

/// Operations that are looked for.
struct Outcomes {
    /// Ids of the calls.
    wanted: HashSet<String>,
    not_before_ms: Option<i64>,
    found: HashMap<String, Map<String, Value>>,
}

/// Members that name the call of a record.
#[derive(Deserialize)]
struct Named {
    kind: String,
    op: Option<String>,
}

impl Look for Outcomes {
    fn not_before_ms(&self) -> Option<i64> {
        self.not_before_ms
    }

    fn record(&mut self, _segment: usize, line: &Line<'_>) -> Option<()> {
        let named: Named = serde_json::from_slice(line.body).ok()?;
        let op = named.op.filter(|op| self.wanted.contains(op));
        if let Some(op) = op.filter(|_| named.kind == "operation") {
            let members: Map<String, Value> = serde_json::from_slice(line.body).ok()?;
            self.found.insert(op, members);
        }
        Some(())
    }

    fn segment_over(&mut self) {}
}

/// Returns decisions with the status and the usage of their calls, where those have ended.
pub(super) fn with_outcomes(directory: &Path, bodies: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let read = |body: &Vec<u8>| serde_json::from_slice::<Map<String, Value>>(body).ok();
    let text = |members: &Map<String, Value>, name: &str| {
        let text = members.get(name).and_then(Value::as_str);
        text.map(str::to_owned)
    };
    let mut decisions: Vec<_> = bodies.iter().map(read).collect();
    let known = || decisions.iter().flatten();
    let mut outcomes = Outcomes {
        wanted: known().filter_map(|members| text(members, "op")).collect(),
        not_before_ms: known()
            .filter_map(|members| parse_utc(&text(members, "time")?))
            .min(),
        found: HashMap::new(),
    };
    // Of a journal that is not as it was written the rest is shown; `durward audit verify` says what is wrong.
    let _ = back(directory, REACH, &mut outcomes);
    for members in decisions.iter_mut().flatten() {
        let outcome = text(members, "op").and_then(|op| outcomes.found.remove(&op));
        for (name, value) in outcome.into_iter().flatten() {
            if SHOWN.contains(&name.as_str()) {
                members.insert(name, value);
            }
        }
    }
    let bodies = bodies.iter().zip(decisions);
    let joined = bodies.map(|(body, members)| {
        let joined = members.and_then(|members| serde_json::to_vec(&members).ok());
        joined.unwrap_or_else(|| body.clone())
    });
    joined.collect()
}
