//! Which processes a stopped command may have left at its host, as the host's own table of processes shows.
//!
//! A command is known to be dead where its own process has ended and nothing that has begun since the command was
//! sent is left outside of other SSH sessions: what it has started may have another session, no variable of ours and
//! no parent, but it cannot be older than the command. Where the table does not show that, the processes that may be
//! the command's are listed.

use std::collections::HashMap;
use std::time::Duration;

use gate::facts::Operation;

use crate::command::Command;

/// Before each table that the host prints.
const HEAD: &str = "durward-ps:";
/// Prints the table up to three times, until no process has vanished between its name and its row. A row has the four
/// user ids of a process and its line of `/proc/PID/stat`.
pub(crate) const SCRIPT: &str = "t=3; h=$(getconf CLK_TCK 2>/dev/null) || h=100; \
while [ $t -gt 0 ]; do t=$((t-1)); read -r up rest </proc/uptime || exit 1; set -- /proc/[0-9]*; \
n=0; echo \"durward-ps:$# $up $h $$\"; for p; do l=; u=; { read -r l <\"$p/stat\"; } 2>/dev/null; \
{ while read -r k a b c d; do case $k in Uid:) u=$a,$b,$c,$d; break;; esac; done <\"$p/status\"; } 2>/dev/null; \
[ \"$u\" ] && [ \"$l\" ] && echo \"$u $l\" && n=$((n+1)); done; [ $n = $# ] && break; done; :";
/// How much of tables is read, in bytes.
pub(crate) const TABLES_BYTES_MAX: usize = 8 * 1024 * 1024;
/// How exactly a process's age is known: ticks of the host's clock.
const TICKS: f64 = 0.05;
/// Most processes that are listed.
const LISTED_MAX: usize = 32;
/// The process that adopts orphans, and the one of the kernel's threads.
const INIT: u32 = 1;
const KERNEL: u32 = 2;

/// What a stopped command has left.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Aftermath {
    /// Nothing: the host has shown it.
    Dead,
    /// Nobody can say: these processes may be the command's.
    Unknown {
        pids: Vec<u32>,
        /// Why not, lowercase.
        why: &'static str,
    },
}

impl Aftermath {
    pub fn unknown(why: &'static str) -> Self {
        let pids = Vec::new();
        Self::Unknown { pids, why }
    }
}

/// Which processes can be a command's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Whose {
    /// Those of its login: it is known that its program runs nothing as another user.
    Logins,
    /// All.
    Anybodys,
}

impl Whose {
    /// Those that a command of these words can start: of a program that is known and only looks, its login's alone.
    pub fn of(argv: &[String]) -> Self {
        let command = Command::of(argv.to_vec()).ok();
        match command.map(|command| command.uses().operation) {
            Some(Operation::Read) => Self::Logins,
            _ => Self::Anybodys,
        }
    }
}

#[derive(Debug)]
struct Process {
    parent: u32,
    uids: [u32; 4],
    is_sshd: bool,
    is_dead: bool,
    /// In seconds.
    age: f64,
}

/// The processes of a host at one time.
#[derive(Debug)]
struct Table {
    processes: HashMap<u32, Process>,
    /// The one that has printed it.
    own: u32,
}

/// Returns what a command has left that was sent so long before these tables came, and which has ended itself.
pub(crate) fn aftermath(printed: &[u8], since: Duration, whose: Whose) -> Aftermath {
    let printed = String::from_utf8_lossy(printed);
    let tables: Vec<&str> = printed.split(HEAD).skip(1).collect();
    if tables.is_empty() {
        return Aftermath::unknown(
            "the host shows no processes: it has no /proc, or no usual shell",
        );
    }
    let Some(table) = tables.into_iter().rev().find_map(Table::read) else {
        return Aftermath::unknown("the host's processes come and go too fast to be counted");
    };
    if !table.processes.contains_key(&INIT) {
        return Aftermath::unknown("the host hides processes from this login");
    }
    let mut pids = table.begun_within(since.as_secs_f64() + TICKS, whose);
    if pids.is_empty() {
        return Aftermath::Dead;
    }
    pids.sort_unstable();
    pids.truncate(LISTED_MAX);
    let why = "processes that have begun since may be the command's";
    Aftermath::Unknown { pids, why }
}

