//! Releases of OSP and of the bridge, and arguments that a tool does not take.

use std::fs;

use mcp::client::Client;
use serde_json::{Value, json};

use super::{call, client, fails, load, place, run};
use crate::support::guarded::Place;

const WEIGHT: &str = "Example|Organism|Weight";

/// A model whose one state is 10 at the start and decays; an event compares the time with -2, and the first output is at 3.
const EARLY: &str = r#"<Simulation version="4" objectPathDelimiter="|"><FormulaList><ExplicitFormula id="20">
<Equation>-k*M</Equation><ReferenceList><R alias="k" id="1"/><R alias="M" id="4"/></ReferenceList></ExplicitFormula>
<ExplicitFormula id="21"><Equation>Time=-2</Equation><ReferenceList><R alias="Time" id="0"/></ReferenceList></ExplicitFormula>
<ExplicitFormula id="22"><Equation>5</Equation></ExplicitFormula></FormulaList><VariableList>
<V id="4" name="M" path="S|M" value="10" persistable="1"><RHSFormulaList><RHSFormula id="20"/></RHSFormulaList></V>
</VariableList><ParameterList><P id="1" name="k" path="S|k" value="0.3"/></ParameterList><EventList>
<Event id="70" conditionFormulaId="21" oneTime="1"><AssignmentList>
<Assignment objectId="4" newFormulaId="22" useAsValue="1"/></AssignmentList></Event></EventList><OutputSchema>
<OutputIntervalList><OutputInterval><StartTime>3</StartTime><EndTime>4</EndTime><NumberOfTimePoints>2</NumberOfTimePoints>
</OutputInterval></OutputIntervalList></OutputSchema></Simulation>"#;

fn loaded() -> (Place, Client) {
    let place = place();
    fs::write(place.path("models/early.xml"), EARLY).unwrap();
    let mut client = client(&place);
    call(&mut client, "load_simulation", load());
    let early = json!({"filePath": "early.xml", "simulationId": "early", "confirm": true});
    call(&mut client, "load_simulation", early);
    (place, client)
}

/// Times and values of the only curve of a result.
fn rows(told: &Value) -> Vec<(f64, f64)> {
    let values = told["series"][0]["values"].as_array().unwrap();
    let row = |point: &Value| {
        (
            point["time"].as_f64().unwrap(),
            point["value"].as_f64().unwrap(),
        )
    };
    values.iter().map(row).collect()
}

#[test]
fn runs_name_their_release_and_tell_their_warnings() {
    let (_place, mut client) = loaded();
    let name = run(&mut client, json!({"simulationId": "early"}));
    let told = call(&mut client, "get_results", json!({"resultsId": name}));
    let times: Vec<f64> = rows(&told).iter().map(|row| row.0).collect();
    assert_eq!(times, [0.0, 3.0, 4.0], "the row at 0 is always stored");
    assert_eq!(told["ospVersion"], "12.4.3", "{told}");
    let warnings = told["warnings"].to_string();
    assert!(
        warnings.contains("lies before the start and is ignored"),
        "{warnings}"
    );

    let asked = json!({"simulationId": "early", "ospVersion": "13-dev"});
    let name = run(&mut client, asked);
    let told = call(&mut client, "get_results", json!({"resultsId": name}));
    let found = rows(&told);
    let expected = [(3.0, 5.0 * f64::exp(-1.5)), (4.0, 5.0 * f64::exp(-1.8))];
    assert_eq!(found.len(), 2, "{told}");
    for (row, expected) in found.iter().zip(expected) {
        assert!(
            row.0 == expected.0 && (row.1 / expected.1 - 1.0).abs() < 1e-3,
            "{told}"
        );
    }
    assert_eq!(told["ospVersion"], "13-dev");

    let checked = call(
        &mut client,
        "run_verification_checks",
        json!({"simulationId": "early"}),
    );
    assert_eq!(checked["ospVersion"], "12.4.3");
    let warnings = checked["warnings"].to_string();
    assert!(warnings.contains("is ignored"), "{checked}");

    let wrong = json!({"simulationId": "early", "ospVersion": "11", "confirm": true});
    let refused = fails(&mut client, "run_simulation", wrong).to_string();
    assert!(
        refused.contains("ospVersion") && refused.contains("13-dev"),
        "{refused}"
    );
}

#[test]
fn the_servers_release_holds_where_a_call_names_none() {
    let place = place();
    fs::write(place.path("models/early.xml"), EARLY).unwrap();
    fs::write(
        place.path("durward.yaml"),
        "servers: { pbpk: { builtin: simulation, models: [models], osp_version: 13-dev } }\n",
    )
    .unwrap();
    let mut client = client(&place);
    let early = json!({"filePath": "early.xml", "simulationId": "sim", "confirm": true});
    call(&mut client, "load_simulation", early);
    let name = run(&mut client, json!({}));
    let told = call(&mut client, "get_results", json!({"resultsId": name}));
    assert_eq!(told["ospVersion"], "13-dev", "{told}");
}

