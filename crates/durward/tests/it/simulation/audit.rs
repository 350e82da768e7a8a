//! `/audit/events` and `sim://audit/events`: what the journal has of the server's calls, for callers of one group.

use std::fs;

use mcp::client::{Era, HttpClient, HttpOptions};
use serde_json::{Value, json};

use super::{client, key, load, place};
use crate::support::components::repository;
use crate::support::guarded::{LATEST, Place, end, eventually};
use crate::support::serving::{Answer, Served, modern, modern_headers};

/// Stands in arguments only.
const CANARY: &str = "canary-5b1f";

/// A place whose rules let everything pass, with a second server.
fn open_place() -> Place {
    let place = place();
    place.write_policy(
        r#"{"rules":[{"id":"all","effect":"allow","conditions":{"mcp_method":"*"}}]}"#,
    );
    let servers =
        "servers:\n  pbpk: { builtin: simulation, models: [models] }\n  other: { builtin: echo }\n";
    fs::write(place.path("durward.yaml"), servers).unwrap();
    place
}

fn get(served: &Served, key: &str, path: &str) -> Answer {
    let bearer = format!("Bearer {key}");
    served.send("GET", path, &[("authorization", &bearer)], "")
}

#[track_caller]
fn events(served: &Served, key: &str, query: &str) -> Vec<Value> {
    let answer = get(served, key, &format!("/audit/events{query}"));
    assert_eq!(answer.status, 200, "{answer:?}");
    assert!(!answer.body.contains(CANARY), "{answer:?}");
    assert_eq!(answer.header("cache-control"), Some("no-store"));
    answer.json()["events"].as_array().unwrap().clone()
}

fn post(served: &Served, key: &str, path: &str, body: &Value) -> Answer {
    let bearer = format!("Bearer {key}");
    served.send(
        "POST",
        path,
        &[("authorization", &bearer)],
        &body.to_string(),
    )
}

