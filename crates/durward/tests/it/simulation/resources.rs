//! Results as resources: their pages and bounds, the rules before them, and who sees them.

use mcp::client::Client;
use serde_json::{Value, json};

use super::{call, client, key, load, place, run};
use crate::support::guarded::end;
use crate::support::serving::{Served, modern, modern_headers};

/// What a request about resources is answered with: the result, or the error.
fn asked(client: &mut Client, method: &str, params: Value) -> Value {
    let reply = client.request(method, params).unwrap();
    let answer: Value = serde_json::from_str(reply.line()).unwrap();
    match answer.get("result") {
        Some(result) => result.clone(),
        None => answer["error"].clone(),
    }
}

fn uris(listed: &Value) -> Vec<&str> {
    let all = listed["resources"].as_array().unwrap();
    all.iter().map(|one| one["uri"].as_str().unwrap()).collect()
}

#[test]
fn a_rule_refuses_some_results_and_they_are_not_listed() {
    let place = place();
    place.write_policy(
        r#"{"rules":[
            {"id":"tools","effect":"allow","conditions":{"tool_name":"*"}},
            {"id":"secret","effect":"deny","conditions":{"when":"uri != null && uri.startsWith('sim://results/secret')"}},
            {"id":"results","effect":"allow","conditions":{"resource_type":["resource"],"scheme":["sim"]}}]}"#,
    );
    let mut client = client(&place);
    call(&mut client, "load_simulation", load());
    for name in ["open", "secret-1"] {
        run(&mut client, json!({"runId": name}));
    }
    let listed = asked(&mut client, "resources/list", json!({}));
    assert_eq!(uris(&listed), ["sim://results/open"]);
    let read =
        |client: &mut Client, uri: &str| asked(client, "resources/read", json!({"uri": uri}));
    let open = read(&mut client, "sim://results/open");
    assert_eq!(open["contents"][0]["uri"], "sim://results/open", "{open}");
    let refused = read(&mut client, "sim://results/secret-1/plot");
    assert_eq!(refused["data"]["reason"], "denied_by_rule", "{refused}");
    // The same result in another spelling is no way around the rule.
    let spelled = read(&mut client, "sim://results/%73ecret-1");
    let said = spelled["message"].as_str().unwrap();
    assert!(said.contains("write sim://results/secret-1"), "{spelled}");
    assert_eq!(end(client).code, Some(0));
    let journal = place.journal();
    let decisions = journal.decisions();
    let of =
        |uri: &str| decisions.iter().find(|d| d["uri"] == uri).unwrap()["resource_type"].clone();
    assert_eq!(of("sim://results/open"), "resource");
    assert_eq!(of("sim://results/secret-1/plot"), "resource");
}

#[test]
fn what_cannot_be_read_is_answered_with_the_reason() {
    let place = place();
    let mut client = client(&place);
    for (method, params, code, said) in [
        (
            "resources/list",
            json!({"cursor": "made-up"}),
            -32_602,
            "not issued here",
        ),
        (
            "resources/list",
            json!({"cursor": 7}),
            -32_602,
            "not a string",
        ),
        (
            "resources/templates/list",
            json!({"cursor": "x"}),
            -32_602,
            "not issued here",
        ),
        (
            "resources/read",
            json!({"uri": "sim://results/none"}),
            -32_002,
            "there are no results",
        ),
        (
            "resources/read",
            json!({"uri": "sim://models/x"}),
            -32_602,
            "names no result",
        ),
        (
            "resources/read",
            json!({"uri": "sim://results/x/curves"}),
            -32_602,
            "no such part",
        ),
    ] {
        let told = asked(&mut client, method, params.clone());
        assert_eq!(told["code"], code, "{method} {params}: {told}");
        let message = told["message"].as_str().unwrap();
        assert!(message.contains(said), "{method} {params}: {message}");
    }
    assert_eq!(end(client).code, Some(0));
}

