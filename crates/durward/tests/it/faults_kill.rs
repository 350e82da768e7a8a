//! `kill -9` at random moments under load: the journal stays sound, and nothing happened that it does not
//! know of.

use std::collections::HashSet;
use std::fs;
use std::io::{Read, Write};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use crate::support::guarded::{Place, binary, eventually, marked, pause};
use crate::support::refusals::is_passed;
use serde_json::{Value, json};

const WORKERS: u64 = 4;
/// How often is killed, unless `KILLS` says otherwise.
const KILLS: u64 = 300;
/// A place serves so many runs, each beside what the killed ones before it left.
const RUNS_PER_PLACE: u64 = 10;
/// The kill comes within so many milliseconds of the start, or of the first answers.
const MOMENT_MS_MAX: u64 = 100;
/// Calls that wait for their answers at any time.
const UNDER_WAY_MAX: u64 = 64;
const MARK: &str = "DURWARD_KILL_MARK";

/// SplitMix64 (Steele, Lea, Flood 2014).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}

/// What one killed run was seen to do, by the ids of calls.
#[derive(Default)]
struct Seen {
    replied: HashSet<String>,
    counted: HashSet<String>,
    decided: HashSet<String>,
    torn: bool,
}

/// Starts a run under load and kills it `moment_ms` after its start, or after its first answers; ids begin
/// at `first`.
fn killed_run(place: &Place, first: u64, amid_calls: bool, moment_ms: u64) -> Seen {
    let mark = format!(
        "{}-{first}",
        place.dir.file_name().unwrap().to_str().unwrap()
    );
    let mock = place.mock(&["echo"]);
    let words: Vec<&str> = mock.iter().map(String::as_str).collect();
    let pair = format!("{MARK}={mark}");
    let mut child = Command::new(binary())
        .args(place.run_args(&["--env", &pair], &words))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    let mut output = child.stdout.take().unwrap();
    let answers = Arc::new(AtomicU64::new(0));
    let heard = Arc::clone(&answers);
    let writer = thread::spawn(move || {
        let hello = json!({"jsonrpc":"2.0","id":"hello","method":"initialize","params":{
            "protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}});
        let mut text = format!("{hello}\n");
        for number in first.. {
            text.push_str(&format!(
                "{{\"jsonrpc\":\"2.0\",\"id\":{number},\"method\":\"tools/call\",\"params\":{{\"name\":\"echo\",\"arguments\":{{\"text\":\"{number}\"}}}}}}\n"
            ));
            if input.write_all(text.as_bytes()).is_err() {
                return;
            }
            text.clear();
            // No more under way than a busy client would have; the end of answers ends this too.
            while number - first >= heard.load(Ordering::Relaxed).saturating_add(UNDER_WAY_MAX) {
                pause(1);
            }
        }
    });
    let counted = Arc::clone(&answers);
    let reader = thread::spawn(move || {
        let (mut text, mut piece) = (Vec::new(), [0; 4096]);
        while let Ok(length @ 1..) = output.read(&mut piece) {
            text.extend_from_slice(&piece[..length]);
            let lines = piece[..length].iter().filter(|b| **b == b'\n').count();
            counted.fetch_add(lines as u64, Ordering::Relaxed);
        }
        counted.store(u64::MAX, Ordering::Relaxed);
        text
    });
    if amid_calls {
        eventually("calls are answered", || answers.load(Ordering::Relaxed) > 2);
    }
    pause(moment_ms);
    child.kill().unwrap();
    child.wait().unwrap();
    writer.join().unwrap();
    let replies = reader.join().unwrap();
    // What is still in the server's pipe may yet be counted, until its watcher ends it.
    eventually("the server is gone", || marked(MARK, &mark).is_empty());
    let mut seen = Seen {
        replied: ids_of_replies(&replies),
        ..Seen::default()
    };
    for call in whole_lines(&fs::read(place.path("count")).unwrap_or_default()) {
        let number = call["arguments"]["text"].as_str().unwrap().to_owned();
        if number.parse::<u64>().unwrap() >= first {
            seen.counted.insert(number);
        }
    }
    if let Some(segment) = place.segments().last() {
        let bytes = fs::read(segment).unwrap();
        seen.torn = !bytes.is_empty() && !bytes.ends_with(b"\n");
        for record in whole_lines(&bytes) {
            let body = &record["body"];
            if body["kind"] == "decision" && body["decision"] == "allow" {
                let id = body["request_id"].as_str().unwrap().to_owned();
                seen.decided.insert(id);
            }
        }
    }
    seen
}

fn whole_lines(bytes: &[u8]) -> Vec<Value> {
    let whole = bytes
        .iter()
        .rposition(|b| *b == b'\n')
        .map_or(0, |at| at + 1);
    bytes[..whole]
        .split(|b| *b == b'\n')
        .filter(|line| !line.is_empty())
        .map(|line| serde_json::from_slice(line).unwrap())
        .collect()
}

/// Ids of tool calls that were answered with a result; half a line is no answer.
fn ids_of_replies(bytes: &[u8]) -> HashSet<String> {
    whole_lines(bytes)
        .into_iter()
        .filter(|reply| reply["id"].is_number() && is_passed(reply))
        .map(|reply| reply["id"].to_string())
        .collect()
}

#[derive(Default)]
struct Tally {
    kills: u64,
    under_load: u64,
    torn: u64,
    replies: usize,
}

fn worker(number: u64, kills: u64) -> Tally {
    let mut random = Random(0xd00d ^ (number << 32));
    let mut tally = Tally::default();
    let mut place = Place::new();
    for kill in 0..kills {
        if kill % RUNS_PER_PLACE == 0 {
            place = Place::new();
        }
        let first = (kill + 1) * 1_000_000;
        let moment_ms = random.next() % MOMENT_MS_MAX;
        let seen = killed_run(&place, first, kill % 2 == 0, moment_ms);
        let known = |ids: &HashSet<String>| ids.is_subset(&seen.decided);
        assert!(
            known(&seen.replied),
            "worker {number}, kill {kill}: a reply without its decision"
        );
        assert!(
            known(&seen.counted),
            "worker {number}, kill {kill}: a call reached the server without its decision"
        );
        assert!(seen.replied.is_subset(&seen.counted));
        check_journal(&place, &seen);
        tally.kills += 1;
        tally.under_load += u64::from(!seen.replied.is_empty());
        tally.torn += u64::from(seen.torn);
        tally.replies += seen.replied.len();
    }
    tally
}

/// Nothing is wrong, and a torn last line is named.
fn check_journal(place: &Place, seen: &Seen) {
    let Some(last) = place.segments().pop() else {
        return;
    };
    let report = place.verified();
    assert_eq!(report["findings"].as_array().unwrap().len(), 0, "{report}");
    let name = last.file_name().unwrap().to_str().unwrap();
    let named = report["notes"]
        .as_array()
        .unwrap()
        .iter()
        .any(|note| note["note"] == "torn_tail" && note["file"] == name);
    assert_eq!(named, seen.torn, "{report}");
}

#[test]
fn kill_9_at_many_random_moments() {
    let kills = std::env::var("KILLS").map_or(KILLS, |kills| kills.parse().unwrap());
    let each = kills.div_ceil(WORKERS);
    let workers: Vec<_> = (0..WORKERS)
        .map(|number| thread::spawn(move || worker(number, each)))
        .collect();
    let mut sum = Tally::default();
    for handle in workers {
        let tally = handle.join().unwrap();
        sum.kills += tally.kills;
        sum.under_load += tally.under_load;
        sum.torn += tally.torn;
        sum.replies += tally.replies;
    }
    eprintln!(
        "{} kills, {} of them amid calls, {} torn tails, {} replies",
        sum.kills, sum.under_load, sum.torn, sum.replies
    );
    assert_eq!(sum.kills, WORKERS * each);
    assert!(
        sum.under_load >= sum.kills / 2,
        "too few kills amid calls: {}",
        sum.under_load
    );
}
