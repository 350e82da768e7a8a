//! The tour's simulation: an agent loads a model, a person is asked before it runs, and the result is plotted.

use std::io::Write;
use std::path::Path;

use mcp::client::{Client, Reply};
use serde_json::{Value, json};

use super::sketch::sketch;
use super::{Stop, answered, drop_client, runtime, text_at};

/// A model of our own: an infusion into two compartments.
const MODEL: &str = include_str!("../../../pbpk/examples/two_compartment.xml");
const CURVE: &str = "Example|Organism|Central|Drug|Concentration";
const POLICY: &str = r#"{"rules":[
  {"id":"ask-before-running","effect":"hitl","conditions":{"tool_name":"run_simulation"}},
  {"id":"everything-else","effect":"allow","conditions":{"tool_name":"*"}}]}"#;

/// Shows it; the title begins with this number.
pub(super) fn show(number: u32, stage: &Path, own: &Path, out: &mut dyn Write) -> Result<(), Stop> {
    writeln!(
        out,
        "{number}. A simulation (builtin: simulation in durward.yaml). Loading is allowed, a run needs a person's yes"
    )?;
    let mut client = served(stage, own)?;
    let file = json!({"filePath": "two_compartment.xml", "simulationId": "demo", "confirm": true});
    let loaded = structured(&client.call_tool("load_simulation", file)?)?;
    let named = text_at(&loaded, "/metadata/name").unwrap_or("two_compartment.xml");
    writeln!(out, "   load_simulation → allowed: {named}")?;
    writeln!(out, "   run_simulation → waits")?;
    let run =
        json!({"name": "run_simulation", "arguments": {"simulationId": "demo", "confirm": true}});
    let id = client.send_request("tools/call", run)?;
    let job = structured(&answered(
        &mut client,
        &id,
        (stage, "state4"),
        "once",
        own,
        out,
    )?)?;
    let waits = json!({"jobId": job.get("jobId"), "waitSeconds": 60});
    let done = structured(&client.call_tool("get_job_status", waits)?)?;
    let Some(results) = text_at(&done, "/resultId") else {
        return Err(Stop::Unexpected(format!("the run ended otherwise: {done}")));
    };
    tell(&mut client, results, out)?;
    drop_client(client)
}

fn served(stage: &Path, own: &Path) -> Result<Client, Stop> {
    let models = stage.join("models");
    std::fs::create_dir_all(&models)?;
    std::fs::write(models.join("two_compartment.xml"), MODEL)?;
    let (policy, configuration) = (stage.join("simulation.json"), stage.join("simulation.yaml"));
    std::fs::write(&policy, POLICY)?;
    // A text in JSON is one in YAML too.
    let folder = json!(models.to_string_lossy());
    std::fs::write(
        &configuration,
        format!("servers: {{ pbpk: {{ builtin: simulation, models: [{folder}] }} }}\n"),
    )?;
    let text = |path: &Path| path.to_string_lossy().into_owned();
    let args = [
        "run".to_owned(),
        "--config".to_owned(),
        text(&configuration),
        "--state-dir".to_owned(),
        text(&stage.join("state4")),
        "--policy".to_owned(),
        text(&policy),
        "pbpk".to_owned(),
    ];
    let options = mcp::client::Options {
        env: vec![("XDG_RUNTIME_DIR".into(), runtime(stage).into())],
        ..mcp::client::Options::default()
    };
    let mut client = Client::spawn_with(own, args, &options)?;
    client.initialize("2025-11-25")?;
    Ok(client)
}

/// Tells what came out: the curve as a line, its figures, and the picture that a chat would show.
fn tell(client: &mut Client, results: &str, out: &mut dyn Write) -> Result<(), Stop> {
    let asked = json!({"resultsId": results, "outputs": [CURVE]});
    let told = structured(&client.call_tool("get_results", asked.clone())?)?;
    let points = told.pointer("/series/0/values").and_then(Value::as_array);
    let points: Vec<(f64, f64)> = points
        .into_iter()
        .flatten()
        .filter_map(|point| Some((point.get("time")?.as_f64()?, point.get("value")?.as_f64()?)))
        .collect();
    let pk = json!({"resultsId": results, "outputPath": CURVE});
    let pk = structured(&client.call_tool("calculate_pk_parameters", pk)?)?;
    let figure = |name: &str| {
        let found = pk.pointer(&format!("/metrics/0/{name}"));
        found.and_then(Value::as_f64).unwrap_or(f64::NAN)
    };
    let hours = points.last().map_or(0.0, |(time, _)| time / 60.0);
    writeln!(
        out,
        "   the drug in the central compartment over {hours:.0} h"
    )?;
    writeln!(out, "   {}", sketch(&points))?;
    writeln!(
        out,
        "   calculate_pk_parameters → Cmax {:.3} {} after {:.0} min",
        figure("cmax"),
        text_at(&pk, "/metrics/0/unit").unwrap_or_default(),
        figure("tmax"),
    )?;
    let plot = client.call_tool("plot_results", asked)?;
    let picture = text_at(plot.result()?, "/content/0/data").unwrap_or_default();
    if picture.is_empty() {
        return Err(Stop::Unexpected("there is no picture".into()));
    }
    writeln!(
        out,
        "   plot_results → a PNG picture of {} KiB, which the agent's chat shows\n",
        (picture.len() / 4 * 3).div_ceil(1024)
    )?;
    Ok(())
}

/// The structured result of a call that has to succeed.
fn structured(reply: &Reply) -> Result<Value, Stop> {
    let result = reply.result()?;
    match result.get("structuredContent") {
        Some(structured) if result.get("isError").is_none() => Ok(structured.clone()),
        _ => Err(Stop::Unexpected(reply.line().to_owned())),
    }
}
