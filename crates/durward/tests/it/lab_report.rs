//! The pages of the lab: in a real browser, and as other programs read them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::atomic::{AtomicU32, Ordering};

use crate::support::chromium::{self, Browser};
use crate::support::components;
use serde_json::{Value, json};

use crate::support::program::{lab_binary, lab_command};

/// A folder that is gone afterwards.
struct Place(PathBuf);

impl Place {
    fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path =
            std::env::temp_dir().join(format!("durward-lab-{}-{number}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn lab(&self, args: &[&str]) -> Output {
        lab_command()
            .args(args)
            .current_dir(&self.0)
            .env_remove("MCP_BENCHMARK_RESULT")
            .env_remove("MCP_BENCHMARK_BASELINE")
            .output()
            .unwrap()
    }

    /// A stored overhead run with a relay and a guarded arm.
    fn overhead(&self) -> PathBuf {
        let (echo, relay) = (
            format!("{} mock echo", lab_binary()),
            format!("{} mock relay", lab_binary()),
        );
        let proxied = format!("{relay} -- {echo}");
        let text = r#"{"text":"<b>&\"it's\" markup</b>"}"#;
        self.stored(&[
            "overhead",
            "--direct",
            &echo,
            "--proxied",
            &proxied,
            "--rules",
            "4",
            "--launches",
            "3",
            "--runs",
            "400",
            "--warmup",
            "20",
            "--tool-args",
            text,
            "--out",
            "runs",
            "--quiet",
        ])
    }

    /// A stored load run of two phases.
    fn load(&self) -> PathBuf {
        let echo = format!("{} mock echo", lab_binary());
        self.stored(&[
            "load",
            "tool",
            "--target",
            &echo,
            "--phase",
            "open=2s@50/s",
            "--phase",
            "closed=500ms@2w",
            "--threshold",
            "error_rate < 50%",
            "--out",
            "runs",
            "--quiet",
        ])
    }

    fn stored(&self, args: &[&str]) -> PathBuf {
        let before: Vec<PathBuf> = self.runs();
        let output = self.lab(args);
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        self.runs()
            .into_iter()
            .find(|run| !before.contains(run))
            .unwrap()
    }

    fn runs(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.0.join("runs"));
        entries.map_or(Vec::new(), |all| {
            all.map(|entry| entry.unwrap().path()).collect()
        })
    }

