//! A real client on every way to a real server: directly, through `durward run` before a child and before a server
//! over HTTP, and through `durward serve`. What it sees is the same, but for what the policy refuses.

use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use crate::support::components;
use crate::support::guarded::{Place, binary, eventually};
use crate::support::serving::Served;

/// One call is denied by what it names, so that its tool is still listed.
const POLICY: &str = r#"{"version":"1","default_action":"deny","rules":[
    {"id":"no-forbidden","effect":"deny","conditions":{"path_pattern":"/forbidden/**"}},
    {"id":"all","effect":"allow","conditions":{"mcp_method":"*"}}]}"#;

/// What a family of clients does of what the drivers try.
pub(super) struct Can {
    pub elicit: bool,
    pub progress: bool,
    /// Whether it hears what a server says on `initialized`, and where.
    pub told: &'static [&'static str],
}

/// The everything server over HTTP, killed when dropped.
struct Direct {
    child: Child,
    url: String,
}

impl Direct {
    fn start(node: &Path, script: &Path) -> Self {
        let port = mocks::ports::reserved().unwrap();
        let child = Command::new(node)
            .arg(script)
            .arg("streamableHttp")
            .env("PORT", port.to_string())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        eventually("the everything server listens", || {
            TcpStream::connect(("127.0.0.1", port)).is_ok()
        });
        Self {
            child,
            url: format!("http://127.0.0.1:{port}/mcp"),
        }
    }
}

impl Drop for Direct {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A place whose policy refuses one call.
fn place() -> Place {
    let place = Place::new();
    place.write_policy(POLICY);
    place
}

/// Sends a driver along every way and compares what it has seen.
pub(super) fn every_way(driver: &mut Command, can: &Can) {
    let (Some(node), Some(script)) = (components::node(), components::everything()) else {
        return;
    };
    let direct = Direct::start(&node, &script);
    let (run, reach) = (place(), place());
    let child = [node.to_str().unwrap(), script.to_str().unwrap(), "stdio"];
    let served = Served::start_server(place(), &format!("echo={}", child.join(" ")), &[]);
    let words = |args: Vec<String>| -> Vec<String> {
        std::iter::once(binary().to_owned()).chain(args).collect()
    };
    let mut reached = reach.run_args(&["--url", &direct.url], &[]);
    reached.pop();
    let ways = json!({
        "direct": direct.url,
        "run": words(run.run_args(&[], &child)),
        "run --url": words(reached),
        "serve": format!("http://{}/mcp/echo", served.address),
    });
    let done = driver
        .arg(ways.to_string())
        .env("XDG_RUNTIME_DIR", run.runtime())
        .env("XDG_CACHE_HOME", run.path("cache"))
        .output()
        .unwrap();
    let complaint = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{driver:?}: {complaint}");
    let seen: Value = serde_json::from_slice(&done.stdout).unwrap();
    let (code, serve) = served.stop();
    assert_eq!(code, Some(0));
    compare(&seen, can);
    for (way, place) in [("run", run), ("run --url", reach), ("serve", serve)] {
        recorded(way, &place);
    }
}

fn compare(seen: &Value, can: &Can) {
    let direct = &seen["direct"];
    for (way, found) in seen.as_object().unwrap() {
        for member in ["echo", "tools", "stepped", "after", "cancelled", "asked"] {
            assert_eq!(found[member], direct[member], "{way} {member}: {seen:#}");
        }
        assert_eq!(found["after"], "Echo: y", "{way}");
        assert_eq!(found["cancelled"], true, "{way}");
        assert_eq!(found["elicited"] == true, can.elicit, "{way}");
        // The last word may be overtaken by the answer in clients that hand both over at once.
        let progress = found["progress"].as_array().unwrap();
        assert_eq!(!progress.is_empty(), can.progress, "{way}: {found}");
        if let Some(first) = progress.first() {
            let (done, total) = (first[0].as_f64(), first[1].as_f64());
            assert_eq!(done.zip(total), Some((1.0, 2.0)), "{way}");
        }
        if can.told.contains(&way.as_str()) {
            let told = found["told"] == true;
            assert!(told, "{way}: nothing was heard on `initialized`");
        }
        let refused = found["refused"].as_str();
        assert_eq!(refused.is_some(), way != "direct", "{way}: {refused:?}");
        if let Some(refused) = refused {
            assert!(refused.contains("policy"), "{way}: {refused}");
        }
    }
    assert_eq!(seen.as_object().unwrap().len(), 4);
}

/// The journal of one way: the call that was denied, and the one that was cancelled.
fn recorded(way: &str, place: &Place) {
    let journal = place.journal();
    let denied = journal.decisions();
    let denied = denied.iter().filter(|d| d["decision"] == "deny").count();
    assert_eq!(denied, 1, "{way}");
    let operations = journal.operations();
    let cancelled = operations.iter().filter(|o| o["status"] == "Cancelled");
    assert_eq!(cancelled.count(), 1, "{way}: {operations:#?}");
}
