//! A whole session, over each way in; every answer is held against the shapes in `golden`.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::Command;

use serde_json::{Value, json};

use super::{client, key, place};
use crate::support::components::{self, repository};
use crate::support::guarded::{Place, binary};
use crate::support::serving::Served;

fn driver(python: PathBuf, way: &str, golden: &str) -> Command {
    let tests = repository().join("crates/durward/tests");
    let mut command = Command::new(python);
    command
        .arg(tests.join("drivers/simulation.py"))
        .arg(way)
        .arg(tests.join("it/simulation/golden").join(golden));
    command
}

/// The command that serves the place's models over stdio.
fn words(place: &Place) -> Vec<String> {
    let mut args = place.run_args(&[], &[]);
    args.pop();
    args.push("pbpk".to_owned());
    let at = args.iter().position(|arg| arg == "--no-config").unwrap();
    args.splice(at..=at, ["--config".to_owned(), "durward.yaml".to_owned()]);
    args.insert(0, binary().to_owned());
    args
}

/// The walk of the TypeScript SDK, of the line 1 or 2.
fn typescript(version: &str, way: &Value) -> Option<Command> {
    let (node, packages) = (components::node()?, components::client_packages()?);
    let tests = repository().join("crates/durward/tests");
    let mut command = Command::new(node);
    command
        .arg(tests.join("drivers/simulation.mjs"))
        .arg(packages)
        .arg(version)
        .arg(tests.join("it/simulation/golden/mcp.json"))
        .arg(way.to_string());
    Some(command)
}

#[track_caller]
fn walked(command: &mut Command) {
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    let wrong = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success() && said.contains("walked"),
        "{said}\n{wrong}"
    );
}

#[test]
fn fastmcp_over_stdio() {
    let Some(python) = components::fastmcp_python() else {
        return;
    };
    let place = place();
    let mut command = driver(python, "mcp-stdio", "mcp.json");
    command.args(words(&place));
    walked(
        command
            .current_dir(&place.dir)
            .env("XDG_RUNTIME_DIR", place.runtime()),
    );
    assert!(place.journal().operations().len() > 30);
}

#[test]
fn fastmcp_over_http() {
    let Some(python) = components::fastmcp_python() else {
        return;
    };
    let served = Served::start_configured(place());
    let url = format!("http://{}/mcp/pbpk", served.address);
    walked(driver(python, "mcp-http", "mcp.json").arg(url));
}

#[test]
fn the_typescript_sdk_over_stdio() {
    let place = place();
    let Some(mut command) = typescript("1", &json!(words(&place))) else {
        return;
    };
    command
        .current_dir(&place.dir)
        .env("XDG_RUNTIME_DIR", place.runtime());
    walked(&mut command);
    assert!(place.journal().operations().len() > 20);
}

#[test]
fn the_typescript_sdk_over_http() {
    let served = Served::start_configured(place());
    let url = json!(format!("http://{}/mcp/pbpk", served.address));
    let Some(mut command) = typescript("2", &url) else {
        return;
    };
    walked(&mut command);
}

#[test]
fn curl_over_rest() {
    let Some(python) = components::fastmcp_python() else {
        return;
    };
    let place = place();
    let walker = key(&place, &["walker", "--group", "admin"]);
    let served = Served::start_configured(place);
    let base = format!("http://{}", served.address);
    walked(driver(python, "rest", "rest.json").args([base, walker]));
    let (_, place) = served.stop();
    // Each call over REST stands in the journal as a call of its tool.
    let journal = place.records();
    let tools: Vec<&str> = journal
        .decisions()
        .iter()
        .filter_map(|d| d["tool_name"].as_str())
        .collect();
    for tool in [
        "load_simulation",
        "run_simulation",
        "get_population_chunk",
        "snapshot_simulation",
    ] {
        assert!(tools.contains(&tool), "{tool}: {tools:?}");
    }
}

/// The names of the shapes in a file.
fn golden(file: &str) -> BTreeSet<String> {
    let path = "crates/durward/tests/it/simulation/golden";
    let text = std::fs::read_to_string(repository().join(path).join(file)).unwrap();
    let shapes: serde_json::Map<String, Value> = serde_json::from_str(&text).unwrap();
    shapes.into_iter().map(|(name, _)| name).collect()
}

/// The walks call each of them: a tool or a path that is new needs its shape, and its step in `drivers/simulation.py`.
#[test]
fn every_tool_and_every_path_has_its_golden_shape() {
    let place = place();
    let listed = client(&place).request("tools/list", json!({})).unwrap();
    let tools = listed.result().unwrap()["tools"]
        .as_array()
        .unwrap()
        .clone();
    let tools: BTreeSet<String> = tools
        .iter()
        .map(|tool| tool["name"].as_str().unwrap().to_owned())
        .collect();
    assert!(tools.len() > 30, "{tools:?}");
    assert_eq!(golden("mcp.json"), tools);

    let served = Served::start_configured(super::place());
    let document = served.send_get("/openapi.json");
    let mut paths = BTreeSet::new();
    for (path, methods) in document["paths"].as_object().unwrap() {
        for method in methods.as_object().unwrap().keys() {
            paths.insert(format!("{} {path}", method.to_uppercase()));
        }
    }
    assert!(paths.len() > 30, "{paths:?}");
    // Durward's own path beside them, and the envelope of what failed.
    paths.extend(["GET /health", "error"].map(str::to_owned));
    assert_eq!(golden("rest.json"), paths);
}
