//! A call that goes on after a person's yes while its HTTP answer becomes a stream.

use std::fs;
use std::io::BufReader;

use serde_json::json;

use crate::support::approver::{ask, sockets, waiting};
use crate::support::components;
use crate::support::guarded::{Place, eventually};
use crate::support::refusals::{is_passed, told};
use crate::support::serving::{Events, Served, read_head, write_request};
use crate::unsettled::{ASKS, Folders, SERVER};

/// It waits for another call at its place when the yes comes, and is silent until its answer has to begin.
#[test]
fn a_call_that_a_person_allowed_was_lost_where_its_answer_became_a_stream_meanwhile() {
    let Some(python) = components::fastmcp_python() else {
        return;
    };
    let place = Place::new();
    let folders = Folders::new(&place, ASKS);
    fs::write(place.path("server.py"), SERVER).unwrap();
    fs::write(folders.at("open/bundle/y.txt"), "read after all").unwrap();
    let script = place.path("server.py");
    let arguments = [script.to_str().unwrap(), &folders.at("signs")];
    let servers = json!({"echo": {"command": python.to_str().unwrap(), "args": arguments}});
    let text = format!("servers: {servers}\npolicy: policy.json\n");
    fs::write(place.path("durward.yaml"), text).unwrap();
    let served = Served::start_configured(place);
    let session = served.open("2025-11-25");
    let send = |body: &str| {
        let mut stream = served.connect();
        let headers = [("mcp-session-id", session.as_str())];
        write_request(&mut stream, "POST", "/mcp/echo", &headers, body);
        stream
    };
    let _moves = send(&folders.moves(1, "open/new", "move"));
    folders.until_begun("move");
    folders.go("read");
    let reads = send(&folders.reads(2, "open/new/y.txt", "read"));
    let mut asked = None;
    eventually("a person is asked", || {
        let all = sockets(&served.place.runtime().join("durward"));
        asked = all.into_iter().find_map(|socket| {
            let id = waiting(&socket).ok()?.pop()?;
            Some((socket, id))
        });
        asked.is_some()
    });
    let (socket, id) = asked.unwrap();
    let yes = json!({"do": "answer", "id": id, "answer": "once"});
    let taken = ask(&socket, &yes).unwrap();
    assert!(taken.get("error").is_none(), "{taken}");
    // The call now waits for the move; its answer begins because it has been silent for so long.
    let mut reader = BufReader::new(reads);
    let head = read_head(&mut reader);
    assert_eq!(head.header("content-type"), Some("text/event-stream"));
    folders.go("move");
    let answer = Events::over(reader).message();
    assert_eq!(answer["id"], 2, "{answer}");
    // Where the machine was so slow that it has waited too long, it is told so, which is an answer too.
    let is_late = told(&answer)["reason"] == "place_unsettled";
    assert!(is_passed(&answer) || is_late, "{answer}");
    assert_eq!(served.stop().0, Some(0));
}
