//! What the server is started with: its keys, and the bridge's variables as other names of them.

use std::fs;
use std::process::{Command, Stdio};

use serde_json::json;

use super::{call, load, place};
use crate::support::guarded::{LATEST, Place, binary, end};

const BRIDGE: &str = "servers: { pbpk: { builtin: simulation, environment: bridge } }\n";

/// What a start with these variables ends with: exit code and standard error.
fn refused(place: &Place, variables: &[(&str, &str)]) -> (Option<i32>, String) {
    let mut command = Command::new(binary());
    command
        .args([
            "--config",
            "durward.yaml",
            "--state-dir",
            "state",
            "run",
            "pbpk",
        ])
        .current_dir(&place.dir)
        .env_clear()
        .env("XDG_RUNTIME_DIR", place.runtime())
        .envs(variables.iter().copied())
        .stdin(Stdio::null());
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    (output.status.code(), said)
}

#[test]
fn the_bridges_variables_are_other_names_of_keys() {
    let place = place();
    fs::write(place.path("durward.yaml"), BRIDGE).unwrap();
    // Nothing else of this machine's environment.
    let words = [
        "-i".to_owned(),
        format!("XDG_RUNTIME_DIR={}", place.runtime().display()),
        format!("ADAPTER_MODEL_PATHS={}", place.path("models").display()),
        "JOB_TIMEOUT_SECONDS=77".to_owned(),
        "JOB_MAX_RETRIES=3".to_owned(),
        "AUDIT_ENABLED=true".to_owned(),
        binary().to_owned(),
    ];
    let flags = ["--config", "durward.yaml", "--state-dir", "state", "run"];
    let args = flags
        .into_iter()
        .chain(["--policy", "policy.json", "pbpk"])
        .map(str::to_owned);
    let mut client = mcp::client::Client::spawn_with(
        "/usr/bin/env",
        words.into_iter().chain(args),
        &place.options(),
    )
    .unwrap();
    client.handshake(LATEST).unwrap();
    call(&mut client, "load_simulation", load());
    let run = json!({"simulationId": "sim", "confirm": true});
    let job = call(&mut client, "run_simulation", run);
    assert_eq!(
        (job["timeoutSeconds"].as_f64(), job["maxRetries"].as_u64()),
        (Some(77.0), Some(3)),
        "{job}"
    );
    assert_eq!(end(client).code, Some(0));
}

#[test]
fn a_variable_without_a_meaning_here_ends_the_start_and_its_value_stays_unsaid() {
    let place = place();
    fs::write(place.path("durward.yaml"), BRIDGE).unwrap();
    let models = place.path("models").to_str().unwrap().to_owned();
    for (name, reason) in [
        ("AUTH_DEV_SECRET", "durward keys create"),
        ("AUTH_ISSUER_URL", "durward keys create"),
        ("SESSION_REDIS_URL", "not in Redis"),
        ("JOB_BACKEND", "celery and hpc are not there"),
        ("AUDIT_STORAGE_BACKEND", "object storage"),
    ] {
        let (code, said) = refused(
            &place,
            &[("ADAPTER_MODEL_PATHS", models.as_str()), (name, "hunter2")],
        );
        assert_eq!(code, Some(16), "{name}: {said}");
        assert!(said.contains(name) && said.contains(reason), "{said}");
        assert!(!said.contains("hunter2"), "{said}");
    }
    let (code, said) = refused(
        &place,
        &[
            ("ADAPTER_MODEL_PATHS", models.as_str()),
            ("ADAPTER_BACKEND", "rpy2"),
        ],
    );
    assert_eq!(code, Some(16), "{said}");
    assert!(said.contains("native needs no R"), "{said}");
    // Without a folder there is nothing to load from.
    let (code, said) = refused(&place, &[]);
    assert_eq!(code, Some(16), "{said}");
    assert!(said.contains("needs models"), "{said}");
    // Where the configuration does not ask for them, variables of these names are no business of ours.
    fs::write(
        place.path("durward.yaml"),
        "servers: { pbpk: { builtin: simulation, models: [models] } }\n",
    )
    .unwrap();
    let (code, said) = refused(&place, &[("AUTH_DEV_SECRET", "hunter2")]);
    assert_eq!(code, Some(0), "{said}");
}
