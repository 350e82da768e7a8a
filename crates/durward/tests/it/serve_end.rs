//! How `durward serve` ends: calls under way finish within a time, nothing new begins; sessions end by silence; a
//! failed journal ends everything.

use std::fs;
use std::io::{BufReader, Write};
use std::net::TcpStream;
use std::thread;

use crate::support::guarded::{self, Place, eventually};
use crate::support::refusals::told;
use crate::support::serving::{Served, call, read_answer, write_request};
use serde_json::Value;

fn mock(words: &[&str], flags: &[&str]) -> Served {
    mock_in(Place::new(), words, flags)
}

fn mock_in(place: Place, words: &[&str], flags: &[&str]) -> Served {
    let mock = place.mock(words).join(" ");
    Served::start_server(place, &format!("echo={mock}"), flags)
}

/// Sends a call and waits until it has arrived.
fn under_way(served: &Served, session: &str, id: &str) -> BufReader<TcpStream> {
    let before = served.place.counted().len();
    let mut stream = served.connect();
    let headers = [("mcp-session-id", session)];
    write_request(
        &mut stream,
        "POST",
        "/mcp/echo",
        &headers,
        &call(id, "slow"),
    );
    eventually("the call has arrived", || {
        served.place.counted().len() > before
    });
    BufReader::new(stream)
}

/// A request whose body stops one byte short.
fn unfinished(served: &Served, session: &str, id: &str) -> TcpStream {
    let body = call(id, "late");
    let mut stream = served.connect();
    let head = format!(
        "POST /mcp/echo HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\nmcp-session-id: {session}\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).unwrap();
    stream
        .write_all(&body.as_bytes()[..body.len() - 1])
        .unwrap();
    stream
}

#[test]
fn calls_under_way_finish_and_new_ones_are_refused() {
    let served = mock(&["echo", "--delay-us", "2000000"], &[]);
    let session = served.open("2025-11-25");
    let mut news = served.stream("GET", &session, &[], "");
    let mut late = unfinished(&served, &session, "2");
    let mut running = under_way(&served, &session, "1");
    served.terminate();
    assert!(
        news.next().is_none(),
        "a silent stream does not hold up the end"
    );
    eventually("nobody is let in", || {
        TcpStream::connect(served.address).is_err()
    });
    late.write_all(b"}").unwrap();
    let refused = read_answer(&mut BufReader::new(late)).json();
    assert_eq!(told(&refused)["reason"], "draining", "{refused}");
    let answer = read_answer(&mut running).json();
    assert_eq!(answer["result"]["content"][0]["text"], "slow", "{answer}");
    let (code, place) = served.ended();
    assert_eq!(code, Some(0));
    let journal = place.journal();
    journal.assert_ended("1", "Success", None);
    assert_eq!(journal.decision("2")["decision"], "deny");
    assert_eq!(place.counted().len(), 1);
    let ended = ends(&journal);
    assert_eq!(ended, ["shutdown"]);
}

/// How the sessions in a journal ended.
fn ends(journal: &guarded::Journal) -> Vec<&str> {
    let ended = |record: &&Value| record["event"] == "session_ended" && record["kind"] == "auth";
    let why = |record: &'_ Value| record["end_reason"].as_str().map(str::len);
    assert!(journal.0.iter().filter(ended).all(|r| why(r).is_some()));
    let ended = journal.0.iter().filter(ended);
    ended.map(|r| r["end_reason"].as_str().unwrap()).collect()
}

#[test]
fn a_call_that_does_not_end_is_answered_so_and_settled() {
    let served = mock(&["hostile", "--behaviour", "never"], &[]);
    let session = served.open("2025-11-25");
    let mut running = under_way(&served, &session, "1");
    served.terminate();
    let answer = read_answer(&mut running).json();
    assert_eq!(told(&answer)["reason"], "stopping", "{answer}");
    let (code, place) = served.ended();
    assert_eq!(code, Some(0));
    let journal = place.journal();
    assert_eq!(journal.operation("1")["status"], "Cancelled");
}

#[test]
fn a_second_signal_ends_the_drain_at_once() {
    let place = Place::new();
    let count = place.path("count");
    // It never answers a call, and does not end by itself either.
    let script = format!(
        r#"trap '' TERM; while read -r line; do id=${{line#*\"id\":}}; id=${{id%%[,\}}]*}}
        case $line in
        *initialize\"*) echo '{{"jsonrpc":"2.0","id":'$id',"result":{{"protocolVersion":"2025-11-25","capabilities":{{"tools":{{}}}},"serverInfo":{{"name":"s","version":"1"}}}}}}';;
        *tools/list*) echo '{{"jsonrpc":"2.0","id":'$id',"result":{{"tools":[{{"name":"echo","inputSchema":{{"type":"object"}}}}]}}}}';;
        *) echo "$line" >> {};;
        esac; done"#,
        count.display()
    );
    std::fs::write(place.path("server.sh"), script).unwrap();
    let mut served = Served::start_server(place, "echo=sh server.sh", &["--call-timeout", "600"]);
    let session = served.open("2025-11-25");
    let arrived = |word: &str| {
        eventually(word, || {
            let text = std::fs::read_to_string(&count).unwrap_or_default();
            text.contains(word)
        });
    };
    let mut running = served.connect();
    let id = ("mcp-session-id", session.as_str());
    write_request(&mut running, "POST", "/mcp/echo", &[id], &call("1", "slow"));
    arrived("tools/call");
    served.terminate();
    eventually("nobody is let in", || {
        TcpStream::connect(served.address).is_err()
    });
    assert!(served.process.try_wait().unwrap().is_none(), "it drains");
    let pid = rustix::process::Pid::from_child(&served.process);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    let answer = read_answer(&mut BufReader::new(running)).json();
    assert_eq!(told(&answer)["reason"], "stopping", "{answer}");
    arrived("notifications/cancelled");
    let (code, place) = served.ended();
    assert_eq!(code, Some(0));
    let journal = place.journal();
    assert_eq!(journal.operation("1")["status"], "Cancelled");
    assert_eq!(ends(&journal), ["shutdown"]);
}

