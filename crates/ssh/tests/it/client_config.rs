//! `ssh_config` against what `ssh -G` of the real OpenSSH says of the same text, and hosts that come from one.

use std::fs;
use std::process::Command;

use ssh::config::{Config, OF_FILES, Person, Tokens, expanded};
use ssh::hosts::Hosts;

use crate::target::{Client, Target, has, user};

/// A small generator of numbers: the same seed gives the same texts.
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 11).unwrap() % bound
    }

    fn of<'t>(&mut self, texts: &[&'t str]) -> &'t str {
        texts[self.below(texts.len())]
    }
}

const HOSTS: [&str; 6] = ["web", "web1", "db", "db1.example.com", "gate", "x"];
const PATTERNS: [&str; 12] = [
    "web",
    "web*",
    "web?",
    "db",
    "db*",
    "*.example.com",
    "*",
    "!web",
    "!*1",
    "gate",
    "x",
    "\"db 1\"",
];
const LISTS: [&str; 8] = [
    "web,db",
    "web*,!web1",
    "*",
    "!web",
    "*.example.com",
    "10.*",
    "db?,gate",
    "WEB*",
];

fn option(dice: &mut Dice) -> String {
    let spaces = dice.of(&[" ", "  ", "\t", "=", " = ", "= "]);
    let (name, value) = match dice.below(11) {
        0 => (
            "HostName",
            dice.of(&[
                "10.0.0.5",
                "%h.example.com",
                "gate",
                "\"db1.example.com\"",
                "a%%b",
            ]),
        ),
        1 => (
            "User",
            dice.of(&[
                "ada",
                "bob",
                "\"joe x\"",
                "'it''s'",
                "a\\\\b",
                "c\\\"d",
                "# no",
            ]),
        ),
        2 => ("port", dice.of(&["22", "2222", "65535", "1"])),
        3 => (
            "IdentityFile",
            dice.of(&["~/.ssh/a", "/keys/%r@%h", "%d/k", "\"/k e y\"", "/k\\ e"]),
        ),
        4 => (
            "ProxyJump",
            dice.of(&["gate", "u@gate:2200", "a,b,c", "none", "ssh://u@g:1"]),
        ),
        5 => ("ProxyCommand", dice.of(&["none", "nc %h %p"])),
        6 => (
            "UserKnownHostsFile",
            dice.of(&["~/.ssh/k_%h_%p /x/%r", "/k1", "\"/k 1\" /k2"]),
        ),
        7 => (
            "STRICTHOSTKEYCHECKING",
            dice.of(&["yes", "accept-new", "ask", "no"]),
        ),
        8 => ("CertificateFile", dice.of(&["/c/%u", "~/c"])),
        9 => ("Compression", dice.of(&["yes", "no"])),
        _ => ("HostKeyAlias", dice.of(&["alias", "other"])),
    };
    let value = if value.starts_with('#') {
        "ada # no"
    } else {
        value
    };
    format!("{}{name}{spaces}{value}", dice.of(&["", " ", "\t"]))
}

fn block(dice: &mut Dice, includes: &[&str]) -> String {
    let mut text = match dice.below(8) {
        0..=3 => {
            let count = 1 + dice.below(3);
            let patterns: Vec<&str> = (0..count).map(|_| dice.of(&PATTERNS)).collect();
            format!("Host {}\n", patterns.join(" "))
        }
        4..=6 => {
            let count = 1 + dice.below(2);
            let criteria: Vec<String> = (0..count)
                .map(|_| {
                    let not = dice.of(&["", "", "!"]);
                    let kind = dice.of(&["host", "originalhost", "user", "localuser"]);
                    let list = match kind {
                        "user" | "localuser" => dice.of(&["ada", "root,bob", "*", "!ada"]),
                        _ => dice.of(&LISTS),
                    };
                    format!("{not}{kind} {list}")
                })
                .collect();
            format!("Match {}\n", criteria.join(" "))
        }
        _ => "Match all\n".to_owned(),
    };
    for _ in 0..dice.below(5) {
        let line = option(dice);
        text.push_str(&line);
        let end = dice.of(&["\n", "  \n", " # said\n", "\n\n# a comment\n"]);
        // OpenSSH 9.2 takes a comment behind `none` for a part of it.
        text.push_str(if line.ends_with("none") { "\n" } else { end });
    }
    if !includes.is_empty() && dice.below(3) == 0 {
        text.push_str(&format!("Include {}\n", dice.of(includes)));
    }
    text
}

