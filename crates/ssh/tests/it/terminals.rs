//! Programs on a terminal of a real sshd: typed to, waited for, and ended.

use std::fs;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::target::{Client, Target, has};

/// How long a test waits for what has to come, in milliseconds.
const WAIT_MS: u64 = 60_000;

struct On {
    target: Target,
    client: Client,
    session: String,
}

impl On {
    async fn new(policy: Option<&str>) -> Self {
        let target = Target::new("");
        let client = Client::new(target.hosts("limits: { terminals_max: 2 }\n"), policy);
        let session = client.connect("web").await;
        Self {
            target,
            client,
            session,
        }
    }

    async fn call(&self, tool: &str, more: Value) -> Result<Value, String> {
        let mut arguments = json!({"session_id": self.session});
        let members = arguments.as_object_mut().unwrap();
        members.extend(more.as_object().unwrap().clone());
        let said = self.client.call(tool, arguments).await?;
        match said["isError"] == true {
            true => Err(said.to_string()),
            false => Ok(said["structuredContent"].clone()),
        }
    }

    async fn open(&self, command: &str, wait_for: &str) -> Value {
        let more = json!({"command": command, "columns": 100, "rows": 30, "wait_for": wait_for, "wait_ms": WAIT_MS});
        let told = self.call("ssh_terminal_open", more).await.unwrap();
        assert!(told["matched"].is_string(), "{told}");
        told
    }

    async fn send(&self, terminal: &Value, text: &str, wait_for: &str) -> Value {
        let more = json!({"terminal": terminal["terminal"], "text": text, "wait_for": wait_for, "wait_ms": WAIT_MS});
        self.call("ssh_terminal_send", more).await.unwrap()
    }
}

const ASKS: &str = "stty size; printf 'name? '; read name; echo \"hello $name\"; echo oops >&2; exec sh -c 'trap \"echo stopped; exit 3\" INT; echo armed; while :; do sleep 0.1; done'";

#[tokio::test]
async fn a_program_is_typed_to_and_what_it_shows_is_waited_for() {
    if !has("sshd") {
        return;
    }
    let on = On::new(None).await;
    let command = on.target.script("asks", ASKS);
    let told = on.open(&command, r"name\? $").await;
    assert!(
        told["text"].as_str().unwrap().starts_with("30 100\n"),
        "{told}"
    );
    assert_eq!(told["running"], true);
    let said = on.send(&told, "ada", "armed").await;
    let text = said["text"].as_str().unwrap();
    assert!(
        ["ada\n", "hello ada\n", "oops\n"]
            .iter()
            .all(|part| text.contains(part)),
        "{said}"
    );
    let again =
        json!({"terminal": told["terminal"], "from": told["next"], "wait_for": "hello (\\w+)"});
    let again = on.call("ssh_terminal_read", again).await.unwrap();
    assert_eq!(again["matched"], "hello ada", "{again}");
    let none = json!({"terminal": told["terminal"], "wait_for": "never", "wait_ms": 50});
    let none = on.call("ssh_terminal_read", none).await.unwrap();
    assert!(
        none["matched"].is_null() && none["running"] == true,
        "{none}"
    );
    // Ctrl-C reaches what runs there.
    let said = on.send(&told, "\u{3}", "stopped").await;
    assert_eq!(said["matched"], "stopped", "{said}");
    let over =
        json!({"terminal": told["terminal"], "wait_for": "no such text", "wait_ms": WAIT_MS});
    let over = on.call("ssh_terminal_read", over).await.unwrap();
    assert_eq!(
        (&over["running"], &over["exit_code"]),
        (&json!(false), &json!(3)),
        "{over}"
    );
    let more = json!({"terminal": told["terminal"], "text": "late"});
    let wrong = on.call("ssh_terminal_send", more).await.unwrap_err();
    assert!(wrong.contains("terminal_ended"), "{wrong}");
}

#[tokio::test]
async fn a_terminal_that_is_closed_or_whose_session_ends_leaves_nothing_running() {
    if !has("sshd") {
        return;
    }
    let on = On::new(None).await;
    let stays = |name: &str| {
        let mark = on.target.open_file(name);
        let script = format!(
            "echo $$ > {}; echo ready; trap '' HUP; while :; do sleep 0.1; done",
            mark.display()
        );
        (on.target.script(&format!("{name}.sh"), &script), mark)
    };
    let gone = |mark: &std::path::Path| {
        let pid = fs::read_to_string(mark).unwrap().trim().to_owned();
        let began = Instant::now();
        while std::path::Path::new(&format!("/proc/{pid}/stat")).exists() {
            assert!(
                began.elapsed() < Duration::from_secs(30),
                "{pid} still runs"
            );
            std::thread::yield_now();
        }
    };
    let (command, mark) = stays("one");
    let told = on.open(&command, "ready").await;
    let named = json!({"terminal": told["terminal"]});
    let closed = on.call("ssh_terminal_close", named.clone()).await.unwrap();
    assert_eq!(closed["running"], false, "{closed}");
    let pid = fs::read_to_string(&mark).unwrap().trim().to_owned();
    let is_there = std::path::Path::new(&format!("/proc/{pid}/stat")).exists();
    assert!(closed["seen_dead"] != true || !is_there, "{closed}");
    gone(&mark);
    let wrong = on.call("ssh_terminal_read", named).await.unwrap_err();
    assert!(wrong.contains("unknown_terminal"), "{wrong}");
    let (command, mark) = stays("two");
    on.open(&command, "ready").await;
    let (command, other) = stays("three");
    on.open(&command, "ready").await;
    let wrong = on
        .call("ssh_terminal_open", json!({"command": "id"}))
        .await
        .unwrap_err();
    assert!(wrong.contains("too_many_terminals"), "{wrong}");
    on.call("ssh_disconnect", json!({})).await.unwrap();
    let both = tokio::task::spawn_blocking(move || (gone(&mark), gone(&other)));
    both.await.unwrap();
}

