//! Who is let in, and which machines are trusted.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::json;
use ssh::hosts::Hosts;

use crate::target::{Client, PASSWORD, Target, folder, has, is_root, keygen, user};

/// What `ssh_connect` says to a host that it cannot use.
pub async fn refused(client: &Client, host: &str) -> String {
    let said = client
        .call("ssh_connect", json!({"host": host}))
        .await
        .unwrap();
    assert_eq!(said["isError"], true, "{said}");
    said["content"][0]["text"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn unknown_changed_and_revoked_host_keys_fail() {
    if !has("sshd") {
        return;
    }
    let target = Target::new("");
    let known = target.folder.join("known_hosts");
    let line = fs::read_to_string(&known).unwrap();
    keygen(&target.folder.join("other"), &[]);
    let other = fs::read_to_string(target.folder.join("other.pub")).unwrap();
    let cases = [
        (String::new(), Some("is not known")),
        (
            format!("[127.0.0.1]:{} {other}", target.port),
            Some("shows another key than the known one"),
        ),
        (format!("@revoked {line}"), Some("is revoked")),
        (
            format!("{line}@revoked * {}", line.split_once(' ').unwrap().1),
            Some("is revoked"),
        ),
        (line.replace("[127.0.0.1]", "[127.0.0.*]"), None),
        (format!("!{line}"), Some("is not known")),
        (line.clone(), None),
    ];
    for (text, wrong) in cases {
        fs::write(&known, &text).unwrap();
        let client = target.client();
        match wrong {
            Some(wrong) => {
                let told = refused(&client, "web").await;
                assert!(told.contains(wrong), "{text}: {told}");
            }
            None => drop(client.connect("web").await),
        }
    }
    // Hashed names, as OpenSSH writes them.
    fs::write(&known, &line).unwrap();
    let hashed = Command::new("ssh-keygen")
        .arg("-Hf")
        .arg(&known)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .unwrap();
    assert!(hashed.success() && fs::read_to_string(&known).unwrap().starts_with("|1|"));
    drop(target.client().connect("web").await);
}

#[tokio::test]
async fn the_first_key_of_a_host_is_written_down_where_that_is_configured_and_a_changed_one_fails_all_the_same()
 {
    if !has("sshd") {
        return;
    }
    let target = Target::new("");
    let known = target.folder.join("known_hosts");
    let line = fs::read_to_string(&known).unwrap();
    fs::write(&known, "").unwrap();
    let hosts = || {
        let text = format!(
            "known_hosts: [known_hosts]\ncredentials: {{ me: {{ user: {}, key: user }} }}\nhosts: {{ web: {{ address: 127.0.0.1, port: {}, credential: me, trust: first_use }} }}\n",
            user(),
            target.port
        );
        Client::new(Hosts::of(&text, &target.folder).unwrap(), None)
    };
    drop(hosts().connect("web").await);
    let written = fs::read_to_string(&known).unwrap();
    let key = |text: &str| text.split_whitespace().nth(2).unwrap().to_owned();
    assert_eq!(key(&written), key(&line));
    keygen(&target.folder.join("other"), &[]);
    let other = fs::read_to_string(target.folder.join("other.pub")).unwrap();
    fs::write(&known, format!("[127.0.0.1]:{} {other}", target.port)).unwrap();
    assert!(refused(&hosts(), "web").await.contains("another key"));
}

#[tokio::test]
async fn a_refused_login_says_so_and_no_secret() {
    if !has("sshd") {
        return;
    }
    let target = Target::new("PasswordAuthentication yes\n");
    keygen(&target.folder.join("stranger"), &[]);
    fs::write(target.folder.join("password"), "canary-7f3a-password\n").unwrap();
    let text = format!(
        "known_hosts: [known_hosts]\ncredentials:\n  stranger: {{ user: {u}, key: stranger }}\n  wrong: {{ user: {u}, password_file: password }}\n  none: {{ user: {u}, key: missing }}\n  caller: {{ user: {u}, password_from_caller: true }}\nhosts:\n  a: {{ address: 127.0.0.1, port: {p}, credential: stranger }}\n  b: {{ address: 127.0.0.1, port: {p}, credential: wrong }}\n  c: {{ address: 127.0.0.1, port: {p}, credential: none }}\n  d: {{ address: 127.0.0.1, port: {p}, credential: caller }}\n  e: {{ address: 127.0.0.1, port: 1, credential: stranger }}\n",
        u = user(),
        p = target.port
    );
    let client = Client::new(Hosts::of(&text, &target.folder).unwrap(), None);
    for (host, wrong) in [
        ("a", "a: the server refused the key of"),
        ("b", "b: the server refused the password of"),
        ("c", "missing: "),
        ("d", "this host takes the caller's password"),
        ("e", "e cannot be reached"),
        ("f", "there is no host \"f\" in the operator's list"),
    ] {
        let told = refused(&client, host).await;
        assert!(
            told.contains(wrong) && !told.contains("canary"),
            "{host}: {told}"
        );
    }
    for (arguments, wrong) in [
        (
            json!({"host": "a", "insecure": true}),
            "insecure is not permitted",
        ),
        (json!({"host": "a", "user": "somebody"}), "not as somebody"),
        (json!({"host": "a", "port": 22}), "not 22"),
        (
            json!({"host": "a", "password": "canary-7f3a"}),
            "takes no password from a caller",
        ),
        (
            json!({"host": "d", "password": "canary-7f3a"}),
            "refused the password",
        ),
    ] {
        let said = client.call("ssh_connect", arguments.clone()).await.unwrap();
        let told = said["content"][0]["text"].as_str().unwrap();
        assert!(
            told.contains(wrong) && !said.to_string().contains("canary"),
            "{arguments}: {said}"
        );
    }
}

#[tokio::test]
async fn a_password_from_a_file_a_variable_or_the_caller() {
    if !has("sshd") || !is_root() {
        return;
    }
    let target = Target::new("PasswordAuthentication yes\n");
    fs::write(target.folder.join("password"), format!("{PASSWORD}\n")).unwrap();
    let text = format!(
        "known_hosts: [known_hosts]\ncredentials:\n  file: {{ user: it-bash, password_file: password }}\n  variable: {{ user: it-bash, password_env: IT_PASSWORD }}\n  caller: {{ user: it-bash, password_from_caller: true }}\nhosts:\n  a: {{ address: 127.0.0.1, port: {p}, credential: file }}\n  b: {{ address: 127.0.0.1, port: {p}, credential: variable }}\n  c: {{ address: 127.0.0.1, port: {p}, credential: caller }}\n",
        p = target.port
    );
    let hosts = || Hosts::of(&text, &target.folder).unwrap();
    assert_eq!(hosts().variables(), ["IT_PASSWORD"]);
    let client = Client::with(hosts(), &[("IT_PASSWORD", PASSWORD)]);
    for host in ["a", "b"] {
        let session = client.connect(host).await;
        assert_eq!(
            client.run(&session, "whoami").await.unwrap()["structuredContent"]["stdout"],
            "it-bash\n"
        );
    }
    let given = json!({"host": "c", "password": PASSWORD});
    let said = client.call("ssh_connect", given).await.unwrap();
    assert_eq!(said["isError"], json!(null), "{said}");
    assert!(
        refused(&Client::with(hosts(), &[]), "b")
            .await
            .contains("IT_PASSWORD is not set")
    );
    // What the caller gave opens no connection for another session.
    assert!(
        refused(&client, "c")
            .await
            .contains("takes the caller's password")
    );
}

#[tokio::test]
async fn over_two_machines_to_a_third() {
    if !has("sshd") {
        return;
    }
    let (first, second, third) = (Target::new(""), Target::new(""), Target::new(""));
    let known: String = [&first, &second, &third]
        .iter()
        .map(|target| fs::read_to_string(target.folder.join("known_hosts")).unwrap())
        .collect();
    let place = folder();
    fs::write(place.join("known_hosts"), known).unwrap();
    let text = format!(
        "known_hosts: [known_hosts]\ncredentials:\n  a: {{ user: {u}, key: {a}/user }}\n  b: {{ user: {u}, key: {b}/user }}\n  c: {{ user: {u}, key: {c}/user }}\nhosts:\n  first: {{ address: 127.0.0.1, port: {pa}, credential: a }}\n  second: {{ address: 127.0.0.1, port: {pb}, credential: b }}\n  third: {{ address: 127.0.0.1, port: {pc}, credential: c, jump: [first, second] }}\n",
        u = user(),
        a = first.folder.display(),
        b = second.folder.display(),
        c = third.folder.display(),
        pa = first.port,
        pb = second.port,
        pc = third.port
    );
    let client = Client::new(Hosts::of(&text, &place).unwrap(), None);
    let session = client.connect("third").await;
    let said = client
        .run(&session, "printenv SSH_CONNECTION")
        .await
        .unwrap();
    let told = said["structuredContent"]["stdout"]
        .as_str()
        .unwrap()
        .trim()
        .to_owned();
    assert!(told.ends_with(&third.port.to_string()), "{told}");
    for over in [&first, &second] {
        assert!(over.log().contains("Accepted publickey"), "{}", over.log());
    }
    fs::remove_dir_all(place).unwrap();
}

/// An agent; it ends with the value.
pub struct Agent(Child);

impl Drop for Agent {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts an agent at this socket in the folder, with keys of it.
pub async fn agent(place: &Path, socket: &str, keys: &[&str]) -> Agent {
    let socket = place.join(socket);
    let agent = Command::new("ssh-agent")
        .arg("-D")
        .arg("-a")
        .arg(&socket)
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let agent = Agent(agent);
    let began = Instant::now();
    while !socket.exists() && began.elapsed() < Duration::from_secs(10) {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let added = Command::new("ssh-add")
        .arg("-q")
        .args(keys.iter().map(|key| place.join(key)))
        .env("SSH_AUTH_SOCK", &socket)
        .status()
        .unwrap();
    assert!(added.success());
    agent
}

/// Makes an RSA key, in a format that `ssh-keygen -m` knows.
pub fn rsa_key(path: &Path, format: &str) {
    let made = Command::new("ssh-keygen")
        .args([
            "-q", "-t", "rsa", "-b", "2048", "-N", "", "-m", format, "-f",
        ])
        .arg(path)
        .status();
    assert!(made.unwrap().success());
}

#[tokio::test]
async fn rsa_keys_of_user_and_host_are_used() {
    if !has("sshd") {
        return;
    }
    for format in ["RFC4716", "PEM", "PKCS8"] {
        let place = folder();
        rsa_key(&place.join("host"), "RFC4716");
        rsa_key(&place.join("user"), format);
        let target = Target::start(place, "", None);
        let client = target.client();
        let session = client.connect("web").await;
        let said = client.run(&session, "whoami").await.unwrap();
        assert_eq!(said["structuredContent"]["stdout"], format!("{}\n", user()));
        assert!(target.log().contains("RSA SHA256:"), "{}", target.log());
    }
}

#[tokio::test]
async fn certificates_of_users_and_hosts_and_keys_of_an_agent() {
    if !has("sshd") {
        return;
    }
    let place = folder();
    keygen(&place.join("ca"), &[]);
    keygen(&place.join("host"), &[]);
    keygen(&place.join("user"), &[]);
    keygen(&place.join("unsigned"), &[]);
    fs::copy(place.join("user.pub"), place.join("agent-user.pub")).unwrap();
    let sign = |key: &str, more: &[&str]| {
        let status = Command::new("ssh-keygen")
            .args(["-q", "-s"])
            .arg(place.join("ca"))
            .args(["-I", "it"])
            .args(more)
            .arg(place.join(key))
            .status()
            .unwrap();
        assert!(status.success());
    };
    sign("user.pub", &["-n", &user()]);
    sign("host.pub", &["-h", "-n", "127.0.0.1"]);
    let more = format!(
        "TrustedUserCAKeys {0}/ca.pub\nHostCertificate {0}/host-cert.pub\n",
        place.display()
    );
    let ca = fs::read_to_string(place.join("ca.pub")).unwrap();
    // No key is authorized by itself.
    fs::rename(place.join("user.pub"), place.join("kept.pub")).unwrap();
    fs::write(place.join("user.pub"), "").unwrap();
    let target = Target::start(place.clone(), &more, None);
    let hosts = |credential: &str| {
        let text = format!(
            "known_hosts: [known_hosts]\ncredentials:\n  me: {{ user: {}, {credential} }}\nhosts:\n  web: {{ address: 127.0.0.1, port: {}, credential: me }}\n",
            user(),
            target.port
        );
        Client::new(Hosts::of(&text, &place).unwrap(), None)
    };
    fs::write(
        place.join("known_hosts"),
        format!("@cert-authority [127.0.0.1]:{} {ca}", target.port),
    )
    .unwrap();
    let certified = "key: user, certificate: user-cert.pub";
    drop(hosts(certified).connect("web").await);
    assert!(
        refused(&hosts("key: unsigned"), "web")
            .await
            .contains("refused the key")
    );
    fs::write(place.join("known_hosts"), format!("@revoked * {ca}")).unwrap();
    assert!(!refused(&hosts(certified), "web").await.is_empty());
    // An agent holds the key; the machine takes it as an authorized one.
    target.know();
    fs::copy(place.join("kept.pub"), place.join("user.pub")).unwrap();
    if !has("ssh-agent") {
        return;
    }
    fs::remove_file(place.join("user-cert.pub")).unwrap();
    let agent = agent(&place, "agent", &["user"]).await;
    let session = hosts("agent: agent").connect("web").await;
    drop(agent);
    assert!(session.starts_with("sess_"));
}

#[tokio::test]
async fn an_authority_lets_each_login_in_by_a_certificate_of_its_own() {
    if !has("sshd") {
        return;
    }
    let place = folder();
    for name in ["ca", "other", "host", "user"] {
        keygen(&place.join(name), &[]);
    }
    let locked = Command::new("ssh-keygen")
        .args(["-q", "-p", "-P", "", "-N", "canary-2b8e", "-f"])
        .arg(place.join("ca"))
        .status();
    assert!(locked.unwrap().success());
    // No key is authorized by itself.
    fs::write(place.join("user.pub"), "").unwrap();
    let more = format!(
        "LogLevel VERBOSE\nTrustedUserCAKeys {}/ca.pub\n",
        place.display()
    );
    let target = Target::start(place.clone(), &more, None);
    let text = format!(
        "known_hosts: [known_hosts]\ncredentials:\n  good: {{ user: {u}, ca_key: ca, passphrase_env: IT_CA, certificate_seconds: 60 }}\n  locked: {{ user: {u}, ca_key: ca }}\n  stranger: {{ user: {u}, ca_key: other }}\nhosts:\n  web: {{ address: 127.0.0.1, port: {p}, credential: good }}\n  a: {{ address: 127.0.0.1, port: {p}, credential: locked }}\n  b: {{ address: 127.0.0.1, port: {p}, credential: stranger }}\n",
        u = user(),
        p = target.port
    );
    let hosts = Hosts::of(&text, &place).unwrap();
    assert_eq!(hosts.variables(), ["IT_CA"]);
    let client = Client::with(hosts, &[("IT_CA", "canary-2b8e")]);
    for _ in 0..2 {
        let alone = json!({"host": "web", "alone": true});
        let said = client.call("ssh_connect", alone).await.unwrap();
        let session = &said["structuredContent"]["session_id"];
        // A terminal is more than a certificate without extensions permits.
        let open = json!({"session_id": session, "command": "whoami", "wait_for": "\\w+", "wait_ms": 20_000});
        let said = client.call("ssh_terminal_open", open).await.unwrap();
        assert!(said.to_string().contains(&user()), "{said}");
    }
    let log = target.log();
    let keys: Vec<&str> = log
        .lines()
        .filter(|line| line.contains("Accepted publickey") && line.contains("ID durward good"))
        .filter_map(|line| {
            line.split_whitespace()
                .find(|word| word.starts_with("SHA256:"))
        })
        .collect();
    assert!(keys.len() == 2 && keys[0] != keys[1], "{log}");
    for (host, wrong) in [("a", "ca: "), ("b", "refused the certificate of")] {
        let told = refused(&client, host).await;
        assert!(told.contains(wrong) && !told.contains("canary"), "{told}");
    }
}
