//! Sampling of threads without `perf`: which run, and in which system call the others wait. It reads a state, no stack:
//! running threads are not distinguished.

use super::{SPAN_MAX, goes_on};
use crate::processes;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

/// How often the threads are looked at.
const PERIOD: Duration = Duration::from_millis(2);
/// After how many looks it is looked for new processes.
const LOOKS_PER_SEARCH: u64 = 50;
/// Most distinct places, over all threads.
const PLACES_MAX: usize = 1_000;
/// Lines of the page.
const LINES_MAX: usize = 70;
/// The place of a thread that has or wants a core.
const RUNNING: &str = "running, or ready to";

/// A thread in a place: its process, its name, if it was seen.
type Place = (u32, String, String);

/// Looks until it is to end; gives the page.
pub(super) fn look(roots: &[u32], stopped: &Receiver<()>) -> Result<String, String> {
    let (since, mut looks, mut pids) = (Instant::now(), 0_u64, Vec::new());
    let mut seen: BTreeMap<Place, u64> = BTreeMap::new();
    let mut commands: BTreeMap<u32, String> = BTreeMap::new();
    loop {
        if looks.is_multiple_of(LOOKS_PER_SEARCH) {
            pids = roots
                .iter()
                .flat_map(|root| processes::numbers(*root))
                .collect();
            for pid in &pids {
                let named = || processes::member(*pid).map(|found| found.short());
                commands
                    .entry(*pid)
                    .or_insert_with(|| named().unwrap_or_default());
            }
        }
        looks += 1;
        for place in pids.iter().flat_map(|pid| threads(*pid)) {
            if seen.len() < PLACES_MAX || seen.contains_key(&place) {
                *seen.entry(place).or_default() += 1;
            }
        }
        if since.elapsed() >= SPAN_MAX || !goes_on(stopped, PERIOD) {
            break;
        }
    }
    if seen.is_empty() {
        return Err("no thread was there to look at".into());
    }
    Ok(page(&seen, &commands, looks, since.elapsed()))
}

/// Where each thread of a process is now.
fn threads(pid: u32) -> Vec<Place> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task"));
    let place = |task: fs::DirEntry| {
        let read = |name: &str| fs::read_to_string(task.path().join(name)).ok();
        let (name, state) = name_and_state(&read("stat")?)?;
        let place = match state {
            'R' => RUNNING.to_owned(),
            _ => waiting(read("wchan").as_deref(), read("syscall").as_deref(), state),
        };
        Some((pid, name, place))
    };
    tasks
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(place)
        .collect()
}

/// Returns a thread's name, which may hold anything, and its state, of the line in `stat`.
fn name_and_state(stat: &str) -> Option<(String, char)> {
    let (_, behind) = stat.split_once('(')?;
    let (name, behind) = behind.rsplit_once(')')?;
    Some((name.to_owned(), behind.trim_start().chars().next()?))
}

/// Returns the place where a thread waits: the kernel's function if the system reports it, else the call's number.
fn waiting(wchan: Option<&str>, syscall: Option<&str>, state: char) -> String {
    let site = wchan
        .map(str::trim)
        .filter(|site| !matches!(*site, "" | "0"));
    let number = syscall.and_then(|line| line.split_whitespace().next());
    match (site, number) {
        (Some(site), _) => format!("waiting in {site}"),
        (None, Some(number)) if number.parse::<u64>().is_ok() => {
            format!("waiting in call {number} of the system")
        }
        _ => format!("waiting, state {state}"),
    }
}

fn page(
    seen: &BTreeMap<Place, u64>,
    commands: &BTreeMap<u32, String>,
    looks: u64,
    took: Duration,
) -> String {
    let mut page = format!(
        "by looking at /proc {looks} times in {:.1} s: share of looks by thread and place. A state, not a stack: perf, where it is \
installed, tells what runs.\n",
        took.as_secs_f64()
    );
    let mut left = LINES_MAX;
    for (pid, command) in commands {
        let mut rows: Vec<(&Place, &u64)> = seen.iter().filter(|((at, ..), _)| at == pid).collect();
        rows.sort_by(|(_, left), (_, right)| right.cmp(left));
        if rows.is_empty() || left == 0 {
            continue;
        }
        // Writing to a string does not fail.
        let _ = writeln!(page, "\n{command} ({pid})");
        for ((_, thread, place), count) in rows.into_iter().take(left) {
            let share = *count as f64 * 100.0 / looks.max(1) as f64;
            let _ = writeln!(page, "{share:7.2} %  {thread:<16}  {place}");
            left -= 1;
        }
    }
    page
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::sync_channel;

    #[test]
    fn lines_of_proc() {
        let check = |line: &str, expect: Option<(&str, char)>| {
            let expect = expect.map(|(name, state)| (name.to_owned(), state));
            assert_eq!(name_and_state(line), expect, "{line}");
        };
        check("12 (durward) S 1 2", Some(("durward", 'S')));
        check("12 (a) (b) R 1", Some(("a) (b", 'R')));
        check("12 (a)", None);
        check("", None);
        for (wchan, syscall, expect) in [
            (Some("ep_poll"), Some("232 0x4"), "waiting in ep_poll"),
            (
                Some("0"),
                Some("232 0x4"),
                "waiting in call 232 of the system",
            ),
            (None, Some("running"), "waiting, state S"),
            (Some(""), None, "waiting, state S"),
        ] {
            assert_eq!(waiting(wchan, syscall, 'S'), expect);
        }
    }

    #[test]
    fn a_sleeping_process_waits_and_is_told_by_name() {
        let mut child = std::process::Command::new("sleep")
            .arg("60")
            .spawn()
            .unwrap();
        let (stop, stopped) = sync_channel(1);
        let root = child.id();
        let looking = std::thread::spawn(move || look(&[root], &stopped));
        // Enough samples that a first one before exec is not the only one.
        while fs::read_to_string(format!("/proc/{root}/comm")).unwrap() != "sleep\n" {
            std::thread::yield_now();
        }
        std::thread::park_timeout(Duration::from_millis(100));
        drop(stop);
        let page = looking.join().unwrap().unwrap();
        assert!(page.contains("  sleep             waiting"), "{page}");
        child.kill().unwrap();
        child.wait().unwrap();
        let (_stop, stopped) = sync_channel(1);
        drop(_stop);
        assert!(look(&[root], &stopped).is_err());
    }

    #[test]
    fn pages_and_places_have_an_end() {
        let seen: BTreeMap<Place, u64> = (0..PLACES_MAX as u64)
            .map(|at| ((7, format!("thread{at}"), RUNNING.into()), at))
            .collect();
        let commands = BTreeMap::from([(7, "durward run".into())]);
        let page = page(&seen, &commands, 1_000, Duration::from_secs(2));
        assert_eq!(page.lines().count(), LINES_MAX + 3);
        assert!(page.contains("  99.90 %  thread999"), "{page}");
    }
}