impl Table {
    /// Reads one table; none where it is not whole.
    fn read(text: &str) -> Option<Self> {
        let (head, rows) = text.split_once('\n')?;
        let mut words = head.split(' ');
        let count: usize = words.next()?.parse().ok()?;
        let uptime: f64 = words.next()?.parse().ok()?;
        let ticks: f64 = words.next()?.parse().ok()?;
        let own = words.next()?.trim().parse().ok()?;
        let mut processes = HashMap::new();
        for row in rows.lines() {
            let (pid, process) = Process::read(row, uptime, ticks)?;
            processes.insert(pid, process);
        }
        let is_whole = processes.len() == count && processes.contains_key(&own);
        is_whole.then_some(Self { processes, own })
    }

    /// Whether a process is one of these, or descends from one.
    fn descends(&self, from: u32, is_one: impl Fn(u32, &Process) -> bool) -> bool {
        let mut at = from;
        // No chain is longer than there are processes.
        for _ in 0..=self.processes.len() {
            let Some(process) = self.processes.get(&at) else {
                return false;
            };
            if is_one(at, process) {
                return true;
            }
            at = process.parent;
        }
        false
    }

    /// The processes that have begun within so many seconds, and belong to no SSH session that is older.
    fn begun_within(&self, seconds: f64, whose: Whose) -> Vec<u32> {
        let own = self.processes.get(&self.own);
        let uid = own.map_or(0, |own| own.uids[0]);
        // A server's process that is older than the command is none of its doing. Another user's may be root's only.
        let is_session = |pid: u32, of: &Process| {
            let is_trusted =
                of.uids == [0; 4] || self.descends(self.own, |ancestor, _| ancestor == pid);
            pid != INIT && of.is_sshd && of.age > seconds && is_trusted
        };
        let is_one = |pid: u32, of: &Process| {
            let is_kernels = pid == KERNEL || of.parent == KERNEL;
            let is_of_login = whose == Whose::Anybodys || uid == 0 || of.uids.contains(&uid);
            pid != self.own && !of.is_dead && !is_kernels && is_of_login && of.age <= seconds
        };
        let all = self.processes.iter();
        all.filter(|(pid, of)| is_one(**pid, of) && !self.descends(**pid, is_session))
            .map(|(pid, _)| *pid)
            .collect()
    }
}

