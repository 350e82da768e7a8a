//! What is said of the server is so: its health, the names of its files, and the protocol's own answers.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::{load, place};
use crate::support::guarded::binary;
use crate::support::serving::{Answer, Served};

fn ask(served: &Served, path: &str, body: &Value) -> Answer {
    served.send("POST", path, &[], &body.to_string())
}

/// All files below a directory.
fn files(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).unwrap().flatten() {
        let path = entry.path();
        match path.is_dir() {
            true => found.extend(files(&path)),
            false => found.push(path),
        }
    }
    found
}

/// The state of the job that a run became, when it has ended.
fn ran(served: &Served) -> Value {
    assert_eq!(ask(served, "/load_simulation", &load()).status, 201);
    let run = json!({"simulationId": "sim", "confirm": true});
    let job = ask(served, "/run_simulation", &run).json()["jobId"].clone();
    let arguments = json!({"jobId": job, "waitSeconds": 120});
    let waits = json!({"tool": "get_job_status", "arguments": arguments});
    ask(served, "/mcp/call_tool", &waits).json()["structuredContent"].clone()
}

#[test]
fn defect_16_health_is_what_a_run_finds_and_files_are_what_their_names_say() {
    let served = Served::start_configured(place());
    let told = served.send_get("/mcp/capabilities");
    let environment = &told["adapter"]["health"]["environment"];
    assert_eq!(environment["available"], true, "{told}");
    assert_eq!(environment["issues"], json!([]));
    assert_eq!(ran(&served)["status"], "succeeded");
    let kept = files(&served.place.path("state"));
    let of_server = |path: &PathBuf| path.to_string_lossy().contains("place-0");
    assert!(kept.iter().any(of_server), "{kept:?}");
    for path in kept {
        if path
            .extension()
            .is_some_and(|extension| extension == "json")
        {
            let text = fs::read_to_string(&path).unwrap();
            assert!(
                serde_json::from_str::<Value>(&text).is_ok(),
                "{path:?} is not JSON"
            );
        }
    }

    // A program that is gone starts no workers: health and run say so alike.
    let place = place();
    let own = place.path("durward-copy");
    fs::copy(binary(), &own).unwrap();
    let served = Served::start_program(place, &own);
    fs::remove_file(&own).unwrap();
    let told = served.send_get("/mcp/capabilities");
    let health = &told["adapter"]["health"];
    assert_eq!(health["status"], "stopped", "{told}");
    assert_eq!(health["environment"]["available"], false);
    let said = health["environment"]["issues"][0].as_str().unwrap();
    assert!(said.contains("no worker process can be started"), "{said}");
    let job = ran(&served);
    assert_eq!(job["status"], "failed", "{job}");
    let said = job["error"]["message"].as_str().unwrap();
    assert!(said.contains("no worker process can be started"), "{said}");
}

#[test]
fn defect_25_json_rpc_answers_as_the_protocol_has_it() {
    let place = place();
    let key = |name: &str| {
        let args = [
            "--no-config",
            "--state-dir",
            "state",
            "keys",
            "create",
            name,
        ];
        let output = place.durward(&args);
        assert!(output.status.success(), "{output:?}");
        format!(
            "Bearer {}",
            String::from_utf8(output.stdout).unwrap().trim()
        )
    };
    let ada = key("ada");
    let served = Served::start_configured(place);
    let post = |more: &[(&str, &str)], body: &Value| {
        served.send("POST", "/mcp/pbpk", more, &body.to_string())
    };
    let request = |id: u32, method: &str, params: Value| json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
    let opens = |version: &str| {
        let params = json!({"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
        request(1, "initialize", params)
    };
    // No key: 401 with a challenge, and no 500.
    let refused = post(&[], &opens("2025-06-18"));
    assert_eq!(refused.status, 401, "{refused:?}");
    assert!(refused.header("www-authenticate").is_some(), "{refused:?}");

    let who = ("Authorization", ada.as_str());
    let opened = post(&[who], &opens("2025-06-18"));
    let told = opened.json();
    let result = &told["result"];
    assert_eq!(
        result["protocolVersion"], "2025-06-18",
        "what was asked for is known: {told}"
    );
    assert!(
        result["capabilities"]["tools"].is_object() && result["capabilities"]["prompts"].is_null(),
        "{told}"
    );
    assert!(
        result["serverInfo"]["name"].is_string() && result["serverInfo"]["version"].is_string(),
        "{told}"
    );
    // Of result and error there is one, and no null.
    assert!(told.get("error").is_none(), "{told}");
    let session = opened.header("mcp-session-id").unwrap().to_owned();
    let in_session = [
        who,
        ("Mcp-Session-Id", session.as_str()),
        ("MCP-Protocol-Version", "2025-06-18"),
    ];
    let told = post(
        &in_session,
        &json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
    );
    assert_eq!((told.status, told.body.as_str()), (202, ""));
    // A simulation that is not there is a failure of the tool, which the model reads, and no unknown method.
    let arguments = json!({"name": "list_parameters", "arguments": {"simulationId": "none"}});
    let told = post(&in_session, &request(2, "tools/call", arguments)).json();
    assert_eq!(told["result"]["isError"], true, "{told}");
    assert_eq!(
        told["result"]["_meta"]["durward/failure"]["code"], "NotFound",
        "{told}"
    );
    let told = post(&in_session, &request(4, "ping", json!({}))).json();
    assert_eq!(told["result"], json!({}), "{told}");
}
