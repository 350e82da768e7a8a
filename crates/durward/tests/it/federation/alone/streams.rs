//! Calls that are answered with a stream, and servers over HTTP.

use mcp::client::Era;
use serde_json::json;

use super::super::kept::asked;
use super::super::{Asks as _, text_of};
use super::{ANYTHING, served, stream};
use crate::support::guarded::{Place, eventually};
use crate::support::served::{Served, Site, ready};
use crate::support::serving::modern;

#[test]
fn progress_comes_under_the_clients_token_and_the_answer_last() {
    let served = served(ANYTHING);
    let name = "two__test_tool_with_progress";
    let params = format!(r#""name":"{name}","arguments":{{}}"#);
    let body = modern("5", "tools/call", &params)
        .replace("\"_meta\":{", "\"_meta\":{\"progressToken\":\"mine\",");
    let mut events = stream(&served, "tools/call", name, &body);
    let mut progress = 0;
    loop {
        let message = events.message();
        if message["method"] == "notifications/progress" {
            assert_eq!(message["params"]["progressToken"], "mine", "{message}");
            progress += 1;
            continue;
        }
        assert_eq!(message["id"], 5, "{message}");
        assert_eq!(message["result"]["resultType"], "complete", "{message}");
        break;
    }
    assert!(progress > 0);
    assert!(events.next().is_none());
}

#[test]
fn a_client_that_closes_its_stream_cancels_at_the_server() {
    let served = served(ANYTHING);
    for (id, server) in [("61", "slow"), ("62", "old")] {
        let name = format!("{server}__delayed");
        let params = format!(r#""name":"{name}","arguments":{{"text":"x","delay_us":600000000}}"#);
        let body = modern(id, "tools/call", &params);
        // It stays silent for so long that its answer begins as a stream.
        let events = stream(&served, "tools/call", &name, &body);
        let heard = format!("heard-{server}");
        assert_eq!(asked(&served.place, &heard, "tools/call"), 1);
        drop(events);
        eventually("the server is told", || {
            asked(&served.place, &heard, "notifications/cancelled") == 1
        });
    }
    let (code, place) = served.stop();
    assert_eq!(code, Some(0));
    let journal = place.journal();
    for id in ["61", "62"] {
        assert_eq!(journal.operation(id)["status"], "Cancelled", "{journal:?}");
    }
}

#[test]
fn a_server_over_http_is_spoken_to_in_its_own_revision() {
    let place = Place::new();
    place.write_policy(ANYTHING);
    let site = |eras: &str| {
        let words = ["echo", "--eras", eras];
        Site::start(&place, &words, "127.0.0.1:0")
    };
    let (old, new) = (site("legacy"), site("modern"));
    let servers = json!({"old": {"url": old.url}, "new": {"url": new.url}});
    let served = Served::start(&place, &servers);
    let url = format!("{}/mcp", served.address);
    let mut client = ready(&url, Era::Modern);
    let (names, missing) = client.tools();
    assert_eq!(missing, [""; 0]);
    for name in ["old__echo", "new__echo"] {
        assert!(names.iter().any(|known| known == name), "{names:?}");
        for text in ["first", "second"] {
            let answer = client.call(name, json!({ "text": text }));
            assert_eq!(text_of(&answer), text);
            assert_eq!(answer["result"]["resultType"], "complete", "{answer}");
        }
    }
}
