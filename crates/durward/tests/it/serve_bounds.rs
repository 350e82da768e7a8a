//! What `durward serve` bears of clients that take their time, send without end, or come in thousands: each is
//! given up or refused by name, and everybody else is answered meanwhile.

use std::io::{BufReader, Read, Write};
use std::net::TcpStream;
use std::thread;
use std::time::{Duration, Instant};

use crate::support::guarded::{Place, most_resident_kib, pause};
use crate::support::serving::{
    Answer, Served, call, modern_call, modern_headers, read_answer, read_head, write_request,
};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Connections that say nothing, or nothing more.
const IDLE: u64 = 10_000;
/// Descriptors that either side needs beside its connections.
const BESIDE: u64 = 600;
/// What all of them may cost, in KiB.
const IDLE_KIB_MAX: u64 = 150 * 1024;
/// A body that is refused long before its end, in bytes.
const ENDLESS_BYTES: usize = 256 << 20;
/// What the server may hold of it: the longest body twice, and itself.
const ENDLESS_KIB_MAX: u64 = 64 * 1024;
/// Processes of one server.
const CHILDREN_MAX: usize = 32;
/// Callers that wait for one.
const QUEUE_MAX: usize = 256;
/// How long they wait.
const QUEUE_WAIT: Duration = Duration::from_secs(10);

const HEAD: &str = "POST /mcp/echo HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\naccept: */*\r\n";

/// A session works, whatever the others do.
#[track_caller]
fn others_are_answered(served: &Served, session: &str, id: &str) {
    let answer = served.post(Some(session), &call(id, "still here"));
    assert_eq!(
        answer.json()["result"]["content"][0]["text"],
        "still here",
        "{answer:?}"
    );
}

/// What is answered until the connection is closed.
fn rest(stream: &mut TcpStream) -> String {
    let mut text = Vec::new();
    // A connection that is cut may say so with a reset.
    let _ = stream.read_to_end(&mut text);
    String::from_utf8_lossy(&text).into_owned()
}

#[test]
fn slow_headers_are_not_waited_for() {
    let served = Served::start(&[]);
    let session = served.open("2025-11-25");
    let slow = || {
        let mut stream = served.connect();
        let mut closed = stream.try_clone().unwrap();
        move || {
            // A byte now and then: no single wait is long, the head as a whole is.
            for byte in HEAD.bytes().chain(std::iter::repeat(b'x')) {
                if stream.write_all(&[byte]).is_err() {
                    break;
                }
                pause(200);
            }
            rest(&mut closed)
        }
    };
    let dripping: Vec<_> = (0..50).map(|_| thread::spawn(slow())).collect();
    let mut silent = served.connect();
    silent.write_all(&HEAD.as_bytes()[..9]).unwrap();
    let mut id = 0;
    while dripping.iter().any(|d| !d.is_finished()) {
        id += 1;
        others_are_answered(&served, &session, &id.to_string());
        pause(50);
    }
    assert!(id > 10, "the slow ones were given up at once");
    for dripping in dripping {
        assert_eq!(dripping.join().unwrap(), "");
    }
    assert_eq!(rest(&mut silent), "");
    assert_eq!(served.place.counted().len(), id);
}

#[test]
fn a_body_without_end_is_refused_where_its_bound_is() {
    let served = Served::start(&[]);
    let session = served.open("2025-11-25");
    let mut stream = served.connect();
    let head = format!("{HEAD}mcp-session-id: {session}\r\ntransfer-encoding: chunked\r\n\r\n");
    stream.write_all(head.as_bytes()).unwrap();
    let chunk = [b"10000\r\n".as_slice(), &[b' '; 0x1_0000], b"\r\n"].concat();
    let mut sent = 0;
    while sent < ENDLESS_BYTES && stream.write_all(&chunk).is_ok() {
        sent += 0x1_0000;
    }
    assert!(sent < ENDLESS_BYTES, "it was read to its end");
    let weight = most_resident_kib(served.process.id());
    assert!(weight < ENDLESS_KIB_MAX, "{weight} KiB");
    // Where the length is announced, not a byte of it is read.
    let mut stream = served.connect();
    let head = format!("{HEAD}mcp-session-id: {session}\r\ncontent-length: 1000000000000\r\n\r\n");
    stream.write_all(head.as_bytes()).unwrap();
    let answer = read_answer(&mut BufReader::new(stream));
    assert_eq!(answer.status, 413, "{answer:?}");
    assert_eq!(answer.json()["error"]["data"]["reason"], "body_too_long");
    others_are_answered(&served, &session, "1");
    assert_eq!(served.place.counted().len(), 1);
}

#[test]
fn a_body_that_never_comes_is_given_up() {
    let served = Served::start(&[]);
    let session = served.open("2025-11-25");
    let mut stream = served.connect();
    let head = format!("{HEAD}mcp-session-id: {session}\r\ncontent-length: 100\r\n\r\n{{");
    stream.write_all(head.as_bytes()).unwrap();
    others_are_answered(&served, &session, "1");
    let answer = read_answer(&mut BufReader::new(stream));
    assert_eq!(answer.status, 408, "{answer:?}");
    assert_eq!(answer.json()["error"]["data"]["reason"], "body_too_slow");
}

