//! The OpenAPI document, held against the server by a generator of requests.

use std::process::Command;

use serde_json::json;

use super::{key, load, place};
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
    // So that nothing is closed to it.
    let bearer = format!("Bearer {}", key(&place, &["tester", "--group", "admin"]));
    let headers = [("authorization", bearer.as_str())];
    let served = Served::start_configured(place);
    let body = load().to_string();
    let loaded = served.send("POST", "/load_simulation", &headers, &body);
    assert_eq!(loaded.status, 201, "{loaded:?}");
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
            // Longer than a caller may wait for the end of a job.
            "--request-timeout",
            "300",
            "--header",
            &format!("Authorization: {bearer}"),
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
        &headers,
        &json!({"simulationId": "sim"}).to_string(),
    );
    assert_eq!(told.status, 200, "{told:?}");
}
