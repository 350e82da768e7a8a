use super::*;
use crate::labels::Labels;

fn rule(name: &str, finds: Finds, action: Action) -> Rule {
    Rule {
        name: name.into(),
        finds,
        requests: true,
        results: true,
        servers: Vec::new(),
        action,
        labels: Labels::default(),
    }
}

fn all_secrets(action: Action) -> Inspection {
    let kinds = secrets::SECRETS.iter().collect();
    Inspection::new(vec![rule("secrets", Finds::Secrets(kinds), action)])
}

fn patterns(name: &str, texts: &[&str], action: Action) -> Rule {
    let all = texts.iter().map(|text| pattern(text).unwrap()).collect();
    rule(name, Finds::Patterns(all), action)
}

/// Built from parts, so that no scanner takes this file for a leak.
fn made(parts: &[&str]) -> String {
    parts.concat()
}

fn marked() -> Vec<String> {
    vec![
        made(&["AKIA", "IOSFODNN7EXAMPLE"].map(|part| part)),
        made(&["ghp_", "0123456789abcdefghijABCDEFGHIJ0123456789"]),
        made(&["github_pat_", "11ABCDEFG0123456789abcdef_x"]),
        made(&["xoxb-", "123456789012-abcdefABCDEF"]),
        made(&["glpat-", "abcdefghij0123456789"]),
        made(&["sk-ant-", "api03-abcdefghijklmnop0123"]),
        made(&["sk_live_", "abcdefghij0123456789"]),
        made(&[
            "eyJhbGciOiJIUzI1NiJ9",
            ".eyJzdWIiOiIxMjM0NTY3ODkwIn0.",
            "dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U",
        ]),
        made(&[
            "-----BEGIN RSA ",
            "PRIVATE KEY-----\nMIIEow\nAAB=\n-----END RSA PRIVATE KEY-----",
        ]),
        made(&[
            "-----BEGIN RSA ",
            "PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,00\n\nMIIEow\n-----END RSA PRIVATE KEY-----",
        ]),
        made(&[
            "-----BEGIN OPENSSH ",
            "PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjEAAAAABG5vbmU",
        ]),
    ]
}

