//! Which keys and proofs log in, compared with OpenSSH's client.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use ssh::config::Person;
use ssh::hosts::Hosts;

use crate::access::{agent, refused, rsa_key};
use crate::target::{Client, PASSWORD, Target, folder, has, is_root, keygen, user};

/// A host's lines in `ssh_config`, with `DIR` for the folder, and whether it logs in.
type Row = (&'static str, &'static str, bool);

const ROWS: &[Row] = &[
    // The same eight that a stranger's configuration had.
    (
        "enc-agent",
        "IdentityFile DIR/locked\nIdentityAgent DIR/keys.sock",
        true,
    ),
    (
        "pub-agent",
        "IdentityFile DIR/held-rsa.pub\nIdentitiesOnly yes\nIdentityAgent DIR/keys.sock",
        true,
    ),
    (
        "pub-agent-many",
        "IdentityFile DIR/held.pub\nIdentitiesOnly yes\nIdentityAgent DIR/many.sock",
        true,
    ),
    (
        "two-files",
        "IdentityFile DIR/junk1\nIdentityFile DIR/plain",
        true,
    ),
    (
        "rsa-then-ec",
        "IdentityFile DIR/rsa-pem\nIdentityFile DIR/plain",
        true,
    ),
    (
        "file-then-agent",
        "IdentityFile DIR/junk1\nIdentityAgent DIR/keys.sock",
        true,
    ),
    (
        "expired-cert-beside",
        "IdentityFile DIR/certified\nIdentityAgent none",
        true,
    ),
    ("cert-in-agent", "IdentityAgent DIR/cert.sock", true),
    // Certificates.
    (
        "cert-of-file-key",
        "IdentityFile DIR/signed\nCertificateFile DIR/signed-cert.pub",
        true,
    ),
    (
        "cert-alone-key-in-agent",
        "CertificateFile DIR/signed-cert.pub\nIdentityAgent DIR/plainsigned.sock",
        true,
    ),
    (
        "expired-cert-of-a-strange-key",
        "IdentityFile DIR/strange\nIdentityAgent none",
        false,
    ),
    (
        "host-cert-is-no-proof",
        "IdentityFile DIR/junk1\nCertificateFile DIR/hosts-cert.pub\nIdentityAgent none",
        false,
    ),
    // Agents.
    (
        "only-strange-file",
        "IdentityFile DIR/junk1\nIdentitiesOnly yes\nIdentityAgent DIR/keys.sock",
        false,
    ),
    (
        "no-agent",
        "IdentityFile DIR/locked\nIdentityAgent none",
        false,
    ),
    (
        "gone-agent-then-file",
        "IdentityFile DIR/plain\nIdentityAgent DIR/nowhere.sock",
        true,
    ),
    (
        "pub-without-agent",
        "IdentityFile DIR/held.pub\nIdentityAgent none",
        false,
    ),
    (
        "missing-then-file",
        "IdentityFile DIR/missing\nIdentityFile DIR/plain\nIdentityAgent none",
        true,
    ),
    (
        "locked-then-file",
        "IdentityFile DIR/locked\nIdentityFile DIR/plain\nIdentityAgent none",
        true,
    ),
    (
        "none-and-agent",
        "IdentityFile none\nIdentityAgent DIR/keys.sock",
        true,
    ),
    // A private key that others may read is not used.
    (
        "exposed",
        "IdentityFile DIR/exposed\nIdentityAgent none",
        false,
    ),
    (
        "exposed-then-file",
        "IdentityFile DIR/exposed\nIdentityFile DIR/plain\nIdentityAgent none",
        true,
    ),
    // RSA.
    ("rsa", "IdentityFile DIR/rsa\nIdentityAgent none", true),
    (
        "rsa-pem",
        "IdentityFile DIR/rsa-pem\nIdentityAgent none",
        true,
    ),
];

fn sign(place: &Path, key: &str, more: &[&str]) {
    let status = Command::new("ssh-keygen")
        .args(["-q", "-s"])
        .arg(place.join("ca"))
        .args(["-I", "it"])
        .args(more)
        .arg(place.join(format!("{key}.pub")))
        .status();
    assert!(status.unwrap().success());
}

fn copy(place: &Path, from: &str, to: &str) {
    for end in ["", ".pub"] {
        let of = |name: &str| place.join(format!("{name}{end}"));
        fs::copy(of(from), of(to)).unwrap();
    }
}

