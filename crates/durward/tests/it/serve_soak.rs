//! Many clients for a long time, with a server behind Durward that is killed in between: each call is answered
//! exactly once, is in the journal exactly once, and reaches the server at most once unless it only reads.
//! `make soak` runs the long form.

use std::collections::HashMap;
use std::fs;
use std::io::{BufRead, BufReader};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use crate::support::guarded::{Place, eventually, pause};
use crate::support::program::lab_binary;
use crate::support::served::{Served, Site, ready, stdio_mock};
use mcp::client::Era;
use serde_json::{Value, json};

/// How much a soak does.
#[derive(Clone, Copy)]
struct Scale {
    clients: u64,
    calls: u64,
    restarts: u64,
    /// Whether it is long enough for memory to have settled in its first quarter.
    weighs: bool,
}

const SHORT: Scale = Scale {
    clients: 8,
    calls: 250,
    restarts: 2,
    weighs: false,
};
const LONG: Scale = Scale {
    clients: 32,
    calls: 10_000,
    restarts: 5,
    weighs: true,
};
/// How much more memory the last quarter may hold than the first, in KiB.
const GROWTH_KIB_MAX: u64 = 2 * 1024;
/// How often memory is looked at.
const WEIGH_MS: u64 = 50;

/// What became of calls, by the text they carried.
#[derive(Default)]
struct Ledger {
    answered: HashMap<String, bool>,
}

/// How the server behind Durward is killed and comes back.
enum Victim {
    /// A child of Durward's, which starts it again.
    Child,
    /// A server of its own, which we start again at its address.
    Site(Option<Site>),
}

impl Victim {
    fn restart(&mut self, place: &Place) {
        match self {
            Self::Child => {
                let mut killed = 0;
                eventually("a child to kill", || {
                    killed = kill_children(place);
                    killed > 0
                });
            }
            Self::Site(site) => {
                let old = site.take().unwrap();
                let address = old.address().to_owned();
                old.kill();
                *site = Some(start_site(place, &address));
            }
        }
    }
}

fn start_site(place: &Place, address: &str) -> Site {
    let count = place.path("count").to_str().unwrap().to_owned();
    Site::start(place, &["echo", "--count", &count], address)
}

/// Kills the mocks that count into this place; how many there were.
fn kill_children(place: &Place) -> usize {
    let count = place.path("count").to_str().unwrap().to_owned();
    let begins = format!("{}\0mock\0", lab_binary());
    let mut killed = 0;
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let Ok(line) = fs::read_to_string(entry.path().join("cmdline")) else {
            continue;
        };
        let pid = entry.file_name().to_str().and_then(|n| n.parse().ok());
        let Some(pid) = pid.and_then(rustix::process::Pid::from_raw) else {
            continue;
        };
        if line.starts_with(&begins) && line.contains(&count) {
            let signal = rustix::process::Signal::KILL;
            killed += usize::from(rustix::process::kill_process(pid, signal).is_ok());
        }
    }
    killed
}

/// The calls of one client: every other one only reads.
fn call_all(url: &str, client: u64, calls: u64, done: &AtomicU64) -> Ledger {
    let eras = [
        Era::Legacy("2025-11-25"),
        Era::Modern,
        Era::Legacy("2025-06-18"),
    ];
    let era = eras[usize::try_from(client).unwrap() % eras.len()];
    let mut connection = ready(url, era);
    let mut ledger = Ledger::default();
    for call in 0..calls {
        let tool = if call % 2 == 0 { "echo" } else { "record" };
        let text = format!("{tool}-{client}-{call}");
        // The client itself checks the status, the id, and that there is no second answer.
        let reply = connection
            .call_tool(tool, json!({"text": text}))
            .unwrap_or_else(|error| panic!("{text} got no answer: {error}"));
        let answered = match reply.error() {
            None => {
                assert_eq!(reply.text(), Some(text.as_str()));
                true
            }
            Some(error) => {
                let message = error["message"].as_str().unwrap_or_default();
                assert!(!message.is_empty(), "{text}: {error}");
                false
            }
        };
        assert!(ledger.answered.insert(text, answered).is_none());
        done.fetch_add(1, Ordering::Relaxed);
    }
    connection.end_session().unwrap();
    ledger
}

/// Memory of a process now, in KiB.
fn resident_kib(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:"));
    let number = line.and_then(|line| line.split_whitespace().nth(1));
    number.unwrap().parse().unwrap()
}

