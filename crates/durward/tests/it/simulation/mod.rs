//! `builtin: simulation` as its clients meet it: the walks of real clients, the rules before it, and its jobs over a crash.

mod audit;
mod bench;
mod curves;
mod defects;
mod defects_rest;
mod faults;
mod inspected;
mod jobs;
mod openapi;
mod ospsuite;
mod protocol;
mod releases;
mod resources;
mod rules;
mod runs;
mod setup;
mod strict;
mod tour;
mod waits;
mod walks;

use std::fs;

use mcp::client::Client;
use serde_json::{Value, json};

use crate::support::components::repository;
use crate::support::guarded::{LATEST, Place};

/// A simulation without anything in it.
const EMPTY: &str = r#"<Simulation version="4" objectPathDelimiter="|"><FormulaList/><OutputSchema><OutputIntervalList>
<OutputInterval distribution="Uniform"><StartTime>0</StartTime><EndTime>1</EndTime><NumberOfTimePoints>2</NumberOfTimePoints>
</OutputInterval></OutputIntervalList></OutputSchema></Simulation>"#;

/// A place with a model of our own and an empty one.
pub fn place() -> Place {
    let place = Place::new();
    fs::create_dir_all(place.path("models")).unwrap();
    let model = repository().join("crates/pbpk/examples/two_compartment.xml");
    fs::copy(model, place.path("models/two_compartment.xml")).unwrap();
    fs::write(place.path("models/empty.xml"), EMPTY).unwrap();
    place.write_policy(
        r#"{"version":"1","default_action":"deny","rules":[
            {"id":"tools","effect":"allow","conditions":{"tool_name":"*"}},
            {"id":"results","effect":"allow","conditions":{"resource_type":["resource"],"scheme":["sim"]}}]}"#,
    );
    fs::write(
        place.path("durward.yaml"),
        "servers: { pbpk: { builtin: simulation, models: [models] } }\n",
    )
    .unwrap();
    place
}

/// The arguments with which the model is loaded.
pub fn load() -> Value {
    json!({"filePath": "two_compartment.xml", "simulationId": "sim", "confirm": true})
}

/// Makes a key; the words are its name and flags.
fn key(place: &Place, words: &[&str]) -> String {
    let create = ["--no-config", "--state-dir", "state", "keys", "create"];
    let output = place.durward(&[&create, words].concat());
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// A client of the server over stdio.
fn client(place: &Place) -> Client {
    let mut client = place.guard_configured("durward.yaml", &[], "pbpk");
    client.handshake(LATEST).unwrap();
    client
}

/// The structured result of a call that has to succeed.
#[track_caller]
fn call(client: &mut Client, tool: &str, arguments: Value) -> Value {
    let reply = client.call_tool(tool, arguments).unwrap();
    let result = reply
        .result()
        .unwrap_or_else(|_| panic!("{}", reply.line()));
    assert_eq!(result.get("isError"), None, "{}", reply.line());
    result["structuredContent"].clone()
}

/// The failure of a call that has to fail.
#[track_caller]
fn fails(client: &mut Client, tool: &str, arguments: Value) -> Value {
    let reply = client.call_tool(tool, arguments).unwrap();
    let result = reply
        .result()
        .unwrap_or_else(|_| panic!("{}", reply.line()));
    assert_eq!(result["isError"], true, "{}", reply.line());
    result["_meta"]["durward/failure"].clone()
}

/// Runs the simulation `sim` and waits; gives the results' name.
#[track_caller]
fn run(client: &mut Client, more: Value) -> String {
    let mut asked = json!({"simulationId": "sim", "confirm": true});
    asked
        .as_object_mut()
        .unwrap()
        .extend(more.as_object().unwrap().clone());
    let tool = match asked.get("cohort") {
        Some(_) => "run_population_simulation",
        None => "run_simulation",
    };
    let job = call(client, tool, asked)["jobId"].clone();
    let done = call(
        client,
        "get_job_status",
        json!({"jobId": job, "waitSeconds": 120}),
    );
    assert_eq!(done["status"], "succeeded", "{done}");
    done["resultId"].as_str().unwrap().to_owned()
}
