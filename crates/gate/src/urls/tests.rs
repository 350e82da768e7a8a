use super::host::{CanonicalHost, hosts};
use super::*;

fn canonical(raw: &str) -> Vec<String> {
    hosts(raw).hosts.into_iter().map(|host| host.text).collect()
}

fn read(text: &str) -> CallUrls {
    let mut urls = CallUrls::default();
    urls.add_from(text, "text", false, false);
    urls
}

fn found(text: &str) -> Vec<String> {
    let mut out: Vec<String> = read(text)
        .readings(true)
        .flat_map(UrlReading::texts)
        .collect();
    out.dedup();
    out
}

#[test]
fn every_spelling_of_a_host_has_one_canonical_text() {
    for (spelled, text) in [
        ("127.1", "127.0.0.1"),
        ("0x7f000001", "127.0.0.1"),
        ("2130706433", "127.0.0.1"),
        ("017700000001", "127.0.0.1"),
        ("0", "0.0.0.0"),
        ("%31%32%37.0.0.1", "127.0.0.1"),
        ("１２７。０．０｡１", "127.0.0.1"),
        ("[::ffff:127.0.0.1]", "127.0.0.1"),
        ("[0:0:0:0:0:ffff:7f00:1]", "127.0.0.1"),
        ("[::7f00:1]", "127.0.0.1"),
        ("[64:ff9b::7f00:1]", "127.0.0.1"),
        ("[fe80::1%25eth0]", "[fe80::1]"),
        ("[0:0:0:0:0:0:0:1]", "[::1]"),
        ("LOCALHOST.", "localhost"),
        ("Bücher.Example", "xn--bcher-kva.example"),
        ("xn--bcher-kva.example", "xn--bcher-kva.example"),
        ("ⓔxample.com", "example.com"),
    ] {
        let first = canonical(spelled).first().cloned();
        assert_eq!(first.as_deref(), Some(text), "{spelled}");
        assert!(canonical(text).contains(&text.to_owned()), "{text}");
    }
    // Octal for some readers, decimal for others.
    assert_eq!(canonical("0127.0.0.1"), ["87.0.0.1", "127.0.0.1"]);
    assert_eq!(
        canonical("faß.example"),
        ["xn--fa-hia.example", "fass.example"]
    );
    for odd in ["1.2.3.4.5", "256.1.1.1", "[::1", "[v1.x]", "a b", ""] {
        assert!(hosts(odd).uncertain, "{odd}");
    }
}

#[test]
fn addresses_have_classes() {
    let class = |raw: &str| {
        let found: Vec<CanonicalHost> = hosts(raw).hosts;
        found.first().map(|host| host.class)
    };
    for (raw, expect) in [
        ("127.8.8.8", AddressClass::Loopback),
        ("0", AddressClass::Loopback),
        ("[::]", AddressClass::Loopback),
        ("app.localhost", AddressClass::Loopback),
        ("ip6-loopback", AddressClass::Loopback),
        ("10.1", AddressClass::Private),
        ("100.64.0.1", AddressClass::Private),
        ("224.0.0.1", AddressClass::Private),
        ("[fd12::1]", AddressClass::Private),
        ("169.254.1.1", AddressClass::LinkLocal),
        ("[fe80::1]", AddressClass::LinkLocal),
        ("2852039166", AddressClass::Metadata),
        ("[fd00:ec2::254]", AddressClass::Metadata),
        ("Metadata.Google.Internal.", AddressClass::Metadata),
        ("93.184.216.34", AddressClass::Public),
        ("[2606:4700::1111]", AddressClass::Public),
        ("example.org", AddressClass::Name),
        ("127.0.0.1.nip.io", AddressClass::Name),
    ] {
        assert_eq!(class(raw), Some(expect), "{raw}");
    }
}

#[test]
fn readers_that_disagree_make_several_readings() {
    let hosts = |text: &str| {
        let urls = read(text);
        let mut hosts: Vec<String> = urls.readings(true).map(|r| r.host.clone()).collect();
        hosts.sort();
        hosts.dedup();
        hosts
    };
    for (text, expect) in [
        (
            r"http://good.example\@evil.example/",
            ["evil.example", "good.example"],
        ),
        (
            "http://good.example#@evil.example/",
            ["evil.example", "good.example"],
        ),
        (
            "http://x@evil.example@good.example/",
            ["evil.example", "good.example"],
        ),
        ("http://0127.0.0.1/", ["127.0.0.1", "87.0.0.1"]),
        (
            "see http://a.example/, then https://b.example",
            ["a.example", "b.example"],
        ),
        (
            "https://a.example/?next=http://b.example/",
            ["a.example", "b.example"],
        ),
        (
            r"http:\\a.example\x http:b.example/y",
            ["a.example", "b.example"],
        ),
    ] {
        let found = hosts(text);
        for host in expect {
            assert!(found.iter().any(|known| known == host), "{text}: {found:?}");
        }
    }
}

#[test]
fn strings_without_urls_have_none() {
    for text in [
        "",
        "C:\\Users\\x",
        "note: http: is a scheme",
        "a::b::c",
        "12:30",
        "{\"key\": \"value\"}",
        "https://",
        "urn:isbn:1",
    ] {
        assert_eq!(found(text), Vec::<String>::new(), "{text}");
    }
}

#[test]
fn an_address_without_a_scheme_counts_under_names_that_say_so() {
    let named = |text: &str, key: &str| {
        let mut urls = CallUrls::default();
        urls.add_from(text, key, false, false);
        urls.readings(true)
            .flat_map(UrlReading::texts)
            .collect::<Vec<_>>()
    };
    let both = ["http://127.0.0.1:8080/x", "https://127.0.0.1:8080/x"];
    assert_eq!(named("127.1:8080/x", "target_url"), both);
    assert_eq!(named("//127.1:8080/x", "href"), both);
    assert_eq!(named("127.1:8080/x", "text"), Vec::<String>::new());
    assert_eq!(named("/etc/passwd", "uri"), Vec::<String>::new());
    assert_eq!(named("note:x", "uri"), Vec::<String>::new());
}

#[test]
fn more_urls_than_are_read_are_not_taken_for_none() {
    let many: String = (0..600).map(|n| format!("http://h{n}.example/ ")).collect();
    assert!(read(&many).is_unread());
    let long = "http://".repeat(400_000);
    assert!(read(&long).is_unread());
    assert!(read(&long).list().len() < 600);
}

#[test]
fn neither_user_nor_password_is_kept() {
    let urls = read("https://user:hunter2@h.example/x?token=hunter2#hunter2");
    assert!(urls.readings(true).all(|reading| reading.has_userinfo));
    assert!(!format!("{urls:?}").contains("hunter2"));
}
