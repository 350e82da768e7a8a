//! The OpenAPI document, held against the server by a generator of requests.

use std::process::Command;

use serde_json::json;

use super::{load, place};
use crate::support::components::{self, repository};
use crate::support::serving::Served;

/// Requests that are generated for each operation; `SCHEMATHESIS_EXAMPLES` gives another number.
const EXAMPLES: &str = "6";

#[test]
fn schemathesis_finds_nothing() {
    let Some(schemathesis) = components::schemathesis() else {
        return;
    };
    let place = place();
    let folder = place.path("schemathesis");
    std::fs::create_dir_all(&folder).unwrap();
    let served = Served::start_configured(place);
    let body = load().to_string();
    assert_eq!(
        served.send("POST", "/load_simulation", &[], &body).status,
        201
    );
    let examples = std::env::var("SCHEMATHESIS_EXAMPLES").unwrap_or_else(|_| EXAMPLES.to_owned());
    let output = Command::new(schemathesis)
        .arg("--config-file")
        .arg(repository().join("crates/durward/tests/drivers/schemathesis.toml"))
        .args(["run", &format!("http://{}/openapi.json", served.address)])
        .args([
            "--max-examples",
            &examples,
            "--seed",
            "1",
            "--request-timeout",
            "60",
        ])
        .current_dir(folder)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}");
    assert!(said.contains("Tested: "), "{said}");
    // The server is whole.
    let told = served.send(
        "POST",
        "/list_parameters",
        &[],
        &json!({"simulationId": "sim"}).to_string(),
    );
    assert_eq!(told.status, 200, "{told:?}");
}