/// What OpenSSH says of a host: each line's keyword and the rest.
fn told(file: &std::path::Path, host: &str) -> Result<Vec<(String, String)>, String> {
    let output = Command::new("ssh")
        .args(["-G", "-F"])
        .arg(file)
        .args(["--", host])
        .output()
        .unwrap();
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    let text = String::from_utf8(output.stdout).unwrap();
    let lines = text.lines().filter_map(|line| line.split_once(' '));
    Ok(lines
        .map(|(name, rest)| (name.to_owned(), rest.to_owned()))
        .collect())
}

fn me() -> Person {
    let output = |program: &str, args: &[&str]| {
        let output = Command::new(program).args(args).output().unwrap();
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    };
    let user = output("id", &["-un"]);
    // OpenSSH looks up the home, and does not ask the environment.
    let entry = output("getent", &["passwd", &user]);
    Person {
        home: entry.split(':').nth(5).unwrap().into(),
        user,
        agent: None,
    }
}

#[test]
fn openssh_and_we_read_the_same_from_the_same_text() {
    if !has("ssh") || !has("getent") {
        return;
    }
    let folder = crate::target::folder();
    let person = me();
    let home = person.home.display().to_string();
    let mut dice = Dice(0x5eed_2026_1122_0001);
    let file = folder.join("config");
    let (first, second) = (folder.join("first"), folder.join("second"));
    let both = folder.join("*rs?");
    let includes = [&first, &second, &both].map(|path| path.display().to_string());
    let includes: Vec<&str> = includes.iter().map(String::as_str).collect();
    let (mut compared, mut loops) = (0, 0);
    for round in 0..60 {
        for included in [&first, &second] {
            let text: String = (0..dice.below(3)).map(|_| block(&mut dice, &[])).collect();
            fs::write(included, format!("{}\n{text}", option(&mut dice))).unwrap();
        }
        let text: String = (0..1 + dice.below(5))
            .map(|_| block(&mut dice, &includes))
            .collect();
        fs::write(&file, &text).unwrap();
        let config = Config::read(&file, &person);
        for host in HOSTS {
            let theirs = told(&file, host);
            let about = || format!("round {round}, {host}:\n{text}");
            let (config, theirs) = match (&config, theirs) {
                (Ok(config), Ok(theirs)) => (config, theirs),
                // It is one of hosts, and not of the text.
                (Ok(_), Err(wrong)) if wrong.contains("jumphost loop") => {
                    loops += 1;
                    continue;
                }
                (ours, theirs) => panic!("{ours:?} {theirs:?} {}", about()),
            };
            let ours = config.effective(host, &person).unwrap();
            let all = |name: &str| -> Vec<&str> {
                let found = theirs.iter().filter(|(keyword, _)| keyword == name);
                found.map(|(_, rest)| rest.as_str()).collect()
            };
            let one = |name: &str| all(name).first().copied().unwrap_or_default().to_owned();
            assert_eq!(ours.host, one("hostname"), "{}", about());
            assert_eq!(ours.user, one("user"), "{}", about());
            assert_eq!(ours.port.to_string(), one("port"), "{}", about());
            let jump = ours.proxy_jump.clone().filter(|jump| jump != "none");
            assert_eq!(
                jump.unwrap_or_default().trim_start_matches("ssh://"),
                one("proxyjump").trim_start_matches("ssh://"),
                "{}",
                about()
            );
            let has_command = !one("proxycommand").is_empty() && one("proxycommand") != "none";
            assert_eq!(ours.has_proxy_command, has_command, "{}", about());
            if !ours.identity_files.is_empty() {
                assert_eq!(ours.identity_files, all("identityfile"), "{}", about());
            }
            assert_eq!(
                ours.certificate_files,
                all("certificatefile"),
                "{}",
                about()
            );
            assert_eq!(
                ours.key_alias.clone().unwrap_or_default(),
                one("hostkeyalias"),
                "{}",
                about()
            );
            let strict = ours.strict.as_deref().unwrap_or("ask");
            let theirs_strict = one("stricthostkeychecking");
            let named = match theirs_strict.as_str() {
                "true" => "yes",
                "false" => "no",
                other => other,
            };
            assert_eq!(strict, named, "{}", about());
            if let Some(files) = &ours.user_known_hosts {
                let tokens = Tokens {
                    host: &ours.host,
                    name: host,
                    port: ours.port,
                    user: &ours.user,
                    local_user: &person.user,
                    home: &home,
                };
                let files: Vec<String> = files
                    .iter()
                    .map(|file| {
                        expanded(file, OF_FILES, &tokens)
                            .unwrap()
                            .replace("~/", &format!("{home}/"))
                    })
                    .collect();
                assert_eq!(files.join(" "), one("userknownhostsfile"), "{}", about());
            }
            compared += 1;
        }
    }
    assert_eq!(compared + loops, 60 * HOSTS.len());
    assert!(compared > 250, "{compared}");
    fs::remove_dir_all(folder).unwrap();
}

