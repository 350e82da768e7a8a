//! One command at many hosts: the canary first, then the rest, each judged on its own.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::target::{Client, Target, has, user};

/// Twelve names of one target, of which each has its own port, one that leads nowhere, and the rules.
fn client(target: &Target, policy: Option<&str>) -> Client {
    let mut more = String::new();
    for number in 1..=12 {
        more.push_str(&format!(
            "  node{number:02}: {{ address: 127.0.0.1, port: PORT, credential: me }}\n"
        ));
    }
    // A port on which nobody listens.
    more.push_str("  gone: { address: 127.0.0.1, port: 1, credential: me }\n");
    Client::new(target.hosts(&more), policy)
}

async fn fan(client: &Client, arguments: Value) -> Value {
    let said = client.call("ssh_fan_out", arguments).await.unwrap();
    assert_ne!(said["isError"], true, "{said}");
    said["structuredContent"].clone()
}

/// A command that fails from the `n`th time on that it runs; every run is a line of `file`.
fn fails_from(target: &Target, file: &Path, n: usize) -> String {
    let file = file.display();
    let text = format!("echo x >>{file}; [ $(wc -l <{file}) -lt {n} ]");
    target.script(&format!("fails-{n}"), &text)
}

#[tokio::test]
async fn what_hosts_say_is_told_once_and_a_host_that_is_gone_is_told_apart() {
    if !has("sshd") {
        return;
    }
    let target = Target::new("");
    let client = client(&target, None);
    let call = json!({"hosts": ["node*", "gone"], "command": "whoami", "canary": 2, "at_once": 4});
    let said = fan(&client, call).await;
    assert_eq!(
        (
            &said["total"],
            &said["succeeded"],
            &said["failed"],
            &said["not_run"]
        ),
        (&json!(13), &json!(12), &json!(1), &json!(0)),
        "{said}"
    );
    let groups = said["groups"].as_array().unwrap();
    assert_eq!(groups.len(), 2, "{said}");
    assert_eq!(
        (&groups[0]["count"], &groups[0]["stdout"]),
        (&json!(12), &json!(format!("{}\n", user())))
    );
    assert_eq!(
        (&groups[1]["hosts"], &groups[1]["exit_code"]),
        (&json!(["gone"]), &Value::Null)
    );
    assert_eq!(said["stopped"], "1 hosts failed, and 0 may");
}

#[tokio::test]
async fn a_canary_that_fails_keeps_the_rest_from_running() {
    if !has("sshd") {
        return;
    }
    let target = Target::new("");
    let client = client(&target, None);
    let ran = target.open_file("ran");
    let call = json!({"hosts": ["node*"], "command": fails_from(&target, &ran, 1), "canary": 2, "failures_max": 100});
    let said = fan(&client, call).await;
    assert_eq!(
        (&said["failed"], &said["not_run"], &said["stopped"]),
        (&json!(2), &json!(10), &json!("the canary failed")),
        "{said}"
    );
    assert_eq!(fs::read_to_string(&ran).unwrap().lines().count(), 2);
    // One that can never be reached fails too.
    let call = json!({"hosts": ["gone", "node01"], "command": "whoami", "failures_max": 100});
    let said = fan(&client, call).await;
    assert_eq!(
        (&said["failed"], &said["not_run"]),
        (&json!(1), &json!(1)),
        "{said}"
    );
}

#[tokio::test]
async fn a_failure_budget_stops_what_is_left() {
    if !has("sshd") {
        return;
    }
    let target = Target::new("");
    let client = client(&target, None);
    let ran = target.open_file("ran");
    // The canary and two more do well, then all fail, one at a time: two may.
    let call = json!({"hosts": ["node*"], "command": fails_from(&target, &ran, 4), "at_once": 1, "failures_max": 2});
    let said = fan(&client, call).await;
    assert_eq!(
        (
            &said["succeeded"],
            &said["failed"],
            &said["not_run"],
            &said["stopped"]
        ),
        (
            &json!(3),
            &json!(3),
            &json!(6),
            &json!("3 hosts failed, and 2 may")
        ),
        "{said}"
    );
    assert_eq!(said["hosts"][5]["state"], "failed");
    assert_eq!(
        said["hosts"][6],
        json!({"host": "node07", "state": "not_run", "group": null, "duration_ms": null})
    );
}

