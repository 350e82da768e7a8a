//! A change of a file at a host, as a person is asked about it; and the check of a recording.

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::ssh_server::{has_sshd, target};
use crate::support::guarded::{LATEST, Place, end, eventually, line};

/// Values that no record may have.
const SECRET: &str = "canary-77aa-value";

/// The shipped rules, a folder of files to be sent, and variables that may be set.
fn prepare(place: &Place) {
    let rules = place.durward(&["ssh", "rules"]);
    let mut rules: Value = serde_json::from_slice(&rules.stdout).unwrap();
    let all = rules["rules"].as_array_mut().unwrap();
    // Below the test's own folder nothing is refused by the place.
    all.retain(|rule| rule["id"] != "ssh-deny-other-roots");
    place.write_policy(&rules.to_string());
    let hosts = fs::read_to_string(place.path("ssh_hosts.yaml")).unwrap();
    fs::write(
        place.path("ssh_hosts.yaml"),
        format!("{hosts}env: [APP_*]\nlocal_folders: {{ drop: drop }}\n"),
    )
    .unwrap();
    fs::create_dir(place.path("drop")).unwrap();
}

/// The questions that wait, the oldest first.
fn waiting(place: &Place) -> Vec<Value> {
    let output = place.durward(&["approvals", "list", "--json"]);
    let text = String::from_utf8(output.stdout).unwrap();
    let read = |line| serde_json::from_str(line).ok();
    text.lines().filter_map(read).collect()
}

#[test]
fn a_change_of_a_file_is_shown_line_by_line_and_is_what_is_done() {
    if !has_sshd() {
        return;
    }
    let place = Place::new();
    let _sshd = target(&place);
    prepare(&place);
    let file = place.path("app.conf");
    fs::write(&file, "one\ntwo\nthree\n").unwrap();
    let mut client = place.guard_configured("durward.yaml", &[], "ssh");
    client.handshake(LATEST).unwrap();
    let said = client
        .call_tool("ssh_connect", json!({"host": "web"}))
        .unwrap();
    let session = said.result().unwrap()["structuredContent"]["session_id"].clone();
    let mut asked = |tool: &str, mut arguments: Value, answer: &str, meanwhile: &dyn Fn()| {
        arguments["session_id"] = session.clone();
        let params = json!({"name": tool, "arguments": arguments});
        client.send_request("tools/call", params).unwrap();
        eventually("a question waits", || !waiting(&place).is_empty());
        let question = waiting(&place).remove(0);
        meanwhile();
        let id = question["id"].as_str().unwrap();
        assert!(place.durward(&["approvals", answer, id]).status.success());
        (question, line(&mut client))
    };
    let nothing = || {};
    let at = file.display().to_string();
    let edits = json!([{"old_text": "two\n", "new_text": "2\nzwei\n"}]);
    let arguments = json!({"path": at, "edits": edits});
    let (question, _) = asked("ssh_edit_file", arguments.clone(), "deny", &nothing);
    let shown = json!([
        format!("{at}: 1 text of the file replaced, 1 line removed, 2 added"),
        "-two",
        "+2",
        "+zwei"
    ]);
    assert_eq!(question["change"], shown, "{question}");
    assert_eq!(fs::read_to_string(&file).unwrap(), "one\ntwo\nthree\n");
    let (_, done) = asked("ssh_edit_file", arguments, "allow", &nothing);
    assert!(done.to_string().contains("sha256_before"), "{done}");
    assert_eq!(fs::read_to_string(&file).unwrap(), "one\n2\nzwei\nthree\n");
    // A file that is sent is shown beside what it replaces, and is what was shown.
    let sent = place.path("drop/app.conf");
    fs::write(&sent, "one\nzwei\nfour\n").unwrap();
    let put = json!({"path": at, "local": "drop/app.conf", "overwrite": true});
    let (question, _) = asked("ssh_put", put.clone(), "deny", &nothing);
    let shown = json!([
        format!("{at}: 2 lines removed, 1 added"),
        " one",
        "-2",
        " zwei",
        "-three",
        "+four"
    ]);
    assert_eq!(question["change"], shown, "{question}");
    let (_, done) = asked("ssh_put", put, "allow", &nothing);
    assert!(done.to_string().contains("sha256"), "{done}");
    assert_eq!(fs::read_to_string(&file).unwrap(), "one\nzwei\nfour\n");
    let other = json!({"path": format!("{at}.new"), "local": "drop/app.conf"});
    let (question, _) = asked("ssh_put", other.clone(), "deny", &nothing);
    let first = question["change"][0].as_str().unwrap();
    assert!(
        first.ends_with("a new file, 0 lines removed, 3 added"),
        "{first}"
    );
    let before = || fs::write(&sent, "something else\n").unwrap();
    let (_, done) = asked("ssh_put", other, "allow", &before);
    assert!(
        done.to_string().contains("has changed since it was shown"),
        "{done}"
    );
    assert!(!place.path("app.conf.new").exists());
    let run = json!({"command": "printenv APP_KEY", "cwd": "/tmp", "env": {"APP_KEY": SECRET}});
    let (question, done) = asked("ssh_run_command", run, "allow", &nothing);
    assert_eq!(question["rule"], "ssh-ask-variables", "{question}");
    assert!(
        done.to_string().contains(SECRET),
        "the program has it: {done}"
    );
    assert_eq!(end(client).code, Some(0));
    let journal = place.journal();
    let decided = journal.decisions();
    let of_env = decided
        .iter()
        .find(|record| record.to_string().contains("env_names"));
    let of_env = of_env.unwrap().to_string();
    assert!(
        of_env.contains("APP_KEY") && of_env.contains("\"cwd\":\"/tmp\""),
        "{of_env}"
    );
    assert!(
        !decided
            .iter()
            .any(|record| record.to_string().contains(SECRET))
    );
}

