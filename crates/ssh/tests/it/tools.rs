//! The other tools, behind the shipped rules: what they run passes them.

use std::fs;

use serde_json::{Value, json};

use crate::target::{Client, NO_SFTP, Target, has};

pub async fn shipped(target: &Target) -> (Client, String) {
    let client = Client::new(target.hosts(""), Some(&ssh::rules::policy()));
    let session = client.connect("web").await;
    (client, session)
}

#[tokio::test]
async fn files_come_whole_in_part_or_in_base64_and_links_are_told() {
    if !has("sshd") {
        return;
    }
    let target = Target::new("");
    let (client, session) = shipped(&target).await;
    let at = |name: &str| target.folder.join(name).display().to_string();
    let bytes: Vec<u8> = (0..5_000_000_u32).map(|n| (n % 251) as u8).collect();
    fs::write(at("binary"), &bytes).unwrap();
    fs::write(at("text"), "naïve\n").unwrap();
    fs::write(at("with space;"), "x").unwrap();
    let cat = async |path: String, more: Value| {
        let mut arguments = json!({"session_id": session, "path": path});
        arguments
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        client.call("ssh_cat_file", arguments).await
    };
    let said = cat(at("text"), json!({})).await.unwrap();
    assert_eq!(
        said["structuredContent"],
        json!({"encoding": "text", "content": "naïve\n", "bytes": 7, "path": at("text"), "truncated": false, "output_incomplete": false, "output_incomplete_reason": null})
    );
    let said = cat(at("text"), json!({"encoding": "base64"}))
        .await
        .unwrap();
    assert_eq!(said["structuredContent"]["content"], "bmHDr3ZlCg==");
    let said = cat(at("binary"), json!({"max_size": 1_000_000}))
        .await
        .unwrap();
    let data = &said["structuredContent"];
    assert_eq!(
        (&data["encoding"], &data["bytes"], &data["truncated"]),
        (&json!("base64"), &json!(1_000_000), &json!(true))
    );
    use base64::Engine as _;
    let got = base64::engine::general_purpose::STANDARD
        .decode(data["content"].as_str().unwrap())
        .unwrap();
    assert_eq!(got, bytes[..1_000_000]);
    let said = cat(at("missing"), json!({})).await.unwrap();
    assert!(
        said["content"][0]["text"]
            .as_str()
            .unwrap()
            .contains("missing cannot be read"),
        "{said}"
    );
    let said = cat("etc/hosts".into(), json!({})).await;
    assert!(said.is_err() || said.unwrap()["isError"] == true);
    for refused in ["/etc/shadow", "/etc/../etc/shadow", "/root", "/srv/x"] {
        let wrong = cat(refused.into(), json!({})).await.unwrap_err();
        assert!(wrong.contains("ssh-deny"), "{refused}: {wrong}");
    }
    assert!(
        cat(at("with space;"), json!({})).await.is_err(),
        "refused by its form"
    );
}

