//! The official filesystem server, the official everything server and one on FastMCP at once.

use std::fs;

use mcp::client::{Era, Message};
use serde_json::{Value, json};

use super::{Asks, FASTMCP, configured, run_all, text_of};
use crate::support::components;
use crate::support::guarded::{LATEST, Place, end, eventually};
use crate::support::refusals::{is_passed, told};
use crate::support::served::{Served, Site, ready};

/// What each of the three may: files are read, never written.
const OF_FILES: &str = r#"{"rules":[{"id":"no-writing","effect":"deny","conditions":{"tool_name":"write_file"}},
    {"id":"rest","effect":"allow","conditions":{"mcp_method":"*"}}]}"#;
const ANYTHING: &str =
    r#"{"rules":[{"id":"all","effect":"allow","conditions":{"mcp_method":"*"}}]}"#;

/// The three servers as the configuration names them.
fn servers(place: &Place) -> Option<Value> {
    let files = components::official_filesystem()?;
    let (node, everything) = (components::node()?, components::everything()?);
    let python = components::fastmcp_python()?;
    let root = place.path("root");
    fs::create_dir_all(&root).unwrap();
    fs::write(root.join("a.txt"), "alpha").unwrap();
    fs::write(place.path("pages.py"), FASTMCP).unwrap();
    fs::write(place.path("files.json"), OF_FILES).unwrap();
    place.write_policy(ANYTHING);
    Some(json!({
        "files": {"command": files, "args": [root], "policy": place.path("files.json")},
        "everything": {"command": node, "args": [everything]},
        "pages": {"command": python, "args": [place.path("pages.py")]},
    }))
}

/// What holds in front of the three servers, whichever way the client comes.
fn holds(place: &Place, client: &mut impl Asks) {
    of_the_tools(place, client);
    of_the_rest(client);
    let level = client.ask("logging/setLevel", json!({"level": "warning"}));
    assert!(level.result().is_ok(), "{}", level.line());
}

fn of_the_tools(place: &Place, client: &mut impl Asks) {
    // One that takes long to start joins later.
    eventually("all servers are there", || client.tools().1.is_empty());
    let (names, _) = client.tools();
    for name in [
        "files__read_text_file",
        "everything__echo",
        "pages__add",
        "pages__grow",
    ] {
        assert!(names.iter().any(|known| known == name), "{name} {names:?}");
    }
    let bare = |name: &String| !name.contains("__");
    assert!(!names.iter().any(bare), "{names:?}");
    assert_eq!(
        text_of(&client.call("pages__add", json!({"a": 2, "b": 3}))),
        "5"
    );
    let path = place.path("root/a.txt");
    let read = client.call("files__read_text_file", json!({"path": path}));
    assert_eq!(text_of(&read), "alpha");
    // Each server has its own rules.
    let refused = client.call("files__write_file", json!({"path": path, "content": "x"}));
    assert_eq!(told(&refused)["final_rule"], "no-writing", "{refused}");
    assert_eq!(fs::read_to_string(&path).unwrap(), "alpha");
    let nameless = client.call("read_text_file", json!({"path": path}));
    assert_eq!(nameless["error"]["code"], -32602, "{nameless}");
    let message = nameless["error"]["message"].as_str().unwrap();
    assert!(
        message.contains("did you mean files__read_text_file"),
        "{message}"
    );
}

/// Resources, prompts and completion.
fn of_the_rest(client: &mut impl Asks) {
    let (uris, _) = client.listed("resources/list", "resources", "uri");
    assert!(uris.iter().any(|uri| uri == "pages+note://one"), "{uris:?}");
    let read = client.ask("resources/read", json!({"uri": "pages+note://one"}));
    let contents = &read.result().unwrap()["contents"][0];
    assert_eq!(
        (&contents["uri"], &contents["text"]),
        (&json!("pages+note://one"), &json!("uno"))
    );
    let nameless = client.ask("resources/read", json!({"uri": "note://one"}));
    assert_eq!(nameless.error_code(), Some(-32602), "{}", nameless.line());
    let templates = client
        .listed(
            "resources/templates/list",
            "resourceTemplates",
            "uriTemplate",
        )
        .0;
    let of_everything = |uri: &String| uri.starts_with("everything+demo://resource/dynamic/");
    assert!(templates.iter().any(of_everything), "{templates:?}");
    let (prompts, _) = client.listed("prompts/list", "prompts", "name");
    assert!(
        prompts.iter().any(|name| name == "pages__greet"),
        "{prompts:?}"
    );
    let greeting = json!({"name": "pages__greet", "arguments": {"name": "Ada"}});
    let greeting = client.ask("prompts/get", greeting);
    assert!(greeting.line().contains("hello Ada"), "{}", greeting.line());
    let of_prompt = json!({"ref": {"type": "ref/prompt", "name": "everything__completable-prompt"},
        "argument": {"name": "department", "value": "E"}});
    let completed = client.ask("completion/complete", of_prompt);
    assert!(
        completed.line().contains("Engineering"),
        "{}",
        completed.line()
    );
    let links = client.call("everything__get-resource-links", json!({"count": 1}));
    let link = links["result"]["content"][1]["uri"].as_str().unwrap();
    assert!(link.starts_with("everything+demo://"), "{links}");
    let followed = client.ask("resources/read", json!({ "uri": link }));
    assert!(followed.result().is_ok(), "{}", followed.line());
    let task = client.ask("tasks/get", json!({"taskId": "1"}));
    assert_eq!(task.error_code(), Some(-32601), "{}", task.line());
}

