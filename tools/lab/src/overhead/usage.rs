//! Resources of a variant's processes: processor time, memory, descriptors.

use crate::processes::{self, TreeMember};
use crate::stats::mean;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// One process of a variant over one launch.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct LaunchUsage {
    command: String,
    cpu_us_per_call: f64,
    resident_kib: u64,
    high_water_kib: u64,
    descriptors: u64,
    threads: u64,
    switches_per_call: f64,
}

/// One process of a variant over all launches.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct ProcessFigures {
    /// Its program and first words; a number follows if a variant has several alike.
    pub(crate) command: String,
    /// Processor time per call, the mean of launches.
    pub(crate) cpu_us_per_call: f64,
    /// The largest of all launches, like the counts below.
    pub(crate) resident_kib: u64,
    pub(crate) high_water_kib: u64,
    pub(crate) descriptors: u64,
    pub(crate) threads: u64,
    /// Voluntary and forced switches of the main thread per call, the mean of launches.
    pub(crate) switches_per_call: f64,
}

/// Returns the processes of a tree now: what later usage is counted from.
pub(crate) fn begin(root: u32) -> Vec<TreeMember> {
    processes::tree(root)
}

/// What each process of the tree used since `before`, in which `calls` calls were made.
pub(crate) fn end(root: u32, before: &[TreeMember], calls: usize) -> Vec<LaunchUsage> {
    let calls = calls.max(1) as f64;
    processes::tree(root)
        .into_iter()
        .map(|now| {
            let then = before.iter().find(|m| m.pid == now.pid);
            let since = |of: fn(&TreeMember) -> f64| of(&now) - then.map_or(0.0, of);
            LaunchUsage {
                command: now.short(),
                cpu_us_per_call: since(|m| m.cpu_us) / calls,
                resident_kib: now.resident_kib,
                high_water_kib: now.high_water_kib,
                descriptors: now.descriptors,
                threads: now.threads,
                switches_per_call: since(|m| m.switches.iter().sum::<u64>() as f64) / calls,
            }
        })
        .collect()
}

/// Returns the figures of a variant, one entry per process, in the order of its tree.
pub(crate) fn figures<'a>(
    launches: impl Iterator<Item = &'a [LaunchUsage]>,
) -> Vec<ProcessFigures> {
    let mut order = Vec::new();
    let mut found: BTreeMap<String, Vec<&LaunchUsage>> = BTreeMap::new();
    for launch in launches {
        let mut alike: BTreeMap<&str, usize> = BTreeMap::new();
        for usage in launch {
            let number = alike.entry(&usage.command).or_default();
            *number += 1;
            let name = match *number {
                1 => usage.command.clone(),
                more => format!("{} ({more})", usage.command),
            };
            if !order.contains(&name) {
                order.push(name.clone());
            }
            found.entry(name).or_default().push(usage);
        }
    }
    order
        .into_iter()
        .map(|command| {
            let all = found.remove(&command).unwrap_or_default();
            let average =
                |of: fn(&LaunchUsage) -> f64| mean(&all.iter().map(|u| of(u)).collect::<Vec<_>>());
            let largest =
                |of: fn(&LaunchUsage) -> u64| all.iter().map(|u| of(u)).max().unwrap_or_default();
            ProcessFigures {
                cpu_us_per_call: average(|u| u.cpu_us_per_call),
                resident_kib: largest(|u| u.resident_kib),
                high_water_kib: largest(|u| u.high_water_kib),
                descriptors: largest(|u| u.descriptors),
                threads: largest(|u| u.threads),
                switches_per_call: average(|u| u.switches_per_call),
                command,
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_alike_are_told_apart() {
        let usage = |command: &str, cpu: f64, kib: u64| LaunchUsage {
            command: command.into(),
            cpu_us_per_call: cpu,
            resident_kib: kib,
            high_water_kib: kib,
            descriptors: 3,
            threads: 1,
            switches_per_call: 2.0,
        };
        let launches = [
            vec![usage("a", 1.0, 10), usage("a", 5.0, 70)],
            vec![usage("a", 3.0, 30), usage("a", 7.0, 50)],
        ];
        let found = figures(launches.iter().map(Vec::as_slice));
        let got: Vec<(&str, f64, u64)> = found
            .iter()
            .map(|f| (f.command.as_str(), f.cpu_us_per_call, f.resident_kib))
            .collect();
        assert_eq!(got, [("a", 2.0, 30), ("a (2)", 6.0, 70)]);
    }
}
