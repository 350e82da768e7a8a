use super::*;

#[test]
fn urls_are_checked() {
    let cases = [
        ("http://127.0.0.1:3000/mcp", Ok("http://127.0.0.1:3000/mcp")),
        ("http://[::1]:3000/mcp?key=s#x", Ok("http://[::1]:3000/mcp")),
        ("HTTPS://Example.org", Ok("https://Example.org/")),
        ("http://localhost", Ok("http://localhost/")),
        ("http://example.org/", Err(TargetFault::InTheClear)),
        (
            "http://127.0.0.1.example.org/",
            Err(TargetFault::InTheClear),
        ),
        ("http://0.0.0.0/", Err(TargetFault::InTheClear)),
        ("https://u:p@example.org/", Err(TargetFault::UserInfo)),
        ("ftp://example.org/", Err(TargetFault::Scheme)),
        ("example.org/mcp", Err(TargetFault::NotAUrl)),
        ("/mcp", Err(TargetFault::NotAUrl)),
        ("https://", Err(TargetFault::NotAUrl)),
        ("https://example.org:99999/", Err(TargetFault::NotAUrl)),
        ("http://exa mple/", Err(TargetFault::NotAUrl)),
        ("", Err(TargetFault::NotAUrl)),
    ];
    for (url, expect) in cases {
        let shown = Target::parse(url, false).map(|target| target.to_string());
        assert_eq!(shown.as_deref().map_err(|e| *e), expect, "{url}");
    }
    assert!(Target::parse("http://example.org/", true).is_ok());
}

#[test]
fn ports_and_hosts_are_taken_apart() {
    let cases = [
        ("https://a.example/x", "a.example", 443),
        ("http://[::1]/", "::1", 80),
        ("http://[::1]:81/", "::1", 81),
        ("http://127.0.0.1:8080", "127.0.0.1", 8080),
    ];
    for (url, host, port) in cases {
        let target = Target::parse(url, false).unwrap();
        assert_eq!((target.host.as_str(), target.port), (host, port));
    }
}