/// Reads a resource over MCP.
fn read(served: &Served, key: Option<&str>, uri: &str) -> Value {
    let mut headers = modern_headers("resources/read", uri);
    let bearer = key.map(|key| format!("Bearer {key}"));
    headers.extend(
        bearer
            .iter()
            .map(|bearer| ("authorization", bearer.as_str())),
    );
    let body = modern("1", "resources/read", &format!(r#""uri":"{uri}""#));
    served.send("POST", "/mcp/pbpk", &headers, &body).json()
}

#[test]
fn an_admin_reads_what_was_called_the_newest_first() {
    let place = open_place();
    let ada = key(&place, &["ada", "--group", "operator", "--group", "night"]);
    let ops = key(&place, &["ops", "--group", "admin"]);
    let served = Served::start_configured(place);
    let canary =
        json!({"filePath": "two_compartment.xml", "simulationId": CANARY, "confirm": true});
    assert_eq!(post(&served, &ada, "/load_simulation", &canary).status, 201);
    let set = json!({"simulationId": CANARY, "parameterPath": "Example|Organism|Weight", "value": 81, "comment": CANARY, "confirm": true});
    assert_eq!(
        post(&served, &ada, "/set_parameter_value", &set).status,
        200
    );
    let missing = json!({"simulationId": CANARY, "parameterPath": CANARY});
    assert_eq!(
        post(&served, &ada, "/get_parameter_value", &missing).status,
        404
    );
    let run = json!({"simulationId": CANARY, "runId": CANARY, "confirm": true});
    assert_eq!(post(&served, &ada, "/run_simulation", &run).status, 202);
    eventually("the end of the job is recorded", || {
        events(&served, &ops, "?eventType=job.simulation.succeeded").len() == 1
    });
    let call = modern(
        "1",
        "tools/call",
        r#""name":"echo","arguments":{"text":"x"}"#,
    );
    let bearer = format!("Bearer {ada}");
    let mut headers = modern_headers("tools/call", "echo");
    headers.push(("authorization", &bearer));
    let echoed = served.send("POST", "/mcp/other", &headers, &call);
    assert_eq!(echoed.status, 200, "{echoed:?}");

    let all = events(&served, &ops, "?limit=1000");
    let times: Vec<&str> = all
        .iter()
        .map(|e| e["timestamp"].as_str().unwrap())
        .collect();
    assert!(times.is_sorted_by(|a, b| a >= b), "{times:?}");
    let of = |event_type: &str| {
        let found = all.iter().filter(|e| e["eventType"] == event_type);
        found.cloned().collect::<Vec<Value>>()
    };
    let [load] = &of("tool.load_simulation")[..] else {
        panic!("{all:#?}")
    };
    assert_eq!(load["tool"]["status"], "success", "{load}");
    assert!(load["tool"]["durationMs"].as_f64().unwrap() > 0.0, "{load}");
    let roles = json!({"subject": "key:ada", "roles": ["operator", "night"]});
    assert_eq!(load["identity"], roles, "{load}");
    let failed = &of("tool.get_parameter_value")[0];
    assert_eq!(failed["tool"]["status"], "error", "{failed}");
    assert!(failed["error"].is_string(), "{failed}");
    let job = &of("job.simulation.succeeded")[0];
    assert_eq!(job["identity"]["subject"], "key:ada", "{job}");
    let own = &of("http.mcp.resources.read")[0];
    assert_eq!(own["identity"]["subject"], "key:ops", "{own}");
    // The calls of another server are none of its events.
    assert!(of("tool.echo").is_empty(), "{all:#?}");

    // Some of them.
    assert_eq!(events(&served, &ops, "?limit=2").len(), 2);
    let loads = events(&served, &ops, "?limit=2&eventType=tool.load_simulation");
    assert_eq!(loads.iter().collect::<Vec<_>>(), [load]);
    for none in [
        "tool.none",
        "..%2F..%2Fetc",
        "%00%0A%C3%A4%F0%9F%99%82",
        "a%26limit%3D0+b",
    ] {
        assert!(
            events(&served, &ops, &format!("?eventType={none}")).is_empty(),
            "{none}"
        );
    }
    for (query, field) in [
        ("limit=0", "limit"),
        ("limit=1001", "limit"),
        ("limit=-1", "limit"),
        ("limit=ten", "limit"),
        ("eventType=", "eventType"),
        ("limit=1&limit=2", "limit"),
    ] {
        let answer = get(&served, &ops, &format!("/audit/events?{query}"));
        assert_eq!(answer.status, 400, "{query}: {answer:?}");
        let error = &answer.json()["error"];
        assert_eq!(error["code"], "InvalidInput", "{query}: {error}");
        assert_eq!(error["details"][0]["field"], field, "{query}: {error}");
    }
    let other = post(&served, &ops, "/audit/events", &json!({}));
    assert_eq!(other.status, 405, "{other:?}");
    assert_eq!(other.header("allow"), Some("GET, HEAD"));

    // The same over MCP.
    let told = read(
        &served,
        Some(&ops),
        "sim://audit/events?limit=1&eventType=tool.load_simulation",
    );
    let text = told["result"]["contents"][0]["text"].as_str().unwrap();
    let told: Value = serde_json::from_str(text).unwrap();
    assert_eq!(told, json!({"events": [load]}));
    let wrong = read(&served, Some(&ops), "sim://audit/events?limit=0");
    assert_eq!(wrong["error"]["code"], -32_602, "{wrong}");

    // Hashes are those of the journal, and the journal has what was refused nothing of.
    let (_, place) = served.stop();
    let lines: Vec<String> = place
        .segments()
        .iter()
        .map(|path| fs::read_to_string(path).unwrap())
        .collect();
    let lines = lines.concat();
    for event in &all {
        let (previous, hash) = (&event["previousHash"], &event["hash"]);
        let link = format!("\"prev_hash\":{previous},\"entry_hash\":{hash}");
        let line = lines.lines().find(|line| line.contains(&link)).unwrap();
        assert!(line.contains(event["op"].as_str().unwrap()), "{line}");
        let digest = event["tool"]["argumentsDigest"].as_str();
        assert!(
            digest.is_none_or(|digest| lines.contains(digest)),
            "{event}"
        );
    }
    assert!(load["tool"]["argumentsDigest"].is_string(), "{load}");
    place.verified();
}

/// What must not be told to others: types and names of events.
#[track_caller]
fn refused(told: &Value, place: &str) {
    let text = told.to_string();
    for part in [
        "eventType",
        "tool.",
        "load_simulation",
        "hash",
        "key:ada",
        "timestamp",
    ] {
        assert!(!text.contains(part), "{place}: {part}: {text}");
    }
}

#[test]
fn nobody_but_an_admin_reads_anything_whatever_the_rules_let_through() {
    let place = open_place();
    let others = [
        key(&place, &["none"]),
        key(&place, &["v", "--group", "viewer"]),
        key(&place, &["ada", "--group", "operator"]),
        key(
            &place,
            &["like", "--group", "administrator", "--group", "Admin"],
        ),
    ];
    let ops = key(&place, &["ops", "--group", "admin"]);
    let elsewhere = key(&place, &["far", "--group", "admin", "--scope", "other"]);
    let served = Served::start_configured(place);
    assert_eq!(
        post(&served, &others[2], "/load_simulation", &load()).status,
        201
    );
    for other in &others {
        // A query that is wrong is not looked at before that.
        for query in [
            "",
            "?limit=5",
            "?eventType=tool.load_simulation",
            "?limit=0",
            "?limit=1&limit=1",
        ] {
            let answer = get(&served, other, &format!("/audit/events{query}"));
            assert_eq!(answer.status, 403, "{query}: {answer:?}");
            let told = answer.json();
            assert_eq!(told["error"]["code"], "Forbidden", "{told}");
            let said = told["error"]["message"].as_str().unwrap();
            assert!(said.contains("group admin"), "{told}");
            refused(&told, query);
        }
        for uri in [
            "sim://audit/events",
            "sim://audit/events?limit=0",
            "sim://audit",
            "sim://audit/x",
        ] {
            let told = read(&served, Some(other), uri);
            assert_eq!(told["error"]["data"]["code"], "Forbidden", "{uri}: {told}");
            refused(&told, uri);
        }
        let listed = {
            let mut headers = modern_headers("resources/list", "");
            let bearer = format!("Bearer {other}");
            headers.push(("authorization", &bearer));
            served
                .send(
                    "POST",
                    "/mcp/pbpk",
                    &headers,
                    &modern("1", "resources/list", ""),
                )
                .json()
        };
        assert!(!listed.to_string().contains("audit"), "{listed}");
    }
    for (key, status) in [(elsewhere.as_str(), 403), ("none", 401)] {
        let answer = get(&served, key, "/audit/events");
        assert_eq!(answer.status, status, "{answer:?}");
        refused(&answer.json(), "a key for nothing here");
    }
    assert_eq!(served.send("GET", "/audit/events", &[], "").status, 401);
    // Each attempt is recorded, with who made it.
    let tried = events(
        &served,
        &ops,
        "?limit=1000&eventType=http.mcp.resources.read",
    );
    for name in ["key:none", "key:v", "key:ada", "key:like"] {
        let own = tried.iter().filter(|e| e["identity"]["subject"] == name);
        assert_eq!(own.count(), 9, "{name}: {tried:#?}");
    }
    let failed = tried.iter().filter(|e| e["response"]["outcome"] == "error");
    assert_eq!(failed.count(), 36, "{tried:#?}");
}

#[test]
fn sessions_and_the_address_of_all_servers_hold_to_it_too() {
    let place = open_place();
    let keys = [
        (key(&place, &["v", "--group", "viewer"]), false),
        (key(&place, &["ops", "--group", "admin"]), true),
    ];
    let served = Served::start_configured(place);
    for (path, era, uri) in [
        ("/mcp/pbpk", LATEST, "sim://audit/events?limit=1"),
        ("/mcp/pbpk", Era::Modern, "sim://audit/events?limit=1"),
        ("/mcp", LATEST, "pbpk+sim://audit/events?limit=1"),
    ] {
        for (key, may_read) in &keys {
            let options = HttpOptions {
                headers: vec![("authorization".into(), format!("Bearer {key}"))],
                ..HttpOptions::default()
            };
            let url = format!("http://{}{path}", served.address);
            let mut client = HttpClient::new(&url, options).unwrap();
            client.handshake(era).unwrap();
            let reply = client.request("resources/read", json!({"uri": uri}));
            let told: Value = serde_json::from_str(reply.unwrap().line()).unwrap();
            let text = told["result"]["contents"][0]["text"].as_str();
            assert_eq!(text.is_some(), *may_read, "{path} {era:?}: {told}");
            if !may_read {
                assert_eq!(told["error"]["data"]["code"], "Forbidden", "{told}");
                refused(&told, path);
            }
        }
    }
}

#[test]
fn without_keys_the_local_user_is_told_what_to_do() {
    let served = Served::start_configured(open_place());
    let answer = served.send("GET", "/audit/events", &[], "");
    assert_eq!(answer.status, 403, "{answer:?}");
    let hint = answer.json()["error"]["details"][0]["hint"].to_string();
    for way in [
        "durward keys create NAME --group admin",
        "durward audit show",
    ] {
        assert!(hint.contains(way), "{hint}");
    }
    let told = read(&served, None, "sim://audit/events");
    assert_eq!(told["error"]["data"]["code"], "Forbidden", "{told}");
    // Nor does anybody over standard streams.
    let place = open_place();
    let mut client = client(&place);
    let asked = json!({"uri": "sim://audit/events"});
    let reply = client.request("resources/read", asked).unwrap();
    let told: Value = serde_json::from_str(reply.line()).unwrap();
    assert_eq!(told["error"]["data"]["code"], "Forbidden", "{told}");
    assert_eq!(end(client).code, Some(0));
}

#[test]
fn the_policy_for_roles_has_the_gate_itself_refuse_it() {
    let place = place();
    let policy = repository().join("docs/policies/simulation-roles.json");
    fs::copy(policy, place.path("policy.json")).unwrap();
    let viewer = key(&place, &["v", "--group", "viewer"]);
    let operator = key(&place, &["o", "--group", "operator"]);
    let admin = key(&place, &["a", "--group", "admin"]);
    let served = Served::start_configured(place);
    for key in [&viewer, &operator] {
        let answer = get(&served, key, "/audit/events?limit=0");
        assert_eq!(answer.status, 403, "{answer:?}");
        let told = answer.json();
        assert_eq!(
            told["error"]["details"][0]["code"], "denied_by_rule",
            "{told}"
        );
    }
    let told = events(&served, &admin, "");
    let refused = told.iter().filter(|e| e["error"] == "denied_by_rule");
    let who: Vec<&Value> = refused.map(|e| &e["identity"]["subject"]).collect();
    assert_eq!(who, ["key:o", "key:v"], "{told:#?}");
}

#[test]
fn a_journal_that_was_changed_or_cannot_be_read_is_an_error() {
    let place = open_place();
    let ops = key(&place, &["ops", "--group", "admin"]);
    let served = Served::start_configured(place);
    assert_eq!(post(&served, &ops, "/load_simulation", &load()).status, 201);
    let (code, place) = served.stop();
    assert_eq!(code, Some(0));
    let old = place.segments().pop().unwrap();
    let written = fs::read_to_string(&old).unwrap();
    let served = Served::start_configured(place);
    let loads = || {
        get(
            &served,
            &ops,
            "/audit/events?eventType=tool.load_simulation",
        )
    };
    assert_eq!(loads().json()["events"].as_array().unwrap().len(), 1);

    // Another name of the tool, of the same length.
    let changed = written.replace("load_simulation", "lose_simulation");
    assert_ne!(written, changed);
    fs::write(&old, changed).unwrap();
    let answer = loads();
    assert_eq!(answer.status, 500, "{answer:?}");
    let error = &answer.json()["error"];
    assert_eq!(error["code"], "InternalError", "{error}");
    let said = error["message"].as_str().unwrap();
    assert!(
        said.contains("is not as it was written") && said.contains("was changed"),
        "{said}"
    );
    let hint = error["details"][0]["hint"].as_str().unwrap();
    assert!(hint.contains("durward audit verify"), "{hint}");

    // As it was, it is read again.
    fs::write(&old, &written).unwrap();
    assert_eq!(loads().status, 200);
    fs::remove_file(&old).unwrap();
    fs::create_dir(&old).unwrap();
    let answer = loads();
    assert_eq!(answer.status, 500, "{answer:?}");
    let said = answer.json()["error"]["message"].to_string();
    assert!(
        said.contains("cannot read") && said.contains("directory"),
        "{said}"
    );
}
