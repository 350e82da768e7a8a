//! Words that look like paths and are none: rules see them, and programs get them as they are written.

use serde_json::json;

use crate::target::{Client, Target, has};

/// Everything may run, and nothing may touch one place.
const POLICY: &str = r#"{"rules":[
  {"id":"all","effect":"allow","conditions":{"tool_name":"ssh_*"}},
  {"id":"secret","effect":"deny","conditions":{"path_pattern":"/**/.ssh/**"}}]}"#;

#[tokio::test]
async fn words_that_are_no_paths_reach_their_program_as_they_are_written() {
    if !has("sshd") {
        return;
    }
    let target = Target::new("");
    let client = Client::new(target.hosts("env: [TZ, APP_*]\n"), Some(POLICY));
    let session = client.connect("web").await;
    // `echo` is no program that is known.
    for (words, cwd) in [
        ("run library/alpine", None),
        ("log origin/main", None),
        ("get deploy/web", None),
        ("-n s/a/b/p", None),
        ("-e s/a/b/p --since=10/10/2026", None),
        ("a/b x~ .c", None),
        ("a/b x~ .c", Some("/tmp")),
        ("1//2 http://127.0.0.1/x", None),
    ] {
        let mut call = json!({"session_id": session, "command": format!("printf [%s] {words}")});
        if let Some(cwd) = cwd {
            call["cwd"] = json!(cwd);
        }
        let said = client.call("ssh_run", call).await;
        let expected: String = words.split(' ').map(|word| format!("[{word}]")).collect();
        match said {
            Ok(said) => assert_eq!(said["structuredContent"]["stdout"], expected, "{said}"),
            Err(wrong) => panic!("{words}: {wrong}"),
        }
    }
    let call = json!({"session_id": session, "command": "date +%Z", "env": {"TZ": "Asia/Tokyo"}});
    let said = client.call("ssh_run", call).await.unwrap();
    assert_eq!(said["structuredContent"]["exit_code"], 0, "{said}");
    // What may be a path is judged as one.
    for command in [
        "printf %s .ssh/id_ed25519",
        "printf %s ~/.ssh/id_ed25519",
        "printf %s --key=.ssh/id_ed25519",
        "cat .ssh/id_ed25519",
    ] {
        let wrong = client.run(&session, command).await.unwrap_err();
        assert!(wrong.contains("\"secret\""), "{command}: {wrong}");
    }
}

#[tokio::test]
async fn a_relative_path_begins_where_the_login_does() {
    if !has("sshd") {
        return;
    }
    let target = Target::new("");
    let home = Client::new(target.hosts(""), None);
    let session = home.connect("web").await;
    let said = home.run(&session, "pwd -P").await.unwrap();
    let home = said["structuredContent"]["stdout"].as_str().unwrap().trim();
    let policy = format!(
        r#"{{"rules":[{{"id":"own","effect":"allow","conditions":{{"tool_name":"ssh_run","path_pattern":"{}/**"}}}},
        {{"id":"connect","effect":"allow","conditions":{{"tool_name":"ssh_connect"}}}}]}}"#,
        home.trim_end_matches('/')
    );
    let client = Client::new(target.hosts(""), Some(&policy));
    let session = client.connect("web").await;
    let name = target.folder.file_name().unwrap().to_str().unwrap();
    for (path, is_allowed) in [
        (format!("no-such-directory-{name}"), true),
        (format!("./no-such-directory-{name}"), true),
        ("../../../etc/hostname".to_owned(), false),
    ] {
        let call = json!({"session_id": session, "command": format!("cat {path}")});
        let said = client.call("ssh_run", call).await;
        assert_eq!(said.is_ok(), is_allowed, "{path}: {said:?}");
    }
}
