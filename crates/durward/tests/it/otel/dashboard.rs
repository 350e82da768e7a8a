//! The Grafana dashboard of docs/examples asks for metrics that there are.

use std::collections::BTreeSet;
use std::fs;

use serde_json::Value;

use super::{endpoint, place, refuse};
use crate::support::components::repository;
use crate::support::guarded::binary;
use crate::support::serving::Served;

/// Names of metrics in an expression.
fn names(text: &str) -> impl Iterator<Item = &str> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    words.filter(|word| word.starts_with("durward_") || word.starts_with("process_"))
}

#[test]
fn the_dashboard_asks_for_metrics_that_there_are() {
    let file = repository().join("docs/examples/grafana/durward.json");
    let text = fs::read_to_string(file).unwrap();
    let dashboard: Value = serde_json::from_str(&text).unwrap();
    let panels = dashboard["panels"].as_array().unwrap();
    let targets = panels
        .iter()
        .flat_map(|panel| panel["targets"].as_array().unwrap());
    let asked: BTreeSet<&str> = targets
        .flat_map(|target| names(target["expr"].as_str().unwrap()))
        .collect();
    assert!(asked.len() >= 14, "{asked:?}");

    let place = place(&endpoint(1));
    let config = fs::read_to_string(place.path("durward.yaml")).unwrap();
    let models = "models: { providers: { local: { kind: mock } } }\n";
    fs::write(place.path("durward.yaml"), config + models).unwrap();
    let served = Served::start_program(place, binary().as_ref());
    refuse(&served);
    let text = served.send("GET", "/metrics", &[], "").body;
    let mut there = BTreeSet::new();
    for line in text.lines().filter_map(|line| line.strip_prefix("# TYPE ")) {
        let (family, kind) = line.split_once(' ').unwrap();
        let endings: &[&str] = match kind {
            "counter" => &["_total"],
            "histogram" => &["_bucket", "_sum", "_count"],
            _ => &[""],
        };
        there.extend(endings.iter().map(|ending| format!("{family}{ending}")));
    }
    for name in asked {
        assert!(there.contains(name), "{name} is not one of {there:?}");
    }
}