#[tokio::test]
async fn the_tools_of_the_network_pass_the_shipped_rules_and_read_what_the_host_says() {
    if !has("sshd") || !has("ip") {
        return;
    }
    let target = Target::new("");
    let (client, session) = shipped(&target).await;
    let call = async |tool: &str, more: Value| {
        let mut arguments = json!({"session_id": session});
        arguments
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        client.call(tool, arguments).await.unwrap()
    };
    let said = call("ssh_network_interfaces", json!({"include_stats": true})).await;
    let data = &said["structuredContent"];
    let lo = |list: &Value| {
        list.as_array()
            .unwrap()
            .iter()
            .find(|link| link["ifname"] == "lo")
            .cloned()
            .unwrap()
    };
    assert_eq!(
        lo(&data["interfaces"])["addr_info"][0]["local"],
        "127.0.0.1",
        "{said}"
    );
    assert!(lo(&data["stats"])["stats64"].is_object(), "{said}");
    let said = call("ssh_network_interfaces", json!({"interface": "lo"})).await;
    assert_eq!(
        said["structuredContent"]["interfaces"]
            .as_array()
            .unwrap()
            .len(),
        1
    );
    let said = call(
        "ssh_network_routes",
        json!({"table": "local", "family": "inet"}),
    )
    .await;
    let routes = &said["structuredContent"]["routes"];
    assert!(
        routes["ipv4"]
            .as_array()
            .is_some_and(|routes| !routes.is_empty())
            && routes["ipv6"].is_null(),
        "{said}"
    );
    let said = call("ssh_network_routes", json!({})).await;
    assert!(
        said["structuredContent"]["routes"]["ipv6"].is_array(),
        "{said}"
    );
    // The first state is the baseline; an idle host has not changed.
    let said = call("ssh_network_compare", json!({})).await;
    assert_eq!(said["structuredContent"]["baseline_saved"], true, "{said}");
    let said = call("ssh_network_compare", json!({})).await;
    assert_eq!(
        said["structuredContent"]["comparison"],
        json!({"changed": 0, "summary": "nothing has changed"}),
        "{said}"
    );
    // A program that is missing or forbidden says so.
    for tool in ["ssh_network_qdisc", "ssh_network_firewall"] {
        let said = call(tool, json!({})).await;
        let told = said["content"][0]["text"].as_str().unwrap();
        let is_told = ["no privilege", "not on this login's PATH", "\"format\""]
            .iter()
            .any(|part| told.contains(part));
        assert!(is_told, "{said}");
    }
    let said = call(
        "ssh_network_connectivity",
        json!({"target": "::1", "tests": ["ping"], "ping_count": 1}),
    )
    .await;
    assert!(
        said["structuredContent"]["results"]["ping"].is_object(),
        "{said}"
    );
    for (tool, arguments) in [
        ("ssh_network_interfaces", json!({"interface": "lo;id"})),
        ("ssh_network_routes", json!({"table": "-x"})),
        ("ssh_network_connectivity", json!({"target": "a b"})),
        ("ssh_network_connectivity", json!({"target": "-f"})),
    ] {
        let mut all = json!({"session_id": session});
        all.as_object_mut()
            .unwrap()
            .extend(arguments.as_object().unwrap().clone());
        let said = client.call(tool, all).await;
        assert!(
            said.is_err() || said.unwrap()["isError"] == true,
            "{tool} {arguments}"
        );
    }
}

#[tokio::test]
async fn a_batch_is_judged_as_a_whole_before_its_first_command_runs() {
    if !has("sshd") {
        return;
    }
    let target = Target::new("");
    let (client, session) = shipped(&target).await;
    let batch = async |commands: &[&str], stop: bool| {
        client
            .call(
                "ssh_batch_commands",
                json!({"session_id": session, "commands": commands, "stop_on_error": stop}),
            )
            .await
    };
    let said = batch(&["whoami", "cat /etc/hostname", "id -u"], false)
        .await
        .unwrap();
    assert_eq!(said["structuredContent"]["all_success"], 1, "{said}");
    let said = batch(&["cat /tmp/no-such-file", "whoami"], true)
        .await
        .unwrap();
    let data = &said["structuredContent"];
    assert_eq!(
        (
            &data["executed"],
            &data["total"],
            &data["results"][0]["error"]
        ),
        (&json!(1), &json!(2), &json!("exit code 1"))
    );
    let touched = target.folder.join("touched");
    for bad in [
        format!("touch {}", touched.display()),
        "cat /etc/shadow".into(),
        "reboot".into(),
    ] {
        assert!(batch(&["whoami", &bad], false).await.is_err(), "{bad}");
    }
    assert!(!touched.exists());
}

