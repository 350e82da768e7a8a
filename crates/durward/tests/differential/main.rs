//! What a server executes is what the gate recorded as allowed: the same tool, paths and arguments.
//!
//! Frames that two readers may read in two ways, and calls with unusual arguments, go to servers on the
//! SDKs that people use: at the server itself, through `durward run`, and through `durward serve`, over
//! standard streams and HTTP, in each revision that the SDK speaks. Each server writes down what it
//! executes. Run by `make differential`; `FRAMES` and `SEED` choose other frames.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    clippy::print_stderr,
    reason = "a test that panics has failed; it reads its environment and waits for processes"
)]

mod coerced;
mod edge;
mod forged;
mod forwarded;
mod http;
mod judge;
mod lines;
mod listed;
mod place;
#[expect(dead_code, reason = "only the other tests start the lab")]
#[path = "../it/support/program.rs"]
mod program;
mod same;
mod servers;
mod short;
mod subscribed;
mod written;

use std::time::{SystemTime, UNIX_EPOCH};

use mocks::ambiguous::{AmbiguousFrame, ArgumentStream, FrameStream};

use edge::{Edge, Way};
use judge::Verdict;
use place::Place;
use servers::Server;

/// How many frames there are at least.
const FRAMES_MIN: usize = 400;

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// The seed of this run, which no run had before, unless one is given; and how many frames it takes.
fn wanted() -> (u64, usize) {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let seed = number("SEED").unwrap_or(u64::from(now.subsec_nanos()));
    let wanted = number("FRAMES").and_then(|n| usize::try_from(n).ok());
    let wanted = wanted.unwrap_or(8 * FrameStream::forms()).max(FRAMES_MIN);
    eprintln!(
        "{wanted} frames and {} forms of arguments of SEED={seed}",
        ArgumentStream::forms()
    );
    (seed, wanted)
}

/// Sends the frames to one server by one way.
fn drive(server: &Server, way: Way, frames: &[AmbiguousFrame]) -> Verdict {
    let place = Place::new();
    let restarts = way.drive(server, &place, frames);
    let verdict = judge::judge(&place, way, frames);
    eprintln!("{:20} {way} restarts {restarts:3}  {verdict}", server.name);
    verdict
}

/// At least three in ten frames reach the tool: else the others prove nothing.
fn enough(server: &Server, way: Way, verdict: &Verdict, frames: &[AmbiguousFrame]) {
    let (executed, all) = (verdict.executed, frames.len());
    assert!(
        executed * 10 >= all * 3,
        "{} by {way}: {executed} of {all} frames execute",
        server.name
    );
}

/// Drives a server by a way, and adds to `red` what it executed and nobody allowed.
fn hold(server: &Server, way: Way, frames: &[AmbiguousFrame], red: &mut Vec<String>) {
    let verdict = drive(server, way, frames);
    enough(server, way, &verdict, frames);
    if !verdict.differences.is_empty() {
        red.push(format!("{} by {way}: {}", server.name, verdict.in_full()));
    }
}

fn none(red: &[String]) {
    assert!(
        red.is_empty(),
        "executed and not recorded as allowed:\n{}",
        red.join("\n")
    );
}

#[test]
#[ignore = "make differential"]
fn servers_execute_a_fair_part_of_the_frames() {
    let (seed, count) = wanted();
    let way = Edge::Direct.plainly();
    for server in servers::all() {
        for frames in [
            way.frames(seed, count),
            way.arguments(seed, ArgumentStream::forms()),
        ] {
            let verdict = drive(&server, way, &frames);
            enough(&server, way, &verdict, &frames);
            assert!(
                verdict.denied > 0,
                "{}: without a gate nothing denied is executed, so nothing is proven",
                server.name
            );
        }
    }
}

#[test]
#[ignore = "make differential"]
fn of_frames_as_they_are_written_servers_execute_what_the_scan_says() {
    let (seed, count) = wanted();
    let way = Edge::Written.plainly();
    let mut red = Vec::new();
    for server in servers::all() {
        hold(&server, way, &way.frames(seed, count), &mut red);
    }
    none(&red);
}

/// Every server, by every way that it speaks, with frames that no run before had.
#[test]
#[ignore = "make differential"]
fn nothing_is_executed_but_what_was_recorded_as_allowed() {
    let (seed, count) = wanted();
    let mut red = Vec::new();
    for server in servers::all() {
        for way in Way::guarded(&server) {
            hold(&server, way, &way.frames(seed, count), &mut red);
            let calls = way.arguments(seed, ArgumentStream::forms());
            hold(&server, way, &calls, &mut red);
        }
    }
    none(&red);
}
