//! What goes wrong around runs: nobody reads, the disk is full, many come at once, and a run is given up.

use std::fs;
use std::io::{BufReader, Read};
use std::path::Path;

use mcp::client::Client;
use serde_json::{Value, json};

use super::{call, client, load, place, run};
use crate::support::components::repository;
use crate::support::guarded::{LATEST, Place, binary, end, eventually, most_resident_kib, pause};
use crate::support::serving::{Served, write_request};

/// The model with so many output times that a hundred individuals are a chunk of 12 MB.
fn dense(place: &Place) {
    let model = repository().join("crates/pbpk/examples/two_compartment.xml");
    let model = fs::read_to_string(model).unwrap();
    let (before, rest) = model.split_once("<OutputIntervalList>").unwrap();
    let (_, after) = rest.split_once("</OutputIntervalList>").unwrap();
    let interval = r#"<OutputInterval distribution="Uniform"><StartTime>0</StartTime><EndTime>2880</EndTime><NumberOfTimePoints>5001</NumberOfTimePoints></OutputInterval>"#;
    let dense = format!("{before}<OutputIntervalList>{interval}</OutputIntervalList>{after}");
    fs::write(place.path("models/dense.xml"), dense).unwrap();
}

fn load_dense() -> Value {
    json!({"filePath": "dense.xml", "simulationId": "sim", "confirm": true})
}

/// Ticks of the processor that a process and its children, ended ones left out, have had.
fn ticks(pid: u32) -> u64 {
    let mut all = 0;
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let stat = fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
        let fields: Vec<&str> = stat
            .rsplit(") ")
            .next()
            .map_or_else(Vec::new, |rest| rest.split(' ').collect());
        let parent = fields.get(1).and_then(|field| field.parse().ok());
        if parent == Some(pid) {
            let of = |at: usize| fields[at].parse::<u64>().unwrap_or(0);
            all += of(11) + of(12);
        }
    }
    all
}

/// The workers of the client's server do nothing any more.
#[track_caller]
fn workers_rest(client: &mut Client) {
    let pid = client.process().pid();
    let before = ticks(pid);
    pause(300);
    // A worker that went on would have had thirty ticks by now.
    assert!(ticks(pid) <= before + 2, "{before} {}", ticks(pid));
}

fn large(seconds: f64) -> Value {
    json!({"simulationId": "sim", "cohort": {"size": 500_000}, "timeoutSeconds": seconds, "confirm": true})
}

#[test]
fn defect_11_when_a_caller_is_told_of_an_end_the_solver_has_stopped() {
    let place = place();
    let mut client = client(&place);
    call(&mut client, "load_simulation", load());
    let tool = "run_population_simulation";
    let cancelled = call(&mut client, tool, large(300.0))["jobId"].clone();
    eventually("the run begins", || {
        let told = call(&mut client, "get_job_status", json!({"jobId": cancelled}));
        told["progress"]["done"].as_f64() > Some(0.0)
    });
    let told = call(&mut client, "cancel_job", json!({"jobId": cancelled}));
    assert_eq!(told["status"], "cancelled");
    workers_rest(&mut client);
    let late = call(&mut client, tool, large(1.0))["jobId"].clone();
    let waits = json!({"jobId": late, "waitSeconds": 120});
    assert_eq!(
        call(&mut client, "get_job_status", waits)["status"],
        "timeout"
    );
    workers_rest(&mut client);
    assert_eq!(end(client).code, Some(0));
}

#[test]
fn ten_gigabytes_that_nobody_reads_take_no_memory() {
    const CLIENTS: usize = 100;
    /// Requests on each connection, sent at once and answered one after another.
    const REQUESTS: usize = 9;
    let place = place();
    dense(&place);
    let served = Served::start_configured(place);
    let post = |path: &str, body: Value| served.send("POST", path, &[], &body.to_string()).json();
    post("/load_simulation", load_dense());
    let asked = json!({"simulationId": "sim", "cohort": {"size": 100}, "modelPath": "dense.xml", "confirm": true});
    let job = post("/run_population_simulation", asked)["jobId"].clone();
    let waits = json!({"jobId": job, "waitSeconds": 120});
    let done = post(
        "/mcp/call_tool",
        json!({"tool": "get_job_status", "arguments": waits}),
    );
    let name = done["structuredContent"]["resultId"]
        .as_str()
        .unwrap()
        .to_owned();
    let told = post("/get_population_results", json!({"resultsId": name}));
    let chunk = &told["chunks"][0];
    let bytes = chunk["sizeBytes"].as_u64().unwrap();
    assert!(
        bytes * (CLIENTS * REQUESTS) as u64 > 10_000_000_000,
        "{bytes}"
    );
    let path = format!("{}?format=columns", chunk["uri"].as_str().unwrap());
    let before = most_resident_kib(served.process.id());
    let readers: Vec<BufReader<std::net::TcpStream>> = (0..CLIENTS)
        .map(|_| {
            let mut stream = served.connect();
            for _ in 0..REQUESTS {
                write_request(&mut stream, "GET", &path, &[], "");
            }
            let mut reader = BufReader::new(stream);
            // The answer has begun, and a piece of it is read.
            assert_eq!(read_status(&mut reader), 200);
            let mut piece = vec![0; 10_000];
            reader.read_exact(&mut piece).unwrap();
            reader
        })
        .collect();
    pause(500);
    let grown = most_resident_kib(served.process.id()).saturating_sub(before);
    assert!(
        grown < 400 * 1024,
        "{grown} KiB for {CLIENTS} clients that do not read"
    );
    drop(readers);
    // The server goes on with others.
    assert_eq!(
        post(
            "/list_parameters",
            json!({"simulationId": "sim", "searchPattern": "*Weight"})
        )["parameters"]
            .as_array()
            .unwrap()
            .len(),
        1
    );
    let (code, _) = served.stop();
    assert_eq!(code, Some(0));
}