/// A folder with keys; those that the target takes are in `user.pub`.
fn keys() -> PathBuf {
    let place = folder();
    for name in [
        "host",
        "ca",
        "plain",
        "held",
        "open",
        "junk1",
        "junk2",
        "certified",
        "signed",
        "strange",
        "hosts",
        "exposed",
    ] {
        keygen(&place.join(name), &[]);
    }
    for (name, format) in [
        ("rsa", "RFC4716"),
        ("rsa-pem", "PEM"),
        ("held-rsa", "RFC4716"),
    ] {
        rsa_key(&place.join(name), format);
    }
    copy(&place, "open", "locked");
    let locked = Command::new("ssh-keygen")
        .args(["-q", "-p", "-P", "", "-N", "canary-5d1c", "-f"])
        .arg(place.join("locked"))
        .stdout(Stdio::null())
        .status();
    assert!(locked.unwrap().success());
    let until = ["-n", &user(), "-V", "20200101:20200102"];
    sign(&place, "certified", &until);
    sign(&place, "strange", &until);
    sign(&place, "signed", &["-n", &user()]);
    sign(&place, "hosts", &["-h", "-n", "127.0.0.1"]);
    copy(&place, "signed", "plainsigned");
    fs::set_permissions(place.join("exposed"), fs::Permissions::from_mode(0o644)).unwrap();
    let taken = [
        "plain",
        "held",
        "locked",
        "certified",
        "rsa",
        "rsa-pem",
        "held-rsa",
        "exposed",
    ];
    let texts = taken.map(|name| fs::read_to_string(place.join(format!("{name}.pub"))).unwrap());
    fs::write(place.join("user.pub"), texts.concat()).unwrap();
    place
}

fn person(place: &Path) -> Person {
    Person {
        home: place.to_path_buf(),
        user: "ada".into(),
        agent: None,
    }
}

#[tokio::test]
async fn what_ssh_logs_in_with_logs_in_and_nothing_else() {
    if !has("sshd") || !has("ssh") || !has("ssh-agent") {
        return;
    }
    let place = keys();
    let _agents = [
        agent(&place, "keys.sock", &["open", "held-rsa"]).await,
        agent(&place, "many.sock", &["junk1", "junk2", "held"]).await,
        // With the certificate beside it, and no plain key that the target takes.
        agent(&place, "cert.sock", &["signed"]).await,
        agent(&place, "plainsigned.sock", &["plainsigned"]).await,
    ];
    let more = format!("TrustedUserCAKeys {}/ca.pub\n", place.display());
    let target = Target::start(place.clone(), &more, None);
    let mut text = String::new();
    for (name, lines, _) in ROWS {
        text.push_str(&format!("Host {name}\n{lines}\n"));
    }
    text.push_str(&format!(
        "Host *\nHostName 127.0.0.1\nPort {}\nUser {}\nUserKnownHostsFile DIR/known_hosts\nGlobalKnownHostsFile /dev/null\nStrictHostKeyChecking yes\n",
        target.port,
        user()
    ));
    let text = text.replace("DIR", &place.display().to_string());
    let file = place.join("client");
    fs::write(&file, text).unwrap();
    let hosts = Hosts::of_person("ssh_config: client\n", &place, &person(&place)).unwrap();
    assert_eq!(hosts.unusable().count(), 0);
    let client = Client::new(hosts, None);
    let mut wrong = Vec::new();
    for (name, _, expected) in ROWS {
        let theirs = Command::new("ssh")
            .arg("-F")
            .arg(&file)
            .args(["-o", "BatchMode=yes", name, "true"])
            .stdin(Stdio::null())
            .stderr(Stdio::null())
            .env_remove("SSH_AUTH_SOCK")
            .status();
        let theirs = theirs.unwrap().success();
        let ours = client
            .call("ssh_connect", serde_json::json!({"host": name}))
            .await
            .unwrap();
        let is_in = ours["structuredContent"]["session_id"].is_string();
        if (is_in, theirs) != (*expected, *expected) {
            wrong.push(format!("{name}: ssh {theirs}, we {is_in}: {ours}"));
        }
        assert!(!ours.to_string().contains("canary"), "{ours}");
    }
    assert!(wrong.is_empty(), "{}\n{}", wrong.join("\n"), target.log());
    // The reason names what was offered and what was not.
    let reasons: [(&str, &[&str]); 5] = [
        ("only-strange-file", &["the server refused the key of"]),
        (
            "expired-cert-of-a-strange-key",
            &["refused 2 proofs of", "certificate"],
        ),
        ("exposed", &["its mode is 0644", "chmod 600"]),
        (
            "no-agent",
            &["locked: it has a passphrase", "no agent holds it"],
        ),
        (
            "pub-without-agent",
            &["held.pub", "no agent has the private half"],
        ),
    ];
    for (host, parts) in reasons {
        let reason = refused(&client, host).await;
        for part in parts {
            assert!(reason.contains(part), "{host}: {reason}");
        }
    }
}