#[test]
fn a_population_whose_individuals_are_alike_says_so() {
    let (_place, mut client) = loaded();
    let asked = json!({"simulationId": "sim", "cohort": {"size": 3}, "confirm": true});
    let job = call(&mut client, "run_population_simulation", asked.clone());
    assert!(
        job["warnings"]
            .to_string()
            .contains("all 3 individuals are alike"),
        "{job}"
    );
    let name = run(&mut client, asked);
    let told = call(
        &mut client,
        "get_population_results",
        json!({"resultsId": name}),
    );
    assert!(
        told["warnings"]
            .to_string()
            .contains("all 3 individuals are alike"),
        "{told}"
    );
}

#[test]
fn arguments_that_a_tool_does_not_take_are_refused_with_the_nearest_name() {
    let (_place, mut client) = loaded();
    let weight = |client: &mut Client| {
        let asked = json!({"simulationId": "sim", "parameterPath": WEIGHT});
        call(client, "get_parameter_value", asked)["parameter"]["value"].clone()
    };
    let misspelled = json!({"simulationId": "sim", "parameterPath": WEIGHT, "value": 200, "untt": "g", "confirm": true});
    let refused = fails(&mut client, "set_parameter_value", misspelled).to_string();
    assert!(
        refused.contains("does not take 'untt'") && refused.contains("did you mean unit?"),
        "{refused}"
    );
    assert_eq!(weight(&mut client), 70.0, "nothing was set");
    let nested = json!({"simulationId": "sim", "cohort": {"size": 2, "sede": 3}, "confirm": true});
    let refused = fails(&mut client, "run_population_simulation", nested).to_string();
    assert!(
        refused.contains("cohort.sede") && refused.contains("did you mean seed"),
        "{refused}"
    );
}

#[test]
fn a_relative_value_is_added_or_multiplied_as_the_bridges_release_says() {
    let (place, mut client) = loaded();
    let set = |client: &mut Client, more: Value| {
        let mut asked = json!({"simulationId": "sim", "parameterPath": WEIGHT, "value": 1.5, "updateMode": "relative", "confirm": true});
        let members = asked.as_object_mut().unwrap();
        members.extend(more.as_object().unwrap().clone());
        asked = json!(members);
        let reply = client.call_tool("set_parameter_value", asked).unwrap();
        let result = reply.result().unwrap();
        result["structuredContent"]["parameter"]["value"].as_f64()
    };
    assert_eq!(set(&mut client, json!({})), Some(71.5));
    assert_eq!(set(&mut client, json!({"unit": "kg"})), Some(73.0));
    assert_eq!(
        set(&mut client, json!({"unit": "g"})),
        None,
        "another unit is refused"
    );
    fs::write(
        place.path("durward.yaml"),
        "servers: { pbpk: { builtin: simulation, models: [models], bridge_version: 0.4.3 } }\n",
    )
    .unwrap();
    let mut earlier = super::client(&place);
    call(&mut earlier, "load_simulation", load());
    assert_eq!(set(&mut earlier, json!({})), Some(105.0));
}

#[test]
fn an_analysis_loads_the_model_that_it_names() {
    let place = place();
    let mut client = client(&place);
    let asked = json!({"modelPath": "two_compartment.xml", "simulationId": "fresh", "confirm": true,
        "parameters": [{"path": WEIGHT, "deltas": [0.1]}]});
    let told = call(&mut client, "run_sensitivity_analysis", asked);
    assert!(told["report"].is_object(), "{told}");
    let manifest = call(
        &mut client,
        "validate_model_manifest",
        json!({"filePath": "two_compartment.xml"}),
    );
    assert_eq!(manifest["manifestStatus"], "valid", "{manifest}");
    assert_eq!(
        manifest["qualificationState"]["state"], "not-declared",
        "{manifest}"
    );
}

#[test]
fn observations_in_mass_and_below_the_limit_are_fitted() {
    let place = place();
    let file = place.path("models/two_compartment.xml");
    let weight = "<P id=\"90\" name=\"Molecular weight\" path=\"Example|Drug|Molecular weight\" unit=\"kg/\u{b5}mol\" value=\"4E-7\"/></ParameterList>";
    let model = fs::read_to_string(&file).unwrap();
    fs::write(&file, model.replacen("</ParameterList>", weight, 1)).unwrap();
    let mut client = client(&place);
    call(&mut client, "load_simulation", load());
    let curve = "Example|Organism|Central|Drug|Concentration";
    let name = run(&mut client, json!({"outputs": [curve]}));
    let told = call(&mut client, "get_results", json!({"resultsId": name}));
    let found = rows(&told);
    let points: Vec<&(f64, f64)> = found
        .iter()
        .filter(|row| row.0 >= 60.0)
        .step_by(20)
        .collect();
    let times: Vec<f64> = points.iter().map(|row| row.0).collect();
    let values: Vec<f64> = points.iter().map(|row| row.1 * 0.4).collect();
    let clearance = "Example|Organism|Clearance";
    let asked = json!({"simulationId": "sim", "confirm": true,
        "parameters": [{"path": clearance, "min": 0.01, "max": 1}],
        "observations": [{"output": curve, "unit": "mg/L", "times": times, "values": values, "lloq": 1e-9}]});
    let told = call(&mut client, "fit_parameters", asked);
    let value = told["estimates"][0]["value"].as_f64().unwrap();
    assert!((value - 0.1).abs() < 1e-4, "{told}");
    assert_eq!(told["ospVersion"], "12.4.3");
}