/// Reads the head of an answer whose body is left unread.
fn read_status(reader: &mut BufReader<std::net::TcpStream>) -> u16 {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        reader.read_exact(&mut byte).unwrap();
        head.push(byte[0]);
    }
    let line = String::from_utf8_lossy(&head);
    line.split(' ').nth(1).unwrap().parse().unwrap()
}

#[test]
fn results_that_find_no_room_on_the_disk_fail_their_own_run_only() {
    let place = place();
    dense(&place);
    // Blocks of 512 bytes: no file grows beyond 8 MiB.
    let script = r#"ulimit -f 16384; exec "$0" "$@""#;
    let flags = [
        "--config",
        "durward.yaml",
        "--state-dir",
        "state",
        "run",
        "--policy",
        "policy.json",
        "pbpk",
    ];
    let args = ["-c", script, binary()].into_iter().chain(flags);
    let mut client = Client::spawn_with("sh", args, &place.options()).unwrap();
    client.handshake(LATEST).unwrap();
    call(&mut client, "load_simulation", load_dense());
    let asked = json!({"simulationId": "sim", "cohort": {"size": 100}, "confirm": true});
    let job = call(&mut client, "run_population_simulation", asked)["jobId"].clone();
    let waits = json!({"jobId": job, "waitSeconds": 120});
    let done = call(&mut client, "get_job_status", waits);
    assert_eq!(done["status"], "failed", "{done}");
    assert!(
        !done["error"]["message"].as_str().unwrap().is_empty(),
        "{done}"
    );
    // What fits is kept.
    let name = run(&mut client, json!({}));
    let told = call(
        &mut client,
        "get_results",
        json!({"resultsId": name, "page": 1, "limit": 1}),
    );
    assert_eq!(told["series"][0]["values"].as_array().unwrap().len(), 5_001);
    assert_eq!(end(client).code, Some(0));
}

#[test]
fn what_a_run_leaves_that_fails_takes_no_room_from_others() {
    let place = place();
    dense(&place);
    let server =
        "servers: { pbpk: { builtin: simulation, models: [models], results_bytes: 8MiB } }\n";
    fs::write(place.path("durward.yaml"), server).unwrap();
    let mut client = client(&place);
    call(&mut client, "load_simulation", load_dense());
    let other =
        json!({"filePath": "two_compartment.xml", "simulationId": "small", "confirm": true});
    call(&mut client, "load_simulation", other);
    let small = json!({"simulationId": "small"});
    let kept = run(&mut client, small.clone());
    let files = || {
        let folder = place.path("state/servers/pbpk/place-0/outputs");
        fs::read_dir(folder).unwrap().count()
    };
    assert_eq!(files(), 1);
    // A chunk of 12 MB.
    let asked = json!({"simulationId": "sim", "cohort": {"size": 100}, "confirm": true});
    let job = call(&mut client, "run_population_simulation", asked)["jobId"].clone();
    let waits = json!({"jobId": job, "waitSeconds": 120});
    let done = call(&mut client, "get_job_status", waits);
    let said = done["error"]["message"].as_str().unwrap_or_default();
    assert!(said.contains("there is room for"), "{done}");
    eventually("its part is gone", || files() == 1);
    // Of this one some chunks fit, and the next one does not.
    let asked = json!({"simulationId": "small", "cohort": {"size": 500_000}, "confirm": true});
    let job = call(&mut client, "run_population_simulation", asked)["jobId"].clone();
    let waits = json!({"jobId": job, "waitSeconds": 120});
    let done = call(&mut client, "get_job_status", waits);
    assert_eq!(done["status"], "failed", "{done}");
    eventually("its chunks are gone", || files() == 1);
    // What was there is there, and there is room for more.
    call(&mut client, "get_results", json!({"resultsId": kept}));
    run(&mut client, small);
    assert_eq!(end(client).code, Some(0));
}

