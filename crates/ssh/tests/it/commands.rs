//! What a command gets and gives.

use serde_json::{Value, json};

use crate::target::{Target, has};

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
