//! The five scenarios and their parameters.

use std::time::Duration;

use serde::Serialize;

/// The host names that the guide's ports have at `lab mock ssh-target`, the port without a bad line first.
pub(super) const LATENCY_PORTS: [u16; 5] = [2222, 2322, 2323, 2324, 2325];

/// A scenario.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, clap::ValueEnum)]
#[serde(rename_all = "snake_case")]
#[value(rename_all = "snake_case")]
pub(super) enum SshScenario {
    /// Connections made and ended, by 1, 2, 5 and 10 workers in turn
    ConnectionRate,
    /// Commands over connections that are there already
    CommandThroughput,
    /// Commands, connections and disconnections for ten minutes
    SustainedLoad,
    /// Ten commands a second, over good and bad lines
    LatencyTest,
    /// More connections than the server gives
    ExhaustionTest,
}

impl SshScenario {
    /// All of them, in the order of the guide.
    pub const ALL: [Self; 5] = [
        Self::ConnectionRate,
        Self::CommandThroughput,
        Self::SustainedLoad,
        Self::LatencyTest,
        Self::ExhaustionTest,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Self::ConnectionRate => "connection_rate",
            Self::CommandThroughput => "command_throughput",
            Self::SustainedLoad => "sustained_load",
            Self::LatencyTest => "latency_test",
            Self::ExhaustionTest => "exhaustion_test",
        }
    }

    pub fn about(self) -> &'static str {
        match self {
            Self::ConnectionRate => "connections made and ended, by 1, 2, 5 and 10 workers in turn",
            Self::CommandThroughput => "commands over connections that are there already",
            Self::SustainedLoad => "70 % commands, 20 % connections, 10 % disconnections",
            Self::LatencyTest => "10 commands a second on 5 hosts, 4 of them behind bad lines",
            Self::ExhaustionTest => "15 connections at a time, where the server gives 10",
        }
    }

    /// Returns how long it lasts; each number of workers and each host so long.
    pub fn duration(self) -> Duration {
        Duration::from_secs(match self {
            Self::ConnectionRate | Self::LatencyTest | Self::ExhaustionTest => 60,
            Self::CommandThroughput => 120,
            Self::SustainedLoad => 600,
        })
    }

    /// Returns how many workers, one number after the other.
    pub fn workers(self) -> &'static [u32] {
        match self {
            Self::ConnectionRate => &[1, 2, 5, 10],
            Self::CommandThroughput => &[10],
            Self::SustainedLoad => &[5],
            Self::LatencyTest => &[3],
            Self::ExhaustionTest => &[15],
        }
    }

    /// Returns how often the server's metrics are read.
    pub fn sample_every(self) -> Duration {
        Duration::from_secs(match self {
            Self::SustainedLoad => 5,
            _ => 1,
        })
    }

    /// Returns whether a refusal is what it is for.
    pub fn wants_refusals(self) -> bool {
        self == Self::ExhaustionTest
    }
}