/// Every record names the server and its own name for what was called.
fn names_its_own(place: &Place) {
    let named = |tool: &str| {
        let records = place.records();
        let decisions = records.decisions().into_iter();
        let of = decisions.filter(|decision| decision["tool_name"] == tool);
        of.map(|d| d["backend_id"].as_str().unwrap_or_default().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(named("add"), ["pages"]);
    assert_eq!(named("read_text_file"), ["files"]);
    assert_eq!(named("write_file"), ["files"]);
    assert_eq!(named("pages__add"), [""; 0]);
}

#[test]
fn three_real_servers_are_one_over_standard_streams() {
    let place = Place::new();
    let Some(servers) = servers(&place) else {
        return;
    };
    let policy = place.path("policy.json");
    configured(&place, &json!({"servers": servers, "policy": policy}));
    let mut client = run_all(&place, &[]);
    let params = json!({"protocolVersion": "2025-11-25", "capabilities": {"sampling": {}},
        "clientInfo": {"name": "t", "version": "1"}});
    let opened = client.ask("initialize", params);
    assert!(opened.result().is_ok(), "{}", opened.line());
    client
        .notify("notifications/initialized", &json!({}))
        .unwrap();
    holds(&place, &mut client);
    // What a server asks of its client, how its call goes on, and that its list has changed.
    let params =
        json!({"name": "everything__trigger-sampling-request", "arguments": {"prompt": "p"}});
    let id = client.send_request("tools/call", params).unwrap();
    let sampled =
        json!({"role": "assistant", "model": "m", "content": {"type": "text", "text": "sampled"}});
    let asked = answer_next(&mut client, &sampled);
    assert!(asked.starts_with("\"everything:"), "{asked}");
    let answer = client.response(&id).unwrap();
    assert!(answer.line().contains("sampled"), "{}", answer.line());
    let params = json!({"name": "everything__trigger-long-running-operation",
        "arguments": {"duration": 1, "steps": 2}, "_meta": {"progressToken": "mine"}});
    let id = client.send_request("tools/call", params).unwrap();
    let token = next_of(&mut client, "notifications/progress");
    assert_eq!(token["progressToken"], "mine");
    client.response(&id).unwrap();
    assert!(is_passed(&client.call("pages__grow", json!({}))));
    next_of(&mut client, "notifications/tools/list_changed");
    eventually("the new tool is listed", || {
        client.tools().0.iter().any(|name| name == "pages__grown")
    });
    assert_eq!(text_of(&client.call("pages__grown", json!({}))), "grown");
    let ended = end(client);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    names_its_own(&place);
    place.verified();
}

#[test]
fn three_real_servers_are_one_without_a_session() {
    let place = Place::new();
    let Some(mut servers) = servers(&place) else {
        return;
    };
    // They speak earlier revisions; this one speaks all.
    servers["own"] = json!({"builtin": "echo"});
    let served = Served::start(&place, &servers);
    let mut client = ready(&format!("{}/mcp", served.address), Era::Modern);
    of_the_tools(&place, &mut client);
    of_the_rest(&mut client);
    let level = client.ask("logging/setLevel", json!({"level": "warning"}));
    assert_eq!(level.error_code(), Some(-32601), "{}", level.line());
    assert_eq!(served.end(), Some(0));
    names_its_own(&place);
    place.verified();
}

/// Answers the next request of a server; gives the id that it had for the client.
fn answer_next(client: &mut mcp::client::Client, result: &Value) -> String {
    loop {
        if let Message::Request { id, .. } = client.next_message().unwrap() {
            client.respond(&id, result).unwrap();
            return id;
        }
    }
}

/// The parameters of the next notification of this kind.
fn next_of(client: &mut mcp::client::Client, wanted: &str) -> Value {
    loop {
        match client.next_message().unwrap() {
            Message::Notification { method, params, .. } if method == wanted => {
                return params;
            }
            _ => {}
        }
    }
}

#[test]
fn three_real_servers_are_one_at_one_url_and_one_over_http_beside_them() {
    let place = Place::new();
    let Some(mut servers) = servers(&place) else {
        return;
    };
    let site = Site::start_to_return(&place, &["echo"]);
    servers["far"] = json!({ "url": site.url });
    let served = Served::start(&place, &servers);
    let mut client = ready(&format!("{}/mcp", served.address), LATEST);
    holds(&place, &mut client);
    let far = client.call("far__echo", json!({"text": "over HTTP"}));
    assert_eq!(text_of(&far), "over HTTP");
    // A client that knows the older revision, while each server has its own.
    let mut older = ready(
        &format!("{}/mcp", served.address),
        Era::Legacy("2024-11-05"),
    );
    assert_eq!(
        text_of(&older.call("pages__add", json!({"a": 1, "b": 1}))),
        "2"
    );
    older.end_session().unwrap();
    // It ends in the middle of the session: the others stay, and the list says which is missing.
    let address = site.address().to_owned();
    site.kill();
    eventually("the server that is gone is named", || {
        client.tools().1 == ["far"]
    });
    let (names, _) = client.tools();
    assert!(names.iter().any(|name| name == "pages__add"), "{names:?}");
    assert!(!is_passed(&client.call("far__echo", json!({"text": "x"}))));
    let again = Site::start(&place, &["echo"], &address);
    eventually("the server that is back is listed", || {
        client.tools().0.iter().any(|name| name == "far__echo")
    });
    again.kill();
    client.end_session().unwrap();
    assert_eq!(served.end(), Some(0));
    names_its_own_over_http(&place);
}

fn names_its_own_over_http(place: &Place) {
    let records = place.records();
    let decisions = records.decisions().into_iter();
    let wrong = decisions.filter(|decision| {
        decision["tool_name"]
            .as_str()
            .is_some_and(|tool| tool.contains("__"))
    });
    assert_eq!(wrong.count(), 0);
}
