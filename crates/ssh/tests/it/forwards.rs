//! Port forwards over a real sshd: each way, and everything that ends or refuses them.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use crate::target::{Client, Target, has};

/// How long a test waits for what has to come.
const PATIENCE: Duration = Duration::from_secs(30);

/// A server on loopback that says back what it reads, and its `HOST:PORT`.
async fn echo() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let at = listener.local_addr().unwrap().to_string();
    tokio::spawn(async move {
        while let Ok((mut socket, _)) = listener.accept().await {
            tokio::spawn(async move {
                let (mut read, mut write) = socket.split();
                let _ = tokio::io::copy(&mut read, &mut write).await;
            });
        }
    });
    at
}

/// Sends a text there, and gives what comes back until the other side ends.
async fn said_back(socket: &mut TcpStream) -> String {
    socket.write_all(b"over the bridge").await.unwrap();
    socket.shutdown().await.unwrap();
    let mut text = String::new();
    let read = tokio::time::timeout(PATIENCE, socket.read_to_string(&mut text));
    read.await.unwrap().unwrap();
    text
}

struct On {
    _target: Target,
    client: Client,
    session: String,
}

impl On {
    async fn new(limits: &str) -> Self {
        let target = Target::new("");
        let client = Client::new(target.hosts(limits), None);
        let session = client.connect("web").await;
        Self {
            _target: target,
            client,
            session,
        }
    }

    async fn call(&self, tool: &str, more: Value) -> Result<Value, String> {
        let mut arguments = json!({"session_id": self.session});
        let members = arguments.as_object_mut().unwrap();
        members.extend(more.as_object().unwrap().clone());
        self.client.call(tool, arguments).await
    }

    async fn open(&self, kind: &str, targets: &[&str]) -> Value {
        let more = json!({"kind": kind, "targets": targets});
        let said = self.call("ssh_forward_open", more).await.unwrap();
        assert!(said["isError"] != true, "{said}");
        said["structuredContent"].clone()
    }

