use std::path::Path;

use super::super::read::settings;
use super::super::section::Reader;

/// What is wrong with an `inspect:` of these rules.
fn fault(rules: &str) -> String {
    let reader = Reader {
        variable: &|_| None,
        base: Path::new("/etc"),
        home: None,
    };
    let text = format!("inspect: {{ {rules} }}");
    settings(&text, &reader).map_or_else(|fault| fault.to_string(), |_| "taken".to_owned())
}

#[test]
fn rules_that_cannot_be_are_refused_with_what_to_write() {
    let cases = [
        ("a: { secrets: all, action: mask }", "taken"),
        (
            r#"a: { patterns: ["\\bID-\\d+"], action: label, labels: [untrusted] }"#,
            "taken",
        ),
        (
            r#"a: { checker: { url: "http://127.0.0.1:7070/", secret: "0123456789abcdef" }, action: mask }"#,
            "taken",
        ),
        (
            r#"a: { checker: { url: "http://127.0.0.1:7070/" }, action: mask }"#,
            "inspect.a.checker has no secret\n  hint: write secret: ${NAME}: questions are signed with it (HMAC-SHA-256)",
        ),
        (
            r#"a: { checker: { secret: "0123456789abcdef" }, action: mask }"#,
            "inspect.a.checker has no url\n  hint: write url: http://127.0.0.1:PORT/PATH, or https:// to another machine",
        ),
        (
            r#"a: { checker: { url: "http://127.0.0.1:7070/", secret: short }, action: mask }"#,
            "inspect.a.checker.secret is shorter than 16 bytes",
        ),
        (
            r#"a: { secrets: all, checker: { url: "http://127.0.0.1:7070/", secret: "0123456789abcdef" }, action: mask }"#,
            "inspect.a.checker cannot be combined with secrets in one rule\n  hint: write two rules",
        ),
        (
            "a: { action: mask }",
            "inspect.a does not say what to look for\n  hint: write secrets: all, patterns: [\"REGULAR EXPRESSION\"], or checker: { url: URL, secret: ${NAME} }",
        ),
        (
            "a: { secrets: all }",
            "inspect.a does not say what to do\n  hint: write action: mask, deny, ask or label",
        ),
        (
            "a: { secrets: all, action: hide }",
            "inspect.a.action: \"hide\" is not one of mask, deny, ask, label",
        ),
        (
            "a: { secrets: [githb], action: mask }",
            "inspect.a.secrets holds \"githb\", which is not a kind of secret\n  hint: did you mean \"github\"?",
        ),
        (
            "a: { secrets: [], action: mask }",
            "inspect.a.secrets is empty\n  hint: write all, or name kinds",
        ),
        (
            "a: { patterns: [\"(\"], action: mask }",
            "inspect.a.patterns holds \"(\", which is not a regular expression: unclosed group",
        ),
        (
            "a: { patterns: [\"x*\"], action: mask }",
            "inspect.a.patterns holds \"x*\", which matches the empty text, so it would match everywhere",
        ),
        (
            "a: { patterns: [x], secrets: all, action: mask }",
            "inspect.a.patterns cannot be combined with secrets in one rule\n  hint: write two rules",
        ),
        (
            "a: { secrets: all, action: label }",
            "inspect.a.action is label, but no labels are given\n  hint: write labels: [untrusted], [private] or both",
        ),
        (
            "a: { secrets: all, action: mask, labels: [secret] }",
            "inspect.a.labels holds \"secret\", which is not a label\n  hint: labels are untrusted and private",
        ),
        (
            "a: { secrets: all, action: ask }",
            "inspect.a.action is ask, but results cannot wait for a person yet\n  hint: write on: requests beside it, or another action",
        ),
        (
            "a: { secrets: all, action: mask } }\nservers: { s: { command: x, tool_labels: { t: secret } }",
            "tool_labels: \"t\" is \"secret\", which is not a label\n  hint: write untrusted, private, untrusted+private or none",
        ),
        (
            "\"a b\": { secrets: all, action: mask }",
            "\"a b\" is not a valid rule name\n  hint: write letters, digits, _ and -, at most 64: the name is shown in place of the masked text",
        ),
    ];
    for (rules, expected) in cases {
        let said = fault(rules);
        let said = said.split_once(": ").filter(|_| said.starts_with("line"));
        let said = said.map_or_else(|| fault(rules), |(_, said)| said.to_owned());
        assert_eq!(said, expected, "{rules}");
    }
}
