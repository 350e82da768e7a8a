//! A whole session, over each way in; every answer is held against the shapes in `golden`.

use std::path::PathBuf;
use std::process::Command;

use serde_json::{Value, json};

use super::place;
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
    let served = Served::start_configured(place());
    let base = format!("http://{}", served.address);
    walked(driver(python, "rest", "rest.json").arg(base));
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
