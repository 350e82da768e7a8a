//! The lab's person in the loop: asked for each call over the real control socket.

use std::fs;
use std::path::PathBuf;
use std::process::Output;
use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::Value;

use crate::support::program::{binary, lab_binary, lab_command};
const ASK: &str = r#"{"version":"1","default_action":"deny","rules":[
    {"id":"ask","effect":"hitl","conditions":{"tool_name":"echo"}}]}"#;

/// A folder that is gone afterwards.
struct Place(PathBuf);

impl Place {
    fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path =
            std::env::temp_dir().join(format!("durward-hitl-{}-{number}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        fs::write(path.join("ask.json"), ASK).unwrap();
        Self(path)
    }

    fn name(&self, name: &str) -> String {
        self.0.join(name).to_str().unwrap().to_owned()
    }

    /// `durward run` before the echo server, asking for each call.
    fn guarded(&self, more: &str) -> String {
        let durward = binary();
        format!(
            "{durward} --no-config --state-dir {} run --policy {} {more} -- {} mock echo",
            self.name("state"),
            self.name("ask.json"),
            lab_binary()
        )
    }

    /// `lab overhead` along the hitl path with an arm that was given, whose socket is in its state folder.
    fn beside(&self, proxied: &str) -> Output {
        let control = format!("proxied={}", self.name("state/run"));
        overhead(&[
            "--path",
            "hitl",
            "--proxied",
            proxied,
            "--control",
            &control,
        ])
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn overhead(more: &[&str]) -> Output {
    let direct = format!("{} mock echo", lab_binary());
    let size = ["--launches", "2", "--runs", "40", "--warmup", "5"];
    lab_command()
        .args(["overhead", "--json", "--quiet", "--direct", &direct])
        .args(size)
        .args(more)
        .env_remove("XDG_RUNTIME_DIR")
        .output()
        .unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn measured(output: &Output) -> Value {
    assert!(output.status.success(), "{}", stderr(output));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn stage(found: &Value, arm: usize, name: &str) -> f64 {
    let stages = found["arms"][arm]["stages"]["stages"].as_array();
    let stages = stages.unwrap_or_else(|| panic!("no stages: {}", found["warnings"]));
    let stage = stages.iter().find(|stage| stage["name"] == name).unwrap();
    stage["us"]["point"].as_f64().unwrap()
}

#[test]
fn questions_that_are_open_together_do_not_wait_for_each_other() {
    let wait = ["--approver-delay-ms", "50", "--concurrency", "8"];
    let found = measured(&overhead(
        &[&["--path", "hitl", "--rules", "4"][..], &wait].concat(),
    ));
    let approval = &found["comparisons"][0]["approval"];
    assert!(approval["held_us"]["point"].as_f64().unwrap() >= 50_000.0);
    // Asked about one after the other, a call would wait for the seven before it.
    let p50 = found["arms"][1]["p50_us"]["point"].as_f64().unwrap();
    assert!((50_000.0..250_000.0).contains(&p50), "{p50}");
    assert!(stage(&found, 1, "approval_us") >= 50_000.0);
}

#[test]
fn every_call_is_asked_about_and_the_wait_stands_apart() {
    let more = [
        "--path",
        "hitl",
        "--rules",
        "1,4",
        "--approver-delay-ms",
        "3",
    ];
    let found = measured(&overhead(&more));
    assert_eq!(found["path"], "hitl");
    for (at, comparison) in found["comparisons"].as_array().unwrap().iter().enumerate() {
        let point = |name: &str| comparison["approval"][name]["point"].as_f64().unwrap();
        let overhead = comparison["overhead_us"]["point"].as_f64().unwrap();
        assert_eq!(comparison["approval"]["delay_us"], 3_000.0);
        assert!(point("held_us") >= 3_000.0, "{comparison}");
        assert!(
            (overhead - 3_000.0 - point("wait_cost_us")).abs() < 0.01,
            "{comparison}"
        );
        // A remembered yes would not have waited: the mean is over all calls.
        assert!(stage(&found, at + 1, "approval_us") >= 3_000.0);
        assert_eq!(found["arms"][at + 1]["stages"]["calls"], 80);
    }
}

#[test]
fn an_arm_that_was_given_is_found_by_its_number() {
    let place = Place::new();
    let found = measured(&place.beside(&place.guarded("")));
    assert_eq!(found["comparisons"][0]["arm"], "proxied");
    assert!(found["comparisons"][0]["approval"]["held_us"]["point"].is_f64());
    // Behind a shell it is a descendant's number.
    let command = format!("sh -c '{}; true'", place.guarded(""));
    measured(&place.beside(&command));
}

#[test]
fn an_instance_of_another_is_never_answered_for() {
    let place = Place::new();
    let state = place.name("state");
    fs::create_dir_all(place.0.join("state/run")).unwrap();
    let elsewhere = place.guarded("").replace(&state, &place.name("other"));
    let output = place.beside(&elsewhere);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        stderr(&output).contains("no control socket in"),
        "{}",
        stderr(&output)
    );
}

#[test]
fn the_bound_on_questions_shows_as_a_refusal() {
    let place = Place::new();
    let output = place.beside(&place.guarded("--approval-per-minute 20"));
    assert_eq!(output.status.code(), Some(1));
    assert!(
        stderr(&output).contains("this caller has asked too often"),
        "{}",
        stderr(&output)
    );
    // With --json a failure is a document.
    let told: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        (&told["kind"], &told["exit_code"]),
        (&"invalid".into(), &1.into())
    );
}

#[test]
fn refused_calls_and_lists_are_no_missing_stages() {
    let denied = measured(&overhead(&["--path", "deny", "--rules", "4"]));
    assert!(stage(&denied, 1, "policy_us") > 0.0);
    assert_eq!(stage(&denied, 1, "upstream_us"), 0.0);
    let listed = measured(&overhead(&["--op", "list", "--rules", "4"]));
    assert!(listed["arms"][1]["stages"].is_null());
    for found in [denied, listed] {
        let warnings = found["warnings"].to_string();
        assert!(!warnings.contains("no stages"), "{warnings}");
    }
}