/// A disk of 24 MB of its own, in namespaces of its own: whatever else this machine holds is not touched.
#[test]
fn a_disk_that_is_full_fails_the_runs_that_find_no_room_and_keeps_what_was_there() {
    let place = place();
    dense(&place);
    fs::create_dir_all(place.path("small")).unwrap();
    let script = r#"mount -t tmpfs -o size=24m none small && exec "$0" "$@""#;
    let flags = [
        "--config",
        "durward.yaml",
        "--state-dir",
        "small/state",
        "run",
        "--policy",
        "policy.json",
        "pbpk",
    ];
    let args = ["--user", "--map-root-user", "--mount", "sh", "-c", script];
    let args = args.into_iter().chain([binary()]).chain(flags);
    let mut client = Client::spawn_with("unshare", args, &place.options()).unwrap();
    client.handshake(LATEST).unwrap();
    call(&mut client, "load_simulation", load_dense());
    let asked = json!({"simulationId": "sim", "cohort": {"size": 100}, "confirm": true});
    // 12 MB each.
    let ended: Vec<Value> = (0..4)
        .map(|_| {
            let job = call(&mut client, "run_population_simulation", asked.clone());
            let waits = json!({"jobId": job["jobId"], "waitSeconds": 120});
            call(&mut client, "get_job_status", waits)
        })
        .collect();
    assert_eq!(ended[0]["status"], "succeeded", "{ended:?}");
    for job in &ended[2..] {
        let said = job["error"]["message"].as_str().unwrap_or_default();
        assert_eq!(job["status"], "failed", "{job}");
        assert!(said.contains("No space left on device"), "{job}");
    }
    let name = &ended[0]["resultId"];
    let told = call(
        &mut client,
        "get_population_results",
        json!({"resultsId": name}),
    );
    let chunk =
        json!({"resultsId": name, "chunkId": told["chunks"][0]["chunkId"], "subjects": [99]});
    let curves = call(&mut client, "get_population_chunk", chunk);
    assert_eq!(
        curves["series"][0]["time"].as_array().unwrap().len(),
        5_001,
        "what was there is whole"
    );
    assert_eq!(end(client).code, Some(0));
}

#[test]
fn a_hundred_clients_at_once_each_get_their_own_results() {
    let served = Served::start_configured(place());
    let post = |path: &str, body: Value| {
        let answer = served.send("POST", path, &[], &body.to_string());
        assert!(answer.status < 300, "{path}: {answer:?}");
        answer.json()
    };
    post("/load_simulation", load());
    let one = |number: usize| {
        let name = format!("mine-{number}");
        let asked = json!({"simulationId": "sim", "runId": name, "confirm": true});
        let job = post("/run_simulation", asked)["jobId"].clone();
        let waits = json!({"jobId": job, "waitSeconds": 200});
        let waits = json!({"tool": "get_job_status", "arguments": waits});
        let done = post("/mcp/call_tool", waits)["structuredContent"].clone();
        assert_eq!(
            (&done["status"], &done["resultId"]),
            (&json!("succeeded"), &json!(name)),
            "{done}"
        );
        let told = post(
            "/get_simulation_results",
            json!({"resultsId": name, "outputs": ["**|Concentration"]}),
        );
        told["series"][0]["values"].clone()
    };
    let curves: Vec<Value> = std::thread::scope(|scope| {
        let one = &one;
        let threads: Vec<_> = (0..100)
            .map(|number| scope.spawn(move || one(number)))
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .collect()
    });
    assert!(curves[0].as_array().unwrap().len() > 100);
    assert!(
        curves.iter().all(|curve| *curve == curves[0]),
        "one model, one curve"
    );
}

#[test]
fn files_of_models_that_are_damaged_are_refused_with_their_place() {
    let place = place();
    let model = fs::read_to_string(place.path("models/two_compartment.xml")).unwrap();
    let half = &model[..model.len() / 2];
    let write = |name: &str, bytes: &[u8]| {
        fs::write(Path::new(&place.path("models")).join(name), bytes).unwrap()
    };
    write("half.xml", half.as_bytes());
    write("zeros.xml", &[0; 4096]);
    write("empty-file.xml", b"");
    write("page.pkml", b"<html><body>not found</body></html>");
    let mut client = client(&place);
    for name in ["half.xml", "zeros.xml", "empty-file.xml", "page.pkml"] {
        let file = json!({"filePath": name, "confirm": true});
        let failure = super::fails(&mut client, "load_simulation", file);
        let code = failure["code"].as_str().unwrap();
        assert!(
            matches!(code, "ModelInvalid" | "UnsupportedModel"),
            "{name}: {failure}"
        );
        assert!(!failure["message"].as_str().unwrap().is_empty());
    }
    call(&mut client, "load_simulation", load());
}