#[tokio::test]
async fn what_is_typed_is_judged_with_the_program_that_reads_it() {
    if !has("sshd") {
        return;
    }
    let on = On::new(Some(&ssh::rules::policy())).await;
    for (command, rule) in [
        ("top -bn1", "a person has to be asked"),
        ("sh", "default"),
        ("cat /etc/shadow", "ssh-deny-secrets"),
    ] {
        let wrong = on
            .call("ssh_terminal_open", json!({"command": command}))
            .await;
        let wrong = wrong.unwrap_err();
        assert!(
            wrong.contains(rule) || wrong.contains("no rule"),
            "{command}: {wrong}"
        );
    }
    let policy = r#"{"rules":[
        {"id":"all","effect":"allow","conditions":{"tool_name":["ssh_connect","ssh_terminal_open","ssh_terminal_read"]}},
        {"id":"yes","effect":"allow","conditions":{"tool_name":"ssh_terminal_send","program":"cat","when":"typed == 'yes\\r'"}}]}"#;
    let on = On::new(Some(policy)).await;
    let told = on
        .call("ssh_terminal_open", json!({"command": "cat", "wait_ms": 0}))
        .await
        .unwrap();
    let said = on.send(&told, "yes", "yes\nyes").await;
    assert!(said["matched"].is_string(), "{said}");
    for text in ["no", "yes; id", "yes\r"] {
        let more = json!({"terminal": told["terminal"], "text": text});
        let wrong = on.call("ssh_terminal_send", more).await.unwrap_err();
        assert!(!wrong.contains("isError"), "refused by the rules: {wrong}");
    }
    let other = json!({"command": "sh", "wait_ms": 0});
    let other = on.call("ssh_terminal_open", other).await.unwrap();
    let more = json!({"terminal": other["terminal"], "text": "yes"});
    let wrong = on.call("ssh_terminal_send", more).await.unwrap_err();
    assert!(!wrong.contains("isError"), "another program: {wrong}");
    for (tool, more, said) in [
        (
            "ssh_terminal_open",
            json!({"command": "sudo id"}),
            "no_sudo",
        ),
        (
            "ssh_terminal_open",
            json!({"command": "id", "wait_for": "("}),
            "wait_for",
        ),
        (
            "ssh_terminal_open",
            json!({"command": "id", "columns": 0}),
            "columns",
        ),
        (
            "ssh_terminal_read",
            json!({"terminal": "term_x"}),
            "unknown_terminal",
        ),
    ] {
        let wrong = on.call(tool, more).await.unwrap_err();
        assert!(wrong.contains(said), "{said}: {wrong}");
    }
    let records = on.client.trial.records().unwrap();
    let text = serde_json::to_string(&records).unwrap();
    assert!(!text.contains("yes; id"), "what is typed is a digest there");
}

#[tokio::test]
async fn a_terminal_is_recorded_and_a_changed_recording_is_told() {
    if !has("sshd") {
        return;
    }
    let target = Target::new("");
    fs::create_dir(target.folder.join("casts")).unwrap();
    let hosts = target.hosts("recordings: casts\nlimits: { recording_bytes_max: 20000 }\n");
    let client = Client::new(hosts, None);
    let session = client.connect("web").await;
    let on = On {
        target,
        client,
        session,
    };
    let secret = "canary-typed-in-the-dark";
    let script = "stty -echo; printf 'password: '; read p; stty echo; echo; echo thanks; cat";
    let told = on
        .open(&on.target.script("asks", script), "password: $")
        .await;
    on.send(&told, secret, "thanks").await;
    on.send(&told, "seen", "seen\nseen").await;
    let named = json!({"terminal": told["terminal"]});
    let closed = on.call("ssh_terminal_close", named).await.unwrap();
    let file = closed["recording"]["file"].as_str().unwrap();
    let path = on.target.folder.join("casts").join(file);
    let text = fs::read_to_string(&path).unwrap();
    let read = ssh::recording::read(&text).unwrap();
    assert_eq!(read.finding, None, "{text}");
    assert_eq!(closed["recording"]["hash"], read.hash.to_string());
    let shown: String = read
        .events
        .iter()
        .map(|event| event.text.as_str())
        .collect();
    assert!(
        shown.contains("thanks\r\n") && shown.contains("seen\r\nseen\r\n"),
        "{shown}"
    );
    assert!(!text.contains(secret), "what was not shown is not there");
    let at = text
        .lines()
        .position(|line| line.contains("thanks"))
        .unwrap()
        + 1;
    let changed = text.replacen("thanks", "thinks", 1);
    let finding = ssh::recording::read(&changed).unwrap().finding.unwrap();
    assert_eq!(finding.line, at, "{finding}");
    // What cannot be recorded does not go on.
    let command = on.target.script(
        "long",
        "while :; do echo 0123456789012345678901234567890123456789; done",
    );
    let told = on
        .call(
            "ssh_terminal_open",
            json!({"command": command, "wait_for": "no such text", "wait_ms": WAIT_MS}),
        )
        .await;
    let told = told.unwrap();
    assert_eq!(told["running"], false, "{told}");
    let file = told["recording"]["file"].as_str().unwrap();
    let text = fs::read_to_string(on.target.folder.join("casts").join(file)).unwrap();
    assert!(text.len() < 21_000);
    assert_eq!(ssh::recording::read(&text).unwrap().finding, None);
}
