//! Every tool under the shipped rules: it is allowed, or a person is asked.

use serde_json::{Value, json};
use ssh::hosts::Hosts;

use crate::target::{Client, folder};

/// What becomes of a call before it runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    Allowed,
    Asks,
    Refused,
}

/// A client of a host that nobody reaches, under the shipped rules: calls are judged, and fail after that.
fn client() -> Client {
    let folder = folder();
    let text = "known_hosts: []\ncredentials:\n  me: { user: me, key: user }\nhosts:\n  web: { address: 127.0.0.1, port: 1, credential: me }\n";
    Client::new(
        Hosts::of(text, &folder).unwrap(),
        Some(&ssh::rules::policy()),
    )
}

async fn outcome(client: &Client, tool: &str, arguments: Value) -> (Outcome, String) {
    match client.call(tool, arguments).await {
        Ok(said) => (Outcome::Allowed, said.to_string()),
        Err(wrong) if wrong == "a person has to be asked" => (Outcome::Asks, wrong),
        Err(wrong) => (Outcome::Refused, wrong),
    }
}

#[tokio::test]
async fn every_tool_is_allowed_or_asks_with_its_defaults_and_with_typical_arguments() {
    use Outcome::{Allowed, Asks, Refused};
    let client = client();
    let s = "sess_x";
    let edits = json!([{"old_text": "a", "new_text": "b"}]);
    let table = [
        (Allowed, "ssh_connect", json!({"host": "web"})),
        (
            Allowed,
            "ssh_connect",
            json!({"host": "web", "alone": true, "timeout_ms": 1000}),
        ),
        (Allowed, "ssh_disconnect", json!({"session_id": s})),
        (
            Allowed,
            "ssh_run_command",
            json!({"session_id": s, "command": "uptime"}),
        ),
        (
            Allowed,
            "ssh_run",
            json!({"session_id": s, "command": "tail -n +5 /etc/hostname"}),
        ),
        (
            Asks,
            "ssh_run",
            json!({"session_id": s, "command": "systemctl restart nginx"}),
        ),
        (
            Allowed,
            "ssh_batch_commands",
            json!({"session_id": s, "commands": ["hostname"]}),
        ),
        (
            Allowed,
            "ssh_batch_commands",
            json!({"session_id": s, "commands": ["hostname", "tail -n +5 /etc/hostname"]}),
        ),
        (
            Allowed,
            "ssh_batch_commands",
            json!({"session_id": s, "commands": ["hostname", "dig +short localhost"]}),
        ),
        (
            Allowed,
            "ssh_batch_commands",
            json!({"session_id": s, "commands": ["ps aux", "lsof -n", "df -h", "cat /etc/environment.default", "free -m"]}),
        ),
        (
            Allowed,
            "ssh_fan_out",
            json!({"hosts": ["web"], "command": "uptime"}),
        ),
        (
            Allowed,
            "ssh_cat_file",
            json!({"session_id": s, "path": "/etc/hostname"}),
        ),
        (
            Allowed,
            "ssh_cat_file",
            json!({"session_id": s, "path": "/var/log/syslog", "encoding": "base64", "max_size": 100}),
        ),
        (Allowed, "ssh_read_output", json!({"output": "out_x"})),
        (
            Allowed,
            "ssh_read_output",
            json!({"output": "out_x", "grep": "a/b", "context": 2}),
        ),
        (Allowed, "ssh_hostname", json!({"session_id": s})),
        (Allowed, "ssh_list_sessions", json!({})),
        (Allowed, "ssh_pool_stats", json!({})),
        (Allowed, "ssh_pool_stats", json!({"host": "web"})),
        (Allowed, "ssh_network_interfaces", json!({"session_id": s})),
        (
            Allowed,
            "ssh_network_interfaces",
            json!({"session_id": s, "interface": "eth0", "include_stats": true}),
        ),
        (Allowed, "ssh_network_routes", json!({"session_id": s})),
        (
            Allowed,
            "ssh_network_routes",
            json!({"session_id": s, "table": "main", "family": "inet6"}),
        ),
        (Allowed, "ssh_network_firewall", json!({"session_id": s})),
        (
            Allowed,
            "ssh_network_firewall",
            json!({"session_id": s, "format": "iptables", "table": "nat"}),
        ),
        (
            Allowed,
            "ssh_network_firewall",
            json!({"session_id": s, "format": "nft", "summary": true}),
        ),
        (Allowed, "ssh_network_qdisc", json!({"session_id": s})),
        (
            Allowed,
            "ssh_network_qdisc",
            json!({"session_id": s, "interface": "eth0", "include_stats": true}),
        ),
        (
            Allowed,
            "ssh_network_connectivity",
            json!({"session_id": s, "target": "localhost"}),
        ),
        (
            Allowed,
            "ssh_network_connectivity",
            json!({"session_id": s, "target": "example.com", "tests": ["dns"]}),
        ),
        (
            Allowed,
            "ssh_network_connectivity",
            json!({"session_id": s, "target": "::1", "tests": ["ping", "dns", "traceroute"], "ping_count": 5, "traceroute_hops": 15}),
        ),
        (Allowed, "ssh_network_compare", json!({"session_id": s})),
        (
            Allowed,
            "ssh_network_compare",
            json!({"session_id": s, "scope": "routes", "save_baseline": true}),
        ),
        (
            Allowed,
            "ssh_get",
            json!({"session_id": s, "path": "/etc/hostname", "local": "in/x"}),
        ),
        (
            Allowed,
            "ssh_list_dir",
            json!({"session_id": s, "path": "/var/log"}),
        ),
        (
            Asks,
            "ssh_put",
            json!({"session_id": s, "path": "/tmp/x", "local": "out/x"}),
        ),
        (
            Asks,
            "ssh_edit_file",
            json!({"session_id": s, "path": "/etc/hosts", "edits": edits}),
        ),
        (
            Allowed,
            "ssh_job_start",
            json!({"session_id": s, "command": "du -s /var/log"}),
        ),
        (Allowed, "ssh_job_status", json!({"job": "web:job_x"})),
        (
            Allowed,
            "ssh_job_status",
            json!({"job": "web:job_x", "wait_ms": 10}),
        ),
        (Allowed, "ssh_job_output", json!({"job": "web:job_x"})),
        (Allowed, "ssh_job_cancel", json!({"job": "web:job_x"})),
        (
            Asks,
            "ssh_forward_open",
            json!({"session_id": s, "kind": "local", "targets": ["127.0.0.1:80"]}),
        ),
        (Allowed, "ssh_forward_list", json!({"session_id": s})),
        (
            Allowed,
            "ssh_forward_close",
            json!({"session_id": s, "forward": "fwd_x"}),
        ),
        (
            Asks,
            "ssh_terminal_open",
            json!({"session_id": s, "command": "top -bn1"}),
        ),
        // There is no such terminal, so nobody knows what would read this; with one, a person is asked.
        (
            Refused,
            "ssh_terminal_send",
            json!({"session_id": s, "terminal": "term_x", "text": "q"}),
        ),
        (
            Allowed,
            "ssh_terminal_read",
            json!({"session_id": s, "terminal": "term_x"}),
        ),
        (
            Allowed,
            "ssh_terminal_close",
            json!({"session_id": s, "terminal": "term_x"}),
        ),
    ];
    let mut wrong = Vec::new();
    for (expected, tool, arguments) in &table {
        let (is, said) = outcome(&client, tool, arguments.clone()).await;
        // What does not fit is no call that was judged.
        if is != *expected || said.contains("the arguments do not fit") {
            wrong.push(format!("{tool} {arguments}: {is:?}: {said}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let mut tools: Vec<&str> = table.iter().map(|(_, tool, _)| *tool).collect();
    tools.dedup();
    tools.sort_unstable();
    tools.dedup();
    // One of the 31 has two names.
    assert_eq!(tools.len(), 32, "{tools:?}");
}

#[tokio::test]
async fn a_command_that_is_refused_alone_is_refused_among_others() {
    let client = client();
    for commands in [
        json!(["hostname", "ps auxe"]),
        json!(["lsof +D /etc", "hostname"]),
        json!(["hostname", "cat /etc/shadow"]),
        json!(["hostname", "rm -rf /tmp/x"]),
        json!(["hostname", "ps eww", "env"]),
        json!(["systemctl restart nginx", "hostname"]),
    ] {
        let call = json!({"session_id": "sess_x", "commands": commands});
        let (is, said) = outcome(&client, "ssh_batch_commands", call).await;
        assert_eq!(is, Outcome::Refused, "{commands}: {said}");
    }
}
