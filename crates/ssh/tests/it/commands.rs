//! What a command gets and gives.

use serde_json::{Value, json};

use crate::target::{Client, Target, has};

/// What the protocol gives as text or base64, as bytes in hexadecimal is not needed: texts alone.
fn streams(said: &Value) -> (&str, &str, &Value, &Value) {
    let data = &said["structuredContent"];
    (
        data["stdout"].as_str().unwrap(),
        data["stderr"].as_str().unwrap(),
        &data["exit_code"],
        &data["signal"],
    )
}

#[tokio::test]
async fn output_errors_code_and_signal_come_apart() {
    if !has("sshd") {
        return;
    }
    let target = Target::new("");
    let client = target.client();
    let session = client.connect("web").await;
    let said = client
        .run(&session, "sh -c 'echo out; echo err >&2; exit 7'")
        .await
        .unwrap();
    assert_eq!(
        streams(&said),
        ("out\n", "err\n", &json!(7), &Value::Null),
        "{said}"
    );
    assert_eq!(
        said["content"][0]["text"],
        "out\n[stderr]\nerr\n[exit code 7]"
    );
    let said = client.run(&session, "sh -c 'kill -9 $$'").await.unwrap();
    assert_eq!(
        streams(&said),
        ("", "", &Value::Null, &json!("KILL")),
        "{said}"
    );
    let said = client.run(&session, "true").await.unwrap();
    assert_eq!(streams(&said), ("", "", &json!(0), &Value::Null));
    // Bytes that are no text.
    let said = client.run(&session, r"printf '\000\377'").await.unwrap();
    assert_eq!(
        (
            &said["structuredContent"]["stdout"],
            &said["structuredContent"]["stdout_encoding"]
        ),
        (&json!("AP8="), &json!("base64"))
    );
    // What it reads is what was given, and it does not wait for more.
    let read = json!({"session_id": session, "command": "wc -c", "stdin": "five5"});
    let said = client.call("ssh_run", read).await.unwrap();
    assert_eq!(streams(&said).0, "5\n");
    let said = client.run(&session, "cat").await.unwrap();
    assert_eq!(streams(&said), ("", "", &json!(0), &Value::Null));
    let said = client
        .call("ssh_hostname", json!({"session_id": session}))
        .await
        .unwrap();
    let own = std::process::Command::new("hostname").output().unwrap();
    let own = String::from_utf8(own.stdout).unwrap();
    assert_eq!(said["structuredContent"], json!({"hostname": own.trim()}));
}

#[tokio::test]
async fn a_long_output_is_kept_whole_read_in_parts_and_searched() {
    if !has("sshd") {
        return;
    }
    let target = Target::new("");
    let client = Client::keeping(
        target.hosts("limits: { answer_bytes_max: 1000 }\n"),
        &target.folder,
    );
    let session = client.connect("web").await;
    let said = client
        .run(&session, "sh -c 'seq 1 200000; echo last >&2'")
        .await
        .unwrap();
    let data = &said["structuredContent"];
    let whole: String = (1..=200_000).map(|number| format!("{number}\n")).collect();
    assert_eq!(
        (&data["truncated"], &data["stdout_bytes"], &data["stderr"]),
        (&json!(true), &json!(whole.len()), &json!("last\n")),
        "{data}"
    );
    assert_eq!(
        (
            data["stdout"].as_str().unwrap(),
            &data["whole"]["dropped_bytes"]
        ),
        (&whole[..1000], &json!(0))
    );
    let output = data["whole"]["output"].as_str().unwrap();
    let mut read = String::new();
    let mut at = json!(0);
    while !at.is_null() {
        let said = client
            .call(
                "ssh_read_output",
                json!({"output": output, "at": at, "bytes": 300_000}),
            )
            .await
            .unwrap();
        let part = &said["structuredContent"];
        read.push_str(part["content"].as_str().unwrap());
        at = part["next"].clone();
    }
    assert!(read == whole, "{} of {} bytes", read.len(), whole.len());
    let said = client
        .call(
            "ssh_read_output",
            json!({"output": output, "grep": "^19999[89]$", "context": 1}),
        )
        .await
        .unwrap();
    let lines: Vec<&str> = said["structuredContent"]["lines"]
        .as_array()
        .unwrap()
        .iter()
        .map(|line| line["content"].as_str().unwrap().trim_end())
        .collect();
    assert_eq!(lines, ["199997", "199998", "199999", "200000"], "{said}");
    let said = client
        .call(
            "ssh_read_output",
            json!({"output": output, "stream": "stderr"}),
        )
        .await
        .unwrap();
    assert_eq!(said["structuredContent"]["content"], "last\n");
    // It is its caller's alone.
    let eve = client.trial.session("eve");
    let said = client
        .trial
        .call(&eve, "eve", "ssh_read_output", json!({"output": output}))
        .await
        .unwrap();
    assert_eq!(said["isError"], true, "{said}");
    // What fits is in its answer, and is not kept.
    let said = client.run(&session, "echo short").await.unwrap();
    assert_eq!(said["structuredContent"]["whole"], Value::Null);
}
