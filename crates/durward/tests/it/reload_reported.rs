//! A reload that fails is reported where operators look: status, health, metrics, and the notice to approvers.

use std::fs;

use crate::support::guarded::{Place, eventually};
use crate::support::serving::Served;
use serde_json::{Value, json};

/// Writes the configuration of an echo mock, with more keys.
fn configured(place: &Place, more: &str) {
    let mock = place.mock(&["echo"]);
    let (program, arguments) = mock.split_first().unwrap();
    let text = format!(
        "servers: {{ echo: {{ command: {}, args: {} }} }}\npolicy: policy.json\n{more}",
        json!(program),
        json!(arguments)
    );
    fs::write(place.path("durward.yaml"), text).unwrap();
}

/// Returns the only instance that `durward status` lists, and the text of `durward status`.
fn status(place: &Place) -> (Value, String) {
    let printed = |more: &[&str]| {
        let args = [&["--no-config", "--state-dir", "state", "status"], more].concat();
        String::from_utf8(place.durward(&args).stdout).unwrap()
    };
    let status: Value = serde_json::from_str(&printed(&["--json"])).unwrap();
    (status["instances"][0].clone(), printed(&[]))
}

fn metric(served: &Served, name: &str) -> Option<f64> {
    let metrics = served.send("GET", "/metrics", &[], "").body;
    let line = metrics.lines().find_map(|line| line.strip_prefix(name));
    line.and_then(|value| value.trim().parse().ok())
}

const SUCCESSFUL: &str = "durward_config_last_reload_successful ";
const TIMESTAMP: &str = "durward_config_last_reload_success_timestamp_seconds ";

#[test]
fn a_failed_reload_shows_in_status_health_and_metrics_until_it_is_corrected() {
    let place = Place::new();
    configured(&place, "");
    let served = Served::start_ruled(place);
    let rules = fs::read_to_string(served.place.path("policy.json")).unwrap();
    let health = || {
        served
            .send("GET", "/health", &[("accept", "application/json")], "")
            .json()
    };
    let (instance, _) = status(&served.place);
    assert_eq!(instance["healthy"], true);
    assert_eq!(health()["detail"], Value::Null);
    served.place.write_policy("{ not rules");
    let mut instance = Value::Null;
    eventually("the failed reload shows in the status", || {
        instance = status(&served.place).0;
        instance["healthy"] == false
    });
    let last = &instance["last_reload"];
    assert_eq!(last["successful"], false, "{last}");
    assert_eq!(last["change"], "file", "{last}");
    let message = last["message"].as_str().unwrap();
    assert!(message.contains("policy.json"), "{last}");
    assert!(last["at"].as_str().unwrap().ends_with('Z'), "{last}");
    let (_, text) = status(&served.place);
    assert!(text.contains("reload failed"), "{text}");
    let detail = health()["detail"].as_str().unwrap().to_owned();
    assert!(detail.contains("reload failed"), "{detail}");
    assert!(
        !detail.contains("policy.json"),
        "everybody may ask: {detail}"
    );
    assert_eq!(health()["status"], "healthy", "calls are still forwarded");
    assert_eq!(metric(&served, SUCCESSFUL), Some(0.0));
    let before = metric(&served, TIMESTAMP).unwrap();
    served.place.write_policy(&rules);
    eventually("the corrected file shows in the status", || {
        status(&served.place).0["healthy"] == true
    });
    assert_eq!(status(&served.place).0["last_reload"]["successful"], true);
    assert_eq!(health()["detail"], Value::Null);
    assert_eq!(metric(&served, SUCCESSFUL), Some(1.0));
    assert!(metric(&served, TIMESTAMP).unwrap() >= before && before > 1e9);
}

#[test]
fn a_failed_reload_is_announced_to_approvers_once() {
    let place = Place::new();
    let out = place.path("announced");
    let script = format!("cat >> {0}; echo >> {0}", out.display());
    let notify = format!(
        "approval: {{ notify: {{ command: [sh, -c, {}] }} }}\n",
        json!(script)
    );
    configured(&place, &notify);
    let served = Served::start_ruled(place);
    let reload = || {
        let args = ["--no-config", "--state-dir", "state", "reload"];
        served.place.durward(&args).status.success()
    };
    served.place.write_policy("{ not rules");
    assert!(!reload() && !reload());
    let announced = || fs::read_to_string(&out).unwrap_or_default();
    eventually("the failed reload is announced", || {
        announced().ends_with('\n')
    });
    // Another reason is announced again; the same one was not.
    served.place.write_policy("[]");
    assert!(!reload());
    eventually("the other reason is announced", || {
        announced().lines().count() == 2
    });
    for line in announced().lines() {
        let message: Value = serde_json::from_str(line).unwrap();
        assert_eq!(message["event"], "reload_failed");
        assert_eq!(message["last_reload"]["successful"], false, "{message}");
    }
    let watch = ["--no-config", "--state-dir", "state", "approvals", "watch"];
    let watch = [&watch[..], &["--json", "--timeout", "1"]].concat();
    let seen = String::from_utf8(served.place.durward(&watch).stdout).unwrap();
    assert!(seen.contains("\"reload_failed\""), "{seen}");
}
