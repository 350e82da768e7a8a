//! The short form, in every test run: few frames, the same each time.

use mocks::ambiguous::{ArgumentStream, FrameStream};
use wire::Revision;

use crate::edge::{Edge, Transport, Way};
use crate::{drive, hold, none, servers};

const SEED: u64 = 2_211;

/// Two frames of each form to every server, by one way.
fn few_frames(edge: Edge) {
    let way = edge.plainly();
    let frames = way.frames(SEED, 2 * FrameStream::forms());
    let mut red = Vec::new();
    for server in servers::all() {
        hold(&server, way, &frames, &mut red);
    }
    none(&red);
}

#[test]
fn j01_to_j04_run_lets_few_frames_execute_nothing_but_what_it_recorded_as_allowed() {
    few_frames(Edge::Run);
}

#[test]
fn j01_to_j04_serve_lets_few_frames_execute_nothing_but_what_it_recorded_as_allowed() {
    few_frames(Edge::Serve);
}

#[test]
fn j01_to_j04_in_front_of_several_servers_few_frames_execute_nothing_but_what_it_recorded_as_allowed()
 {
    few_frames(Edge::Together);
}

/// Requests of the Modern era have no session there: each is taken apart and sent to a server in its own era.
#[test]
fn j01_to_j04_requests_without_a_session_in_front_of_several_servers_execute_nothing_else() {
    let way = Way {
        edge: Edge::ServeAll,
        transport: Transport::Stdio,
        revision: Revision::V2026_07_28,
    };
    let frames = way.frames(SEED, 2 * FrameStream::forms());
    let calls = way.arguments(SEED, ArgumentStream::forms());
    let mut red = Vec::new();
    for server in servers::all() {
        hold(&server, way, &frames, &mut red);
        hold(&server, way, &calls, &mut red);
    }
    none(&red);
}

/// Every form of arguments to every server, each by a way of its own: so that all ways and the revisions
/// from 2025-03-26 on are gone once.
#[test]
fn j05_nothing_but_the_arguments_that_were_judged_is_executed() {
    let ways = [
        (
            "mcp-go",
            Edge::Serve,
            Transport::Http,
            Revision::V2026_07_28,
        ),
        (
            "official Go SDK",
            Edge::Run,
            Transport::Http,
            Revision::V2025_11_25,
        ),
        (
            "official Python SDK",
            Edge::Run,
            Transport::Stdio,
            Revision::V2026_07_28,
        ),
        (
            "TypeScript SDK 1",
            Edge::Serve,
            Transport::Http,
            Revision::V2025_06_18,
        ),
        (
            "TypeScript SDK 2",
            Edge::Run,
            Transport::Http,
            Revision::V2026_07_28,
        ),
        (
            "official Java SDK",
            Edge::Serve,
            Transport::Stdio,
            Revision::V2025_03_26,
        ),
    ];
    let mut red = Vec::new();
    for server in servers::all() {
        let found = ways.iter().find(|(name, ..)| *name == server.name);
        let (_, edge, transport, revision) = *found.unwrap();
        let way = Way {
            edge,
            transport,
            revision,
        };
        let calls = way.arguments(SEED, ArgumentStream::forms());
        hold(&server, way, &calls, &mut red);
    }
    none(&red);
}

/// The frames and the judge of the other tests prove something: a gate that judges its own reading of a
/// frame and forwards the bytes as they came is caught, before the servers whose readers fold names or
/// cut lines at a carriage return.
///
/// That gate is part of this test alone ([`crate::forwarded`]): Durward has no switch that turns
/// canonical frames off.
#[test]
fn j01_to_j04_with_canonical_frames_switched_off_it_goes_red() {
    let way = Edge::Forwarded.plainly();
    let frames = way.frames(SEED, 2 * FrameStream::forms());
    for server in servers::all() {
        let reads_otherwise = ["mcp-go", "official Python SDK"].contains(&server.name);
        if !reads_otherwise {
            continue;
        }
        let verdict = drive(&server, way, &frames);
        assert!(
            !verdict.differences.is_empty() && verdict.denied > 0,
            "{}: nothing is executed but what was judged: {verdict}",
            server.name
        );
    }
}