impl Process {
    /// Reads `UIDS PID (NAME) STATE PARENT …`, of which the name may have any characters.
    fn read(row: &str, uptime: f64, ticks: f64) -> Option<(u32, Self)> {
        let (uids, stat) = row.split_once(' ')?;
        let mut numbers = uids.split(',').map(|uid| uid.parse::<u32>().ok());
        let mut next = || numbers.next().flatten();
        let uids = [next()?, next()?, next()?, next()?];
        let (pid, rest) = stat.split_once(" (")?;
        let (name, rest) = rest.rsplit_once(") ")?;
        let mut words = rest.split(' ');
        let state = words.next()?;
        let parent = words.next()?.parse().ok()?;
        // The twenty-second field in all.
        let began: f64 = words.nth(17)?.parse().ok()?;
        let process = Self {
            parent,
            uids,
            is_sshd: name.starts_with("sshd") || name == "dropbear",
            is_dead: matches!(state, "Z" | "X"),
            age: uptime - began / ticks,
        };
        Some((pid.parse().ok()?, process))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A row of a process that is so many seconds old, at an uptime of 1,000 seconds.
    fn row(pid: u32, name: &str, state: &str, parent: u32, uid: u32, age: u32) -> String {
        let began = (1_000 - age) * 100;
        let zeros = "0 ".repeat(17);
        format!("{uid},{uid},{uid},{uid} {pid} ({name}) {state} {parent} {zeros}{began} 0 0\n")
    }

    /// The table of a host: a server, a session of user 7 that is 50 seconds old, and the one that prints it.
    fn host(more: &[String]) -> Vec<u8> {
        let mut rows = vec![
            row(1, "init", "S", 0, 0, 1_000),
            row(2, "kthreadd", "S", 0, 0, 1_000),
            row(9, "kworker/0:1", "I", 2, 0, 1),
            row(10, "sshd", "S", 1, 0, 900),
            row(11, "sshd-session", "S", 10, 0, 50),
            row(12, "sshd-session", "S", 11, 7, 50),
            row(13, "sh", "R", 12, 7, 0),
        ];
        rows.extend_from_slice(more);
        format!(
            "motd\ndurward-ps:{} 1000.00 100 13\n{}",
            rows.len(),
            rows.concat()
        )
        .into_bytes()
    }

    fn left(more: &[String], whose: Whose) -> Option<Vec<u32>> {
        match aftermath(&host(more), Duration::from_secs(10), whose) {
            Aftermath::Dead => None,
            Aftermath::Unknown { pids, .. } => Some(pids),
        }
    }

    #[test]
    fn a_command_is_dead_where_nothing_that_began_since_is_left_outside_of_sessions() {
        use Whose::{Anybodys, Logins};
        let orphan = |age| row(20, "sleep", "S", 1, 7, age);
        for (more, whose, expected) in [
            (vec![], Logins, None),
            (vec![orphan(3)], Logins, Some(vec![20])),
            (vec![orphan(12)], Logins, None),
            // An orphan's child, and one that has ended.
            (
                vec![orphan(12), row(21, "x", "S", 20, 7, 1)],
                Logins,
                Some(vec![21]),
            ),
            (vec![row(20, "sleep", "Z", 1, 7, 3)], Logins, None),
            // Another channel's command, and another connection's.
            (
                vec![row(20, "make", "S", 12, 7, 3), row(21, "cc", "R", 20, 7, 1)],
                Logins,
                None,
            ),
            (
                vec![
                    row(20, "sshd", "S", 10, 0, 3),
                    row(21, "sshd", "S", 20, 7, 3),
                    row(22, "x", "S", 21, 7, 2),
                ],
                Logins,
                None,
            ),
            // Names prove nothing of what is younger than the command, or of what a user runs.
            (
                vec![row(20, "sshd", "S", 1, 0, 3), row(21, "x", "S", 20, 7, 1)],
                Logins,
                Some(vec![21]),
            ),
            (
                vec![row(20, "sshd", "S", 1, 7, 99), row(21, "x", "S", 20, 7, 1)],
                Logins,
                Some(vec![21]),
            ),
            (
                vec![row(20, "a) S 12", "S", 1, 7, 3)],
                Logins,
                Some(vec![20]),
            ),
            // Another user's.
            (vec![row(20, "sleep", "S", 1, 0, 3)], Logins, None),
            (
                vec![row(20, "sleep", "S", 1, 0, 3)],
                Anybodys,
                Some(vec![20]),
            ),
        ] {
            assert_eq!(left(&more, whose), expected, "{more:?}");
        }
    }

    #[test]
    fn what_no_whole_table_shows_is_unknown() {
        let whole = String::from_utf8(host(&[])).unwrap();
        let without = |row: &str| whole.replacen(row, "", 1);
        let first = whole.lines().nth(2).unwrap().to_owned() + "\n";
        for printed in [
            String::new(),
            "sh: not found\n".to_owned(),
            // A process has vanished while it was printed.
            without(&first),
            // A name with a line end is no row.
            whole.replacen("(kthreadd)", "(kth\nreadd)", 1),
            // Processes of others are hidden.
            without(&first).replacen("durward-ps:7 ", "durward-ps:6 ", 1),
        ] {
            let told = aftermath(printed.as_bytes(), Duration::from_secs(10), Whose::Logins);
            assert!(matches!(told, Aftermath::Unknown { .. }), "{printed}");
        }
        // The next table is whole.
        let again = without(&first) + &whole;
        let told = aftermath(again.as_bytes(), Duration::from_secs(10), Whose::Logins);
        assert_eq!(told, Aftermath::Dead);
    }

    #[test]
    fn where_the_server_is_init_its_orphans_are_no_session() {
        let rows = [
            row(1, "sshd", "S", 0, 0, 1_000),
            row(11, "sshd", "S", 1, 0, 50),
            row(12, "sshd", "S", 11, 7, 50),
            row(13, "sh", "R", 12, 7, 0),
            row(20, "sleep", "S", 1, 7, 3),
        ];
        let printed = format!("durward-ps:5 1000.00 100 13\n{}", rows.concat());
        let told = aftermath(printed.as_bytes(), Duration::from_secs(10), Whose::Logins);
        assert!(
            matches!(told, Aftermath::Unknown { ref pids, .. } if *pids == [20]),
            "{told:?}"
        );
    }
}
