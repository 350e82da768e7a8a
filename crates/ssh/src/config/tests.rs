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
fn what_is_wrong_is_told_with_its_line() {
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
        ("Match exec true", "Match exec runs a program"),
        ("Match final", "Match final is not known"),
        ("Match host", "Match host has no value"),
        ("Match user a all", "Match all takes no other criteria"),
        ("Match all user a", "Match all takes no other criteria"),
        ("Include ~bob/x", "other users' homes"),
        ("Include a[bc]", "only * and ? are known"),
        ("User a\0b", "there is a NUL"),
        ("Host \"\"", "a host's name is empty"),
        (deep.as_str(), "the keyword has no value"),
    ] {
        let fault = Config::of(text, "config", &person()).unwrap_err().wrong;
        assert!(
            fault.starts_with("config: line ") && fault.contains(wrong),
            "{text:?}: {fault}"
        );
    }
    assert!(Config::of("IgnoreUnknown Foo*,bar\nFooBar 1\nBAR 2", "c", &person()).is_ok());
    let config = Config::of("HostName %p", "c", &person()).unwrap();
    assert!(config.effective("a", &person()).is_err());
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
    assert!(
        read("Include d/*")
            .unwrap_err()
            .contains("two: line 1: prot is not a keyword")
    );
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