/// A line of known hosts as somebody may have written it, with one of these keys.
fn known_line(dice: &mut Dice, hashed: &[String], keys: &[String]) -> String {
    let names = match dice.below(4) {
        0 => hashed[dice.below(hashed.len())].clone(),
        _ => (0..1 + dice.below(3))
            .map(|_| {
                dice.of(&[
                    "web",
                    "WEB",
                    "w*",
                    "w?b",
                    "*",
                    "!web",
                    "!w*",
                    "[web]:2222",
                    "[*]:2222",
                    "db",
                    "10.0.0.1",
                ])
            })
            .collect::<Vec<_>>()
            .join(","),
    };
    let key = &keys[dice.below(keys.len())];
    let mark = dice.of(&["", "", "", "", "@revoked ", "@cert-authority ", "@other "]);
    let (before, apart) = (dice.of(&["", " ", "\t"]), dice.of(&[" ", "  ", "\t"]));
    match dice.below(12) {
        0 => format!("# {names} {key}\n"),
        1 => format!("{names}\n"),
        2 => "\n".into(),
        _ => format!(
            "{before}{mark}{names}{apart}{key}{}\n",
            dice.of(&["", " me@there", " # said"])
        ),
    }
}

/// What `ssh-keygen -F` finds of a host, as a verdict on this key.
fn found_by_openssh(file: &std::path::Path, host: &str, key: &str) -> &'static str {
    let output = Command::new("ssh-keygen")
        .args(["-F", host, "-f"])
        .arg(file)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let (mut plain, mut has, mut is_revoked) = (false, false, false);
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let Some(about) = line.strip_prefix("# Host ") else {
            continue;
        };
        let is_it = lines.next().unwrap().contains(key);
        if about.ends_with("REVOKED") {
            is_revoked |= is_it;
        } else if !about.ends_with("CA") {
            plain = true;
            has |= is_it;
        }
    }
    match (is_revoked, has, plain) {
        (true, ..) => "revoked",
        (_, true, _) => "known",
        (_, _, true) => "changed",
        _ => "unknown",
    }
}

#[test]
fn openssh_and_we_find_the_same_keys_in_the_same_file() {
    if !has("ssh-keygen") {
        return;
    }
    use base64::Engine as _;
    let folder = crate::target::folder();
    let (seed, mut random) = crate::random::Random::fresh();
    let keys: Vec<String> = (0..3)
        .map(|number| {
            let path = folder.join(format!("key{number}"));
            crate::target::keygen(&path, &[]);
            let text = fs::read_to_string(path.with_extension("pub")).unwrap();
            let words: Vec<&str> = text.split(' ').take(2).collect();
            words.join(" ")
        })
        .collect();
    // Names as OpenSSH hashes them.
    let file = folder.join("known");
    let names = ["web", "[web]:2222", "db"].map(|name| format!("{name} {}\n", keys[0]));
    fs::write(&file, names.concat()).unwrap();
    let hash = Command::new("ssh-keygen")
        .args(["-q", "-H", "-f"])
        .arg(&file)
        .output()
        .unwrap();
    assert!(hash.status.success());
    let hashed = fs::read_to_string(&file).unwrap();
    let hashed: Vec<String> = hashed
        .lines()
        .map(|line| line.split(' ').next().unwrap().to_owned())
        .collect();
    let mut dice = Dice(seed | 1);
    let mut verdicts = std::collections::BTreeSet::new();
    for _ in 0..80 {
        let lines = 1 + random.below(5);
        let text: String = (0..lines)
            .map(|_| known_line(&mut dice, &hashed, &keys))
            .collect();
        fs::write(&file, &text).unwrap();
        for host in ["web", "[web]:2222", "db", "10.0.0.1"] {
            let key = keys[0].split_once(' ').unwrap().1;
            let blob = base64::engine::general_purpose::STANDARD
                .decode(key)
                .unwrap();
            let ours = ssh::known_key(&text, host, "ssh-ed25519", &blob);
            let theirs = found_by_openssh(&file, host, key);
            assert_eq!(ours, theirs, "seed {seed}, {host}:\n{text}");
            verdicts.insert(ours);
        }
    }
    assert_eq!(verdicts.len(), 4, "seed {seed}: {verdicts:?}");
    fs::remove_dir_all(folder).unwrap();
}

