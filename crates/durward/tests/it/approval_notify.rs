//! `approval.notify`: a command and a webhook hear of a call that waits.

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, sync_channel};

use crate::support::approver::{ask, sockets};
use crate::support::guarded::{LATEST, PATIENCE, Place, echo, end, eventually, line};
use mcp::client::Client;
use serde_json::{Value, json};

const SECRET: &str = "a-secret-of-the-webhook";
const ASKS: &str = r#"{"version":"1","default_action":"deny","rules":[
    {"id":"ask-all","effect":"hitl","conditions":{"tool_name":"*"}}]}"#;

/// A guarded echo of which every call waits, with these keys below `approval.notify`.
fn started(place: &Place, notify: &str) -> Client {
    place.write_policy(ASKS);
    let command: Vec<String> = place.mock(&["echo"]);
    let (program, arguments) = command.split_first().unwrap();
    let config = format!(
        "servers: {{ echo: {{ command: {}, args: {} }} }}\napproval: {{ notify: {notify} }}\n",
        json!(program),
        json!(arguments)
    );
    fs::write(place.path("durward.yaml"), config).unwrap();
    let mut client = place.guard_configured("durward.yaml", &[], "echo");
    client.handshake(LATEST).unwrap();
    client
}

/// Answers what waits, so that the session ends.
fn deny(place: &Place, id: &Value, mut client: Client) {
    let socket = sockets(&place.runtime().join("durward")).remove(0);
    let answer = json!({ "do": "answer", "id": id, "answer": "deny" });
    ask(&socket, &answer).unwrap();
    line(&mut client);
    end(client);
}

#[test]
fn p04_a_command_is_given_the_call_without_its_arguments() {
    for (more, sees) in [("", false), (", arguments: true", true)] {
        let place = Place::new();
        let out = place.path("told");
        let script = format!("cat > {0}.part && mv {0}.part {0}", out.display());
        let notify = format!("{{ command: [sh, -c, {}]{more} }}", json!(script));
        let mut client = started(&place, &notify);
        client
            .send_request("tools/call", echo("private-text"))
            .unwrap();
        eventually("the command ran", || out.exists());
        let told = fs::read_to_string(&out).unwrap();
        assert_eq!(told.contains("private-text"), sees, "{told}");
        let told: Value = serde_json::from_str(&told).unwrap();
        assert_eq!(told["server"], "echo");
        assert_eq!(told["tool"], "echo");
        assert_eq!(told["timeout_seconds"], 50);
        let id = told["id"].as_str().unwrap();
        assert!(told["answer"].as_str().unwrap().ends_with(id), "{told}");
        deny(&place, &told["id"], client);
    }
}

/// A request as it came: head and body.
fn request(stream: &mut TcpStream) -> (String, String) {
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut bytes = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = header(head, "content-length").parse::<usize>().unwrap();
            if body.len() >= length {
                return (head.to_owned(), body.to_owned());
            }
        }
        let mut part = [0; 4_096];
        let read = stream.read(&mut part).unwrap();
        assert!(read > 0, "the request ended early: {text}");
        bytes.extend_from_slice(&part[..read]);
    }
}

fn header<'h>(head: &'h str, name: &str) -> &'h str {
    head.lines()
        .filter_map(|line| line.split_once(": "))
        .find(|(found, _)| found.eq_ignore_ascii_case(name))
        .map_or("", |(_, value)| value)
}

/// Answers one request a connection, with these statuses in turn.
fn receiver(statuses: &'static [&'static str]) -> (u16, Receiver<(String, String)>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let (send, receive) = sync_channel(8);
    std::thread::spawn(move || {
        for status in statuses {
            let (mut stream, _) = listener.accept().unwrap();
            send.send(request(&mut stream)).unwrap();
            let answer =
                format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
            stream.write_all(answer.as_bytes()).unwrap();
        }
    });
    (port, receive)
}

#[test]
fn p04_a_webhook_is_signed_and_sent_again_after_a_failure() {
    let (port, requests) = receiver(&["503 Service Unavailable", "204 No Content"]);
    let place = Place::new();
    let notify =
        format!("{{ webhook: {{ url: \"http://127.0.0.1:{port}/hook\", secret: {SECRET} }} }}");
    let mut client = started(&place, &notify);
    client
        .send_request("tools/call", echo("private-text"))
        .unwrap();
    let first = requests.recv_timeout(PATIENCE).unwrap();
    let (head, body) = requests.recv_timeout(PATIENCE).unwrap();
    assert_eq!(first.1, body);
    assert!(head.starts_with("POST /hook HTTP/1.1\r\n"), "{head}");
    assert!(!body.contains("private-text"), "{body}");
    let signed = format!("{}.{body}", header(&head, "durward-timestamp"));
    let key = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, SECRET.as_bytes());
    let expect: String = ring::hmac::sign(&key, signed.as_bytes())
        .as_ref()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    assert_eq!(
        header(&head, "durward-signature"),
        format!("sha256={expect}")
    );
    let told: Value = serde_json::from_str(&body).unwrap();
    deny(&place, &told["id"], client);
}

#[test]
fn notify_keys_that_cannot_be_used_are_refused_where_they_stand() {
    let place = Place::new();
    for (notify, said) in [
        (
            "{ bell: loud }",
            "approval.notify.bell: \"loud\" is not true or false",
        ),
        (
            "{ command: [] }",
            "approval.notify.command names no program",
        ),
        (
            "{ webhook: { url: \"https://x.example\" } }",
            "needs webhook.secret beside it",
        ),
        (
            "{ webhook: { url: \"https://x.example\", secret: short } }",
            "shorter than 16 bytes",
        ),
        (
            "{ webhook: { url: \"ftp://x.example\", secret: 0123456789abcdef } }",
            "approval.notify.webhook.url",
        ),
        ("{ bel: true }", "did you mean \"bell\"?"),
    ] {
        let text = format!("approval: {{ notify: {notify} }}\n");
        fs::write(place.path("durward.yaml"), text).unwrap();
        let output = place.durward(&["check", "--config", "durward.yaml"]);
        let err = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(16), "{notify}: {err}");
        assert!(err.contains(said), "{notify}: {err}");
    }
}
