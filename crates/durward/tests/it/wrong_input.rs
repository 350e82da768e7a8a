//! What a newcomer gets wrong: each has an error that says what to do, and the exit code that the documentation names.

use std::fs;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use crate::support::guarded::{Place, eventually};
use crate::support::world::{World, binary};

/// A directory that nobody can make, not even root.
const NOWHERE: &str = "/proc/no-place-for-durward/state";

fn told(output: &Output) -> String {
    let err = String::from_utf8(output.stderr.clone()).unwrap();
    assert!(!err.contains("panicked"), "{err}");
    err
}

#[test]
fn a_line_without_a_command_is_answered_with_the_help() {
    let world = World::new(None);
    for (words, heading) in [
        (vec![], "Guard your servers:"),
        (vec!["keys"], "Usage: durward keys [OPTIONS] <COMMAND>"),
        (vec!["--state-dir", "x", "audit"], "verify"),
        (vec!["lab", "mock"], "Usage: durward-lab mock <COMMAND>"),
    ] {
        // A variable that stands for an option is no command either.
        let output = Command::new(binary())
            .args(&words)
            .env("DURWARD_STATE_DIR", world.state())
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(2), "{words:?}");
        assert!(output.stdout.is_empty(), "{words:?}");
        let err = told(&output);
        assert!(
            err.contains(heading) && !err.contains("__"),
            "{words:?}: {err}"
        );
    }
}

#[test]
fn a_directory_an_empty_file_and_bytes_that_are_no_text_are_called_so() {
    let world = World::new(None);
    let folder = world.home().display().to_string();
    let file = |name: &str, bytes: &[u8]| {
        let path = world.home().join(name);
        fs::write(&path, bytes).unwrap();
        path.display().to_string()
    };
    let (empty, bytes) = (file("empty", b"\n"), file("bytes", b"\x00\xff\xfe"));
    let directory = "this is a directory; name a file";
    let no_text = "this is not text in UTF-8; name another file";
    for (words, why) in [
        (vec!["policy", "check", &folder], directory),
        (vec!["policy", "check", &empty], "the file is empty"),
        (vec!["policy", "test", "nosuch"], "there is no such file"),
        (vec!["policy", "test", &folder], directory),
        (vec!["wrap", "cursor", "--file", &folder], directory),
        (vec!["wrap", "cursor", "--file", &bytes], no_text),
        (
            vec!["install", "cursor", "--write", "--file", &bytes, "--", "x"],
            no_text,
        ),
        (
            vec!["install", "cursor", "--url", "nonsense"],
            "error: --url: this is not a URL; write it as https://host:port/path",
        ),
        (vec!["ssh", "hosts", "check", &folder], directory),
        (
            vec!["ssh", "hosts", "check", "nosuch"],
            "there is no such file",
        ),
        (vec!["ssh", "replay", &bytes], no_text),
        (
            vec!["ssh", "serve", "--hosts", "nosuch"],
            "does not exist; name one with --hosts",
        ),
    ] {
        let output = world.durward(&words);
        let err = told(&output);
        assert_eq!(output.status.code(), Some(16), "{words:?}: {err}");
        assert!(err.contains(why), "{words:?}: {err}");
        assert!(output.stdout.is_empty(), "{words:?}: {output:?}");
    }
}

/// One code for it, whichever command meets it first.
#[test]
fn a_state_directory_that_cannot_be_used_has_the_exit_code_of_the_journal() {
    let world = World::new(None);
    let hosts = world.home().join("hosts.yaml");
    fs::write(&hosts, "hosts: {}\n").unwrap();
    let hosts = hosts.display().to_string();
    for words in [
        vec!["run", "--", "cat"],
        vec!["serve", "--listen", "127.0.0.1:0", "--server", "e=cat"],
        vec!["ssh", "serve", "--port", "0", "--hosts", &hosts],
        vec!["keys", "create", "laptop"],
        vec!["keys", "list"],
    ] {
        let output = world.durward(&[&["--state-dir", NOWHERE], words.as_slice()].concat());
        let err = told(&output);
        assert_eq!(output.status.code(), Some(10), "{words:?}: {err}");
        assert!(err.contains(NOWHERE), "{words:?}: {err}");
    }
}

/// Where the kernel lists locks, the record of an instance that has just been killed is no sign of life.
#[test]
fn status_counts_no_instance_that_was_killed_a_moment_ago() {
    let place = Place::new();
    let mut child = Command::new(binary())
        .args(["run", "--no-config", "--state-dir", "state", "--", "cat"])
        .current_dir(place.path("."))
        .env("XDG_RUNTIME_DIR", place.runtime())
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let running = || {
        let words = ["status", "--no-config", "--state-dir", "state", "--json"];
        let output = place.durward(&words);
        let told: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        told["running"].as_u64().unwrap()
    };
    eventually("the instance runs", || running() == 1);
    child.kill().unwrap();
    child.wait().unwrap();
    // As if it had written its last record this instant.
    let segment = place.segments().pop().unwrap();
    let file = fs::File::options().write(true).open(segment).unwrap();
    let soon = std::time::SystemTime::now() + Duration::from_secs(60);
    file.set_modified(soon).unwrap();
    assert_eq!(running(), 0);
}
