//! Processes as the system shows them: trees, memory, ending them.

use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use std::fs;

/// How many processes of one tree are looked at.
const TREE_MAX: usize = 256;

/// One process of a tree.
#[derive(Debug, Clone)]
pub(crate) struct Member {
    pub(crate) pid: u32,
    /// Its command line, blanks between the words.
    pub(crate) command: String,
    /// Resident memory, in KiB.
    pub(crate) resident_kib: u64,
}

/// Kills the group that `pid` leads and every descendant that left it. Nothing happens for what has ended.
pub(crate) fn kill_tree(pid: u32) {
    let others = descendants(pid);
    if let Some(leader) = number(pid) {
        let _ = kill_process_group(leader, Signal::KILL);
    }
    for other in others.into_iter().filter_map(number) {
        let _ = kill_process(other, Signal::KILL);
    }
}

/// The process and its descendants, itself first.
pub(crate) fn tree(pid: u32) -> Vec<Member> {
    std::iter::once(pid)
        .chain(descendants(pid))
        .filter_map(member)
        .collect()
}

fn number(pid: u32) -> Option<Pid> {
    Pid::from_raw(i32::try_from(pid).ok()?)
}

fn descendants(pid: u32) -> Vec<u32> {
    let mut found = Vec::new();
    let mut open = vec![pid];
    while let Some(parent) = open.pop() {
        let Ok(threads) = fs::read_dir(format!("/proc/{parent}/task")) else {
            continue;
        };
        for thread in threads.flatten() {
            let children = fs::read_to_string(thread.path().join("children")).unwrap_or_default();
            let children = children.split_whitespace().filter_map(|c| c.parse().ok());
            for child in children.take(TREE_MAX.saturating_sub(found.len())) {
                found.push(child);
                open.push(child);
            }
        }
    }
    found
}

fn member(pid: u32) -> Option<Member> {
    let command = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let resident = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))?;
    Some(Member {
        pid,
        command: String::from_utf8_lossy(&command)
            .split('\0')
            .collect::<Vec<_>>()
            .join(" ")
            .trim_end()
            .to_owned(),
        resident_kib: resident.split_whitespace().next()?.parse().ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tree_holds_the_process_and_its_child() {
        let mut child = std::process::Command::new("sleep")
            .arg("30")
            .spawn()
            .unwrap();
        let own = tree(std::process::id());
        assert_eq!(own[0].pid, std::process::id());
        assert!(own[0].resident_kib > 100);
        let found = own.iter().find(|m| m.pid == child.id());
        // Between fork and exec the child still has our command line.
        assert!(found.is_some());
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(tree(child.id()).is_empty());
    }
}