#[test]
fn servers_get_the_limit_on_open_files_that_we_were_given() {
    let place = Place::new();
    std::fs::write(
        place.path("server.sh"),
        "ulimit -S -n > files; while read -r line; do :; done\n",
    )
    .unwrap();
    let script = format!(
        "ulimit -S -n 300 && exec {} --no-config --state-dir state serve --policy policy.json --listen 127.0.0.1:0 --server 'echo=sh server.sh'",
        guarded::binary()
    );
    let mut process = std::process::Command::new("sh")
        .args(["-c", &script])
        .current_dir(&place.dir)
        .env("XDG_RUNTIME_DIR", place.runtime())
        .stdin(std::process::Stdio::null())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let mut line = String::new();
    let mut stdout = BufReader::new(process.stdout.take().unwrap());
    std::io::BufRead::read_line(&mut stdout, &mut line).unwrap();
    let address = line.trim().rsplit('/').next().unwrap().parse().unwrap();
    let served = Served {
        place,
        address,
        process,
    };
    let mut stream = served.connect();
    let hello = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}"#;
    write_request(&mut stream, "POST", "/mcp/echo", &[], hello);
    let files = served.place.path("files");
    eventually("the server runs", || {
        std::fs::read_to_string(&files).is_ok_and(|text| text.ends_with('\n'))
    });
    assert_eq!(std::fs::read_to_string(files).unwrap(), "300\n");
    let own = std::fs::read_to_string(format!("/proc/{}/limits", served.process.id())).unwrap();
    let own = own.lines().find(|line| line.starts_with("Max open files"));
    let columns: Vec<&str> = own.unwrap().split_whitespace().collect();
    assert_eq!(columns[3], columns[4], "ours is raised: {columns:?}");
}

#[test]
fn calls_that_wait_for_a_person_are_refused_at_the_end() {
    let place = Place::new();
    place
        .write_policy(r#"{"rules":[{"id":"ask","effect":"hitl","conditions":{"tool_name":"*"}}]}"#);
    let served = mock_in(place, &["echo"], &[]);
    let session = served.open("2025-11-25");
    let answer = thread::scope(|scope| {
        let asked = scope.spawn(|| served.post(Some(&session), &call("1", "x")));
        eventually("the question is asked", || {
            let metrics = served.send("GET", "/metrics", &[], "").body;
            metrics.contains("durward_approvals_waiting 1\n")
        });
        served.terminate();
        asked.join().unwrap()
    });
    let answer = answer.json();
    assert_eq!(told(&answer)["reason"], "draining", "{answer}");
    assert_eq!(served.ended().0, Some(0));
}

#[test]
fn a_session_that_nobody_uses_ends_and_one_in_use_does_not() {
    let served = mock(&["echo", "--delay-us", "4000000"], &["--session-idle", "1"]);
    let forgotten = served.open("2025-11-25");
    let listening = served.open("2025-11-25");
    let _news = served.stream("GET", &listening, &[], "");
    let busy = served.open("2025-11-25");
    let mut running = under_way(&served, &busy, "1");
    let id = ("mcp-session-id", forgotten.as_str());
    eventually("the forgotten session has ended", || {
        let metrics = served.send("GET", "/metrics", &[], "").body;
        metrics.contains("durward_sessions 2\n")
    });
    let late = served.post(Some(&forgotten), &call("2", "late"));
    assert_eq!(late.status, 404, "{late:?}");
    assert_eq!(told(&late.json())["reason"], "session_unknown");
    assert_eq!(served.send("DELETE", "/mcp/echo", &[id], "").status, 404);
    let answer = read_answer(&mut running).json();
    assert_eq!(answer["result"]["content"][0]["text"], "slow", "{answer}");
    eventually("it ends when its call has", || {
        let metrics = served.send("GET", "/metrics", &[], "").body;
        metrics.contains("durward_sessions 1\n")
    });
    let id = ("mcp-session-id", listening.as_str());
    assert_eq!(served.send("DELETE", "/mcp/echo", &[id], "").status, 204);
    let (code, place) = served.stop();
    assert_eq!(code, Some(0));
    let journal = place.journal();
    assert_eq!(ends(&journal), ["timeout", "timeout", "normal"]);
}

/// Takes the journal away while nothing happens; what a call and a look at the health then say, where
/// they come before serving has noticed by itself.
fn without_journal() -> Option<(Value, u16)> {
    let served = mock(&["echo"], &[]);
    let session = served.open("2025-11-25");
    let works = served.post(Some(&session), &call("1", "before"));
    assert_eq!(works.status, 200);
    let mut stream = served.connect();
    fs::remove_file(served.place.segments().last().unwrap()).unwrap();
    let id = ("mcp-session-id", session.as_str());
    write_request(&mut stream, "POST", "/mcp/echo", &[id], &call("2", "after"));
    write_request(&mut stream, "GET", "/health", &[], "");
    let mut reader = BufReader::new(stream);
    let seen = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let refused = read_answer(&mut reader).json();
        (refused, read_answer(&mut reader).status)
    }));
    let (code, place) = served.ended();
    assert_eq!(code, Some(10));
    assert_eq!(place.counted().len(), 1, "nothing passes without a journal");
    seen.ok()
}

