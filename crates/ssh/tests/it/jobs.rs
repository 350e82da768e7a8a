//! Jobs go on without us, and what is told of them is so.

use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::stopping::runs;
use crate::target::{Client, NO_SFTP, Target, end, has};

/// How long anything may take before a test fails.
const PATIENCE: Duration = Duration::from_secs(60);

async fn start(client: &Client, session: &str, command: &str) -> Value {
    let call = json!({"session_id": session, "command": command});
    told(client.call("ssh_job_start", call).await.unwrap())
}

fn told(said: Value) -> Value {
    assert_ne!(said["isError"], true, "{said}");
    said["structuredContent"].clone()
}

async fn ended(client: &Client, job: &Value) -> Value {
    let began = Instant::now();
    loop {
        let call = json!({"job": job["job"], "wait_ms": 20_000});
        let status = told(client.call("ssh_job_status", call).await.unwrap());
        if status["state"] != "running" && status["state"] != "queued" {
            return status;
        }
        assert!(began.elapsed() < PATIENCE, "{status}");
    }
}

async fn output(client: &Client, job: &Value, more: Value) -> Value {
    let mut call = json!({"job": job["job"]});
    call.as_object_mut()
        .unwrap()
        .extend(more.as_object().unwrap().clone());
    told(client.call("ssh_job_output", call).await.unwrap())
}

/// What a host has of jobs.
fn left(job: &Value) -> bool {
    let id = job["job"].as_str().unwrap().split_once(':').unwrap().1;
    ["/tmp", "/root"].iter().any(|home| {
        Path::new(home)
            .join(".cache/durward/jobs")
            .join(id)
            .exists()
    })
}

