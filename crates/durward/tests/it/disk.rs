//! What an operator is told before the disk of the journal is full.

use std::fs;
use std::process::Command;

use serde_json::Value;

use crate::support::guarded::{Place, binary, eventually};
use crate::support::serving::Served;

/// A place where nothing but one server is served, and more room is asked for than any disk of a test has.
fn place(warn_below: &str) -> Place {
    let place = Place::new();
    let text = format!("journal: {{ warn_below: {warn_below} }}\nlisten: 127.0.0.1:0\n");
    fs::write(place.dir.join("durward.yaml"), text).unwrap();
    place
}

fn status(place: &Place, more: &[&str]) -> (String, String) {
    let words = ["--config", "durward.yaml", "--state-dir", "state", "status"];
    let output = Command::new(binary())
        .args(words.iter().chain(more))
        .current_dir(&place.dir)
        .env("XDG_RUNTIME_DIR", place.runtime())
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (text(output.stdout), text(output.stderr))
}

#[test]
fn low_room_on_the_journals_disk_is_told_in_log_status_and_metrics() {
    for (warn_below, is_low) in [("1024GiB", true), ("0", false)] {
        let place = place(warn_below);
        let mock = place.mock(&["echo"]).join(" ");
        let server = format!("echo={mock}");
        let log = place.dir.join("log");
        let words = [
            "--config",
            "durward.yaml",
            "--state-dir",
            "state",
            "serve",
            "--policy",
            "policy.json",
            "--server",
            &server,
        ];
        let served = Served::spawn_logging(place, &words, &log);
        let said = "the disk of the journal (";
        eventually("it is told, or not", || {
            let text = fs::read_to_string(&log).unwrap();
            assert!(is_low || !text.contains(said), "{text}");
            !is_low || (text.contains(said) && text.contains("less than 1024GiB"))
        });
        let (out, err) = status(&served.place, &[]);
        assert!(out.contains(" free on its disk\n"), "{out}");
        assert_eq!(err.contains(said), is_low, "{err}");
        let (out, _) = status(&served.place, &["--json"]);
        let told: Value = serde_json::from_str(&out).unwrap();
        assert_eq!(told["journal"]["is_low"], is_low);
        let free = told["journal"]["free_bytes"].as_u64().unwrap();
        assert!(free > 0);
        let metrics = served.send("GET", "/metrics", &[], "").body;
        let line = metrics
            .lines()
            .find_map(|line| line.strip_prefix("durward_journal_free_bytes "));
        assert!(line.unwrap().parse::<u64>().unwrap() > 0, "{metrics}");
    }
}
