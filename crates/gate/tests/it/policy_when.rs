//! `when` in a policy: where a bad one stands, and which side what is unknown falls on.

use gate::facts::{Fact, Facts, ResourceType};
use gate::policy::{Effect, Policy};

fn facts(tool: &str, paths: Fact<Vec<gate::paths::PathArgument>>) -> Facts {
    Facts {
        method: "tools/call".into(),
        tool_name: Fact::Known(tool.into()),
        backend_id: "files".into(),
        resource_type: Some(ResourceType::Tool),
        subject_id: "u".into(),
        paths,
        ..Facts::default()
    }
}

#[test]
fn a_bad_one_is_refused_with_line_and_column() {
    let cases = [
        (
            "{\"rules\":[\n {\"effect\":\"deny\",\"conditions\":{\"when\":\"tool_nam == 'x'\"}}]}",
            "line 2, column 41: unknown fact \"tool_nam\" in when\n  hint: did you mean \"tool_name\"?",
        ),
        (
            r#"{"rules":[{"effect":"deny","conditions":{"when":"\"\u00e9\ud83d\ude00\" == pth"}}]}"#,
            "line 1, column 76: unknown fact \"pth\" in when\n  hint: did you mean \"path\"?",
        ),
        (
            r#"{"rules":[{"effect":"deny","conditions":{"when":"path =="}}]}"#,
            "line 1, column 57: bad when: ",
        ),
        (
            r#"{"rules":[{"effect":"deny","conditions":{"when":["true"]}}]}"#,
            "line 1, column 49: ",
        ),
        (
            r#"{"rules":[{"effect":"deny","when":"true","conditions":{"tool_name":"*"}}]}"#,
            "line 1, column 35: when is a condition; put it into \"conditions\"\n  hint: put it into",
        ),
    ];
    for (policy, says) in cases {
        let error = Policy::load(policy, None, &[])
            .expect_err(policy)
            .to_string();
        assert!(error.starts_with(says), "{policy}\n{error}");
    }
}

#[test]
fn what_is_unknown_falls_on_the_safe_side() {
    // Throws for every call: there is no URI.
    let policy = |effect: &str, when: &str| {
        let text = format!(
            r#"{{"rules":[{{"id":"all","effect":"allow","conditions":{{"tool_name":"*"}}}},
                {{"id":"when","effect":"{effect}","conditions":{{"tool_name":"read","when":"{when}"}}}}]}}"#
        );
        Policy::load(&text, None, &[]).unwrap()
    };
    let known = facts("read", Fact::Known(Vec::new()));
    let listed = facts("read", Fact::Unknown);
    let throws = "uri.startsWith('x')";
    let needs_paths = "paths.exists(p, p == '/x')";
    let cases = [
        ("deny", throws, Effect::Deny, "when", false),
        ("hitl", throws, Effect::Hitl, "when", true),
        ("allow", throws, Effect::Allow, "all", true),
        ("deny", needs_paths, Effect::Allow, "all", true),
        ("deny", "tool_name == 'read'", Effect::Deny, "when", false),
    ];
    for (effect, when, decided, rule, shown) in cases {
        let policy = policy(effect, when);
        let judgement = policy.judge(&known);
        let verdict = judgement.verdict();
        assert_eq!(
            (verdict.effect, verdict.final_rule),
            (decided, rule),
            "{effect} {when}"
        );
        // In a listing a deny rule that only may match hides nothing.
        let shown = shown || when == throws;
        assert_eq!(
            policy.judge(&listed).may_be_listed(),
            shown,
            "{effect} {when}"
        );
        let other = facts("other", Fact::Known(Vec::new()));
        assert_eq!(policy.judge(&other).verdict().effect, Effect::Allow);
    }
}

#[test]
fn an_allow_rule_that_cannot_be_judged_allows_nothing() {
    let text =
        r#"{"rules":[{"id":"when","effect":"allow","conditions":{"when":"size(path) > 0 || 1"}}]}"#;
    let policy = Policy::load(text, None, &[]).unwrap();
    let call = facts("read", Fact::Known(Vec::new()));
    assert_eq!(policy.judge(&call).verdict().effect, Effect::Deny);
    assert!(policy.judge(&call).may_be_listed());
}
