//! What callers hear of each other where they share a server's process (`share: all`).

use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};

use serde_json::{Value, json};

use crate::serve_keys::bearer;
use crate::support::guarded::{Place, eventually};
use crate::support::serving::Served;

const WATCHED: &str = "test://watched-resource";

/// A caller in a session of its own.
struct Caller<'s> {
    served: &'s Served,
    key: String,
    session: String,
    /// What it was told beside its calls, and whoever reads that until the session ends.
    told: Arc<Mutex<Vec<Value>>>,
    reader: JoinHandle<()>,
}

impl<'s> Caller<'s> {
    fn new(served: &'s Served, key: &str) -> Self {
        let own = [("authorization", key)];
        let hello = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#;
        let opened = served.send("POST", "/mcp/echo", &own, hello);
        let session = opened.header("mcp-session-id").unwrap().to_owned();
        let listens = [own[0], ("accept", "text/event-stream")];
        let mut news = served.stream("GET", &session, &listens, "");
        let told = Arc::<Mutex<Vec<Value>>>::default();
        let heard = Arc::clone(&told);
        let reader = thread::spawn(move || {
            while let Some((_, news)) = news.next() {
                heard.lock().unwrap().push(news);
            }
        });
        Self {
            served,
            key: key.to_owned(),
            session,
            told,
            reader,
        }
    }

    fn send(&self, method: &str, body: &str) -> String {
        let own = [
            ("authorization", self.key.as_str()),
            ("mcp-session-id", self.session.as_str()),
        ];
        self.served.send(method, "/mcp/echo", &own, body).body
    }

    /// The whole answer to a request.
    fn asks(&self, method: &str, params: &Value) -> String {
        let body = json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params});
        self.send("POST", &body.to_string())
    }

    /// Whether a request about the resource is answered with a result.
    fn watched(&self, method: &str) -> bool {
        self.asks(method, &json!({"uri": WATCHED}))
            .contains("\"result\"")
    }

    /// Has the resource changed; gives all that the caller reads on the call.
    fn changes(&self) -> String {
        let tool = json!({"name": "test_trigger_resource_update", "arguments": {}});
        self.asks("tools/call", &tool)
    }

    /// Waits until it has been told so often that the resource has changed.
    fn is_told(&self, times: usize) {
        eventually("it is told", || self.told.lock().unwrap().len() == times);
        let told = self.told.lock().unwrap();
        for news in told.iter() {
            assert_eq!(news["method"], "notifications/resources/updated", "{news}");
            assert_eq!(news["params"]["uri"], WATCHED, "{news}");
        }
    }

    /// Ends its session; what it was told until then.
    fn ends(self) -> usize {
        self.send("DELETE", "");
        self.reader.join().unwrap();
        self.told.lock().unwrap().len()
    }
}

#[test]
fn news_of_a_resource_are_for_those_who_have_subscribed_and_nobody_ends_what_another_wants() {
    let place = Place::new();
    place.write_policy(
        r#"{"rules":[
            {"id":"not-bob","effect":"deny","conditions":{"when":"uri == 'test://watched-resource' && subject_id == 'key:bob'"}},
            {"id":"all","effect":"allow","conditions":{"mcp_method":"*"}}]}"#,
    );
    let keys = ["ann", "bob", "cat"].map(|name| bearer(&place, &["create", name]));
    let mock = place.mock(&["conformance"]).join(" ");
    let served = Served::start_server(place, &format!("echo={mock}"), &["--share", "all"]);
    let [ann, bob, cat] = keys.each_ref().map(|key| Caller::new(&served, key));
    assert!(!bob.watched("resources/read") && !bob.watched("resources/subscribe"));
    assert!(ann.watched("resources/subscribe"));
    // The only call under way is that of somebody else, whom a rule refuses the resource.
    let read = bob.changes();
    assert!(
        read.contains("\"result\"") && !read.contains(WATCHED),
        "{read}"
    );
    ann.is_told(1);
    assert!(cat.watched("resources/subscribe") && cat.watched("resources/unsubscribe"));
    bob.changes();
    ann.is_told(2);
    // The last one ends it at the server.
    assert!(ann.watched("resources/unsubscribe"));
    bob.changes();
    assert_eq!((bob.ends(), ann.ends()), (0, 2));
}