#[test]
fn secrets_that_issuers_mark_are_masked_and_what_stands_around_them_stays() {
    let inspection = all_secrets(Action::Mask);
    for secret in marked() {
        let raw = serde_json::json!({"text": format!("before {secret}; after")}).to_string();
        let (out, finding) = inspection.value(Way::Result, "s", &raw, &[]);
        let finding = finding.unwrap_or_else(|| panic!("{secret}"));
        assert!(!out.contains(&secret[8..24.min(secret.len())]), "{out}");
        assert!(
            out.starts_with(r#"{"text":"before [masked: secrets]"#),
            "{out}"
        );
        assert!(finding.masked() >= 1);
        let (again, none) = inspection.value(Way::Result, "s", &out, &[]);
        assert_eq!((again.as_ref(), none), (out.as_ref(), None));
    }
}

#[test]
fn random_values_beside_a_telling_word_are_secrets_and_plain_words_are_not() {
    let inspection = all_secrets(Action::Mask);
    let secrets = [
        r#"{"api_key":"q8Zr2LmX0vTn5WcY7bKd"}"#,
        r#"{"headers":{"Authorization":["Bearer q8Zr2LmX0vTn5WcY7bKd"]}}"#,
        r#"{"t":"export AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"}"#,
        r#"{"t":"password: \"hG7$kPq92mZx!vBn4\""}"#,
        r#"{"t":"postgres://user:hunter2@db.example/x"}"#,
    ];
    for raw in secrets {
        let (out, finding) = inspection.value(Way::Request, "s", raw, &[]);
        assert!(
            finding.is_some() && out.contains("[masked: secrets]"),
            "{raw}: {out}"
        );
    }
    let plain = [
        r#"{"key":"the-name-of-a-column"}"#,
        r#"{"token":"word","n":12345678901234567890}"#,
        r#"{"t":"the key is under the mat, and the secret ingredient is pepper"}"#,
        r#"{"t":"a commit 3f786850e387550fdab836ed7e6dc881de23001b of main"}"#,
        r#"{"t":"https://example.org:8080/path@v2"}"#,
        r#"{"t":"function tokenize(input_string_with_many_words)"}"#,
        r#"{"path":"/srv/data/2026-11-22/report-final-v2.txt"}"#,
    ];
    for raw in plain {
        let (out, finding) = inspection.value(Way::Request, "s", raw, &[]);
        assert_eq!((out.as_ref(), finding), (raw, None));
    }
}

#[test]
fn escapes_do_not_hide_a_match_and_masks_are_json() {
    let rules = vec![patterns("id", &["ID-[0-9]+\n\"x\""], Action::Mask)];
    let inspection = Inspection::new(rules);
    let raw = r#"{"a":"é ID-12\n\"x\" \\ end","b":[1,"ID-7\n\"x\""]}"#;
    let (out, finding) = inspection.value(Way::Request, "s", raw, &[]);
    assert_eq!(
        out,
        r#"{"a":"é [masked: id] \\ end","b":[1,"[masked: id]"]}"#
    );
    let told = finding.unwrap().told();
    assert_eq!(told.iter().map(AsRef::as_ref).collect::<Vec<_>>(), ["id:2"]);
}

#[test]
fn escapes_of_json_in_a_string_hide_nothing() {
    let rules = vec![patterns("id", &["ID-[0-9]+"], Action::Mask)];
    let inspection = Inspection::new(rules);
    for (raw, left) in [
        (
            r#"{"arguments":"{\"a\":\"I\\u0044\\u002d12\",\"b\":1}"}"#,
            r#"{"arguments":"{\"a\":\"[masked: id]\",\"b\":1}"}"#,
        ),
        (
            r#"["ID\\u002d1 ID-2 \\ID-3","\\\\u0049D-4"]"#,
            r#"["[masked: id] [masked: id] \\[masked: id]","[masked: id]"]"#,
        ),
    ] {
        let (out, finding) = inspection.value(Way::Result, "s", raw, &[]);
        assert_eq!(out, left, "{raw}");
        assert!(finding.is_some());
        let _: serde_json::Value = serde_json::from_str(&out).unwrap();
    }
    let slash = Inspection::new(vec![patterns("key", &["aB/cD"], Action::Deny)]);
    let (_, finding) = slash.value(Way::Result, "s", r#"{"text":"{\"k\":\"aB\\/cD\"}"}"#, &[]);
    assert_eq!(finding.unwrap().denied_by(), Some("key"));
}

#[test]
fn numbers_are_looked_at_and_what_is_apart_is_not() {
    let inspection = Inspection::new(vec![patterns("card", &["4[0-9]{15}"], Action::Mask)]);
    let raw = r#"{"_meta":{"n":4111111111111111},"name":"4111111111111111","arguments":{"_meta":4111111111111111,"x":-1.5e3}}"#;
    let (out, _) = inspection.value(Way::Request, "s", raw, &["_meta", "name"]);
    assert_eq!(
        out,
        r#"{"_meta":{"n":4111111111111111},"name":"4111111111111111","arguments":{"_meta":"[masked: card]","x":-1.5e3}}"#
    );
}

#[test]
fn what_cannot_be_masked_is_denied() {
    let inspection = Inspection::new(vec![patterns("id", &["ID-[0-9]+"], Action::Mask)]);
    let (out, finding) = inspection.value(Way::Request, "s", r#"{"ID-1":"x"}"#, &[]);
    assert_eq!(out, r#"{"ID-1":"x"}"#);
    assert_eq!(finding.unwrap().denied_by(), Some("id"));
}

#[test]
fn each_rule_acts_and_overlapping_masks_become_one() {
    let rules = vec![
        patterns("one", &["ab+c"], Action::Mask),
        patterns("two", &["bbcd"], Action::Mask),
        patterns("no", &["zz"], Action::Deny),
        patterns("who", &["zz", "q"], Action::Ask),
    ];
    let inspection = Inspection::new(rules);
    let (out, finding) = inspection.value(Way::Request, "s", r#"["xabbbcde zz q"]"#, &[]);
    assert_eq!(out, r#"["x[masked: one]e zz q"]"#);
    let finding = finding.unwrap();
    assert_eq!(
        (finding.denied_by(), finding.asked_by()),
        (Some("no"), Some("who"))
    );
    let told = finding.told().join(",");
    assert_eq!(told, "one:1,two:1,no:1,who:2");
}

#[test]
fn rules_look_where_they_are_told_to() {
    let mut only = patterns("x", &["x"], Action::Deny);
    only.requests = false;
    only.servers = vec!["files".to_owned()];
    let inspection = Inspection::new(vec![only]);
    let found = |way, server| inspection.value(way, server, r#""x""#, &[]).1.is_some();
    assert!(found(Way::Result, "files"));
    assert!(!found(Way::Request, "files"));
    assert!(!found(Way::Result, "other"));
    assert!(Inspection::default().is_off());
}

#[test]
fn patterns_that_cannot_be_used_are_refused() {
    let cases = [
        ("(", "is not a regular expression: unclosed group"),
        ("x*", "matches the empty text, so it would match everywhere"),
        ("(?:[a-z]{1000}){1000}", "is not a regular expression: "),
        (
            &"x".repeat(PATTERN_BYTES_MAX + 1),
            "is longer than 1024 bytes",
        ),
    ];
    for (text, expected) in cases {
        let fault = pattern(text).unwrap_err().to_string();
        assert!(fault.starts_with(expected), "{text:.20}: {fault}");
    }
}

proptest::proptest! {
    /// What escapes hide is what another reader of JSON finds there.
    #[test]
    fn escapes_are_undone_as_serde_json_undoes_them(
        letters in proptest::collection::vec(
            (
                proptest::prop_oneof![
                    proptest::prelude::any::<char>(),
                    proptest::sample::select("\"\\/\u{8}\u{c}\n\r\t".chars().collect::<Vec<_>>()),
                ],
                0..3_u8,
            ),
            0..40,
        )
    ) {
        let mut text = String::new();
        for (letter, how) in letters {
            let mut units = [0; 2];
            match how {
                0 => text.extend(letter.encode_utf16(&mut units).iter().map(|u| format!("\\u{u:04x}"))),
                1 => text.extend(letter.encode_utf16(&mut units).iter().map(|u| format!("\\u{u:04X}"))),
                _ if letter == '/' => text.push_str("\\/"),
                _ => {
                    let quoted = serde_json::to_string(&letter).unwrap();
                    text.push_str(&quoted[1..quoted.len() - 1]);
                }
            }
        }
        let expect: String = serde_json::from_str(&format!("\"{text}\"")).unwrap();
        let found = super::escapes::read_once(&text).unwrap_or_else(|| text.clone());
        proptest::prop_assert_eq!(found, expect);
    }
}
