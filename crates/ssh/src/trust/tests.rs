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
    let names = FiledNames::new("Web", 22);
    assert_eq!((names.full.as_str(), names.without_port), ("web", None));
    let names = FiledNames::new("Web", 2222);
    assert_eq!(names.full, "[web]:2222");
    assert_eq!(names.without_port.as_deref(), Some("web"));
}

#[test]
fn a_line_without_a_port_counts_for_its_own_key() {
    let line = |names: &str, blob: &str| format!("{names} ssh-ed25519 {blob}\n");
    let names = FiledNames::new("web", 2222);
    for (text, expected) in [
        (line("web", BLOB), Verdict::Known),
        (line("web", OTHER), Verdict::Unknown),
        (
            line("[web]:2222", OTHER) + &line("web", BLOB),
            Verdict::Changed,
        ),
        (format!("@revoked {}", line("web", BLOB)), Verdict::Revoked),
    ] {
        let known = KnownHosts {
            lines: lines(&text).collect(),
        };
        let blob = STANDARD.decode(BLOB).unwrap();
        let verdict = known.judge_host(&names, "ssh-ed25519", &blob);
        assert_eq!(verdict, expected, "{text}");
    }
}
