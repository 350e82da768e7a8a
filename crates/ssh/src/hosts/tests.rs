use std::path::Path;

use super::*;

fn wrong(text: &str) -> String {
    Hosts::of(text, Path::new("/etc/durward"))
        .unwrap_err()
        .wrong
}

const CREDENTIALS: &str = "credentials: { me: { user: ada, key: id } }\n";

#[test]
fn a_file_is_read_with_paths_beside_it() {
    let text = format!(
        "known_hosts: [known, /etc/ssh/known]\n{CREDENTIALS}hosts:\n  gate: {{ credential: me, port: 2222 }}\n  web: {{ address: 10.0.0.5, credential: me, jump: [gate], trust: first_use }}\nlimits: {{ queue_max: 3 }}\n"
    );
    let hosts = Hosts::of(&text, Path::new("/etc/durward")).unwrap();
    let web = hosts.named("web").unwrap();
    assert_eq!(
        (web.address.as_str(), web.port, web.trust),
        ("10.0.0.5", 22, Trust::FirstUse)
    );
    assert_eq!(
        (web.jump[0].address.as_str(), web.jump[0].port),
        ("gate", 2222)
    );
    assert_eq!(
        hosts.known_hosts,
        [Path::new("/etc/durward/known"), Path::new("/etc/ssh/known")]
    );
    let key = Proof::Keys(KeySources {
        files: vec![KeyFile {
            path: "/etc/durward/id".into(),
            passphrase: None,
        }],
        identities_only: true,
        ..KeySources::default()
    });
    assert_eq!(web.credential.proofs, [key]);
    assert_eq!(
        (hosts.limits.queue_max, hosts.limits.connections_max),
        (3, 10)
    );
}

#[test]
fn what_is_wrong_is_told_with_its_place() {
    let with = |hosts: &str| wrong(&format!("{CREDENTIALS}hosts: {{ {hosts} }}\n"));
    assert_eq!(
        with("web: { credential: you }"),
        "hosts.web.credential: there is no credential \"you\""
    );
    assert_eq!(
        with("web: { credential: me, jump: [x] }"),
        "hosts.web.jump: there is no host \"x\""
    );
    assert!(with("web: { credential: me, jump: [web] }").contains("has a way of its own"));
    assert!(with("'a b': { credential: me }").contains("a name has letters, digits"));
    assert!(with("web: { credential: me, prot: 22 }").contains("prot"));
    let credential = |text: &str| {
        wrong(&format!(
            "credentials: {{ me: {{ user: ada{text} }} }}\nhosts: {{}}\n"
        ))
    };
    assert!(credential("").contains("write one or more of key, ca_key, password_file"));
    let both = ", password_file: b, password_from_caller: true";
    assert!(credential(both).contains("and takes the caller's; keep one"));
    assert!(credential(", password_file: a, password_env: B").contains("keep one"));
    assert!(credential(", certificate: a").contains("there is no key"));
    assert!(credential(", certificate_seconds: 60").contains("there is no key"));
    assert!(credential(", key: a, ca_key: b").contains("keep one"));
    assert!(credential(", key: a, certificate_seconds: 60").contains("is for ca_key"));
    assert!(credential(", ca_key: a, certificate: b").contains("take certificate away"));
    for seconds in [9, 86_401] {
        let told = credential(&format!(", ca_key: a, certificate_seconds: {seconds}"));
        assert!(told.contains("it may be 10 to 86400"), "{told}");
    }
    assert!(wrong("hosts: [").contains("line"));
}

#[test]
fn a_secret_and_a_broken_file_print_no_secret() {
    let secret = Secret::new("canary-91".into());
    assert_eq!(
        format!("{secret:?} {:?}", Some(&secret)),
        "[secret] Some([secret])"
    );
    let told = wrong("credentials: { me: { user: ada, password: canary-91 } }\nhosts: {}\n");
    assert!(!told.contains("canary"), "{told}");
    let told = wrong("hosts: { a: 'canary-91\n");
    assert!(!told.contains("canary"), "{told}");
}

#[test]
fn files_that_everybody_may_write_are_refused() {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    let folder = std::env::temp_dir().join(format!("hosts-of-everybody-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let (hosts, known) = (folder.join("hosts"), folder.join("known"));
    fs::write(
        &hosts,
        format!("{CREDENTIALS}hosts: {{ web: {{ credential: me }} }}\n"),
    )
    .unwrap();
    fs::write(&known, "").unwrap();
    let read = || Hosts::read(&hosts, &crate::config::Person::default());
    let keys = || crate::trust::KnownHosts::read(std::slice::from_ref(&known));
    assert!(read().is_ok() && keys().is_ok());
    for path in [&hosts, &known] {
        fs::set_permissions(path, fs::Permissions::from_mode(0o646)).unwrap();
    }
    for wrong in [read().unwrap_err().wrong, keys().unwrap_err()] {
        assert!(
            wrong.contains("everybody may write to this file"),
            "{wrong}"
        );
    }
    let none = crate::trust::KnownHosts::read(&["/dev/null".into()]);
    assert!(none.is_ok(), "{none:?}");
    fs::remove_dir_all(folder).unwrap();
}
