//! What `/metrics` says, in the OpenMetrics text format.

mod exposition;
mod families;
mod scrape;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use gate::Gate;
use gate::admit::ToolCount;
use mcp::http::Face;
use toolkit::measure::{Measure, Measured};

use crate::disk::free_bytes;
use crate::failure::Failure;
use crate::instance_state::{self, InstanceState};
use crate::otel::Telemetry;
use exposition::written;
use scrape::Scrape;

/// What is measured.
#[derive(Clone)]
pub struct Sources {
    /// The MCP servers; absent where there is one, before one client.
    pub face: Option<Arc<Face>>,
    /// The model APIs, where there are providers.
    pub models: Option<Arc<models::Face>>,
    /// The gates of all sets of rules.
    pub gates: Vec<Arc<Gate>>,
    /// The state of each set of rules.
    pub states: Vec<InstanceState>,
    /// The export, where there is one.
    pub telemetry: Option<Arc<Telemetry>>,
    /// The journal's directory.
    pub journal: PathBuf,
}

impl Sources {
    /// Has counted what [`Sources::text`] tells and nobody else reads.
    pub fn count(&self) {
        for gate in &self.gates {
            gate.count_tools();
        }
    }

    /// Begins the export, where there is one.
    ///
    /// # Errors
    /// Where no thread can be started.
    pub fn export(self) -> Result<(), Failure> {
        let Some(telemetry) = self.telemetry.clone() else {
            return Ok(());
        };
        self.count();
        let gates = self.gates.clone();
        telemetry.begin(&gates, Box::new(move || self.text().ok()))
    }

    /// The text for one scrape.
    ///
    /// # Errors
    /// Where it cannot be written.
    pub fn text(&self) -> Result<String, fmt::Error> {
        let (face, models, gates) = (self.face.as_ref(), self.models.as_ref(), &self.gates);
        let counts = face.map(|face| face.counts());
        let mut breakers = face.map_or_else(Vec::new, |face| face.breakers());
        breakers.extend(models.iter().flat_map(|models| models.breakers()));
        let mut measures = face.map_or_else(Vec::new, |face| face.measures());
        measures.extend(models.iter().flat_map(|models| resting(models)));
        measures.extend(self.telemetry.iter().flat_map(|of| of.measures()));
        measures.push(build());
        measures.extend(room(&self.journal));
        measures.extend(instance_state::measures(&self.states));
        measures.extend(calls(
            gates.iter().flat_map(|gate| gate.tool_counts()).collect(),
        ));
        written(Scrape {
            tallied: gates.iter().map(|gate| gate.tallied()).collect(),
            control: gates.iter().map(|gate| gate.control_counts()).collect(),
            breakers,
            models: models.map_or_else(Vec::new, |models| models.counted()),
            measures,
            failed: gates.iter().any(|gate| gate.has_failed()),
            sessions: counts.as_ref().map_or(0, |counts| counts.sessions),
            servers: counts.as_ref().map_or(0, |counts| counts.servers),
            approvals_waiting: gates.iter().map(|gate| gate.approvals().waiting()).sum(),
            limits: gates.iter().map(|gate| in_force(gate)).min(),
        })
    }
}

/// Keys of model providers that rest, by provider and reason.
fn resting(models: &models::Face) -> Vec<Measure> {
    let mut counts = std::collections::BTreeMap::new();
    for (provider, keys) in models.resting_keys() {
        for key in keys {
            *counts
                .entry((provider.clone(), key.why.label()))
                .or_insert(0_u64) += 1;
        }
    }
    let about =
        "Keys of model providers that rest; one that rests for several models counts for each";
    let measure = |((provider, reason), count): ((String, &str), u64)| {
        let labels = [("provider", provider.as_str()), ("reason", reason)];
        let value = Measured::Level(count);
        Measure::new("durward_model_keys_resting", about, &labels, value)
    };
    counts.into_iter().map(measure).collect()
}

/// Which program this is.
fn build() -> Measure {
    let labels = [
        ("version", env!("CARGO_PKG_VERSION")),
        ("os", std::env::consts::OS),
        ("arch", std::env::consts::ARCH),
    ];
    let about = "Always 1; the labels say which program this is";
    Measure::new("durward_build_info", about, &labels, Measured::Level(1))
}

/// How much room the journal has, where the system says so.
fn room(journal: &Path) -> Option<Measure> {
    let free = free_bytes(journal)?;
    let about = "Bytes that are left on the disk of the journal";
    let value = Measured::Level(free);
    Some(Measure::new(
        "durward_journal_free_bytes",
        about,
        &[],
        value,
    ))
}

/// Calls by server, tool and outcome; a server may stand behind several gates.
fn calls(mut counts: Vec<ToolCount>) -> Vec<Measure> {
    counts.sort();
    let same = |a: &ToolCount, b: &ToolCount| {
        (&a.server, &a.tool, a.outcome) == (&b.server, &b.tool, b.outcome)
    };
    let measure = |counts: &[ToolCount]| {
        let one = counts.first()?;
        let labels = [
            ("server", one.server.as_str()),
            ("tool", one.tool.as_str()),
            ("outcome", one.outcome),
        ];
        let about =
            "Calls by server, tool and outcome; tools beyond the bound are counted as other";
        let sum = counts.iter().map(|count| count.count).sum();
        Some(Measure::new(
            "durward_calls",
            about,
            &labels,
            Measured::Count(sum),
        ))
    };
    counts.chunk_by(same).filter_map(measure).collect()
}

/// The limits on a caller's calls.
fn in_force(gate: &Gate) -> [u64; 2] {
    let limits = gate.world().limits;
    let a_minute = limits.requests.calls_per_hour() / 60;
    [a_minute, limits.tool_calls_max.into()]
}

#[cfg(test)]
mod tests;