#[test]
fn the_list_comes_in_pages_and_long_results_do_too() {
    let place = place();
    // So many times that two series are more than 40,000 points.
    let model = std::fs::read_to_string(place.path("models/two_compartment.xml")).unwrap();
    let points = "<NumberOfTimePoints>189</NumberOfTimePoints>";
    let dense = model.replace(points, "<NumberOfTimePoints>20001</NumberOfTimePoints>");
    assert_ne!(model, dense);
    std::fs::write(place.path("models/dense.xml"), dense).unwrap();
    let mut client = client(&place);
    let file = json!({"filePath": "dense.xml", "simulationId": "sim", "confirm": true});
    call(&mut client, "load_simulation", file);
    let name = run(&mut client, json!({}));
    let mut uri = format!("sim://results/{name}");
    let mut seen = Vec::new();
    loop {
        let told = asked(&mut client, "resources/read", json!({"uri": uri}));
        let text = told["contents"][0]["text"].as_str().unwrap();
        let page: Value = serde_json::from_str(text).unwrap();
        assert_eq!(page["total"], 3, "{uri}");
        for series in page["series"].as_array().unwrap() {
            assert!(series["values"].as_array().unwrap().len() > 20_000);
            seen.push(series["parameter"].as_str().unwrap().to_owned());
        }
        let Some(next) = page["next"].as_str() else {
            break;
        };
        uri = next.to_owned();
    }
    assert!(
        uri.contains("page="),
        "one page was too small for all: {uri}"
    );
    seen.sort();
    seen.dedup();
    assert_eq!(seen.len(), 3);

    // The list: 101 results are a page and one more.
    let file = json!({"filePath": "two_compartment.xml", "simulationId": "small", "confirm": true});
    call(&mut client, "load_simulation", file);
    let jobs: Vec<Value> = (0..100)
        .map(|number| {
            let asked = json!({"simulationId": "small", "runId": format!("run-{number}"), "outputs": ["**|Concentration"], "confirm": true});
            call(&mut client, "run_simulation", asked)["jobId"].clone()
        })
        .collect();
    for job in jobs {
        let waits = json!({"jobId": job, "waitSeconds": 120});
        assert_eq!(
            call(&mut client, "get_job_status", waits)["status"],
            "succeeded"
        );
    }
    let first = asked(&mut client, "resources/list", json!({}));
    let cursor = first["nextCursor"].as_str().unwrap().to_owned();
    let last = asked(&mut client, "resources/list", json!({"cursor": cursor}));
    assert_eq!(last.get("nextCursor"), None);
    let mut all = [uris(&first), uris(&last)].concat();
    assert_eq!(
        (all.len(), all.last().copied()),
        (101, Some(format!("sim://results/{name}").as_str()))
    );
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), 101);
    assert_eq!(end(client).code, Some(0));
}

#[test]
fn results_are_their_callers_own_and_no_cache_keeps_them() {
    let place = place();
    let bearer = |name: &str| format!("Bearer {}", key(&place, &[name]));
    let (ada, bob) = (bearer("ada"), bearer("bob"));
    let served = Served::start_configured(place);
    let post = |path: &str, body: Value| {
        let headers = [("authorization", ada.as_str())];
        served
            .send("POST", path, &headers, &body.to_string())
            .json()
    };
    post("/load_simulation", load());
    let asked = json!({"simulationId": "sim", "runId": "mine", "confirm": true});
    let job = post("/run_simulation", asked)["jobId"].clone();
    let waits = json!({"tool": "get_job_status", "arguments": {"jobId": job, "waitSeconds": 120}});
    assert_eq!(
        post("/mcp/call_tool", waits)["structuredContent"]["status"],
        "succeeded"
    );
    let ask = |who: &str, method: &str, uri: &str| {
        let mut headers = modern_headers(method, uri);
        headers.push(("authorization", who));
        let params = match uri {
            "" => String::new(),
            uri => format!(r#""uri":"{uri}""#),
        };
        let body = modern("1", method, &params);
        served.send("POST", "/mcp/pbpk", &headers, &body).json()
    };
    let listed = ask(&ada, "resources/list", "");
    assert_eq!(uris(&listed["result"]), ["sim://results/mine"], "{listed}");
    assert_eq!(uris(&ask(&bob, "resources/list", "")["result"]), [""; 0]);
    let read = ask(&ada, "resources/read", "sim://results/mine");
    for answer in [&listed, &read] {
        assert_eq!(
            (&answer["result"]["cacheScope"], &answer["result"]["ttlMs"]),
            (&json!("private"), &json!(0)),
            "{answer}"
        );
    }
    let text = read["result"]["contents"][0]["text"].as_str().unwrap();
    assert!(
        text.contains("two_compartment") || text.contains("Concentration"),
        "{text}"
    );
    // For another caller it is as good as not there; this era has no code of its own for that.
    let other = ask(&bob, "resources/read", "sim://results/mine");
    assert_eq!(other["error"]["code"], -32_602, "{other}");
    assert_eq!(
        other["error"]["data"]["uri"], "sim://results/mine",
        "{other}"
    );
    let templates = ask(&bob, "resources/templates/list", "");
    assert_eq!(
        templates["result"]["resourceTemplates"]
            .as_array()
            .unwrap()
            .len(),
        4,
        "{templates}"
    );
}
