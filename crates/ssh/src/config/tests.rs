use super::*;

fn person() -> Person {
    Person {
        home: "/home/ada".into(),
        user: "ada".into(),
        agent: None,
    }
}

fn effective(text: &str, host: &str) -> Effective {
    let config = Config::of(text, "config", &person()).unwrap();
    config.effective(host, &person()).unwrap()
}

#[test]
fn the_first_value_counts_and_blocks_are_for_their_hosts() {
    let text = "User first\nHost a b*\n Port 2200\n HostName %h.example.com\nHost * !b2\n Port 2201\nMatch host *.example.com user first\n ProxyJump j\n";
    let of = |host| {
        let e = effective(text, host);
        (e.host, e.port, e.user, e.proxy_jump)
    };
    let j = || Some("j".to_owned());
    assert_eq!(of("a"), ("a.example.com".into(), 2200, "first".into(), j()));
    assert_eq!(
        of("b2"),
        ("b2.example.com".into(), 2200, "first".into(), j())
    );
    assert_eq!(of("c"), ("c".into(), 2201, "first".into(), None));
}

#[test]
fn a_line_that_is_not_supported_is_reported_with_its_place() {
    let deep = "x".repeat(10);
    for (text, wrong) in [
        ("Prot 22", "prot is not a keyword of ssh_config"),
        ("\nPort x", "line 2: x is not a port"),
        ("Port 0", "0 is not a port"),
        ("Port 65536", "65536 is not a port"),
        ("Port", "the keyword has no value"),
        ("User a b", "\"b\" is one value too many"),
        ("User \"a", "a quote is not closed"),
        ("\"User\" a", "a line begins with a keyword"),
        ("IdentitiesOnly maybe", "maybe is neither yes nor no"),
        ("Match exec true\nUser a", "Match exec runs a program"),
        ("Match exec true\nUser a", "below it is User"),
        ("Match final\nUser a", "Match final is not evaluated"),
        ("Match tagged x\nUser a", "Match tagged is not evaluated"),
        ("Match strange\nUser a", "Match strange is not known"),
        ("Match host\nUser a", "Match host has no value"),
        (
            "Match user a all\nUser a",
            "Match all takes no other criteria",
        ),
        (
            "Match all user a\nUser a",
            "Match all takes no other criteria",
        ),
        ("Include ~bob/x", "other users' homes"),
        ("Include a$b", "variables are not read here"),
        ("User a\0b", "there is a NUL"),
        ("Host \"\"\nUser a", "a host's name is empty"),
        (deep.as_str(), "the keyword has no value"),
    ] {
        let config = Config::of(text, "config", &person()).unwrap();
        let fault = config.effective("web", &person()).unwrap_err();
        assert!(
            fault.starts_with("config: line ") && fault.contains(wrong),
            "{text:?}: {fault}"
        );
    }
    assert!(Config::of("IgnoreUnknown Foo*,bar\nFooBar 1\nBAR 2", "c", &person()).is_ok());
    let config = Config::of("HostName %p", "c", &person()).unwrap();
    assert!(config.effective("a", &person()).is_err());
    let long = "\n".repeat(LINES_MAX + 1);
    let fault = Config::of(&long, "c", &person()).unwrap_err().wrong;
    assert!(fault.contains("more than 100000 lines"), "{fault}");
}

#[test]
fn a_line_that_is_not_supported_is_for_its_hosts_alone() {
    // The text, a host that it makes unusable, one that it does not.
    for (text, touched, untouched) in [
        ("Host a\nProt 1\nHost b\nPort 1", "a", "b"),
        ("Host a\nPort x\nHost *\nPort 1", "a", "b"),
        ("Host b\nUser u\nMatch exec true\nUser v", "a", "b"),
        ("Match host a exec true\nUser v", "a", "b"),
        ("Match exec true host a\nUser v", "a", "b"),
        ("Match !exec true\nUser v\nHost a", "a", "none"),
        (
            "Host b\nHostName h\nMatch final host h\nHostName i\nHost a\nHostName h",
            "none",
            "b",
        ),
        ("Host a\nInclude ~bob/x", "a", "b"),
        (
            "Host b\nIdentityFile f\nMatch exec true\nIdentityFile f\nMatch host a exec x\nIdentityFile g",
            "a",
            "b",
        ),
    ] {
        let config = Config::of(text, "config", &person()).unwrap();
        for (host, is_usable) in [(touched, false), (untouched, true)] {
            if host != "none" {
                let found = config.effective(host, &person());
                assert_eq!(found.is_ok(), is_usable, "{host}: {text:?}: {found:?}");
            }
        }
    }
}

#[test]
fn files_that_include_each_other_come_to_an_end() {
    let home = std::env::temp_dir().join(format!("ssh-config-{}", std::process::id()));
    let folder = home.join(".ssh");
    std::fs::create_dir_all(folder.join("d")).unwrap();
    let person = Person {
        home: home.clone(),
        ..person()
    };
    std::fs::write(folder.join("loop"), "Include loop\n").unwrap();
    std::fs::write(folder.join("d/one"), "Host one\n Port 1\n").unwrap();
    std::fs::write(folder.join("d/two"), "Prot 1\n").unwrap();
    std::fs::write(folder.join("d/.hidden"), "Prot 1\n").unwrap();
    let read = |text| Config::of(text, "c", &person).map_err(|fault| fault.wrong);
    assert!(read("Include loop").unwrap_err().contains("deep"));
    let config = read("Include d/*").unwrap();
    let fault = config.effective("one", &person).unwrap_err();
    assert!(
        fault.contains("two: line 1: prot is not a keyword"),
        "{fault}"
    );
    let config = read("Include d/[!t]*").unwrap();
    assert_eq!(config.effective("one", &person).unwrap().port, 1);
    assert!(read("Include nowhere d/nowhere*").is_ok());
    let config = read("Host x\n Include d/o?e\n User u\n").unwrap();
    assert_eq!(config.names(), ["x", "one"]);
    // The file's own Host line holds in that file alone, and not where the block does not apply.
    let of = |host: &str| {
        let e = config.effective(host, &person).unwrap();
        (e.port, e.user)
    };
    assert_eq!(of("x"), (22, "u".into()));
    assert_eq!(of("one"), (22, "ada".into()));
    std::fs::remove_dir_all(&home).unwrap();
}

#[test]
fn a_user_is_found_by_number() {
    let text = "# users\nroot:x:0:0:root:/root:/bin/sh\n\n:x:7:7::/:\nada:x:1000:1000::/home/ada:/bin/sh\nada2:x:1000:1::/:\n+::::::\n";
    for (uid, name) in [(0, Some("root")), (1000, Some("ada")), (7, None), (1, None)] {
        assert_eq!(name_in_passwd(text, uid), name, "{uid}");
    }
}