#[tokio::test]
async fn a_batch_has_the_side_effects_of_each_of_its_commands() {
    if !has("sshd") {
        return;
    }
    let target = Target::new("");
    let policy = json!({"version": "1", "rules": [
        {"id": "no-network", "effect": "deny", "conditions":
            {"tool_name": ["ssh_run_command", "ssh_batch_commands"], "side_effects": ["network_egress"]}},
        {"id": "all", "effect": "allow", "conditions": {"tool_name": "*"}}]});
    let client = Client::new(target.hosts(""), Some(&policy.to_string()));
    let session = client.connect("web").await;
    let batch = async |commands: [&str; 2]| {
        let call = json!({"session_id": session, "commands": commands});
        client.call("ssh_batch_commands", call).await
    };
    let said = batch(["whoami", "cat /etc/hostname"]).await.unwrap();
    assert_eq!(said["structuredContent"]["total"], 2, "{said}");
    for commands in [
        ["dig example.com", "cat /etc/hostname"],
        ["cat /etc/hostname", "dig example.com"],
        ["sort -o /tmp/a /tmp/b", "ping -c 1 127.0.0.1"],
    ] {
        assert!(batch(commands).await.is_err(), "{commands:?}");
    }
}

#[tokio::test]
async fn a_session_belongs_to_its_client_and_ends_with_it() {
    if !has("sshd") {
        return;
    }
    let target = Target::new("");
    let client = target.client();
    let session = client.connect("web").await;
    let said = client.call("ssh_list_sessions", json!({})).await.unwrap();
    let data = &said["structuredContent"];
    assert_eq!(
        (
            &data["count"],
            &data["sessions"][0]["session_id"],
            &data["sessions"][0]["host"]
        ),
        (&json!(1), &json!(session), &json!("web"))
    );
    let other = client.trial.session("eve");
    let call = json!({"session_id": session, "command": "id"});
    let said = client
        .trial
        .call(&other, "eve", "ssh_run", call.clone())
        .await
        .unwrap();
    assert_eq!(
        said["content"][0]["text"],
        "Session not owned by this client"
    );
    client
        .call("ssh_disconnect", json!({"session_id": session}))
        .await
        .unwrap();
    let said = client.call("ssh_run", call).await.unwrap();
    assert!(
        said["content"][0]["text"]
            .as_str()
            .unwrap()
            .contains("there is no such session"),
        "{said}"
    );
}

#[tokio::test]
async fn a_host_that_cannot_say_where_paths_lead_runs_no_command_with_paths_unless_its_links_are_trusted()
 {
    if !has("sshd") {
        return;
    }
    let without = Target::new(NO_SFTP);
    let client = without.client();
    let session = client.connect("web").await;
    let said = client.run(&session, "cat /etc/hostname").await.unwrap();
    assert!(said.to_string().contains("has no SFTP server"), "{said}");
    assert_eq!(
        client.run(&session, "echo fine").await.unwrap()["structuredContent"]["stdout"],
        "fine\n"
    );
    let client = Client::new(
        without
            .hosts("  free: { address: 127.0.0.1, port: PORT, credential: me, links: trusted }\n"),
        None,
    );
    let session = client.connect("free").await;
    assert_eq!(
        client.run(&session, "cat /etc/hostname").await.unwrap()["structuredContent"]["exit_code"],
        0
    );
}

#[tokio::test]
async fn a_session_alone_has_a_connection_of_its_own_as_long_as_it_lasts() {
    if !has("sshd") {
        return;
    }
    let target = Target::new("");
    let client = Client::new(target.hosts("limits: { connections_max: 2 }\n"), None);
    let accepted = || target.log().matches("Accepted publickey").count();
    let alone = json!({"host": "web", "alone": true});
    let mut sessions = Vec::new();
    for number in 1..=2 {
        let said = client.call("ssh_connect", alone.clone()).await.unwrap();
        let id = said["structuredContent"]["session_id"].clone();
        assert!(id.is_string(), "{said}");
        assert_eq!(accepted(), number);
        sessions.push(id);
    }
    let full = client.call("ssh_connect", alone.clone()).await.unwrap();
    assert!(full.to_string().contains("too_many_connections"), "{full}");
    // Those that share are not counted with them.
    let shared = client.connect("web").await;
    let said = client.run(&shared, "whoami").await.unwrap();
    assert_eq!(said["structuredContent"]["exit_code"], 0);
    let ended = json!({"session_id": sessions[0]});
    client.call("ssh_disconnect", ended).await.unwrap();
    let said = client.call("ssh_connect", alone).await.unwrap();
    assert_ne!(said["isError"], true, "{said}");
    assert_eq!(accepted(), 4);
}
