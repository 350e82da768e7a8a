//! What callers leave each other of an SSH server.

use std::fs;

use serde_json::{Value, json};

use crate::serve_keys::bearer;
use crate::serve_keys_lasting::ssh_said;
use crate::ssh_server::{Sshd, has_sshd, target};
use crate::support::guarded::Place;
use crate::support::serving::Served;

/// A place with a host, these limits, and rules that let everything pass.
fn limited(limits: &str) -> (Place, Sshd) {
    let place = Place::new();
    let sshd = target(&place);
    let hosts = fs::read_to_string(place.path("ssh_hosts.yaml")).unwrap();
    let hosts = format!("{hosts}limits: {{ {limits} }}\n");
    fs::write(place.path("ssh_hosts.yaml"), hosts).unwrap();
    place.write_policy(
        r#"{"rules":[{"id":"tools","effect":"allow","conditions":{"tool_name":"*"}}]}"#,
    );
    (place, sshd)
}

/// The code of the failure that a tool answers with; none where it does what it is asked.
fn failure(said: &Value) -> Option<&str> {
    let result = said["result"]
        .as_object()
        .unwrap_or_else(|| panic!("{said}"));
    result["_meta"]["durward/failure"]["code"].as_str()
}

#[test]
fn ssh_sessions_of_one_key_leave_room_for_the_others() {
    if !has_sshd() {
        return;
    }
    let (place, _sshd) = limited("sessions_max: 8");
    let callers = ["one", "two", "three", "four"].map(|name| bearer(&place, &["create", name]));
    let served = Served::start_configured(place);
    // As many as there are for each, and what the first one too many was told.
    let opens = |key: &String| {
        let mut opened = 0;
        loop {
            let said = ssh_said(&served, key, "ssh_connect", &json!({"host": "web"}));
            if let Some(code) = failure(&said) {
                return (opened, code.to_owned());
            }
            opened += 1;
            assert!(opened <= 8, "{said}");
        }
    };
    let opened = callers.each_ref().map(opens);
    let full = |count: usize| (count, "too_many_sessions".to_owned());
    assert_eq!(opened, [full(4), full(2), full(1), full(1)]);
}

#[test]
fn ssh_channels_of_one_key_leave_room_for_the_others() {
    if !has_sshd() {
        return;
    }
    let (place, _sshd) = limited("connections_max: 1, channels_max: 4, queue_wait_ms_max: 1000");
    let (one, two) = (
        bearer(&place, &["create", "one"]),
        bearer(&place, &["create", "two"]),
    );
    let served = Served::start_configured(place);
    let connect = |key: &str| {
        let said = ssh_said(&served, key, "ssh_connect", &json!({"host": "web"}));
        said["result"]["structuredContent"]["session_id"].clone()
    };
    let (of_one, of_two) = (connect(&one), connect(&two));
    let terminal = || {
        let asked = json!({"session_id": of_one, "command": "cat", "wait_ms": 1});
        let said = ssh_said(&served, &one, "ssh_terminal_open", &asked);
        failure(&said).map(str::to_owned)
    };
    // They last until they are closed.
    assert_eq!([terminal(), terminal()], [None, None]);
    let full = Some("queue_timed_out".to_owned());
    assert_eq!([terminal(), terminal()], [full.clone(), full]);
    let asked = json!({"session_id": of_two, "command": "hostname"});
    let said = ssh_said(&served, &two, "ssh_run_command", &asked);
    assert_eq!(failure(&said), None, "{said}");
}

#[test]
fn ssh_connections_of_one_key_alone_leave_room_for_the_others() {
    if !has_sshd() {
        return;
    }
    let (place, _sshd) = limited("connections_max: 2");
    let (one, two) = (
        bearer(&place, &["create", "one"]),
        bearer(&place, &["create", "two"]),
    );
    let served = Served::start_configured(place);
    let connect = |key: &str| {
        let alone = json!({"host": "web", "alone": true});
        let said = ssh_said(&served, key, "ssh_connect", &alone);
        failure(&said).map(str::to_owned)
    };
    let full = Some("too_many_connections".to_owned());
    assert_eq!([connect(&one), connect(&one)], [None, full.clone()]);
    assert_eq!([connect(&two), connect(&two)], [None, full]);
}