#[test]
fn a_failed_journal_refuses_turns_the_health_to_503_and_ends_with_10() {
    // Serving looks after its journal four times a second and may be first: then it just ends.
    let seen = (0..10).find_map(|_| without_journal());
    let (refused, health) = seen.expect("the call comes first, sooner or later");
    assert_eq!(refused["result"]["isError"], true, "{refused}");
    assert_eq!(told(&refused)["reason"], "journal_failed", "{refused}");
    assert_eq!(health, 503);
}

#[test]
fn a_journal_that_fails_while_nobody_calls_ends_serving() {
    let served = mock(&["echo"], &[]);
    assert_eq!(served.send("GET", "/health", &[], "").status, 200);
    fs::remove_file(served.place.segments().last().unwrap()).unwrap();
    assert_eq!(served.ended().0, Some(10));
}

#[test]
fn a_second_start_goes_on_where_the_first_one_ended() {
    let served = mock(&["echo"], &[]);
    let session = served.open("2025-11-25");
    served.post(Some(&session), &call("1", "x"));
    let (code, place) = served.stop();
    assert_eq!(code, Some(0));
    let served = mock_in(place, &["echo"], &[]);
    assert_eq!(served.post(Some(&session), &call("2", "x")).status, 404);
    let session = served.open("2025-11-25");
    assert_eq!(served.post(Some(&session), &call("3", "x")).status, 200);
    let (code, place) = served.stop();
    assert_eq!(code, Some(0));
    assert_eq!(place.journal().decisions().len(), 2);
}

#[test]
fn status_says_what_is_served_and_where() {
    let served = mock(&["echo"], &[]);
    let _session = served.open("2025-11-25");
    let output = served.place.durward(&["--state-dir", "state", "status"]);
    let text = String::from_utf8(output.stdout).unwrap();
    let address = served.address;
    for part in [
        "running  1 instance\n  serve (echo)  since 20".to_owned(),
        format!("  echo  http://{address}  1 session  1 server process  0 waiting for approval"),
    ] {
        assert!(text.contains(&part), "{part}\n{text}");
    }
    let output = served
        .place
        .durward(&["--state-dir", "state", "status", "--json"]);
    let status: Value = serde_json::from_slice(&output.stdout).unwrap();
    let serving = &status["instances"][0]["serving"];
    assert_eq!(serving["address"], format!("http://{address}"), "{status}");
    assert_eq!(
        (&serving["sessions"], &serving["processes"]),
        (&1.into(), &1.into())
    );
}

#[test]
fn status_is_about_the_instances_of_its_own_state_directory() {
    let served = mock(&["echo"], &[]);
    let status = |words: &[&str]| {
        let args = [&["--no-config"], words].concat();
        let output = served.place.durward(&args);
        String::from_utf8(output.stdout).unwrap()
    };
    let instances = |text: &str| {
        let status: Value = serde_json::from_str(text).unwrap();
        status["instances"].as_array().unwrap().len()
    };
    let other = ["--state-dir", "elsewhere", "status"];
    let json = [&other[..], &["--json"]].concat();
    assert_eq!(instances(&status(&json)), 0);
    let text = status(&other);
    assert!(
        text.contains("1 instance of other state directories"),
        "{text}"
    );
    assert_eq!(instances(&status(&[&json[..], &["--all"]].concat())), 1);
    let own = status(&["--state-dir", "state", "status", "--json"]);
    assert_eq!(instances(&own), 1);
}

#[test]
fn an_instance_of_models_alone_has_a_name() {
    let served = crate::models::support::serve(
        "models: { providers: { a: { kind: mock, latency: 0ms } } }",
        &[],
    );
    let output = served.place.durward(&["--state-dir", "state", "status"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("\n  serve (models)  since 20"), "{text}");
    assert!(!text.contains("()"), "{text}");
}