    fn report(&self, run: &Path, format: &str) -> String {
        let output = self.lab(&[
            "report",
            run.to_str().unwrap(),
            "--format",
            format,
            "--write",
            "-",
        ]);
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        String::from_utf8(output.stdout).unwrap()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn document(file: PathBuf) -> Value {
    serde_json::from_slice(&fs::read(file).unwrap()).unwrap()
}

#[test]
fn pages_show_well_and_fetch_nothing() {
    let Some(program) = chromium::installed() else {
        return;
    };
    let place = Place::new();
    let mut browser = Browser::start(&program, &place.0);
    for run in [place.overhead(), place.load()] {
        assert!(
            place
                .lab(&["report", run.to_str().unwrap(), "--format", "html"])
                .status
                .success()
        );
        let url = format!("file://{}", run.join("report.html").display());
        for scheme in ["light", "dark"] {
            for width in [390, 1_280] {
                look(&mut browser, &url, scheme, width);
            }
        }
    }
}

/// The page at one width in one scheme: nothing fetched, nothing complained of, nothing overflows.
fn look(browser: &mut Browser, url: &str, scheme: &str, width: u32) {
    let shape =
        json!({ "width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600 });
    browser.ask("Emulation.setDeviceMetricsOverride", shape);
    let feature = json!({ "features": [{ "name": "prefers-color-scheme", "value": scheme }] });
    browser.ask("Emulation.setEmulatedMedia", feature);
    browser.open(url);
    let here = format!("{url} {scheme} {width}");
    let inner = browser.value("[innerWidth, document.documentElement.scrollWidth].join()");
    assert_eq!(inner, format!("{width},{width}"), "{here} overflows");
    // Only a box that scrolls by itself may be narrower than what it holds.
    let wide = browser.value(
        "[...document.querySelectorAll('body *')].filter(e => !e.closest('.scroll') && \
         e.getBoundingClientRect().right > innerWidth + 1).map(e => e.tagName + e.className).join()",
    );
    assert_eq!(wide, "", "{here}");
    let drawn = browser.value("[...document.querySelectorAll('svg')].filter(s => s.getBoundingClientRect().width > 200).length");
    assert!(drawn.as_u64().unwrap() >= 2, "{here}: {drawn} charts");
    let paper = browser.value("getComputedStyle(document.body).backgroundColor");
    let expect = if scheme == "dark" {
        "rgb(15, 18, 22)"
    } else {
        "rgb(246, 247, 249)"
    };
    assert_eq!(paper, expect, "{here}");
    for event in &browser.events {
        let method = event["method"].as_str().unwrap_or_default();
        assert!(
            !matches!(
                method,
                "Log.entryAdded" | "Runtime.consoleAPICalled" | "Runtime.exceptionThrown"
            ),
            "{here}: {event}"
        );
        if method == "Network.requestWillBeSent" {
            let asked = event["params"]["request"]["url"].as_str().unwrap();
            assert!(
                asked == url || asked.starts_with("data:"),
                "{here}: {asked}"
            );
        }
    }
}

#[test]
fn stored_documents_fit_their_published_schemas() {
    let Some(python) = components::fastmcp_python() else {
        return;
    };
    let place = Place::new();
    let (overhead, load) = (place.overhead(), place.load());
    let echo = format!("{} mock echo", lab_binary());
    let hitl = ["overhead", "--path", "hitl", "--rules", "1", "--quick"];
    let asked = place.stored(&[&hitl[..], &["--direct", &echo, "--out", "runs"]].concat());
    let mut pairs = Vec::new();
    for (run, summary) in [
        (&overhead, "overhead"),
        (&asked, "overhead"),
        (&load, "load"),
    ] {
        pairs.push((run.join("manifest.json"), "manifest"));
        pairs.push((run.join("summary.json"), summary));
        pairs.push((run.join("ops/w1.jsonl"), "op"));
        pairs.push((run.join("resources.jsonl"), "resource"));
    }
    pairs.push((load.join("verdict.json"), "verdict"));
    // What is printed has a shape as well as what is stored.
    let (one, other) = (overhead.to_str().unwrap(), load.to_str().unwrap());
    let log = components::repository().join("tools/lab/tests/seed-log/decisions.jsonl");
    for (name, schema, words) in [
        ("compared.json", "compare", ["compare", one, one]),
        ("loads.json", "compare", ["compare", other, other]),
        (
            "log.json",
            "audit-latency",
            ["audit-latency", log.to_str().unwrap(), "--by-decision"],
        ),
        (
            "error.json",
            "error",
            ["compare", "/nowhere/a", "/nowhere/b"],
        ),
    ] {
        let output = lab_command().args(words).arg("--json").output();
        let file = place.0.join(name);
        fs::write(&file, output.unwrap().stdout).unwrap();
        pairs.push((file, schema));
    }
    let script = "\
import json, sys
from jsonschema import Draft202012Validator
for at in range(1, len(sys.argv), 2):
    schema = json.load(open(sys.argv[at + 1]))
    Draft202012Validator.check_schema(schema)
    text = open(sys.argv[at]).read()
    found = [json.loads(line) for line in text.splitlines()] if sys.argv[at].endswith('l') else [json.loads(text)]
    assert found, sys.argv[at]
    for one in found[:500]:
        Draft202012Validator(schema).validate(one)
    broken = dict(found[0]); broken.popitem()
    assert not Draft202012Validator(schema).is_valid(broken), 'a missing member is not noticed'
";
    let schemas = components::repository().join("docs/schemas");
    let mut command = Command::new(python);
    command.args(["-c", script]);
    for (file, schema) in &pairs {
        command
            .arg(file)
            .arg(schemas.join(format!("{schema}.json")));
    }
    let output = command.output().unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

#[test]
fn a_run_directory_tells_all() {
    let place = Place::new();
    let run = place.overhead();
    let manifest = document(run.join("manifest.json"));
    assert_eq!(manifest["kind"], "overhead");
    assert!(manifest["clock_resolution_ns"].as_u64().unwrap() > 0);
    assert!(
        manifest["argv"]
            .as_array()
            .unwrap()
            .iter()
            .any(|word| word == "--rules")
    );
    let summary = document(run.join("summary.json"));
    let stages = &summary["arms"][2]["stages"];
    assert_eq!(
        stages["calls"], 1_200,
        "{}",
        summary["arms"][2]["stages_missing"]
    );
    let named = stages["stages"].as_array().unwrap().iter();
    let sum: f64 = named
        .map(|stage| stage["us"]["point"].as_f64().unwrap())
        .sum();
    let whole = sum + stages["unexplained_us"]["point"].as_f64().unwrap();
    assert!((whole - stages["outside_us"]["point"].as_f64().unwrap()).abs() < 0.01);
    let log = fs::read_to_string(run.join("latency.hlog")).unwrap();
    assert_eq!(log.matches("\nTag=").count(), 9, "an arm and launch each");
    let samples = fs::read_to_string(run.join("resources.jsonl")).unwrap();
    assert!(samples.contains("\"who\":\"generator\""));
}

#[test]
fn other_pages_hold_the_same_figures() {
    let place = Place::new();
    let (run, load) = (place.overhead(), place.load());
    let page = place.report(&run, "md");
    let point =
        document(run.join("summary.json"))["comparisons"][0]["overhead_us"]["point"].as_f64();
    assert!(
        page.contains(&format!("**{:+.1} µs**", point.unwrap())),
        "{page}"
    );
    assert_eq!(
        page.matches("<b>").count(),
        page.matches("\\<b>").count(),
        "{page}"
    );
    let junit = place.report(&run, "junit");
    assert!(junit.contains("tests=\"3\" failures=\"0\""), "{junit}");
    let junit = place.report(&load, "junit");
    assert!(
        junit.contains("<testcase classname=\"closed\" name=\"error_rate &lt; 50%\""),
        "{junit}"
    );
    // A rule that is broken is a failure there, and stays one in the page.
    let rules = [
        "--rule",
        "p50 <= 0.1us",
        "--rule",
        "response.p50 <= 0.1us warn",
    ];
    let args = [&["gate", load.to_str().unwrap(), "--force"][..], &rules].concat();
    let output = place.lab(&args);
    assert_eq!(
        output.status.code(),
        Some(99),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let junit = place.report(&load, "junit");
    assert!(
        junit.contains("tests=\"2\" failures=\"1\" errors=\"0\" skipped=\"1\""),
        "{junit}"
    );
    assert!(place.report(&load, "html").contains("class=\"REGRESSED\""));
}

#[test]
fn what_cannot_be_shown_says_so() {
    let place = Place::new();
    let run = place.load();
    let refused = |part: &str| {
        let output = place.lab(&["report", run.to_str().unwrap(), "--format", "html"]);
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{text}");
        assert!(text.contains(part), "{text}");
    };
    let ops = run.join("ops/w1.jsonl");
    let text = fs::read_to_string(&ops).unwrap();
    fs::write(&ops, &text[..text.len() - 9]).unwrap();
    refused("is cut off; the run was not finished");
    fs::write(&ops, format!("{{}}\n{text}")).unwrap();
    refused("line 1 is not a record");
    let summary = run.join("summary.json");
    let text = fs::read_to_string(&summary).unwrap();
    fs::write(
        &summary,
        text.replace("durward-lab-load/1", "durward-lab-load/9"),
    )
    .unwrap();
    refused("durward-lab-load/9");
    fs::write(&summary, &text[..text.len() / 2]).unwrap();
    refused("no whole document");
    fs::remove_file(&summary).unwrap();
    refused("cannot use");
}

#[test]
fn the_environment_names_what_is_compared() {
    let place = Place::new();
    let run = place.overhead();
    let gate = |result: Option<&Path>, baseline: Option<&Path>| {
        let mut command = lab_command();
        command.args(["gate", "--rule", "p50 <= +900%"]);
        for (name, path) in [
            ("MCP_BENCHMARK_RESULT", result),
            ("MCP_BENCHMARK_BASELINE", baseline),
        ] {
            command.env_remove(name);
            if let Some(path) = path {
                command.env(name, path);
            }
        }
        let output = command.output().unwrap();
        let text = [output.stdout, output.stderr].concat();
        (output.status.code(), String::from_utf8(text).unwrap())
    };
    let (code, text) = gate(Some(&run), Some(&run));
    assert_eq!(code, Some(0), "{text}");
    assert!(text.starts_with("OK"), "{text}");
    let (code, text) = gate(None, None);
    assert_eq!(
        (code, text.contains("MCP_BENCHMARK_RESULT")),
        (Some(2), true),
        "{text}"
    );
    let (code, text) = gate(Some(&run), None);
    assert_eq!(
        (code, text.contains("needs --baseline")),
        (Some(2), true),
        "{text}"
    );
}