#[test]
fn a_yes_to_one_of_two_questions_about_a_file_sends_what_that_one_showed() {
    if !has_sshd() {
        return;
    }
    let place = Place::new();
    let _sshd = target(&place);
    prepare(&place);
    let sent = place.path("drop/app.conf");
    let at = place.path("app.conf").display().to_string();
    let mut client = place.guard_configured("durward.yaml", &[], "ssh");
    client.handshake(LATEST).unwrap();
    let said = client
        .call_tool("ssh_connect", json!({"host": "web"}))
        .unwrap();
    let session = said.result().unwrap()["structuredContent"]["session_id"].clone();
    for (number, text) in ["harmless\n", "evil\n"].into_iter().enumerate() {
        fs::write(&sent, text).unwrap();
        let arguments =
            json!({"session_id": session, "path": at, "local": "drop/app.conf", "overwrite": true});
        let params = json!({"name": "ssh_put", "arguments": arguments});
        client.send_request("tools/call", params).unwrap();
        eventually("it is asked", || waiting(&place).len() == number + 1);
    }
    let all = waiting(&place);
    let shows = |text: &str| {
        let shows = |question: &&Value| question["change"].to_string().contains(text);
        let question = all.iter().find(shows).unwrap();
        question["id"].as_str().unwrap().to_owned()
    };
    let (harmless, evil) = (shows("+harmless"), shows("+evil"));
    let answer = |answer: &str, id: &str| {
        assert!(place.durward(&["approvals", answer, id]).status.success());
    };
    answer("allow", &harmless);
    let told = line(&mut client).to_string();
    assert!(told.contains("has changed since it was shown"), "{told}");
    assert!(!place.path("app.conf").exists());
    answer("allow", &evil);
    let told = line(&mut client).to_string();
    assert!(told.contains("sha256"), "{told}");
    assert_eq!(fs::read_to_string(&at).unwrap(), "evil\n");
    assert_eq!(end(client).code, Some(0));
}

#[test]
fn a_recording_is_checked_before_it_is_played() {
    let place = Place::new();
    let good = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/ssh.cast");
    let check = |file: &str, more: &[&str]| {
        let output = place.durward(&[&["ssh", "replay", file], more].concat());
        let text = [output.stdout, output.stderr].concat();
        (
            output.status.code(),
            String::from_utf8_lossy(&text).into_owned(),
        )
    };
    let (code, said) = check(good, &["--speed", "1000"]);
    assert!(code == Some(0) && said.contains("hello ada\r\n"), "{said}");
    let (code, said) = check(good, &["--check"]);
    assert!(code == Some(0) && !said.contains("hello ada"), "{said}");
    let hash = said.trim_end().rsplit(' ').next().unwrap().to_owned();
    assert_eq!(check(good, &["--check", "--hash", &hash]).0, Some(0));
    assert_eq!(check(good, &["--check", "--hash", "00"]).0, Some(1));
    let other: PathBuf = place.path("other.cast");
    let text = fs::read_to_string(good).unwrap();
    let number = text
        .lines()
        .position(|line| line.contains("hello ada"))
        .unwrap()
        + 1;
    fs::write(&other, text.replace("hello ada", "hello eve")).unwrap();
    let (code, said) = check(other.to_str().unwrap(), &[]);
    assert!(
        code == Some(1) && said.contains(&format!("line {number}:")),
        "{said}"
    );
    assert!(!said.contains("hello eve"), "nothing is played: {said}");
    fs::write(&other, "no recording").unwrap();
    assert_eq!(check(other.to_str().unwrap(), &[]).0, Some(16));
    assert_eq!(check("nowhere.cast", &[]).0, Some(16));
}
