//! The tour's simulation: an agent loads a model, a person is asked before it runs, and the result is plotted.

use std::io::Write;
use std::path::Path;

use mocks::client::{Client, Reply};
use serde_json::{Value, json};

use super::{Stop, answered, drop_client, runtime, text_at};

/// A model of our own: an infusion into two compartments.
const MODEL: &str = include_str!("../../../pbpk/examples/two_compartment.xml");
const CURVE: &str = "Example|Organism|Central|Drug|Concentration";
const POLICY: &str = r#"{"rules":[
  {"id":"ask-before-running","effect":"hitl","conditions":{"tool_name":"run_simulation"}},
  {"id":"everything-else","effect":"allow","conditions":{"tool_name":"*"}}]}"#;
/// Characters of a line that sketches a curve.
const SKETCH_WIDTH: usize = 60;

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
    let options = mocks::client::Options {
        env: vec![("XDG_RUNTIME_DIR".into(), runtime(stage).into())],
        ..mocks::client::Options::default()
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

/// A curve as one line of blocks, from its first time to its last.
fn sketch(points: &[(f64, f64)]) -> String {
    const BLOCKS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let end = points.last().map_or(0.0, |(time, _)| *time);
    let highest = points.iter().map(|(_, value)| *value).fold(0.0, f64::max);
    let mut line = String::new();
    for at in 0..SKETCH_WIDTH {
        #[expect(clippy::cast_precision_loss, reason = "a line has few characters")]
        let (from, to) = (
            end * at as f64 / SKETCH_WIDTH as f64,
            end * (at + 1) as f64 / SKETCH_WIDTH as f64,
        );
        let within = points.iter().filter(|(time, _)| (from..=to).contains(time));
        let most = within.map(|(_, value)| *value).fold(0.0, f64::max);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "from 0 to 8; a cast from float to integer saturates"
        )]
        let height = (most / highest.max(f64::MIN_POSITIVE) * 8.0).ceil() as usize;
        line.push(BLOCKS.get(height).copied().unwrap_or('█'));
    }
    line.trim_end().to_owned()
}

/// The structured result of a call that has to succeed.
fn structured(reply: &Reply) -> Result<Value, Stop> {
    let result = reply.result()?;
    match result.get("structuredContent") {
        Some(structured) if result.get("isError").is_none() => Ok(structured.clone()),
        _ => Err(Stop::Unexpected(reply.line().to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sketch_rises_and_falls_with_its_curve() {
        let points: Vec<(f64, f64)> = (0..=120)
            .map(|n| (f64::from(n), f64::from(60 - (n - 60_i32).abs())))
            .collect();
        let line: Vec<char> = sketch(&points).chars().collect();
        assert_eq!(line.len(), SKETCH_WIDTH);
        assert_eq!((line[0], line[30], line[59]), ('▁', '█', '▁'));
        assert!(line[..30].windows(2).all(|two| two[0] <= two[1]));
        assert_eq!(sketch(&[]), "");
        assert_eq!(sketch(&[(0.0, 0.0), (1.0, 0.0)]), "", "nothing but zeros");
    }
}
