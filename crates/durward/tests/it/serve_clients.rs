//! Clients that others wrote, unchanged, through `durward serve`: FastMCP's, the MCP Python SDK's and the official
//! inspector, in every era that each speaks. What they see through Durward is what they see without it.

use std::path::Path;
use std::process::{Command, Output};

use crate::support::components;
use crate::support::guarded::Place;
use crate::support::served::{Served, Site, stdio_mock};
use serde_json::{Value, json};

const ALLOW_ALL: &str = r#"{"version":"1","default_action":"deny","rules":[
    {"id":"allow-all","effect":"allow","conditions":{"mcp_method":"*"}}]}"#;

/// The fixture server twice, directly and behind Durward, each counting what reaches it.
struct Pair {
    place: Place,
    beside: Place,
    direct: Site,
    served: Served,
    /// The fixture server behind Durward, where it is reached over HTTP.
    _behind: Option<Site>,
}

/// How Durward reaches its server.
#[derive(Clone, Copy, Debug)]
enum Reach {
    Stdio,
    Http,
}

impl Pair {
    fn start(reach: Reach) -> Self {
        let (place, beside) = (Place::new(), Place::new());
        place.write_policy(ALLOW_ALL);
        let counting = |place: &Place| {
            let count = place.path("count").to_str().unwrap().to_owned();
            let words = ["conformance", "--count", &count];
            Site::start(place, &words, "127.0.0.1:0")
        };
        let direct = counting(&beside);
        let (server, behind) = match reach {
            Reach::Stdio => (stdio_mock(&place, "conformance"), None),
            Reach::Http => {
                let behind = counting(&place);
                (json!({"url": behind.url}), Some(behind))
            }
        };
        let served = Served::start(&place, &json!({"fixtures": server}));
        Self {
            place,
            beside,
            direct,
            served,
            _behind: behind,
        }
    }

    /// Ends Durward; every call that reached either server has to be the same, and in the journal.
    fn compare(self) {
        assert_eq!(self.served.end(), Some(0));
        let sorted = |place: &Place| {
            let mut calls: Vec<String> = place.counted().iter().map(Value::to_string).collect();
            calls.sort();
            calls
        };
        assert_eq!(sorted(&self.place), sorted(&self.beside));
        let journal = self.place.journal();
        let calls = journal.decisions();
        let calls = calls.iter().filter(|d| d["mcp_method"] == "tools/call");
        assert_eq!(calls.count(), self.place.counted().len());
    }
}

fn output(command: &mut Command) -> Output {
    command.output().unwrap()
}

fn python_client(python: &Path, client: &str, url: &str, mode: &str) -> Value {
    let driver = components::repository().join("crates/durward/tests/drivers/serve_client.py");
    let seen = output(Command::new(python).arg(driver).args([client, url, mode]));
    let complaint = String::from_utf8_lossy(&seen.stderr);
    assert!(seen.status.success(), "{client} {mode} {url}: {complaint}");
    serde_json::from_slice(&seen.stdout).unwrap()
}

fn python(client: &str, reach: Reach) {
    let Some(python) = components::fastmcp_python() else {
        return;
    };
    let pair = Pair::start(reach);
    for (mode, revision) in [
        ("legacy", "2025-11-25"),
        ("auto", "2026-07-28"),
        ("2026-07-28", "2026-07-28"),
    ] {
        let through = python_client(&python, client, &pair.served.url("fixtures"), mode);
        let direct = python_client(&python, client, &pair.direct.url, mode);
        assert_eq!(through, direct, "{client} {mode} {reach:?}");
        assert_eq!(through["version"], revision, "{mode}");
        assert_eq!(
            through["progress"],
            json!([[0.0, 100.0], [50.0, 100.0], [100.0, 100.0]])
        );
        assert_eq!(through["logs"].as_array().unwrap().len(), 3, "{mode}");
        assert_eq!(through["asked"], json!(["who", "model"]), "{mode}");
        assert_eq!(through["failed"], "this tool always fails", "{mode}");
    }
    pair.compare();
}

#[test]
fn fastmcp_sees_the_same_over_stdio() {
    python("fastmcp", Reach::Stdio);
}

#[test]
fn fastmcp_sees_the_same_over_http() {
    python("fastmcp", Reach::Http);
}

#[test]
fn the_python_sdk_sees_the_same_over_stdio() {
    python("sdk", Reach::Stdio);
}

#[test]
fn the_python_sdk_sees_the_same_over_http() {
    python("sdk", Reach::Http);
}

/// What the inspector is asked, and whether it is to succeed.
const ASKED: [(&[&str], bool); 9] = [
    (&["tools/list"], true),
    (&["resources/list"], true),
    (&["resources/templates/list"], true),
    (&["prompts/list"], true),
    (
        &[
            "tools/call",
            "--tool-name",
            "test_header_parameter",
            "--tool-args-json",
            r#"{"region":"north"}"#,
        ],
        true,
    ),
    (&["tools/call", "--tool-name", "test_error_handling"], false),
    (&["resources/read", "--uri", "test://static-text"], true),
    (&["resources/read", "--uri", "test://none"], false),
    (
        &[
            "prompts/get",
            "--prompt-name",
            "test_prompt_with_arguments",
            "--prompt-args",
            "arg1=one",
            "arg2=two",
        ],
        true,
    ),
];

/// Both streams of one run of the inspector, and whether it succeeded.
fn inspect(pair: &Pair, url: &str, era: &str, asked: &[&str]) -> (String, bool) {
    let (node, inspector) = (
        components::node().unwrap(),
        components::inspector().unwrap(),
    );
    let mut command = Command::new(node);
    command
        .arg(inspector)
        .args([
            "--cli",
            url,
            "--transport",
            "http",
            "--format",
            "json",
            "-q",
        ])
        .args(["--protocol-era", era, "--method"])
        .args(asked)
        .env("HOME", &pair.place.dir)
        .current_dir(&pair.place.dir);
    let done = output(&mut command);
    let text = [done.stdout, done.stderr].concat();
    let text = String::from_utf8(text).unwrap();
    // What the gateway filters is private to its callers: the one thing it may change.
    let text = text.replace(r#""cacheScope":"private""#, r#""cacheScope":"public""#);
    (text, done.status.success())
}

fn inspector(reach: Reach) {
    if components::node().is_none() || components::inspector().is_none() {
        return;
    }
    let pair = Pair::start(reach);
    let everything = |era| {
        ASKED
            .iter()
            .map(move |(asked, succeeds)| (era, *asked, *succeeds))
    };
    // Whoever takes what there is ends up Modern: one question shows that.
    let auto = ("auto", ASKED[4].0, ASKED[4].1);
    let questions = everything("legacy")
        .chain(everything("modern"))
        .chain([auto]);
    for (era, asked, succeeds) in questions {
        let url = pair.served.url("fixtures");
        let (through, direct) = std::thread::scope(|scope| {
            let through = scope.spawn(|| inspect(&pair, &url, era, asked));
            let direct = inspect(&pair, &pair.direct.url, era, asked);
            (through.join().unwrap(), direct)
        });
        assert_eq!(through, direct, "{era} {asked:?} {reach:?}");
        assert_eq!(through.1, succeeds, "{era} {asked:?}: {}", through.0);
    }
    pair.compare();
}

#[test]
fn the_inspector_sees_the_same_over_stdio() {
    inspector(Reach::Stdio);
}

#[test]
fn the_inspector_sees_the_same_over_http() {
    inspector(Reach::Http);
}
