//! A server with nothing to do sleeps, and wakes for what happens.

use std::fs;
use std::time::Duration;

use crate::support::guarded::eventually;
use crate::support::refusals::told;
use crate::support::serving::{Served, call};

/// How long it is watched.
const WINDOW: Duration = Duration::from_secs(2);
/// How often its threads may wake within that. One that looks a few times a second wakes 20 times.
const WAKES_MAX: u64 = 6;

/// How often the threads of a process have gone to sleep.
fn sleeps(process: u32) -> u64 {
    let threads = fs::read_dir(format!("/proc/{process}/task")).unwrap();
    let of_thread = |status: String| {
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
        line.map_or(0, |count| count.trim().parse().unwrap())
    };
    threads
        .flatten()
        .filter_map(|thread| fs::read_to_string(thread.path().join("status")).ok())
        .map(of_thread)
        .sum()
}

fn falls_asleep(served: &Served) {
    let process = served.process.id();
    eventually("the server sleeps", || {
        let before = sleeps(process);
        std::thread::sleep(WINDOW);
        // A thread that ended meanwhile took its count with it.
        sleeps(process)
            .checked_sub(before)
            .is_some_and(|wakes| wakes <= WAKES_MAX)
    });
}

#[test]
fn a_server_with_nothing_to_do_sleeps_and_wakes_for_rules_and_keys() {
    let served = Served::start(&[]);
    falls_asleep(&served);
    let session = served.open("2025-11-25");
    let post = |id: &str| served.post(Some(&session), &call(id, "x"));
    assert!(told(&post("1").json()).is_null());
    assert_eq!(
        served
            .send("DELETE", "/mcp/echo", &[("mcp-session-id", &session)], "")
            .status,
        204
    );
    falls_asleep(&served);
    served.place.write_policy(r#"{"rules":[]}"#);
    let session = served.open("2025-11-25");
    eventually("the changed rules are in force", || {
        let answer = served.post(Some(&session), &call("2", "x")).json();
        told(&answer)["reason"] == "no_rule_allows"
    });
    let words = ["--no-config", "--state-dir", "state", "keys", "create", "a"];
    let made = served.place.durward(&words);
    assert!(made.status.success(), "{made:?}");
    eventually("nobody comes in without a key", || {
        served.post(None, &call("3", "x")).status == 401
    });
    assert_eq!(served.stop().0, Some(0));
}
