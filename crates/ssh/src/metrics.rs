//! Sessions and commands, counted by host.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use toolkit::measure::{Measure, Measured, Times};

use crate::pool::{Counts, LaneState};

/// The bounds of the classes of times, in seconds.
const CLASSES_S: [f64; 12] = [
    0.001, 0.0025, 0.005, 0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0,
];

/// What has been counted. There are as many rows as hosts at most.
#[derive(Debug, Default)]
pub(crate) struct Metrics(Mutex<BTreeMap<String, OfHost>>);

#[derive(Debug, Clone)]
struct OfHost {
    /// Opened, and not.
    sessions: [u64; 2],
    /// Ended well, and not.
    commands: [u64; 2],
    times: Times,
}

impl Default for OfHost {
    fn default() -> Self {
        Self {
            sessions: [0; 2],
            commands: [0; 2],
            times: Times::new(&CLASSES_S),
        }
    }
}

/// The names of what went well, and of what did not.
const STATUS: [&str; 2] = ["success", "error"];

impl Metrics {
    fn at(&self, host: &str, change: impl FnOnce(&mut OfHost)) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match all.get_mut(host) {
            Some(of) => change(of),
            None => change(all.entry(host.to_owned()).or_default()),
        }
    }

    /// A session was asked for.
    pub fn session(&self, host: &str, is_open: bool) {
        self.at(host, |of| add(&mut of.sessions, usize::from(!is_open)));
    }

    /// A command has ended.
    pub fn command(&self, host: &str, is_well: bool, time: Duration) {
        self.at(host, |of| {
            add(&mut of.commands, usize::from(!is_well));
            of.times.add(time);
        });
    }

    /// Everything, for a scrape.
    pub fn measures(
        &self,
        active: &BTreeMap<String, u64>,
        pool: &Counts,
        lanes: &[LaneState],
    ) -> Vec<Measure> {
        let all = self
            .0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        let mut out = Vec::new();
        for (host, count) in active {
            out.push(Measure::new(
                "mcp_ssh_sessions_active",
                "SSH sessions that are open",
                &[("host", host)],
                Measured::Level(*count),
            ));
        }
        type Counted = fn(&OfHost) -> [u64; 2];
        let counted: [(&str, &str, Counted); 2] = [
            (
                "mcp_ssh_sessions",
                "SSH sessions that were asked for",
                |of| of.sessions,
            ),
            ("mcp_ssh_commands", "Commands by how they ended", |of| {
                of.commands
            }),
        ];
        for (name, about, counts) in counted {
            for (host, of) in &all {
                for (status, count) in STATUS.iter().zip(counts(of)) {
                    let labels = [("host", host.as_str()), ("status", status)];
                    out.push(Measure::new(name, about, &labels, Measured::Count(count)));
                }
            }
        }
        for (host, of) in &all {
            out.push(Measure::new(
                "mcp_ssh_command_duration_seconds",
                "From the order of a command to its end",
                &[("host", host)],
                of.times.measured(),
            ));
        }
        out.extend(pool.measures());
        out.extend(of_lanes(lanes));
        out
    }
}

/// How the connections stand, by host.
fn of_lanes(lanes: &[LaneState]) -> Vec<Measure> {
    let mut out = Vec::new();
    type Level = fn(&LaneState) -> usize;
    let levels: [(&str, &str, Level); 2] = [
        (
            "mcp_pool_connections_active",
            "Connections with a command",
            |lane| lane.total.saturating_sub(lane.idle),
        ),
        (
            "mcp_pool_connections_idle",
            "Connections without a command",
            |lane| lane.idle,
        ),
    ];
    for (name, about, level) in levels {
        let mut by_host: BTreeMap<&str, u64> = BTreeMap::new();
        for lane in lanes {
            let count = u64::try_from(level(lane)).unwrap_or(u64::MAX);
            *by_host.entry(&lane.host).or_default() += count;
        }
        for (host, count) in by_host {
            out.push(Measure::new(
                name,
                about,
                &[("host", host)],
                Measured::Level(count),
            ));
        }
    }
    out
}

fn add(counts: &mut [u64], at: usize) {
    if let Some(count) = counts.get_mut(at) {
        *count = count.saturating_add(1);
    }
}