#[test]
fn heads_beyond_their_bounds_are_refused() {
    let served = Served::start(&[]);
    let long = "x".repeat(17 * 1024);
    let answer = served.send("GET", "/health", &[("x-long", &long)], "");
    assert_eq!(answer.status, 431, "{answer:?}");
    let many: Vec<(String, String)> = (0..120).map(|n| (format!("x-{n}"), "1".into())).collect();
    let many: Vec<(&str, &str)> = many.iter().map(|(n, v)| (n.as_str(), v.as_str())).collect();
    let answer = served.send("GET", "/health", &many, "");
    assert_eq!(answer.status, 431, "{answer:?}");
    assert_eq!(served.send("GET", "/health", &[], "").status, 200);
}

/// As many descriptors as may be had, for both sides; how many idle connections that is enough for.
fn connections() -> u64 {
    let limit = getrlimit(Resource::Nofile);
    let most = limit.maximum.unwrap_or(u64::MAX);
    let wanted = (IDLE + BESIDE).min(most);
    if limit.current.is_some_and(|current| current < wanted) {
        let raised = Rlimit {
            current: Some(wanted),
            maximum: limit.maximum,
        };
        setrlimit(Resource::Nofile, raised).unwrap();
    }
    let connections = IDLE.min(most.saturating_sub(BESIDE));
    if connections < IDLE {
        eprintln!(
            "scaled down to {connections} connections: {most} files may be open (ulimit -Hn)"
        );
    }
    connections
}

#[test]
fn ten_thousand_idle_connections_leave_the_others_answered() {
    let connections = connections();
    let served = Served::start(&[]);
    let session = served.open("2025-11-25");
    others_are_answered(&served, &session, "1");
    let pid = served.process.id();
    let before = most_resident_kib(pid);
    let mut idle = Vec::new();
    let mut silent = 0;
    for number in 0..connections {
        let mut stream = served.connect();
        // The second half has asked for something before it fell silent.
        if number >= connections / 2 {
            write_request(&mut stream, "GET", "/health", &[], "");
            let mut reader = BufReader::new(stream);
            assert_eq!(read_answer(&mut reader).status, 200, "{number}");
            stream = reader.into_inner();
        }
        idle.push(stream);
        if number % 1_000 == 0 {
            others_are_answered(&served, &session, &(number + 2).to_string());
        }
        if number == connections / 2 {
            silent = most_resident_kib(pid) - before;
        }
    }
    others_are_answered(&served, &session, "\"all\"");
    let weight = most_resident_kib(pid) - before;
    eprintln!(
        "{connections} idle connections: {weight} KiB more than {before} KiB; {silent} KiB of it for the half that never spoke"
    );
    assert!(weight < IDLE_KIB_MAX, "{weight} KiB");
    // They were idle, not lost.
    let mut stream = idle.swap_remove(0);
    write_request(&mut stream, "GET", "/health", &[], "");
    assert_eq!(read_answer(&mut BufReader::new(stream)).status, 200);
    let mut stream = idle.pop().unwrap();
    write_request(&mut stream, "GET", "/health", &[], "");
    assert_eq!(read_answer(&mut BufReader::new(stream)).status, 200);
    drop(idle);
    assert_eq!(served.stop().0, Some(0));
}

/// How many connections are used at a time, and how often, until it is seen what they keep.
const USED: u64 = 250;
const TRIES: u64 = 24;
/// What a connection may keep that was used, in KiB.
const USED_KIB_MAX: u64 = 8;
/// Sessions that nobody uses, and what they may cost, in KiB.
const SESSIONS: u64 = 10_000;
const SESSIONS_KIB_MAX: u64 = 100 * 1024;

#[test]
fn connections_that_were_used_give_their_buffers_back() {
    let served = Served::start(&[]);
    let session = served.open("2025-11-25");
    others_are_answered(&served, &session, "1");
    let pid = served.process.id();
    let mut used = Vec::new();
    let mut grown = Vec::new();
    // Those that rest leave their room to those that come after them.
    while grown.last().is_none_or(|kib| *kib > USED_KIB_MAX * USED) {
        assert!((grown.len() as u64) < TRIES, "{grown:?} KiB");
        let before = most_resident_kib(pid);
        for _ in 0..USED {
            let mut stream = served.connect();
            write_request(&mut stream, "GET", "/health", &[], "");
            let mut reader = BufReader::new(stream);
            assert_eq!(read_answer(&mut reader).status, 200);
            used.push(reader.into_inner());
        }
        grown.push(most_resident_kib(pid) - before);
        pause(1_200);
    }
    // They rested, and are still there.
    for mut stream in [used.swap_remove(0), used.pop().unwrap()] {
        write_request(&mut stream, "GET", "/health", &[], "");
        assert_eq!(read_answer(&mut BufReader::new(stream)).status, 200);
    }
    drop(used);
    assert_eq!(served.stop().0, Some(0));
}