#[tokio::test]
async fn the_journal_has_what_became_of_each_host() {
    if !has("sshd") {
        return;
    }
    let target = Target::new("");
    let client = client(&target, None);
    let ran = target.open_file("ran");
    // The canary does well, the second host fails, and the third is not reached any more.
    let call = json!({"hosts": ["node01", "node02", "node03"], "command": fails_from(&target, &ran, 2), "at_once": 1});
    let said = fan(&client, call).await;
    assert_eq!(said["not_run"], 1, "{said}");
    let records = client.trial.records().unwrap();
    let op = |host: &str| {
        let mut of_host = records.iter().filter(|record| record["host"] == host);
        let decision = of_host.next().unwrap();
        assert_eq!(decision["decision"], "allow", "{decision}");
        decision["op"].clone()
    };
    let ended = |host: &str| {
        let op = op(host);
        let mut ends = records
            .iter()
            .filter(|r| r["op"] == op && r["status"].is_string());
        ends.next().unwrap().clone()
    };
    let own = ended("node01");
    assert_eq!(
        (&own["attempts"][0]["peer"], &own["attempts"][0]["status"]),
        (&json!("node01"), &json!("Success")),
        "{own}"
    );
    let failed = ended("node02");
    assert_eq!(
        (&failed["status"], &failed["error_code"]),
        (&json!("Failure"), &json!(1)),
        "{failed}"
    );
    assert_eq!(ended("node03")["status"], "Aborted");
}

#[tokio::test]
async fn a_host_that_the_rules_refuse_keeps_all_from_running() {
    if !has("sshd") {
        return;
    }
    let target = Target::new("");
    let rules = r#"{"rules":[
        {"id":"run","effect":"allow","conditions":{"tool_name":"ssh_*"}},
        {"id":"not-here","effect":"deny","conditions":{"host":"node12"}},
        {"id":"no-shadow","effect":"deny","conditions":{"path_pattern":"/etc/shadow"}}]}"#;
    let client = client(&target, Some(rules));
    let ran = target.open_file("ran");
    let command = fails_from(&target, &ran, 100);
    let call = json!({"hosts": ["node*"], "command": command});
    let wrong = client.call("ssh_fan_out", call).await.unwrap_err();
    assert!(wrong.contains("not-here"), "{wrong}");
    // A link that leads where the rules refuse it, seen at the last host as at the first.
    let link = target.folder.join("link");
    std::os::unix::fs::symlink("/etc/shadow", &link).unwrap();
    let call = json!({"hosts": ["node01", "node02"], "command": format!("cat {}", link.display())});
    let wrong = client.call("ssh_fan_out", call).await.unwrap_err();
    assert!(wrong.contains("no-shadow"), "{wrong}");
    assert_eq!(fs::read_to_string(&ran).unwrap(), "");
    for (hosts, wrong) in [
        (
            json!(["nowhere"]),
            "no host of the operator's list is called \\\"nowhere\\\"",
        ),
        (json!(["node01", "x*"]), "is called \\\"x*\\\""),
        (json!([]), "hosts"),
    ] {
        let said = client
            .call("ssh_fan_out", json!({"hosts": hosts, "command": "id"}))
            .await;
        let said = said.map_or_else(|wrong| wrong, |said| said.to_string());
        assert!(said.contains(wrong), "{hosts}: {said}");
    }
    let said = fan(
        &client,
        json!({"hosts": ["node01", "node0*", "node01"], "command": "id"}),
    )
    .await;
    assert!(said["total"] == 9, "{said}");
}
