//! What does not get through: wrong headers, rules, keys.

use mcp::client::Era;
use serde_json::{Value, json};

use super::super::kept::asked;
use super::super::{Asks as _, configured, text_of};
use super::{is_recorded, send, servers};
use crate::support::guarded::Place;
use crate::support::refusals::told;
use crate::support::served::{Served, ready};
use crate::support::serving::{self, modern, modern_headers};

#[test]
fn headers_repeat_the_name_as_the_client_spells_it() {
    let place = Place::new();
    let configuration = json!({"servers": servers(&place), "policy": place.path("policy.json")});
    configured(&place, &configuration);
    let served = serving::Served::start_ruled(place);
    let call = |name: &str, header: &str| {
        let params = format!(r#""name":"{name}","arguments":{{"text":"x"}}"#);
        send(&served, "tools/call", header, &params)
    };
    for (name, header, status, code) in [
        ("both__echo", "both__echo", 200, None),
        ("both__echo", "echo", 400, Some(-32020)),
        ("both__echo", "", 400, Some(-32020)),
        ("both__echo", "new__echo", 400, Some(-32020)),
        ("old__echo", "echo", 400, Some(-32020)),
    ] {
        let answer = call(name, header);
        assert_eq!(answer.status, status, "{name} {header} {answer:?}");
        let found = answer.json()["error"]["code"].as_i64();
        assert_eq!(found, code, "{name} {header} {answer:?}");
    }
    // Arguments that a tool wants repeated as well.
    let region = r#""name":"full__test_header_parameter","arguments":{"region":"eu"}"#;
    send(&served, "tools/list", "", "");
    let name = "full__test_header_parameter";
    let refused = send(&served, "tools/call", name, region);
    assert_eq!(refused.json()["error"]["code"], -32020, "{refused:?}");
    let body = modern("1", "tools/call", region);
    let headers = [
        &modern_headers("tools/call", name)[..],
        &[("mcp-param-region", "eu")],
    ]
    .concat();
    let answer = served.send("POST", "/mcp", &headers, &body);
    assert_eq!(answer.status, 200, "{answer:?}");
    let unknown = send(&served, "ping", "", "");
    assert_eq!(unknown.status, 404, "{unknown:?}");
    let vendor = send(&served, "vendor/do", "", "");
    assert_eq!(
        (vendor.status, &vendor.json()["error"]["code"]),
        (404, &(-32601).into()),
        "{vendor:?}"
    );
    assert_eq!(served.place.counted().len(), 2);
    let (code, place) = served.stop();
    assert_eq!(code, Some(0));
    is_recorded(&place);
}

#[test]
fn a_denied_call_reaches_no_server() {
    let place = Place::new();
    let served = Served::start(&place, &servers(&place));
    let mut client = ready(&format!("{}/mcp", served.address), Era::Modern);
    for server in ["both", "old", "new", "own"] {
        for (tool, arguments, rule) in [
            ("delayed", json!({"text": "x", "delay_us": 1}), "hidden"),
            ("echo", json!({"text": "/secret/two"}), "no-secret"),
        ] {
            let refused = client.call(&format!("{server}__{tool}"), arguments);
            assert_eq!(told(&refused)["final_rule"], rule, "{refused}");
        }
    }
    for server in ["both", "old", "new"] {
        assert_eq!(asked(&place, &format!("heard-{server}"), "tools/call"), 0);
    }
    assert_eq!(place.counted().len(), 0);
    assert_eq!(served.end(), Some(0));
    let records = place.journal();
    let denied = records.decisions().into_iter();
    let denied = denied.filter(|decision| decision["decision"] == "deny");
    assert_eq!(denied.count(), 8);
}

#[test]
fn a_key_for_one_server_shows_and_reaches_no_other() {
    let place = Place::new();
    let configuration = json!({"servers": servers(&place), "policy": place.path("policy.json")});
    configured(&place, &configuration);
    let create = [
        "--no-config",
        "--state-dir",
        "state",
        "keys",
        "create",
        "only",
        "--scope",
        "old",
        "--scope",
        "own",
        "--unlisted",
    ];
    let output = place.durward(&create);
    assert!(output.status.success(), "{output:?}");
    let key = format!(
        "Bearer {}",
        String::from_utf8(output.stdout).unwrap().trim()
    );
    let served = serving::Served::start_ruled(place);
    let ask = |method: &str, name: &str, params: &str| {
        let own = [("authorization", key.as_str())];
        let headers = [&modern_headers(method, name)[..], &own].concat();
        let answer = served.send("POST", "/mcp", &headers, &modern("1", method, params));
        answer.json()
    };
    let listed = ask("tools/list", "", "");
    let tools = listed["result"]["tools"].as_array().unwrap();
    let theirs = |tool: &Value| {
        let name = tool["name"].as_str().unwrap();
        name.starts_with("old__") || name.starts_with("own__")
    };
    assert!(!tools.is_empty() && tools.iter().all(theirs), "{listed}");
    let call = |name: &str| {
        let params = format!(r#""name":"{name}","arguments":{{"text":"x"}}"#);
        ask("tools/call", name, &params)
    };
    assert_eq!(text_of(&call("old__echo")), "x");
    let other = call("both__echo");
    assert_eq!(
        other["error"]["data"]["reason"], "server_unknown",
        "{other}"
    );
    assert_eq!(served.place.counted().len(), 1);
}