#[tokio::test]
async fn a_job_is_read_while_it_runs_and_after_its_end() {
    if !has("sshd") {
        return;
    }
    let target = Target::new("");
    let client = Client::keeping(target.hosts(""), &target.folder);
    let session = client.connect("web").await;
    let gate = target.folder.join("go");
    let script = format!(
        "echo one; echo oops >&2; printf '\\000\\377'; while [ ! -e {} ]; do sleep 0.1; done; cat; echo two; exit 3",
        gate.display()
    );
    let script = target.script("script", &script);
    let call = json!({"session_id": session, "command": script, "stdin": "fed\n"});
    let job = told(client.call("ssh_job_start", call).await.unwrap());
    assert_eq!(
        (&job["state"], &job["host"]),
        (&json!("running"), &json!("web")),
        "{job}"
    );
    let began = Instant::now();
    loop {
        let errors = output(&client, &job, json!({"stream": "stderr"})).await;
        if errors["content"] == "oops\n" {
            break;
        }
        assert!(began.elapsed() < PATIENCE, "{errors}");
    }
    // The session's end does not end it.
    client
        .call("ssh_disconnect", json!({"session_id": session}))
        .await
        .unwrap();
    std::fs::write(gate, "").unwrap();
    let status = ended(&client, &job).await;
    assert_eq!(
        (
            &status["state"],
            &status["exit_code"],
            &status["error"]["code"]
        ),
        (&json!("failed"), &json!(3), &json!("exit_code")),
        "{status}"
    );
    assert_eq!(
        (&status["stdout_bytes"], &status["stderr_bytes"]),
        (&json!(14), &json!(5))
    );
    let whole = output(&client, &job, json!({})).await;
    assert_eq!(whole["encoding"], "base64", "{whole}");
    use base64::Engine as _;
    let bytes = base64::engine::general_purpose::STANDARD
        .decode(whole["content"].as_str().unwrap())
        .unwrap();
    assert_eq!(bytes, b"one\n\0\xfffed\ntwo\n");
    let found = output(&client, &job, json!({"grep": "^t.o"})).await;
    assert_eq!(found["lines"][0]["content"], "two", "{found}");
    let part = output(&client, &job, json!({"at": 10, "bytes": 4})).await;
    assert_eq!(part["content"], "two\n");
    // Nothing of it is left at the host.
    let began = Instant::now();
    while left(&job) {
        assert!(began.elapsed() < PATIENCE);
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn a_job_outlives_its_connection_and_starts_once_under_its_key() {
    if !has("sshd") {
        return;
    }
    let target = Target::new("");
    let client = Client::keeping(target.hosts(""), &target.folder);
    let session = client.connect("web").await;
    let (gate, count) = (target.folder.join("go"), target.open_file("count"));
    let script = format!(
        "echo begun >>{}; while [ ! -e {} ]; do sleep 0.1; done; echo over",
        count.display(),
        gate.display()
    );
    let script = target.script("script", &script);
    let call = json!({"session_id": session, "command": script, "idempotency_key": "k1"});
    let job = told(client.call("ssh_job_start", call.clone()).await.unwrap());
    target.cut();
    let again = told(client.call("ssh_job_start", call.clone()).await.unwrap());
    assert_eq!(again["job"], job["job"]);
    let mut other = call;
    other["command"] = "echo other".into();
    let said = client.call("ssh_job_start", other).await.unwrap();
    assert_eq!(said["isError"], true);
    assert!(said.to_string().contains("idempotency key"), "{said}");
    std::fs::write(gate, "").unwrap();
    let status = ended(&client, &job).await;
    assert_eq!(
        (&status["state"], &status["exit_code"]),
        (&json!("succeeded"), &json!(0)),
        "{status}"
    );
    assert_eq!(output(&client, &job, json!({})).await["content"], "over\n");
    assert_eq!(std::fs::read_to_string(count).unwrap(), "begun\n");
}

#[tokio::test]
async fn a_cancelled_job_is_dead_with_all_that_it_started() {
    if !has("sshd") {
        return;
    }
    let target = Target::new("");
    let client = Client::keeping(target.hosts(""), &target.folder);
    let session = client.connect("web").await;
    let job = start(
        &client,
        &session,
        "sh -c 'trap \"\" TERM; setsid sleep 39341.1 & sleep 39341.2; sleep 39341.3'",
    )
    .await;
    while !runs("39341.1") || !runs("39341.2") {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let other = client.trial.session("eve");
    let said = client
        .trial
        .call(&other, "eve", "ssh_job_cancel", json!({"job": job["job"]}))
        .await
        .unwrap();
    assert!(said.to_string().contains("no such job"), "{said}");
    let call = json!({"job": job["job"]});
    let said = told(client.call("ssh_job_cancel", call.clone()).await.unwrap());
    let status = ended(&client, &job).await;
    assert_eq!(
        (&status["state"], &status["exit_code"]),
        (&json!("cancelled"), &Value::Null),
        "{said} {status}"
    );
    for word in ["39341.1", "39341.2", "39341.3"] {
        assert!(!runs(word), "{word}");
    }
    // A second time changes nothing.
    let said = told(client.call("ssh_job_cancel", call).await.unwrap());
    assert_eq!(said["state"], "cancelled");
}

#[tokio::test]
async fn a_job_that_takes_too_long_or_writes_too_much_is_bounded_and_one_that_is_killed_is_lost() {
    if !has("sshd") {
        return;
    }
    let target = Target::new("");
    let hosts = target.hosts("limits: { job_stream_bytes_max: 4096 }\n");
    let client = Client::keeping(hosts, &target.folder);
    let session = client.connect("web").await;
    let call = json!({"session_id": session, "command": "sleep 39342.1", "timeout_ms": 1000});
    let late = told(client.call("ssh_job_start", call).await.unwrap());
    let long = start(&client, &session, "seq 100000").await;
    let status = ended(&client, &long).await;
    assert_eq!(
        (
            &status["state"],
            &status["stdout_bytes"],
            &status["truncated"]
        ),
        (&json!("succeeded"), &json!(4096), &json!(true)),
        "{status}"
    );
    assert_eq!(ended(&client, &late).await["state"], "timeout");
    while runs("39342.1") {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let missing = start(&client, &session, "no-such-program-here").await;
    assert_eq!(ended(&client, &missing).await["exit_code"], 127);
    let lost = start(
        &client,
        &session,
        "sh -c 'kill -9 $PPID; exec sleep 39342.2'",
    )
    .await;
    while !runs("39342.2") {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    end("39342.2");
    let status = ended(&client, &lost).await;
    assert_eq!(status["error"]["code"], "job_lost", "{status}");
}

#[tokio::test]
async fn what_cannot_be_a_job_is_refused_and_says_why() {
    if !has("sshd") {
        return;
    }
    let target = Target::new(NO_SFTP);
    let client = Client::new(target.hosts(""), None);
    let session = client.connect("web").await;
    let call = json!({"session_id": session, "command": "id"});
    let said = client.call("ssh_job_start", call).await.unwrap();
    assert!(said.to_string().contains("no jobs are kept here"), "{said}");
    let client = Client::keeping(target.hosts(""), &target.folder);
    for (job, wrong) in [
        ("nothing", "must be the name that ssh_job_start gave"),
        ("web:job_nothing", "there is no such job"),
        ("nowhere:job_nothing", "there is no such job"),
    ] {
        for tool in ["ssh_job_status", "ssh_job_output", "ssh_job_cancel"] {
            let said = client.call(tool, json!({"job": job})).await;
            let said = said.map_or_else(|wrong| wrong, |said| said.to_string());
            assert!(said.contains(wrong), "{tool} {job}: {said}");
        }
    }
}
