//! `builtin: simulation` as its clients meet it: the walks of real clients, the rules before it, and its jobs over a crash.

mod jobs;
mod rules;
mod walks;

use std::fs;

use serde_json::{Value, json};

use crate::support::components::repository;
use crate::support::guarded::Place;

/// A simulation without anything in it.
const EMPTY: &str = r#"<Simulation version="4" objectPathDelimiter="|"><FormulaList/><OutputSchema><OutputIntervalList>
<OutputInterval distribution="Uniform"><StartTime>0</StartTime><EndTime>1</EndTime><NumberOfTimePoints>2</NumberOfTimePoints>
</OutputInterval></OutputIntervalList></OutputSchema></Simulation>"#;

/// A place with a model of our own and an empty one.
fn place() -> Place {
    let place = Place::new();
    fs::create_dir_all(place.path("models")).unwrap();
    let model = repository().join("crates/pbpk/examples/two_compartment.xml");
    fs::copy(model, place.path("models/two_compartment.xml")).unwrap();
    fs::write(place.path("models/empty.xml"), EMPTY).unwrap();
    fs::write(
        place.path("durward.yaml"),
        "servers: { pbpk: { builtin: simulation, models: [models] } }\n",
    )
    .unwrap();
    place
}

/// The arguments with which the model is loaded.
fn load() -> Value {
    json!({"filePath": "two_compartment.xml", "simulationId": "sim", "confirm": true})
}