#[test]
fn ten_thousand_idle_sessions_are_kept_and_one_more_is_refused() {
    let served = Served::start(&["--share", "all"]);
    let session = served.open("2025-11-25");
    others_are_answered(&served, &session, "1");
    let before = most_resident_kib(served.process.id());
    let body = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#;
    let mut reader = BufReader::new(served.connect());
    let mut open = || {
        write_request(reader.get_mut(), "POST", "/mcp/echo", &[], body);
        let answer = read_answer(&mut reader);
        answer
            .header("mcp-session-id")
            .map(str::to_owned)
            .ok_or(answer)
    };
    let mut last = session.clone();
    for number in 1..SESSIONS {
        last = open().unwrap_or_else(|refused| panic!("{number}: {refused:?}"));
    }
    let refused = open().unwrap_err();
    assert_eq!(
        refused.json()["error"]["data"]["reason"],
        "too_many_sessions"
    );
    for session in [&session, &last] {
        others_are_answered(&served, session, "2");
    }
    let weight = most_resident_kib(served.process.id()) - before;
    eprintln!("{SESSIONS} idle sessions: {weight} KiB more than {before} KiB");
    assert!(weight < SESSIONS_KIB_MAX, "{weight} KiB");
    assert_eq!(served.stop().0, Some(0));
}

/// There is no process for it, and the answer says so.
#[track_caller]
fn assert_too_many(refused: &Answer) {
    let data = &refused.json()["error"]["data"];
    assert_eq!(data["reason"], "too_many_servers", "{refused:?}");
    assert_eq!(data["retryable"], true, "{refused:?}");
    assert_eq!(refused.status, 503, "{refused:?}");
    assert_eq!(refused.header("retry-after"), Some("5"), "{refused:?}");
}

#[test]
fn w3_one_server_process_too_many_is_waited_for_and_refused_by_name() {
    let place = Place::new();
    let mock = place.mock(&["hostile", "--behaviour", "never"]).join(" ");
    // Its calls are under way for as long as this takes, on a busy machine too.
    let flags = ["--call-timeout", "3600"];
    let served = Served::start_server(place, &format!("echo={mock}"), &flags);
    let mut sessions: Vec<String> = (0..CHILDREN_MAX)
        .map(|_| served.open("2025-11-25"))
        .collect();
    // None has nothing to do: its first call is never answered.
    let busy = |session: &str| {
        let mut stream = served.connect();
        let headers = [("mcp-session-id", session)];
        write_request(&mut stream, "POST", "/mcp/echo", &headers, &call("0", "x"));
        stream
    };
    // A session starts its process with its first call: its session and stream, or the refusal.
    let first_call = || {
        let session = served.open("2025-11-25");
        let stream = busy(&session);
        let head = read_head(&mut BufReader::new(stream.try_clone().unwrap()));
        match head.status {
            200 => Ok((session, stream)),
            _ => Err(head),
        }
    };
    let mut calls: Vec<TcpStream> = sessions.iter().map(|session| busy(session)).collect();
    // The head of a silent call comes after a second.
    for stream in &calls {
        let head = read_head(&mut BufReader::new(stream.try_clone().unwrap()));
        assert_eq!(head.status, 200);
    }
    let running = format!("durward_servers {CHILDREN_MAX}\n");
    let metrics = served.send("GET", "/metrics", &[], "").body;
    assert!(metrics.contains(&running), "{metrics}");

    // One that waits gets what becomes free.
    let (_, call_of_waiting) = thread::scope(|scope| {
        let waiting = scope.spawn(|| {
            loop {
                let since = Instant::now();
                match first_call() {
                    Ok(opened) => return opened,
                    Err(refused) => assert_too_many(&refused),
                }
                assert!(since.elapsed() >= QUEUE_WAIT, "it did not wait");
            }
        });
        let free = sessions.pop().unwrap();
        let id = ("mcp-session-id", free.as_str());
        assert_eq!(served.send("DELETE", "/mcp/echo", &[id], "").status, 204);
        waiting.join().unwrap()
    });
    calls.push(call_of_waiting);

    // Nothing becomes free for these: one more than may wait, or as long as one may, each is refused by name.
    thread::scope(|scope| {
        let waiting: Vec<_> = (0..QUEUE_MAX + 20)
            .map(|_| scope.spawn(first_call))
            .collect();
        // A call that needs a process of its own is refused the same way.
        let headers = modern_headers("tools/call", "echo");
        let refused = served.send("POST", "/mcp/echo", &headers, &modern_call("1", "x"));
        assert_too_many(&refused);
        for waiting in waiting {
            assert_too_many(&waiting.join().unwrap().unwrap_err());
        }
    });
    others_are_answered(&served, &sessions[0], "1");
    let metrics = served.send("GET", "/metrics", &[], "").body;
    let count = metrics
        .lines()
        .find_map(|line| line.strip_prefix("durward_servers "));
    let count: usize = count.unwrap().parse().unwrap();
    assert!(count <= CHILDREN_MAX, "{count}");
    assert_eq!(served.stop().0, Some(0));
}