/// Weighs a process by the share of work done, until it is over.
fn weigh(pid: u32, done: &AtomicU64, all: u64, over: &AtomicBool) -> [Vec<u64>; 4] {
    let mut quarters: [Vec<u64>; 4] = Default::default();
    while !over.load(Ordering::Relaxed) {
        let quarter = (done.load(Ordering::Relaxed) * 4 / all).min(3);
        quarters[usize::try_from(quarter).unwrap()].push(resident_kib(pid));
        pause(WEIGH_MS);
    }
    quarters
}

fn soak(scale: Scale, place: &Place, server: &Value, mut victim: Victim) {
    let served = Served::start(place, &json!({"echo": server}));
    let url = served.url("echo");
    let (done, over, all) = (
        AtomicU64::new(0),
        AtomicBool::new(false),
        scale.clients * scale.calls,
    );
    let (ledgers, quarters) = thread::scope(|scope| {
        let clients: Vec<_> = (0..scale.clients)
            .map(|client| {
                let (url, done) = (&url, &done);
                scope.spawn(move || call_all(url, client, scale.calls, done))
            })
            .collect();
        let pid = served.pid();
        let (done, over) = (&done, &over);
        let weighing = scope.spawn(move || weigh(pid, done, all, over));
        for restart in 1..=scale.restarts {
            let due = all * restart / (scale.restarts + 1);
            eventually("the load goes on", || {
                done.load(Ordering::Relaxed) >= due || clients.iter().any(|c| c.is_finished())
            });
            victim.restart(place);
        }
        let ledgers: Vec<Ledger> = clients.into_iter().map(|c| c.join().unwrap()).collect();
        over.store(true, Ordering::Relaxed);
        (ledgers, weighing.join().unwrap())
    });
    assert_eq!(served.end(), Some(0));
    judge(place, &ledgers, all);
    let mean = |quarter: &[u64]| quarter.iter().sum::<u64>() / quarter.len().max(1) as u64;
    let (first, last) = (mean(&quarters[0]), mean(&quarters[3]));
    eprintln!("resident: first quarter {first} KiB, last {last} KiB");
    if scale.weighs {
        assert!(
            last <= first + GROWTH_KIB_MAX,
            "{first} KiB, then {last} KiB"
        );
    }
}

/// Compares what clients saw with what the server saw and what the journal holds.
fn judge(place: &Place, ledgers: &[Ledger], all: u64) {
    let mut arrived: HashMap<String, u64> = HashMap::new();
    for call in place.counted() {
        let text = call["arguments"]["text"].as_str().unwrap().to_owned();
        *arrived.entry(text).or_default() += 1;
    }
    let mut failed = 0;
    for (text, answered) in ledgers.iter().flat_map(|ledger| &ledger.answered) {
        let times = arrived.remove(text).unwrap_or_default();
        assert!(
            times >= 1 || !answered,
            "{text} was answered and never arrived"
        );
        assert!(
            times <= 1 || text.starts_with("echo"),
            "{text} arrived {times} times"
        );
        failed += u64::from(!answered);
    }
    assert!(
        arrived.is_empty(),
        "the server saw calls that nobody made: {arrived:?}"
    );
    let answered: usize = ledgers.iter().map(|ledger| ledger.answered.len()).sum();
    assert_eq!(answered as u64, all);
    eprintln!("{all} calls, {failed} answered with an error while the server was away");
    // A few calls are lost with each restart, not the time after it.
    assert!(failed < all / 10, "{failed} of {all} calls failed");
    place.verified();
    let mut decisions = 0;
    for segment in place.segments() {
        let lines = BufReader::new(fs::File::open(segment).unwrap()).lines();
        decisions += lines
            .map(Result::unwrap)
            .filter(|line| line.contains(r#""kind":"decision""#) && line.contains("tools/call"))
            .count() as u64;
    }
    assert_eq!(decisions, all, "decisions in the journal");
}

fn over_stdio(scale: Scale) {
    let place = Place::new();
    let server = stdio_mock(&place, "echo");
    soak(scale, &place, &server, Victim::Child);
}

fn over_http(scale: Scale) {
    let place = Place::new();
    let port = mocks::ports::reserved().unwrap();
    let site = start_site(&place, &format!("127.0.0.1:{port}"));
    let server = json!({"url": site.url});
    soak(scale, &place, &server, Victim::Site(Some(site)));
}

#[test]
fn each_call_is_answered_once_while_the_child_is_killed() {
    over_stdio(SHORT);
}

#[test]
fn each_call_is_answered_once_while_the_server_is_killed() {
    over_http(SHORT);
}

#[test]
#[ignore = "long: make soak"]
fn long_each_call_is_answered_once_while_the_child_is_killed() {
    over_stdio(LONG);
}

#[test]
#[ignore = "long: make soak"]
fn long_each_call_is_answered_once_while_the_server_is_killed() {
    over_http(LONG);
}
