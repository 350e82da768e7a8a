//! One summary in every measurement: whichever command wrote it, `compare`, `gate` and `report` read it.

use std::fs;

use serde_json::Value;

use crate::support::{Directory, document, lab, measured, mock, refused, stderr};

/// The documents of the commands that measure within seconds, kept as files.
fn measurements(place: &Directory) -> Vec<(&'static str, String)> {
    let echo = mock("echo");
    let log = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/tests/seed-log/decisions.jsonl"
    );
    let overhead = [
        "overhead",
        "--direct",
        &echo,
        "--proxied",
        &echo,
        "--launches",
        "2",
        "--runs",
        "80",
        "--warmup",
        "2",
    ];
    let load = [
        "load",
        "tool",
        "--target",
        &echo,
        "--duration",
        "1s",
        "--warm",
        "0",
        "--quiet",
    ];
    let audit = ["audit-latency", log];
    [
        ("overhead", &overhead[..]),
        ("load", &load[..]),
        ("audit-latency", &audit[..]),
    ]
    .map(|(kind, words)| {
        let output = lab(&[words, &["--json"]].concat());
        let file = place.join(&format!("{kind}.json"));
        fs::write(&file, measured(&output).to_string()).unwrap();
        (kind, file)
    })
    .into()
}

#[test]
fn every_measurement_is_compared_judged_and_shown_by_its_summary() {
    let place = Directory::new();
    let all = measurements(&place);
    for (kind, file) in &all {
        let told: Value = serde_json::from_slice(&fs::read(file).unwrap()).unwrap();
        let summary = &told["summary"];
        assert_eq!(summary["format"], "durward-lab-summary/1", "{kind}");
        assert_eq!(summary["kind"], *kind);
        assert_eq!(summary["torn"], Value::Null, "{kind}");
        let arms = summary["measurement"]["arms"].as_array().unwrap();
        assert!(!arms.is_empty(), "{kind}");

        let compared = document(&lab(&["compare", file, file, "--json"]));
        let rows = compared["rows"].as_array().unwrap();
        assert!(
            rows.iter().any(|row| row["metric"] == "p50"),
            "{kind}: {rows:?}"
        );
        let judged = lab(&["gate", file, "--rule", "p50 <= 100s", "--force", "--json"]);
        assert!(judged.status.success(), "{kind}: {}", stderr(&judged));
        assert_eq!(document(&judged)["rules"][0]["rule"], "p50 <= 100s");
        let page = lab(&["report", file]);
        assert!(page.status.success(), "{kind}: {}", stderr(&page));
        assert!(!page.stdout.is_empty());
    }
    // Measurements of different kinds are not alike.
    let [(_, overhead), _, (_, audit)] = &all[..] else {
        panic!("{all:?}");
    };
    refused(
        &lab(&["compare", overhead, audit]),
        1,
        "differ in kind (overhead against audit-latency)",
    );
}

#[test]
fn a_document_without_a_summary_or_with_one_of_another_version_is_named() {
    let place = Directory::new();
    let file = place.join("x.json");
    for (text, says) in [
        (
            r#"{"format":"durward-lab-overhead/1"}"#,
            "it has no summary",
        ),
        (
            r#"{"summary":{"format":"durward-lab-summary/9","kind":"load","likeness":[],"limited":null,"torn":null,"measurement":{"confidence":0.9,"arms":[]}}}"#,
            "this version reads durward-lab-summary/1",
        ),
        (
            r#"{"summary":{"kind":"load"}}"#,
            "no whole document of a measurement",
        ),
        (r#"{"summary":{"#, "no whole document of a measurement"),
        ("[]", "no whole document of a measurement"),
    ] {
        fs::write(&file, text).unwrap();
        refused(&lab(&["compare", &file, &file]), 1, says);
        refused(&lab(&["gate", &file, "--rule", "p50 <= 1s"]), 1, says);
    }
}