#[test]
fn an_exposed_key_is_a_fault_of_its_host() {
    if !has("ssh-keygen") {
        return;
    }
    let place = keys();
    let text = "known_hosts: [known_hosts]\ncredentials: { me: { user: ada, key: exposed }, you: { user: ada, key: plain } }\nhosts:\n  a: { address: 127.0.0.1, credential: me }\n  b: { address: 127.0.0.1, credential: you }\n";
    let key = fs::read_to_string(place.join("host.pub")).unwrap();
    fs::write(place.join("known_hosts"), format!("127.0.0.1 {key}")).unwrap();
    let hosts = Hosts::of(text, &place).unwrap();
    let faults = |name: &str| hosts.faults(hosts.named(name).unwrap(), |_| true);
    assert_eq!(faults("b"), Vec::<String>::new());
    let found = faults("a").join("\n");
    assert!(
        found.contains("exposed: its mode is 0644") && found.contains("run chmod 600 on it"),
        "{found}"
    );
    fs::remove_dir_all(place).unwrap();
}

#[tokio::test]
async fn a_server_that_wants_several_proofs_gets_them() {
    if !has("sshd") || !has("ssh-agent") || !is_root() {
        return;
    }
    let place = folder();
    for name in ["host", "user", "second", "stranger"] {
        keygen(&place.join(name), &[]);
    }
    let both = ["user.pub", "second.pub"].map(|name| fs::read_to_string(place.join(name)).unwrap());
    fs::write(place.join("user.pub"), both.concat()).unwrap();
    fs::write(place.join("password"), format!("{PASSWORD}\n")).unwrap();
    fs::write(place.join("wrong"), "canary-6e2f\n").unwrap();
    let _agent = agent(&place, "agent", &["user", "second"]).await;
    // What the server wants, the credential, and the refusal if there is one.
    let rows: &[(&str, &str, Option<&str>)] = &[
        (
            "publickey,password",
            "key: user, password_file: password",
            None,
        ),
        (
            "password,publickey",
            "key: user, password_file: password",
            None,
        ),
        ("publickey,publickey", "agent: agent", None),
        (
            "publickey,publickey,password",
            "agent: agent, password_file: password",
            None,
        ),
        (
            "publickey,password",
            "key: user",
            Some("the server took the key of it-bash and wants another proof beside it"),
        ),
        (
            "publickey,password",
            "key: user, password_file: wrong",
            Some("wants another proof beside it; the server refused the password of it-bash"),
        ),
        (
            "publickey,publickey",
            "key: user",
            Some("the server took the key of it-bash and wants another proof beside it"),
        ),
        (
            "publickey,password",
            "key: stranger, password_file: password",
            Some("the server refused the key of it-bash"),
        ),
    ];
    for (methods, credential, wanted) in rows {
        let more = format!("AuthenticationMethods {methods}\nPasswordAuthentication yes\n");
        let text = fs::read_to_string(place.join("user.pub")).unwrap();
        let own = folder();
        for name in ["host", "host.pub"] {
            fs::copy(place.join(name), own.join(name)).unwrap();
        }
        fs::write(own.join("user.pub"), text).unwrap();
        let target = Target::start(own, &more, None);
        let hosts = format!(
            "known_hosts: [{}/known_hosts]\ncredentials: {{ me: {{ user: it-bash, {credential} }} }}\nhosts: {{ web: {{ address: 127.0.0.1, port: {}, credential: me }} }}\n",
            target.folder.display(),
            target.port
        );
        let client = Client::new(Hosts::of(&hosts, &place).unwrap(), None);
        match wanted {
            None => drop(client.connect("web").await),
            Some(wanted) => {
                let told = refused(&client, "web").await;
                assert!(told.contains(wanted), "{methods}, {credential}: {told}");
                assert!(!told.contains("canary"), "{told}");
            }
        }
    }
    // A password that the caller gives may be one of them.
    let target =
        Target::new("AuthenticationMethods publickey,password\nPasswordAuthentication yes\n");
    let hosts = format!(
        "known_hosts: [known_hosts]\ncredentials: {{ me: {{ user: it-bash, key: user, password_from_caller: true }} }}\nhosts: {{ web: {{ address: 127.0.0.1, port: {}, credential: me }} }}\n",
        target.port
    );
    let client = Client::new(Hosts::of(&hosts, &target.folder).unwrap(), None);
    assert!(
        refused(&client, "web")
            .await
            .contains("takes the caller's password")
    );
    let given = serde_json::json!({"host": "web", "password": PASSWORD});
    let said = client.call("ssh_connect", given).await.unwrap();
    assert!(
        said["structuredContent"]["session_id"].is_string(),
        "{said}"
    );
    fs::remove_dir_all(place).unwrap();
}
