//! Curves as pictures, and parameters from measured ones.

use base64::Engine as _;
use serde_json::{Value, json};

use super::{call, client, fails, load, place, run};

const CURVE: &str = "Example|Organism|Central|Drug|Concentration";
const CLEARANCE: &str = "Example|Organism|Clearance";

/// The points of the curve, as measured values.
fn measured(client: &mut mcp::client::Client, results: &str) -> Value {
    let told = call(
        client,
        "get_results",
        json!({"resultsId": results, "outputs": [CURVE]}),
    );
    let points = told["series"][0]["values"].as_array().unwrap();
    // Where nothing is there yet there is no logarithm.
    let seen = points
        .iter()
        .filter(|point| point["value"].as_f64().unwrap() > 0.01)
        .step_by(20);
    let (times, values): (Vec<_>, Vec<_>) = seen
        .map(|point| (point["time"].clone(), point["value"].clone()))
        .unzip();
    json!([{"output": CURVE, "unit": told["series"][0]["unit"], "times": times, "values": values}])
}

#[test]
fn a_plot_is_a_picture_for_the_chat_and_an_svg_with_the_curves_that_are_chosen() {
    let place = place();
    let mut client = client(&place);
    call(&mut client, "load_simulation", load());
    let name = run(&mut client, json!({}));
    let asked = json!({"resultsId": name, "outputs": [CURVE], "title": "One <curve>"});
    let reply = client.call_tool("plot_results", asked).unwrap();
    let result = reply.result().unwrap();
    let picture = &result["content"][0];
    assert_eq!(
        (&picture["type"], &picture["mimeType"]),
        (&json!("image"), &json!("image/png"))
    );
    let bytes = base64::engine::general_purpose::STANDARD
        .decode(picture["data"].as_str().unwrap())
        .unwrap();
    assert_eq!(&bytes[..8], b"\x89PNG\r\n\x1a\n");
    let width = u32::from_be_bytes(bytes[16..20].try_into().unwrap());
    assert_eq!(width, 1_170);
    let said = result["content"][1]["text"].as_str().unwrap();
    assert!(said.contains(CURVE) && said.contains(&name), "{said}");
    let told = &result["structuredContent"];
    let svg = told["svg"].as_str().unwrap();
    assert!(
        svg.starts_with("<svg") && svg.contains("One &lt;curve&gt;"),
        "{svg}"
    );
    assert_eq!(told["outputs"], json!([CURVE]));
    let none = json!({"resultsId": name, "outputs": ["nothing"]});
    assert_eq!(
        fails(&mut client, "plot_results", none)["code"],
        "InvalidInput"
    );

    // Measured values stand over the curve.
    let observed = measured(&mut client, &name);
    let both = json!({"resultsId": name, "outputs": [CURVE], "observed": observed});
    let told = call(&mut client, "plot_results", both);
    assert!(
        told["svg"].as_str().unwrap().contains("(observed)"),
        "{told}"
    );
    assert_eq!(told["outputs"], json!([CURVE]));
    let elsewhere = json!([{"output": "Example|Nowhere", "times": [1], "values": [1]}]);
    let wrong = json!({"resultsId": name, "outputs": [CURVE], "observed": elsewhere});
    assert_eq!(
        fails(&mut client, "plot_results", wrong)["details"][0]["field"],
        "observed.output"
    );
}

#[test]
fn a_fit_finds_the_parameter_with_which_the_curve_was_made() {
    let place = place();
    let mut client = client(&place);
    call(&mut client, "load_simulation", load());
    let value = |client: &mut mcp::client::Client| {
        let asked = json!({"simulationId": "sim", "parameterPath": CLEARANCE});
        call(client, "get_parameter_value", asked)["parameter"]["value"]
            .as_f64()
            .unwrap()
    };
    let before = value(&mut client);
    let set = json!({"simulationId": "sim", "parameterPath": CLEARANCE, "value": 0.5 * before, "updateMode": "relative", "confirm": true});
    call(&mut client, "set_parameter_value", set);
    let name = run(&mut client, json!({}));
    let observations = measured(&mut client, &name);
    let reset = json!({"simulationId": "sim", "parameterPath": CLEARANCE, "confirm": true});
    call(&mut client, "reset_parameter_value", reset);

    let asked = |more: Value| {
        let mut asked = json!({"simulationId": "sim", "confirm": true, "observations": observations,
            "parameters": [{"path": CLEARANCE, "min": before / 10.0, "max": before * 10.0}]});
        asked
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        asked
    };
    let told = call(&mut client, "fit_parameters", asked(json!({})));
    let estimate = &told["estimates"][0];
    let found = estimate["value"].as_f64().unwrap();
    assert!((found / before - 1.5).abs() < 1e-3, "{told}");
    assert_eq!(
        (&told["converged"], &told["applied"]),
        (&json!(true), &json!(false))
    );
    let fitted = &told["fitted"][0]["points"][3];
    assert!(
        (fitted["fitted"].as_f64().unwrap() / fitted["observed"].as_f64().unwrap() - 1.0).abs()
            < 1e-2,
        "{fitted}"
    );
    assert_eq!(value(&mut client), before, "a fit sets nothing by itself");
    call(&mut client, "fit_parameters", asked(json!({"apply": true})));
    assert!((value(&mut client) / before - 1.5).abs() < 1e-3);

    for (more, code, field) in [
        (json!({"confirm": false}), "ConfirmationRequired", "confirm"),
        (
            json!({"parameters": [{"path": "Example|Organism|Clarance"}]}),
            "NotFound",
            "parameterPath",
        ),
        (
            json!({"parameters": [{"path": CLEARANCE, "min": 5, "max": 4}]}),
            "InvalidInput",
            "parameters",
        ),
        (
            json!({"parameters": [{"path": CLEARANCE}, {"path": CLEARANCE}]}),
            "InvalidInput",
            "parameters",
        ),
        (json!({"errors": "squared"}), "InvalidInput", "errors"),
        (
            json!({"observations": [{"output": "Example|Nowhere", "times": [1], "values": [1]}]}),
            "NotFound",
            "observations.output",
        ),
        (
            json!({"observations": [{"output": CURVE, "times": [60], "values": [0]}]}),
            "InvalidInput",
            "parameters",
        ),
        (
            json!({"observations": [{"output": CURVE, "unit": "kg", "times": [60], "values": [1]}]}),
            "InvalidInput",
            "unit",
        ),
    ] {
        let wrong = fails(&mut client, "fit_parameters", asked(more.clone()));
        assert_eq!(wrong["code"], code, "{more}: {wrong}");
        if code != "ConfirmationRequired" {
            assert_eq!(wrong["details"][0]["field"], field, "{more}: {wrong}");
        }
    }
}