#[tokio::test]
async fn a_host_of_ssh_config_is_reached_over_its_jumps_with_its_key_and_known_hosts() {
    if !has("sshd") {
        return;
    }
    let target = Target::new("");
    let text = format!(
        "Host gate\n HostName 127.0.0.1\n Port {port}\nHost web-*\n HostName 127.0.0.1\nHost web-1\n ProxyJump gate\n Port {port}\nHost cmd\n ProxyCommand nc %h %p\nHost free\n HostName 127.0.0.1\n StrictHostKeyChecking no\nHost revoked\n HostName 127.0.0.1\n RevokedHostKeys /k\nHost other\n HostName 127.0.0.1\n Port {port}\n UserKnownHostsFile {folder}/nothing\nMatch host 127.0.0.1\n IdentityFile {folder}/missing\n IdentityFile {folder}/%u-key\n UserKnownHostsFile {folder}/known_hosts\nHost *\n User {user}\n",
        port = target.port,
        folder = target.folder.display(),
        user = user(),
    );
    fs::write(target.folder.join("client"), text).unwrap();
    fs::rename(target.folder.join("user"), target.folder.join("ada-key")).unwrap();
    let person = Person {
        home: target.folder.clone(),
        user: "ada".into(),
        agent: None,
    };
    let hosts = || {
        let text = "ssh_config: client\nhosts: { web-2: {} }\n";
        Hosts::of_person(text, &target.folder, &person).unwrap()
    };
    let unusable: Vec<String> = hosts()
        .unusable()
        .map(|(name, _)| name.to_owned())
        .collect();
    assert_eq!(unusable, ["cmd", "free", "revoked"]);
    let client = Client::new(hosts(), None);
    for host in ["gate", "web-1"] {
        let session = client.connect(host).await;
        let said = client.run(&session, "echo there").await.unwrap();
        assert_eq!(said["structuredContent"]["stdout"], "there\n", "{host}");
    }
    for (host, wrong) in [
        ("cmd", "ProxyCommand runs a program"),
        ("free", "would let anybody be this host"),
        ("revoked", "RevokedHostKeys is not read here"),
        ("other", "the key of [127.0.0.1]:"),
        ("web-9", "there is no host"),
    ] {
        let said = client
            .call("ssh_connect", serde_json::json!({"host": host}))
            .await
            .unwrap();
        assert!(
            said["isError"] == true && said.to_string().contains(wrong),
            "{host}: {said}"
        );
    }
    for (text, wrong) in [
        ("ssh_config: nowhere\n", "nowhere: No such file"),
        ("hosts: { a: {} }\n", "no ssh_config that could say one"),
        (
            "ssh_config: client\nhosts: { a: { port: 1 } }\n",
            "ssh_config says address, port and jump too",
        ),
        ("limits: {}\n", "there is no host"),
    ] {
        let fault = Hosts::of_person(text, &target.folder, &person).unwrap_err();
        assert!(fault.wrong.contains(wrong), "{text}: {}", fault.wrong);
    }
}