    /// The forwards once this holds for the first of them.
    async fn until(&self, holds: impl Fn(&Value) -> bool) -> Value {
        let began = Instant::now();
        loop {
            let said = self.call("ssh_forward_list", json!({})).await.unwrap();
            let first = said["structuredContent"]["forwards"][0].clone();
            if holds(&first) {
                return first;
            }
            assert!(began.elapsed() < PATIENCE, "{said}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

async fn reached(forward: &Value) -> TcpStream {
    TcpStream::connect(forward["listening"].as_str().unwrap())
        .await
        .unwrap()
}

#[tokio::test]
async fn a_local_and_a_remote_port_lead_to_their_target_and_are_counted_and_closed() {
    if !has("sshd") {
        return;
    }
    let on = On::new("").await;
    let echo = echo().await;
    for kind in ["local", "remote"] {
        let forward = on.open(kind, &[&echo]).await;
        assert_eq!(forward["kind"], kind);
        let mut socket = reached(&forward).await;
        assert_eq!(said_back(&mut socket).await, "over the bridge", "{kind}");
        let told = on.until(|of| of["open"] == 0 && of["taken"] == 1).await;
        assert_eq!(
            (&told["bytes_sent"], &told["bytes_received"]),
            (&json!(15), &json!(15)),
            "{told}"
        );
        let named = json!({"forward": forward["forward"]});
        let said = on.call("ssh_forward_close", named.clone()).await.unwrap();
        assert_eq!(
            said["structuredContent"]["forward"], forward["forward"],
            "{said}"
        );
        let again = on.call("ssh_forward_close", named).await.unwrap();
        assert!(again.to_string().contains("unknown_forward"), "{again}");
        let began = Instant::now();
        while TcpStream::connect(forward["listening"].as_str().unwrap())
            .await
            .is_ok()
        {
            assert!(began.elapsed() < PATIENCE, "{kind} still listens");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

#[tokio::test]
async fn a_dynamic_port_leads_to_the_targets_that_were_judged_and_to_no_others() {
    if !has("sshd") {
        return;
    }
    let on = On::new("").await;
    let (echo, other) = (echo().await, echo().await);
    let forward = on.open("dynamic", &[&echo, "127.0.0.1:9"]).await;
    let socks = async |at: &str| {
        let port: u16 = at.rsplit_once(':').unwrap().1.parse().unwrap();
        let mut socket = reached(&forward).await;
        socket.write_all(&[5, 1, 0]).await.unwrap();
        let asked = [&[5, 1, 0, 1, 127, 0, 0, 1], port.to_be_bytes().as_slice()].concat();
        socket.write_all(&asked).await.unwrap();
        let mut answer = [0; 12];
        let read = tokio::time::timeout(PATIENCE, socket.read_exact(&mut answer));
        read.await.unwrap().unwrap();
        (socket, answer[3])
    };
    let (mut socket, code) = socks(&echo).await;
    assert_eq!(
        (said_back(&mut socket).await.as_str(), code),
        ("over the bridge", 0)
    );
    assert_eq!(socks(&other).await.1, 2, "not allowed");
    assert_eq!(socks("127.0.0.1:9").await.1, 5, "nobody listens there");
    let told = on.until(|of| of["open"] == 0 && of["taken"] == 3).await;
    assert_eq!(told["turned_away"], 1, "{told}");
}

#[tokio::test]
async fn forwards_end_with_their_session_and_when_they_are_idle_or_too_many() {
    if !has("sshd") {
        return;
    }
    let idle = On::new("limits: { forwards_max: 1, forward_idle_ms_max: 1500 }\n").await;
    let on = On::new("limits: { forwards_max: 1, forward_connections_max: 1 }\n").await;
    let echo = echo().await;
    idle.open("local", &[&echo]).await;
    idle.until(|of| of["ended"] == "it was idle").await;
    // What has ended makes room.
    idle.open("local", &[&echo]).await;
    let forward = on.open("local", &[&echo]).await;
    let more = json!({"kind": "local", "targets": [echo]});
    let said = on.call("ssh_forward_open", more).await.unwrap();
    assert!(said.to_string().contains("too_many_forwards"), "{said}");
    let mut held = reached(&forward).await;
    held.write_all(b"y").await.unwrap();
    assert_eq!(held.read_u8().await.unwrap(), b'y');
    let mut second = reached(&forward).await;
    let mut none = Vec::new();
    let _ = second.read_to_end(&mut none).await;
    assert!(none.is_empty(), "one connection at a time");
    on.call("ssh_disconnect", json!({})).await.unwrap();
    let mut rest = Vec::new();
    let read = tokio::time::timeout(PATIENCE, held.read_to_end(&mut rest)).await;
    let _ = read.unwrap();
    assert!(rest.is_empty());
}

#[tokio::test]
async fn a_forward_is_opened_by_a_persons_yes_or_a_rule_and_a_rule_sees_where_it_leads() {
    if !has("sshd") {
        return;
    }
    let target = Target::new("");
    let echo = echo().await;
    let asked = |session: &str, kind: &str, address: &str, targets: &[&str]| json!({"session_id": session, "kind": kind, "listen_address": address, "targets": targets});
    let shipped = Client::new(target.hosts(""), Some(&ssh::rules::policy()));
    let session = shipped.connect("web").await;
    for kind in ["local", "remote", "dynamic"] {
        let asked = asked(&session, kind, "127.0.0.1", &[&echo]);
        let wrong = shipped.call("ssh_forward_open", asked).await.unwrap_err();
        assert_eq!(wrong, "a person has to be asked");
    }
    let policy = format!(
        r#"{{"rules":[
        {{"id":"all","effect":"allow","conditions":{{"tool_name":["ssh_connect","ssh_forward_list"]}}}},
        {{"id":"db","effect":"allow","conditions":{{"tool_name":"ssh_forward_open","host":"web","when":"forward == 'local' && forward_listen == '127.0.0.1:0' && forward_targets.all(t, t == '{echo}')"}}}}]}}"#
    );
    let client = Client::new(target.hosts(""), Some(&policy));
    let session = client.connect("web").await;
    let call = async |kind: &str, address: &str, targets: &[&str]| {
        client
            .call("ssh_forward_open", asked(&session, kind, address, targets))
            .await
    };
    let said = call("local", "127.0.0.1", &[&echo]).await.unwrap();
    assert_eq!(
        said["structuredContent"]["targets"],
        json!([echo]),
        "{said}"
    );
    assert!(call("local", "0.0.0.0", &[&echo]).await.is_err());
    assert!(call("remote", "127.0.0.1", &[&echo]).await.is_err());
    assert!(
        call("dynamic", "127.0.0.1", &[&echo, "db:1"])
            .await
            .is_err()
    );
    for (kind, address, targets) in [
        ("local", "localhost", vec!["a:1"]),
        ("local", "127.0.0.1", vec!["a"]),
        ("local", "127.0.0.1", vec!["a:0"]),
        ("local", "127.0.0.1", vec!["a:1", "b:1"]),
        ("up", "127.0.0.1", vec!["a:1"]),
    ] {
        let said = call(kind, address, &targets).await;
        let is_refused = said.as_ref().is_ok_and(|said| said["isError"] == true) || said.is_err();
        assert!(is_refused, "{kind} {address} {targets:?}: {said:?}");
    }
    let records = client.trial.records().unwrap();
    let text = serde_json::to_string(&records).unwrap();
    assert!(
        text.contains(&echo) && text.contains("forward_targets"),
        "{text}"
    );
}
