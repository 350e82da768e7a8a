use super::*;

const BLOB: &str = "AAAA";
const OTHER: &str = "BBBB";

fn judged(text: &str, host: &str) -> Verdict {
    let known = KnownHosts {
        lines: lines(text).collect(),
    };
    known.judge(host, "ssh-ed25519", &STANDARD.decode(BLOB).unwrap())
}

#[test]
fn lines_are_read_as_openssh_reads_them() {
    let line = |names: &str, blob: &str| format!("{names} ssh-ed25519 {blob} comment\n");
    for (text, host, expected) in [
        (line("web", BLOB), "web", Verdict::Known),
        (line("WEB", BLOB), "web", Verdict::Known),
        (line("web,10.0.0.1", BLOB), "10.0.0.1", Verdict::Known),
        (line("*.example", BLOB), "a.example", Verdict::Known),
        (line("w?b", BLOB), "web", Verdict::Known),
        (line("*,!web", BLOB), "web", Verdict::Unknown),
        (line("[web]:2222", BLOB), "web", Verdict::Unknown),
        (line("[web]:2222", BLOB), "[web]:2222", Verdict::Known),
        (line("web", OTHER), "web", Verdict::Changed),
        (
            line("web", OTHER) + &line("web", BLOB),
            "web",
            Verdict::Known,
        ),
        (
            format!("@revoked {}{}", line("*", BLOB), line("web", BLOB)),
            "web",
            Verdict::Revoked,
        ),
        (
            format!("@cert-authority {}", line("*", BLOB)),
            "web",
            Verdict::Unknown,
        ),
        (
            format!("@other {}", line("web", BLOB)),
            "web",
            Verdict::Unknown,
        ),
        (
            "# web ssh-ed25519 AAAA\n\nweb\nweb ssh-ed25519 !!\n".into(),
            "web",
            Verdict::Unknown,
        ),
        ("web ssh-rsa BBBB\n".into(), "web", Verdict::Changed),
        (line("|1|AAAA|AAAA", BLOB), "web", Verdict::Unknown),
        (line("|1|AAAA", BLOB), "web", Verdict::Unknown),
    ] {
        assert_eq!(judged(&text, host), expected, "{text} {host}");
    }
    assert_eq!(filed_as("Web", 22), "web");
    assert_eq!(filed_as("Web", 2222), "[web]:2222");
}
