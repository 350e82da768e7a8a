//! The rules of docs/ssh.md that mask addresses, before a real sshd.

use std::fs;

use serde_json::json;

use crate::ssh_serve::{call_at, opened};
use crate::ssh_server::{has_sshd, target};
use crate::support::components::repository;
use crate::support::guarded::Place;
use crate::support::serving::Served;

/// What a host says, and what a model reads of it with the first rules and with the second.
const SAID: [[&str; 3]; 15] = [
    ["10.1.2.3", "[masked: private]", "[masked: ipv4]"],
    [
        "192.168.7.8/24",
        "[masked: private]/24",
        "[masked: ipv4]/24",
    ],
    ["172.16.0.9", "[masked: private]", "[masked: ipv4]"],
    ["172.32.0.1", "172.32.0.1", "[masked: ipv4]"],
    ["128.9.9.9", "128.9.9.9", "[masked: ipv4]"],
    ["127.0.0.1", "127.0.0.1", "127.0.0.1"],
    ["127.0.0.53:53", "127.0.0.53:53", "127.0.0.53:53"],
    ["127.1.2.3", "127.1.2.3", "[masked: ipv4]"],
    ["8.8.8.8:45678", "8.8.8.8[masked: ports]", "[masked: ipv4]"],
    ["8.8.8.8:443", "8.8.8.8:443", "[masked: ipv4]"],
    ["fe80::1%eth0", "fe80::1%eth0", "[masked: ipv6]%eth0"],
    [
        "2001:db8:0:1:2:3:4:5",
        "2001:db8:0:1:2:3:4:5",
        "[masked: ipv6]",
    ],
    ["*:22", "*:22", "[masked: ports]"],
    [
        "00:11:22:aa:BB:cc",
        "[masked: hardware]",
        "[masked: hardware]",
    ],
    ["at 12:34:56", "at 12:34:56", "at 12:34:56"],
];

#[test]
fn addresses_are_masked_as_the_page_says() {
    if !has_sshd() {
        return;
    }
    let page = fs::read_to_string(repository().join("docs/ssh.md")).unwrap();
    let (_, part) = page.split_once("## Masking addresses").unwrap();
    let (part, _) = part.split_once("\n## ").unwrap();
    let blocks: Vec<&str> = part
        .split("```yaml\n")
        .skip(1)
        .map(|block| block.split("```").next().unwrap())
        .collect();
    assert_eq!(blocks.len(), 2);
    for (number, rules) in blocks.into_iter().enumerate() {
        let place = Place::new();
        let _sshd = target(&place);
        let servers = fs::read_to_string(place.path("durward.yaml")).unwrap();
        fs::write(place.path("durward.yaml"), servers + rules).unwrap();
        let said: Vec<&str> = SAID.iter().map(|line| line[0]).collect();
        fs::write(place.path("said"), said.join("\n")).unwrap();
        let wanted: Vec<&str> = SAID.iter().map(|line| line[number + 1]).collect();
        let command = format!("cat {}", place.path("said").display());
        let served = Served::start_configured(place);
        let session = opened(&served, "/mcp/ssh");
        let call = |tool: &str, arguments| {
            call_at(&served, "/mcp/ssh", &session, tool, arguments)["result"].clone()
        };
        let connected = call("ssh_connect", json!({"host": "web"}));
        let id = &connected["structuredContent"]["session_id"];
        let run = json!({"session_id": id, "command": command});
        let read = call("ssh_run_command", run);
        for told in [
            &read["structuredContent"]["stdout"],
            &read["content"][0]["text"],
        ] {
            let told: Vec<&str> = told.as_str().unwrap().lines().collect();
            assert_eq!(told, wanted);
        }
    }
}
