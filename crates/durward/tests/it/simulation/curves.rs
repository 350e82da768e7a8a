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

#[test]
fn a_regimen_is_given_to_the_model_as_it_is_loaded() {
    let place = place();
    let mut client = client(&place);
    let with = |regimen: Value, id: &str| {
        let mut load = load();
        let members = load.as_object_mut().unwrap();
        members.insert("simulationId".to_owned(), json!(id));
        members.insert("regimen".to_owned(), regimen);
        load
    };
    let regimen =
        json!([{"dose": "300 µmol", "interval": "6 h", "number": 4, "loading": "600 µmol"}]);
    call(&mut client, "load_simulation", with(regimen, "dosed"));
    let text = json!(["300 µmol,interval=6 h,number=4,loading=600 µmol"]);
    call(&mut client, "load_simulation", with(text, "same"));
    call(&mut client, "load_simulation", load());
    let mut kinetics = |id: &str| {
        let name = run(&mut client, json!({"simulationId": id}));
        let asked = json!({"resultsId": name, "outputPath": CURVE, "catalogue": true});
        call(&mut client, "calculate_pk_parameters", asked)["metrics"][0]["catalogue"].clone()
    };
    let dosed = kinetics("dosed");
    assert_eq!(dosed["tau"], json!(360.0));
    let number = |name: &str| dosed[name].as_f64().unwrap();
    let ratio = number("AUC_tau_ss") / number("AUC_tau_tD1");
    assert!(
        (number("R_ac") - ratio).abs() < 1e-12 && ratio < 1.0,
        "{dosed}"
    );
    assert_eq!(kinetics("same"), dosed);
    assert!(kinetics("sim").get("tau").is_none());
    for (regimen, expected) in [
        (json!(["300"]), "has no unit"),
        (
            json!([{"dose": "300 µmol", "interval": "6 kg"}]),
            "is not a time",
        ),
        (json!([{"dose": "300 l"}]), "takes no dose"),
    ] {
        let wrong = fails(&mut client, "load_simulation", with(regimen, "wrong"));
        assert!(wrong.to_string().contains(expected), "{wrong}");
    }
    let unknown = with(json!([{"dose": "1 mg", "intervall": "6 h"}]), "wrong");
    let wrong = fails(&mut client, "load_simulation", unknown);
    assert!(
        wrong.to_string().contains("did you mean interval"),
        "{wrong}"
    );
}

#[test]
fn a_fit_by_likelihood_has_criteria_and_values_below_the_limit() {
    let place = place();
    let mut client = client(&place);
    call(&mut client, "load_simulation", load());
    let name = run(&mut client, json!({}));
    let mut observations = measured(&mut client, &name);
    let values = observations[0]["values"].as_array_mut().unwrap();
    for (i, value) in values.iter_mut().enumerate() {
        let off = if i % 2 == 0 { 1.04 } else { 0.96 };
        *value = json!(value.as_f64().unwrap() * off);
    }
    let limit = values.last().unwrap().as_f64().unwrap() * 1.5;
    let count = values.len();
    observations[0]["lloq"] = json!(limit);
    let asked = json!({"simulationId": "sim", "confirm": true, "observations": observations, "errors": "proportional",
        "starts": 3, "parameters": [{"path": CLEARANCE, "min": 0.01, "max": 1.0}]});
    let told = call(&mut client, "fit_parameters", asked);
    let likelihood = &told["likelihood"];
    let number = |name: &str| likelihood[name].as_f64().unwrap();
    assert!(
        (number("aic") - number("objective") - 4.0).abs() < 1e-9,
        "{told}"
    );
    let bic = number("objective") + 2.0 * (count as f64).ln();
    assert!((number("bic") - bic).abs() < 1e-9, "{told}");
    let sigma = likelihood["sigmas"][0]["value"].as_f64().unwrap();
    assert!((sigma - 0.04).abs() < 0.01, "{told}");
    assert_eq!(likelihood["starts"].as_array().unwrap().len(), 3);
    let estimate = &told["estimates"][0];
    let [low, value, high] = ["low", "value", "high"].map(|name| estimate[name].as_f64().unwrap());
    assert!(
        low < 0.1 && 0.1 < high && low < value && value < high,
        "{estimate}"
    );
}
