//! Processes as the system shows them: trees, memory, ending them.

use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use rustix::time::{ClockId, clock_gettime};
use std::fs;

/// How many processes of one tree are looked at.
const TREE_MAX: usize = 256;
/// The length of the system's ticks, in microseconds; fixed for programs on Linux.
const TICK_US: f64 = 10_000.0;
/// How much of a command line names a process in a table, in characters.
const SHORT_CHARS_MAX: usize = 48;
/// The same in words.
const SHORT_WORDS_MAX: usize = 4;

/// One process of a tree.
#[derive(Debug, Clone)]
pub(crate) struct TreeMember {
    pub(crate) pid: u32,
    /// Its command line, blanks between the words.
    pub(crate) command: String,
    /// Resident memory, in KiB.
    pub(crate) resident_kib: u64,
    /// The most it ever was, in KiB.
    pub(crate) high_water_kib: u64,
    pub(crate) threads: u64,
    /// Open descriptors; 0 if the system does not report it.
    pub(crate) descriptors: u64,
    /// Processor time since its start, in microseconds.
    pub(crate) cpu_us: f64,
    /// Switches of its main thread because it waited, and because it was made to.
    pub(crate) switches: [u64; 2],
}

impl TreeMember {
    /// Its program and the words that distinguish such processes, short enough for a table: without options, numbers,
    /// and words behind a `--`, files without their directories.
    pub(crate) fn short(&self) -> String {
        let file = |word: &'_ str| word.rsplit('/').next().unwrap_or_default().to_owned();
        let mut words = self.command.split(' ').take_while(|word| *word != "--");
        let mut named = vec![file(words.next().unwrap_or_default())];
        let mut behind_option = false;
        for word in words {
            let is_name = word.starts_with(|c: char| c.is_alphabetic() || "_/.".contains(c));
            if is_name && !behind_option {
                named.push(file(word));
            }
            behind_option = word.starts_with('-') && !word.contains('=');
        }
        named.truncate(SHORT_WORDS_MAX);
        named.join(" ").chars().take(SHORT_CHARS_MAX).collect()
    }
}

/// Asks a process to end.
pub(crate) fn terminate(pid: u32) {
    if let Some(process) = number(pid) {
        let _ = kill_process(process, Signal::TERM);
    }
}

/// Returns whether a command line is that of one of our mocks, and not of a helper that carries it behind a `--`.
pub(crate) fn is_mock(command: &str) -> bool {
    let mut words = command.split(' ').skip(1);
    words.next() == Some("mock")
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

/// Returns the process and its descendants, itself first.
pub(crate) fn tree(pid: u32) -> Vec<TreeMember> {
    numbers(pid).into_iter().filter_map(member).collect()
}

/// Returns the same by their numbers.
pub(crate) fn numbers(pid: u32) -> Vec<u32> {
    std::iter::once(pid).chain(descendants(pid)).collect()
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

/// Memory of a process, of shared pages its part only, in KiB; 0 if the system does not report it.
pub(crate) fn proportional_kib(pid: u32) -> u64 {
    let text = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("Pss:"));
    let number = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
    number.unwrap_or_default()
}

/// One process by itself; nothing if it has ended.
pub(crate) fn member(pid: u32) -> Option<TreeMember> {
    let command = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let number = |name: &str| -> Option<u64> {
        let line = status.lines().find_map(|line| line.strip_prefix(name))?;
        line.split_whitespace().next()?.parse().ok()
    };
    let descriptors = fs::read_dir(format!("/proc/{pid}/fd"));
    Some(TreeMember {
        pid,
        command: String::from_utf8_lossy(&command)
            .split('\0')
            .collect::<Vec<_>>()
            .join(" ")
            .trim_end()
            .to_owned(),
        resident_kib: number("VmRSS:")?,
        high_water_kib: number("VmHWM:").unwrap_or_default(),
        threads: number("Threads:").unwrap_or_default(),
        descriptors: descriptors.map_or(0, |entries| entries.count() as u64),
        cpu_us: cpu_us(pid),
        switches: [
            number("voluntary_ctxt_switches:").unwrap_or_default(),
            number("nonvoluntary_ctxt_switches:").unwrap_or_default(),
        ],
    })
}

/// Processor time of a process, in microseconds; 0 if the system does not report it. The sum over its living
/// threads is exact, the system's own count is coarse but holds the threads that ended.
fn cpu_us(pid: u32) -> f64 {
    let threads = fs::read_dir(format!("/proc/{pid}/task"));
    let nanoseconds: u64 = threads
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|thread| run_ns(&thread.path().join("schedstat")))
        .sum();
    let living = nanoseconds as f64 / 1_000.0;
    let all = ticks(pid).unwrap_or_default() as f64 * TICK_US;
    if all > living + TICK_US { all } else { living }
}

/// User and system time of a process in ticks. Its name, in parentheses, may hold anything.
fn ticks(pid: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, behind) = stat.rsplit_once(')')?;
    let mut fields = behind.split_whitespace().skip(11);
    let user: u64 = fields.next()?.parse().ok()?;
    let system: u64 = fields.next()?.parse().ok()?;
    Some(user + system)
}

/// Processor time of the calling thread, in microseconds.
pub(crate) fn own_thread_cpu_us() -> f64 {
    let spent = clock_gettime(ClockId::ThreadCPUTime);
    spent.tv_sec as f64 * 1e6 + spent.tv_nsec as f64 / 1e3
}

fn run_ns(file: &std::path::Path) -> Option<u64> {
    let text = fs::read_to_string(file).ok()?;
    text.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_names_tell_processes_apart() {
        for (command, expect) in [
            (
                "/usr/bin/durward-lab mock echo --delay-us 5",
                "durward-lab mock echo",
            ),
            (
                "/x/durward --state-dir /tmp/s run --name mock -- /x/y z",
                "durward run",
            ),
            ("/x/durward __child 4711 -- /x/y", "durward __child"),
            ("node /srv/files/index.js /tmp", "node index.js tmp"),
            ("python3 -u server.py", "python3"),
            ("", ""),
        ] {
            let own = member(std::process::id()).unwrap();
            let member = TreeMember {
                command: command.into(),
                ..own
            };
            assert_eq!(member.short(), expect);
        }
    }

    #[test]
    fn a_tree_holds_the_process_and_its_child() {
        let mut child = std::process::Command::new("sleep")
            .arg("30")
            .spawn()
            .unwrap();
        let own = tree(std::process::id());
        assert_eq!(own[0].pid, std::process::id());
        assert!(own[0].resident_kib > 100 && own[0].high_water_kib >= own[0].resident_kib);
        assert!(own[0].threads >= 1 && own[0].descriptors >= 3 && own[0].cpu_us > 0.0);
        let found = own.iter().find(|m| m.pid == child.id());
        // Between fork and exec the child still has our command line.
        assert!(found.is_some());
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(tree(child.id()).is_empty());
    }
}
