//! What outlasts a request of a key on faces other than MCP's sessions, and ends with the key all the same.

use std::fs;
use std::io::{BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;

use serde_json::{Value, json};

use crate::models::support::{ENDPOINTS, Upstream, code, place as models_place, request};
use crate::serve_keys::{INITIALIZE, bearer, keys};
use crate::simulation::{load, place as simulation_place};
use crate::ssh_server::{has_sshd, target};
use crate::support::guarded::{Place, eventually};
use crate::support::serving::{
    Events, Served, modern, modern_call, modern_headers, read_answer, read_head, write_request,
};
use crate::support::web::{Then, Web, json_reply, send as send_reply};

#[test]
fn a_model_call_that_waits_for_a_person_ends_with_its_key() {
    let ask = r#"{"id":"ask-big","effect":"hitl","conditions":{"model":"*/big"}}"#;
    let yaml = "models: { providers: { a: { kind: mock, latency: 0ms } } }";
    let place = models_place(yaml, &[ask]);
    let going = bearer(&place, &["create", "going"]);
    keys(&place, &["create", "staying"]);
    let served = Served::start_ruled(place);
    let waiting = || {
        let listed = served.place.durward(&["approvals", "list", "--json"]);
        String::from_utf8(listed.stdout).unwrap()
    };
    thread::scope(|scope| {
        let asked = scope.spawn(|| {
            let body = request(ENDPOINTS[0], "a/big", false).to_string();
            let own = [("authorization", going.as_str())];
            served.send("POST", ENDPOINTS[0], &own, &body)
        });
        eventually("a person is asked", || waiting().contains("a/big"));
        keys(&served.place, &["revoke", "going"]);
        eventually("nobody is asked any more", || waiting().is_empty());
        let answer = asked.join().unwrap();
        assert_eq!(code(&answer.json()), "approval_withdrawn", "{answer:?}");
    });
    let (_, place) = served.stop();
    assert!(place.records().operations().is_empty(), "nothing was sent");
}

#[test]
fn model_calls_that_wait_for_their_provider_end_with_their_key() {
    let (closed, is_closed) = mpsc::channel();
    let closed = Mutex::new(closed);
    let web = Web::start(move |_, wire| {
        // The provider never answers; it sees that its client goes.
        let read = wire.read(&mut [0]);
        closed
            .lock()
            .unwrap()
            .send(read.is_ok_and(|bytes| bytes == 0))
            .unwrap();
        Ok(Then::Close)
    });
    let upstream = Upstream {
        web,
        closed: Arc::default(),
    };
    let provider = upstream.configured("far", ENDPOINTS[0]);
    let place = models_place(&format!("models: {{ providers: {{ {provider} }} }}"), &[]);
    let going = bearer(&place, &["create", "going"]);
    keys(&place, &["create", "staying"]);
    let served = Served::start_ruled(place);
    let own = [("authorization", going.as_str())];
    let calls = [false, true].map(|streamed| {
        let mut stream = served.connect();
        let body = request(ENDPOINTS[0], "far/m", streamed).to_string();
        write_request(&mut stream, "POST", ENDPOINTS[0], &own, &body);
        stream
    });
    eventually("the provider was asked", || upstream.count() == 2);
    keys(&served.place, &["revoke", "going"]);
    for stream in calls {
        let answer = read_answer(&mut BufReader::new(stream));
        assert_eq!(
            (answer.status, code(&answer.json())),
            (401, "key_not_good"),
            "{answer:?}"
        );
        assert!(
            is_closed.recv().unwrap(),
            "the provider's connection is closed"
        );
    }
}

#[test]
fn a_body_that_has_not_arrived_when_its_key_is_revoked_is_rejected_at_once() {
    let yaml = "servers: { echo: { builtin: echo } }\nmodels: { providers: { a: { kind: mock, latency: 0ms } } }";
    let rule = r#"{"id":"tools","effect":"allow","conditions":{"tool_name":"*"}}"#;
    let place = models_place(yaml, &[rule]);
    let going = bearer(&place, &["create", "going"]);
    let staying = bearer(&place, &["create", "staying"]);
    let served = Served::start_ruled(place);
    // The last byte of each is held back.
    let begun = |path: &str, key: &str, headers: &[(&str, &str)], body: &str| {
        let mut stream = served.connect();
        let mut head = format!(
            "POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\naccept: application/json, text/event-stream\r\nauthorization: {key}\r\ncontent-length: {}\r\n",
            body.len()
        );
        for (name, value) in headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        let (first, last) = body.split_at(body.len() - 1);
        write!(stream, "{head}\r\n{first}").unwrap();
        (stream, last.to_owned())
    };
    let chat = request(ENDPOINTS[0], "a/plain", false).to_string();
    let call = modern_call("9", "x");
    let headers = modern_headers("tools/call", "echo");
    let requests = [
        (begun(ENDPOINTS[0], &going, &[], &chat), 401),
        (begun("/mcp/echo", &going, &headers, &call), 401),
        (begun(ENDPOINTS[0], &staying, &[], &chat), 200),
        (begun("/mcp/echo", &staying, &headers, &call), 200),
    ];
    // All of them have been read so far: requests of later connections are answered.
    let own = [("authorization", going.as_str())];
    assert_eq!(served.send("GET", "/v1/models", &own, "").status, 200);
    keys(&served.place, &["revoke", "going"]);
    eventually("the key is refused", || {
        served.send("GET", "/v1/models", &own, "").status == 401
    });
    for ((mut stream, last), status) in requests {
        if status == 200 {
            stream.write_all(last.as_bytes()).unwrap();
        }
        let answer = read_answer(&mut BufReader::new(stream));
        assert_eq!(answer.status, status, "{answer:?}");
        assert_eq!(answer.body.contains("revoked"), status == 401, "{answer:?}");
    }
}

#[test]
fn what_a_checker_looked_at_while_its_key_was_taken_back_is_not_sent() {
    let (release, released) = mpsc::channel::<()>();
    let released = Mutex::new(released);
    let checker = Web::start(move |_, wire| {
        // It thinks for as long as the test wants.
        let _ = released.lock().unwrap().recv();
        send_reply(wire, &json_reply(&json!({"found": false})), Then::Keep)
    });
    let yaml = format!(
        "servers: {{ echo: {{ builtin: echo }} }}\nmodels: {{ providers: {{ a: {{ kind: mock, latency: 0ms }} }} }}\n\
         inspect: {{ slow: {{ checker: {{ url: \"{}\", secret: a secret of sixteen bytes, deadline: 10s }}, action: mask, on: requests }} }}",
        checker.url()
    );
    let rule = r#"{"id":"tools","effect":"allow","conditions":{"tool_name":"*"}}"#;
    let place = models_place(&yaml, &[rule]);
    let going = bearer(&place, &["create", "going"]);
    keys(&place, &["create", "staying"]);
    let served = Served::start_ruled(place);
    let own = [("authorization", going.as_str())];
    let mut model = served.connect();
    let body = request(ENDPOINTS[0], "a/plain", false).to_string();
    write_request(&mut model, "POST", ENDPOINTS[0], &own, &body);
    let mut call = served.connect();
    let mut headers = modern_headers("tools/call", "echo");
    headers.push(own[0]);
    write_request(
        &mut call,
        "POST",
        "/mcp/echo",
        &headers,
        &modern_call("9", "x"),
    );
    eventually("both are being looked at", || checker.requests().len() == 2);
    keys(&served.place, &["revoke", "going"]);
    eventually("the key is refused", || {
        served.send("GET", "/v1/models", &own, "").status == 401
    });
    drop(release);
    let answer = read_answer(&mut BufReader::new(model));
    assert_eq!(
        (answer.status, code(&answer.json())),
        (401, "caller_expelled"),
        "{answer:?}"
    );
    let answer = read_answer(&mut BufReader::new(call));
    assert!(!answer.body.contains("result"), "{answer:?}");
    let (_, place) = served.stop();
    let journal = place.records();
    assert!(journal.operations().is_empty(), "nothing was sent");
    let decisions = journal.decisions();
    assert!(!decisions.is_empty());
    for decision in decisions {
        assert_eq!(decision["reason"], "caller_expelled", "{decision}");
    }
}

#[test]
fn a_stream_of_a_jobs_events_ends_with_its_key() {
    let place = simulation_place();
    let going = bearer(&place, &["create", "going"]);
    keys(&place, &["create", "staying"]);
    let served = Served::start_configured(place);
    let own = [("authorization", going.as_str())];
    let good = |path: &str, body: &Value| {
        let answer = served.send("POST", path, &own, &body.to_string());
        assert!(answer.status < 300, "{path}: {answer:?}");
        answer.json()
    };
    good("/load_simulation", &load());
    // Far longer than it takes to see that the key is gone.
    let asked = json!({"simulationId": "sim", "cohort": {"size": 1_000_000}, "modelPath": "two_compartment.xml",
        "confirm": true, "outputs": {"timeSeries": [{"path": "Example|Organism|Central|Drug|Concentration"}]}});
    let job = good("/run_population_simulation", &asked)["jobId"].clone();
    let path = format!("/jobs/{}/events", job.as_str().unwrap());
    let mut stream = served.connect();
    write_request(&mut stream, "GET", &path, &own, "");
    let mut reader = BufReader::new(stream);
    let head = read_head(&mut reader);
    assert_eq!(head.status, 200, "{head:?}");
    let mut events = Events::over(reader);
    let mut last = events.message();
    keys(&served.place, &["revoke", "going"]);
    while let Some((_, event)) = events.next() {
        last = event;
    }
    let status = last["status"].as_str().unwrap();
    assert!(["queued", "running"].contains(&status), "{last}");
}

/// A tool of the SSH server, called by a client that has no session: the answer.
pub fn ssh_said(served: &Served, key: &str, tool: &str, arguments: &Value) -> Value {
    let mut headers = modern_headers("tools/call", tool);
    headers.push(("authorization", key));
    let params = format!(r#""name":"{tool}","arguments":{arguments}"#);
    let body = modern("1", "tools/call", &params);
    served.send("POST", "/mcp/ssh", &headers, &body).json()
}

/// The same: the structured result.
#[track_caller]
fn ssh(served: &Served, key: &str, tool: &str, arguments: &Value) -> Value {
    let said = ssh_said(served, key, tool, arguments);
    let result = &said["result"]["structuredContent"];
    assert!(result.is_object(), "{said}");
    result.clone()
}

/// Whether the host answers behind a forward.
fn leads_on(listening: SocketAddr) -> bool {
    let mut greeting = [0; 4];
    let reached = TcpStream::connect(listening).and_then(|mut stream| {
        let greeted = stream.read_exact(&mut greeting);
        greeted.map(|()| greeting == *b"SSH-")
    });
    reached.unwrap_or(false)
}

#[test]
fn a_port_forward_that_was_opened_without_a_session_ends_with_its_key_and_nobody_elses() {
    if !has_sshd() {
        return;
    }
    let place = Place::new();
    let _sshd = target(&place);
    let hosts = fs::read_to_string(place.path("ssh_hosts.yaml")).unwrap();
    let port = hosts.split("port: ").nth(1).unwrap();
    let port: u16 = port.split(',').next().unwrap().parse().unwrap();
    place.write_policy(
        r#"{"rules":[{"id":"tools","effect":"allow","conditions":{"tool_name":"*"}},
            {"id":"forwards","effect":"allow","conditions":{"tool_name":"ssh_forward_open","when":"forward == 'local'"}}]}"#,
    );
    let create = |name: &str, more: &[&str]| bearer(&place, &[&["create", name], more].concat());
    let going = create("going", &[]);
    let (grouped, staying) = (
        create("grouped", &["--group", "dev"]),
        create("staying", &["--group", "dev"]),
    );
    let served = Served::start_configured(place);
    let forward = |key: &str| -> SocketAddr {
        let id = ssh(&served, key, "ssh_connect", &json!({"host": "web"}))["session_id"].clone();
        let asked = json!({"session_id": id, "kind": "local", "listen_address": "127.0.0.1", "listen_port": 0,
            "targets": [format!("127.0.0.1:{port}")]});
        let opened = ssh(&served, key, "ssh_forward_open", &asked);
        opened["listening"].as_str().unwrap().parse().unwrap()
    };
    let of_staying = forward(&staying);
    for (name, key) in [("going", &going), ("grouped", &grouped)] {
        let own = forward(key);
        assert!(leads_on(own) && leads_on(of_staying));
        keys(&served.place, &["revoke", name]);
        eventually("the forward ends", || !leads_on(own));
        assert!(leads_on(of_staying));
    }
}

