//! A scaling law over stored runs, as a user asks for it.

use std::fs;

use serde_json::json;

use crate::support::{Directory, lab, measured, refused};

/// A run of `lab load ssh` at these numbers of workers, with these rates.
fn run(place: &Directory, name: &str, points: &[(u32, f64)]) -> String {
    let phases: Vec<_> = points
        .iter()
        .map(|(n, rps)| json!({"asked": n, "rps": rps, "name": "x"}))
        .collect();
    let file = place.join(name);
    fs::write(
        &file,
        json!({"format": "durward-lab-ssh/1", "phases": phases}).to_string(),
    )
    .unwrap();
    file
}

#[test]
fn the_law_behind_stored_rates_is_found_and_told_beyond_them() {
    let place = Directory::new();
    let rate = |n: f64| 100.0 * n / (1.0 + 0.1 * (n - 1.0) + 0.01 * n * (n - 1.0));
    let points = [1, 2, 5, 10].map(|n| (n, rate(f64::from(n))));
    let first = run(&place, "a.json", &points[..2]);
    let second = run(&place, "b.json", &points[2..]);
    let told = measured(&lab(&["scale", &first, &second, "--at", "20", "--json"]));
    for (at, expect) in [100.0, 0.1, 0.01].into_iter().enumerate() {
        let found = told["parameters"][at]["value"].as_f64().unwrap();
        assert!((found - expect).abs() < 1e-6 * expect.max(1.0), "{told}");
        assert!(told["parameters"][at]["interval"].is_array(), "{told}");
    }
    let last = told["rates"].as_array().unwrap().last().unwrap();
    assert_eq!(
        (&last["workers"], &last["is_beyond"]),
        (&json!(20), &json!(true))
    );
    let text = lab(&["scale", &first, &second, "--at", "20"]);
    let text = String::from_utf8(text.stdout).unwrap();
    for part in [
        "lambda",
        "sigma",
        "kappa",
        "highest with 9.5 workers",
        "beyond what was measured",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn runs_that_tell_no_law_are_refused() {
    let place = Directory::new();
    let few = run(&place, "few.json", &[(1, 10.0), (2, 20.0)]);
    refused(
        &lab(&["scale", &few, "--json"]),
        1,
        "have 2 numbers of workers",
    );
    let none = place.join("none.json");
    refused(&lab(&["scale", &none, "--json"]), 1, "none.json");
    fs::write(&none, "{}").unwrap();
    refused(
        &lab(&["scale", &none, "--json"]),
        1,
        "no whole document of a measurement",
    );
    refused(&lab(&["scale"]), 2, "<RUN>");
}
