//! What a server executes is what the gate recorded as allowed: the same tool, path and arguments.
//!
//! Frames that two readers may read in two ways go to servers on the SDKs that people use: at the
//! server itself, through `durward run`, and through `durward serve`. Each server writes down what it
//! executes. Run by `make differential`; `FRAMES` and `SEED` choose other frames.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::disallowed_methods,
    clippy::print_stderr,
    reason = "a test that panics has failed; it reads its environment and waits for processes"
)]

mod edge;
mod forwarded;
mod judge;
mod place;
mod servers;
mod written;

use std::time::{SystemTime, UNIX_EPOCH};

use mocks::ambiguous::{Ambiguous, Frames};

use edge::Edge;
use judge::Verdict;
use place::Place;
use servers::Server;

/// How many frames there are at least.
const FRAMES_MIN: usize = 400;

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// The frames of this run: of a seed that no run had before, unless one is given.
fn frames() -> Vec<Ambiguous> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let seed = number("SEED").unwrap_or(u64::from(now.subsec_nanos()));
    let wanted = number("FRAMES").and_then(|n| usize::try_from(n).ok());
    let wanted = wanted.unwrap_or(10 * Frames::forms()).max(FRAMES_MIN);
    eprintln!("{wanted} frames of SEED={seed}");
    Frames::new(seed).take(wanted).collect()
}

/// The frames of the short form: two of each form, the same in every run.
fn few_frames() -> Vec<Ambiguous> {
    const SEED: u64 = 2_211;
    Frames::new(SEED).take(2 * Frames::forms()).collect()
}

/// Sends the frames to one server by one edge.
fn drive(server: &Server, edge: Edge, frames: &[Ambiguous]) -> Verdict {
    let place = Place::new();
    let restarts = edge.drive(server, &place, frames);
    let verdict = judge::judge(&place, edge, frames);
    eprintln!(
        "{:24} {:7} restarts {restarts:3}  {verdict}",
        server.name,
        edge.name()
    );
    verdict
}

/// At least three in ten frames reach the tool: else the others prove nothing.
fn enough(server: &Server, verdict: &Verdict, frames: &[Ambiguous]) {
    let (executed, all) = (verdict.executed, frames.len());
    assert!(
        executed * 10 >= all * 3,
        "{}: {executed} of {all} frames execute",
        server.name
    );
}

#[test]
#[ignore = "make differential"]
fn servers_execute_a_fair_part_of_the_frames() {
    let frames = frames();
    for server in servers::all() {
        let verdict = drive(&server, Edge::Direct, &frames);
        enough(&server, &verdict, &frames);
        assert!(
            verdict.denied > 0,
            "{}: without a gate nothing denied is executed, so nothing is proven",
            server.name
        );
    }
}

fn nothing_but_what_is_allowed(edge: Edge, frames: &[Ambiguous]) {
    let mut red = Vec::new();
    for server in servers::all() {
        let verdict = drive(&server, edge, frames);
        enough(&server, &verdict, frames);
        if !verdict.differences.is_empty() {
            red.push(format!("{}: {}", server.name, verdict.in_full()));
        }
    }
    assert!(
        red.is_empty(),
        "executed and not recorded as allowed:\n{}",
        red.join("\n")
    );
}

#[test]
#[ignore = "make differential"]
fn of_frames_as_they_are_written_servers_execute_what_the_scan_says() {
    nothing_but_what_is_allowed(Edge::Written, &frames());
}

#[test]
#[ignore = "make differential"]
fn run_lets_nothing_be_executed_but_what_it_recorded_as_allowed() {
    nothing_but_what_is_allowed(Edge::Run, &frames());
}

#[test]
#[ignore = "make differential"]
fn serve_lets_nothing_be_executed_but_what_it_recorded_as_allowed() {
    nothing_but_what_is_allowed(Edge::Serve, &frames());
}

#[test]
fn j01_to_j04_run_lets_few_frames_execute_nothing_but_what_it_recorded_as_allowed() {
    nothing_but_what_is_allowed(Edge::Run, &few_frames());
}

#[test]
fn j01_to_j04_serve_lets_few_frames_execute_nothing_but_what_it_recorded_as_allowed() {
    nothing_but_what_is_allowed(Edge::Serve, &few_frames());
}

/// The frames and the judge of the other tests prove something: a gate that judges its own reading and
/// forwards the bytes as they came is caught, before the servers whose readers fold names or cut lines
/// at a carriage return.
#[test]
fn j01_to_j04_with_canonical_frames_switched_off_it_goes_red() {
    let frames = few_frames();
    for server in servers::all() {
        let verdict = drive(&server, Edge::Forwarded, &frames);
        let reads_otherwise = ["mcp-go", "official Python SDK"].contains(&server.name);
        assert!(
            !reads_otherwise || (!verdict.differences.is_empty() && verdict.denied > 0),
            "{}: nothing is executed but what was judged: {verdict}",
            server.name
        );
    }
}