#[test]
fn a_revoked_key_ends_streams_waiting_calls_subscriptions_sessions_and_jobs() {
    if !has_sshd() {
        return;
    }
    let place = Place::new();
    let _sshd = target(&place);
    place.write_policy(
        r#"{"rules":[{"id":"ask","effect":"hitl","conditions":{"tool_name":"echo"}},
            {"id":"tools","effect":"allow","conditions":{"mcp_method":"*"}}]}"#,
    );
    let configured = fs::read_to_string(place.path("durward.yaml")).unwrap();
    let configured = configured.replace("{ ssh:", "{ echo: { builtin: echo }, ssh:");
    fs::write(place.path("durward.yaml"), configured).unwrap();
    let going = bearer(&place, &["create", "going"]);
    let staying = bearer(&place, &["create", "staying"]);
    let served = Served::start_configured(place);
    // A job and a session of each key at the host.
    let script = |name: &str| {
        let (pid, path) = (served.place.path(&format!("{name}.pid")), name.to_owned());
        let text = format!("echo $$ >{}; exec sleep 600", pid.display());
        fs::write(served.place.path(&path), text).unwrap();
        (pid, format!("sh {}", served.place.path(&path).display()))
    };
    let job = |key: &str, name: &str| {
        let (pid, command) = script(name);
        let session =
            ssh(&served, key, "ssh_connect", &json!({"host": "web"}))["session_id"].clone();
        let asked = json!({"session_id": session, "command": command});
        ssh(&served, key, "ssh_job_start", &asked);
        eventually("the job runs", || {
            fs::read_to_string(&pid).is_ok_and(|pid| pid.ends_with('\n'))
        });
        fs::read_to_string(&pid).unwrap().trim().to_owned()
    };
    let (ended_job, kept_job) = (job(&going, "job1"), job(&staying, "job2"));
    let runs = |pid: &str| fs::exists(format!("/proc/{pid}")).unwrap();
    assert!(runs(&ended_job) && runs(&kept_job));
    // A command of a call that runs.
    let (ran, command) = script("command");
    let listen = |key: &str| {
        let mut headers = modern_headers("subscriptions/listen", "");
        headers.push(("authorization", key));
        let filter = r#""notifications":{"toolsListChanged":true}"#;
        let body = modern("\"s\"", "subscriptions/listen", filter);
        let mut events = Events::of(&served, "POST", &headers, &body);
        events.message();
        events
    };
    let stream = |key: &str| {
        let own = [("authorization", key)];
        let opened = served.send("POST", "/mcp/echo", &own, INITIALIZE);
        let session = opened.header("mcp-session-id").unwrap().to_owned();
        served.stream("GET", &session, &own, "")
    };
    let (mut subscription, mut events) = (listen(&going), stream(&going));
    thread::scope(|scope| {
        let waiting = scope.spawn(|| {
            let mut headers = modern_headers("tools/call", "echo");
            headers.push(("authorization", going.as_str()));
            served.send("POST", "/mcp/echo", &headers, &modern_call("9", "x"))
        });
        let running = scope.spawn(|| {
            let session =
                ssh(&served, &going, "ssh_connect", &json!({"host": "web"}))["session_id"].clone();
            let asked = json!({"session_id": session, "command": command, "timeout_ms": 590_000});
            ssh_said(&served, &going, "ssh_run", &asked)
        });
        eventually("the question is asked, and the command runs", || {
            let metrics = served.send("GET", "/metrics", &[("authorization", &staying)], "");
            metrics.body.contains("durward_approvals_waiting 1\n") && ran.exists()
        });
        keys(&served.place, &["revoke", "going"]);
        assert!(events.next().is_none(), "the stream ends");
        assert!(subscription.next().is_none(), "the subscription ends");
        let answer = waiting.join().unwrap();
        assert!(answer.body.contains("approval_withdrawn"), "{answer:?}");
        let answer = running.join().unwrap();
        assert_ne!(answer["result"]["isError"], false, "{answer}");
    });
    let ran = fs::read_to_string(ran).unwrap().trim().to_owned();
    eventually("the command ends at its host", || !runs(&ran));
    eventually("the job ends at its host", || !runs(&ended_job));
    assert!(runs(&kept_job), "the other key's job goes on");
    keys(&served.place, &["revoke", "staying"]);
    eventually("the other job ends with its key", || !runs(&kept_job));
}