#[tokio::test]
async fn an_unsupported_line_leaves_the_other_hosts_usable() {
    if !has("sshd") {
        return;
    }
    let target = Target::new("");
    fs::create_dir_all(target.folder.join(".ssh/conf.d")).unwrap();
    fs::write(
        target.folder.join(".ssh/conf.d/web"),
        "Host web\nUser USER\n".replace("USER", &user()),
    )
    .unwrap();
    let text = format!(
        "Include conf.d/[a-z]*\nHost other odd\nMatch host other exec \"true\"\nUser x\nHost odd\nNewerThanWeKnow yes\nHost *\nHostName 127.0.0.1\nPort {}\nUser {}\nIdentityFile {folder}/user\nUserKnownHostsFile {folder}/known_hosts\nWarnWeakCrypto no\n",
        target.port,
        user(),
        folder = target.folder.display(),
    );
    fs::write(target.folder.join("client"), text).unwrap();
    let person = Person {
        home: target.folder.clone(),
        user: "ada".into(),
        agent: None,
    };
    let text = "ssh_config: client\nhosts: { listed: {}, other: {} }\n";
    let hosts = Hosts::of_person(text, &target.folder, &person).unwrap();
    let unusable: Vec<String> = hosts
        .unusable()
        .map(|(name, why)| format!("{name}: {why}"))
        .collect();
    assert_eq!(unusable.len(), 2, "{unusable:?}");
    assert!(
        unusable[0].contains("newerthanweknow is not a keyword"),
        "{unusable:?}"
    );
    assert!(
        unusable[1].contains("line 3: Match exec runs a program"),
        "{unusable:?}"
    );
    let client = Client::new(hosts, None);
    for host in ["web", "listed"] {
        drop(client.connect(host).await);
    }
    let told = crate::access::refused(&client, "other").await;
    assert!(told.contains("Match exec runs a program"), "{told}");
}

#[tokio::test]
async fn the_key_that_is_known_is_asked_for() {
    if !has("sshd") || !has("ssh") {
        return;
    }
    let place = crate::target::folder();
    for name in ["host", "user", "other"] {
        crate::target::keygen(&place.join(name), &[]);
    }
    crate::access::rsa_key(&place.join("host-rsa"), "RFC4716");
    let ecdsa = Command::new("ssh-keygen")
        .args(["-q", "-t", "ecdsa", "-N", "", "-f"])
        .arg(place.join("host-ecdsa"))
        .status();
    assert!(ecdsa.unwrap().success());
    let more = format!(
        "HostKey {0}/host-rsa\nHostKey {0}/host-ecdsa\n",
        place.display()
    );
    let target = Target::start(place.clone(), &more, None);
    let key = |name: &str| {
        let text = fs::read_to_string(place.join(format!("{name}.pub"))).unwrap();
        let words: Vec<&str> = text.split(' ').take(2).collect();
        words.join(" ")
    };
    let with_port = format!("[127.0.0.1]:{}", target.port);
    // The names and the key of each line, and whether the host is known by them.
    let rows: [(&[(&str, &str)], bool); 9] = [
        (&[(&with_port, "host")], true),
        (&[(&with_port, "host-rsa")], true),
        (&[(&with_port, "host-ecdsa")], true),
        (&[("127.0.0.1", "host")], true),
        (&[("127.0.0.*", "host")], true),
        (&[("127.0.0.1", "other")], false),
        (&[(&with_port, "other"), ("127.0.0.1", "host")], false),
        (&[(&with_port, "other"), (&with_port, "host-rsa")], false),
        (&[("[127.0.0.1]:1", "host")], false),
    ];
    let config = format!(
        "Host web\nHostName 127.0.0.1\nPort {}\nUser {}\nIdentityFile {folder}/user\nIdentityAgent none\nUserKnownHostsFile {folder}/known_hosts\nGlobalKnownHostsFile /dev/null\nStrictHostKeyChecking yes\n",
        target.port,
        user(),
        folder = place.display(),
    );
    fs::write(place.join("client"), config).unwrap();
    let mut wrong = Vec::new();
    for (lines, expected) in rows {
        let text: String = lines
            .iter()
            .map(|(names, name)| format!("{names} {}\n", key(name)))
            .collect();
        fs::write(place.join("known_hosts"), &text).unwrap();
        let theirs = Command::new("ssh")
            .arg("-F")
            .arg(place.join("client"))
            .args(["-o", "BatchMode=yes", "web", "true"])
            .stdin(std::process::Stdio::null())
            .stderr(std::process::Stdio::null())
            .status();
        let theirs = theirs.unwrap().success();
        let person = Person {
            home: place.clone(),
            user: "ada".into(),
            agent: None,
        };
        let hosts = Hosts::of_person("ssh_config: client\n", &place, &person).unwrap();
        let client = Client::new(hosts, None);
        let said = client
            .call("ssh_connect", serde_json::json!({"host": "web"}))
            .await
            .unwrap();
        let is_in = said["structuredContent"]["session_id"].is_string();
        if (is_in, theirs) != (expected, expected) {
            wrong.push(format!("ssh {theirs}, we {is_in}: {text}{said}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
