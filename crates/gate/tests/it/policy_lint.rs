//! Rules that do nothing are named, rules that do something are not; readings agree with judgements.

use gate::facts::{Fact, Facts, ResourceType};
use gate::paths::{PathArgument, Role, meanings};
use gate::policy::lint::{UnknownTools, unknown_tools};
use gate::policy::{Policy, Tri, lint};

fn warned(rules: &str) -> Vec<(String, String)> {
    let text = format!("{{\"version\":\"1\",\"rules\":[{rules}]}}");
    let policy = Policy::load(&text, None, &[]).unwrap();
    lint::warnings(policy.rules(), &["chat/completions"])
        .into_iter()
        .map(|w| (w.id, w.message))
        .collect()
}

fn rule(id: &str, effect: &str, conditions: &str) -> String {
    format!("{{\"id\":\"{id}\",\"effect\":\"{effect}\",\"conditions\":{{{conditions}}}}}")
}

#[test]
fn rules_that_can_never_match_are_named() {
    let cases = [
        (r#""path_pattern":"tmp/**""#, "is not absolute"),
        (r#""source_path":"a.txt""#, "is not absolute"),
        (r#""path_pattern":"/a/*/../b""#, "behind a wildcard"),
        (r#""tool_name":[]"#, "the list of tool_name is empty"),
        (
            r#""tool_name":"x","resource_type":"prompt""#,
            "resource_type",
        ),
        (
            r#""tool_name":"x","mcp_method":"resources/*""#,
            "mcp_method",
        ),
        (
            r#""tool_name":"read_file","operations":["write"]"#,
            "the operation of tool \"read_file\" is read",
        ),
        (
            r#""tool_name":"read_file","side_effects":["fs_write"]"#,
            "side effects",
        ),
    ];
    for (conditions, expect) in cases {
        let found = warned(&rule("r", "deny", conditions));
        assert_eq!(found.len(), 1, "{conditions}: {found:?}");
        assert!(found[0].1.contains(expect), "{conditions}: {found:?}");
    }
}

/// Denies that look as if they held, with what to write instead.
#[test]
fn j20_denies_that_never_hold_are_named_with_what_to_write() {
    let cases = [
        (r#""path_pattern":"*.pem""#, "never matches", "**/*.pem"),
        (
            r#""path_pattern":["/x/**","*/.env"]"#,
            "never matches",
            "**/.env",
        ),
        (
            r#""tool_name":"delete_file ""#,
            "ends with a blank",
            "\"delete_file\"",
        ),
        (
            r#""path_pattern":" /etc/**""#,
            "ends with a blank",
            "\"/etc/**\"",
        ),
        (
            r#""tool_name":"delete_.*""#,
            "regular expression",
            "\"delete_*\"",
        ),
        (
            r#""tool_name":["x",".*delete.*"]"#,
            "regular expression",
            "\"*delete*\"",
        ),
        (r#""tool_name":"^rm$""#, "regular expression", "\"rm\""),
        (
            r#""tool_name":"(rm|mv)""#,
            "regular expression",
            "one for each",
        ),
        (
            r#""path_pattern":"/home/**/.*\\.pem$""#,
            "regular expression",
            "write",
        ),
        (
            r#""tool_name":"delete\u200b_file""#,
            "\\u{200b}",
            "\"delete_file\"",
        ),
        (
            r#""path_pattern":"/etc/\u202e**""#,
            "invisible",
            "\"/etc/**\"",
        ),
        (
            r#""mcp_method":"tool/call""#,
            "is not a method",
            "tools/call",
        ),
        (
            r#""mcp_method":["tools/call","Resources/Read"]"#,
            "is not a method",
            "resources/read",
        ),
        (
            r#""mcp_method":"resource/*""#,
            "is not a method",
            "resources/",
        ),
        (
            r#""mcp_method":["chat/*","chat/completion"]"#,
            "\"chat/completion\" is not a method",
            "chat/completions",
        ),
        (r#""path_pattern":"/etc""#, "nothing in it", "\"/etc/**\""),
        (
            r#""path_pattern":["/a/**","~/.ssh"]"#,
            "nothing in it",
            "~/.ssh/**",
        ),
        (
            r#""source_path":"/data/things/""#,
            "nothing in it",
            "/data/things/**",
        ),
        (
            r#""side_effects":["fs_write"]"#,
            "side effects are not known",
            "hitl rule",
        ),
        (
            r#""tool_name":"*","side_effects":["code_exec"]"#,
            "side effects are not known",
            "hitl rule",
        ),
    ];
    for (conditions, expect, hint) in cases {
        let text = format!(
            "{{\"version\":\"1\",\"rules\":[{}]}}",
            rule("r", "deny", conditions)
        );
        let policy = Policy::load(&text, None, &[]).unwrap();
        let found = lint::warnings(policy.rules(), &["chat/completions"]);
        assert_eq!(found.len(), 1, "{conditions}: {found:?}");
        assert!(found[0].message.contains(expect), "{conditions}: {found:?}");
        assert!(found[0].hint.contains(hint), "{conditions}: {found:?}");
        assert_eq!((found[0].number, found[0].id.as_str()), (1, "r"));
    }
}

#[test]
fn denies_that_hold_are_left_alone() {
    for conditions in [
        r#""path_pattern":["**/*.pem","*"]"#,
        r#""tool_name":"delete_*""#,
        r#""tool_name":"files.*""#,
        r#""path_pattern":"/home/**/.*""#,
        r#""path_pattern":"/etc/passwd""#,
        r#""path_pattern":["/etc","/etc/**"]"#,
        r#""path_pattern":"/home/u/a name with blanks""#,
        r#""tool_name":"löschen""#,
        r#""mcp_method":"resources/*""#,
        r#""mcp_method":"*""#,
        r#""tool_name":"write_file","side_effects":["fs_write"]"#,
    ] {
        assert_eq!(warned(&rule("r", "deny", conditions)), [], "{conditions}");
    }
}

/// One member in the manner of another tool, among good ones.
#[test]
fn members_that_cannot_mean_what_they_seem_to_are_named() {
    let cases = [
        (
            r#""path_pattern":["/x","file:///etc/**"]"#,
            "matches no file",
        ),
        (r#""dest_path":"/a/{b,c}/**""#, "not special"),
        (r#""source_path":"/a/[a-z]*""#, "not special"),
        (r#""tool_name":["x","{read,write}_*"]"#, "not special"),
        (r#""subject_id":"key:ci-*""#, "compared literally"),
        (r#""extension":[".pem",".tar.gz"]"#, "after the last dot"),
        (r#""extension":".p*""#, "after the last dot"),
        (r#""scheme":["ftp","https://"]"#, "is not a scheme"),
    ];
    for (conditions, expect) in cases {
        let found = warned(&rule("r", "deny", conditions));
        assert_eq!(found.len(), 1, "{conditions}: {found:?}");
        assert!(found[0].1.contains(expect), "{conditions}: {found:?}");
    }
    let asked = r#"{"id":"r","effect":"hitl","conditions":{"tool_name":"bash"},"cache_side_effects":["code_exec"]}"#;
    assert!(warned(asked)[0].1.contains("always asked about"));
    for fine in [
        r#""path_pattern":"/app/[id]/{x}/**""#,
        r#""tool_name":"[a-z]*""#,
        r#""scheme":["https","x+y"]"#,
        r#""extension":[".pem",".env"]"#,
        r#""subject_id":"uid:0""#,
    ] {
        assert_eq!(warned(&rule("r", "deny", fine)), [], "{fine}");
    }
}

#[test]
fn an_expression_that_holds_of_no_path_is_named() {
    let all = r#""when":"paths.all(p, p.startsWith('/tmp/'))""#;
    let found = warned(&rule("r", "allow", all));
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].1.contains("without any path"), "{found:?}");
    assert_eq!(warned(&rule("r", "deny", all)), []);
    let sized = r#""when":"size(paths) > 0 && paths.all(p, p.startsWith('/tmp/'))""#;
    assert_eq!(warned(&rule("r", "allow", sized)), []);
}

#[test]
fn rules_that_may_match_are_left_alone() {
    for conditions in [
        r#""path_pattern":"/tmp/**""#,
        r#""path_pattern":["tmp/**","/tmp/**"]"#,
        r#""path_pattern":"~/x/**""#,
        r#""path_pattern":"**/.git/**""#,
        r#""path_pattern":"/a/../b/*.txt""#,
        r#""url_pattern":"https://example.org/**""#,
        r#""tool_name":"x","mcp_method":"tools/*""#,
        r#""tool_name":["read_file","write_file"],"operations":["write"]"#,
        r#""tool_name":"no_such_tool","operations":["unknown"]"#,
    ] {
        assert_eq!(warned(&rule("r", "deny", conditions)), [], "{conditions}");
    }
}

#[test]
fn a_rule_behind_a_stronger_one_is_named() {
    let shadowed = [
        (r#""tool_name":"read_file""#, r#""tool_name":"read_*""#),
        (r#""tool_name":"READ_FILE""#, r#""tool_name":"read_file""#),
        (
            r#""path_pattern":"/tmp/a/*.txt","tool_name":"x""#,
            r#""path_pattern":"/tmp/**""#,
        ),
        (r#""path_pattern":"/tmp""#, r#""path_pattern":"/tmp/**""#),
        (
            r#""path_pattern":"/tmp/a.pem""#,
            r#""path_pattern":"**/*.pem""#,
        ),
        (
            r#""operations":["read"]"#,
            r#""operations":["read","write"]"#,
        ),
        (r#""extension":".pem""#, r#""extension":[".key",".pem"]"#),
    ];
    for (narrow, wide) in shadowed {
        let found = warned(&format!(
            "{},{}",
            rule("narrow", "allow", narrow),
            rule("wide", "deny", wide)
        ));
        assert_eq!(found.len(), 1, "{narrow} / {wide}: {found:?}");
        assert_eq!(found[0].0, "narrow");
        assert!(found[0].1.contains("deny rule \"wide\""), "{found:?}");
    }
    let free = [
        (r#""tool_name":"read_*""#, r#""tool_name":"read_file""#),
        (
            r#""path_pattern":"/tmpx/**""#,
            r#""path_pattern":"/tmp/**""#,
        ),
        (
            r#""path_pattern":"/tmp/../etc""#,
            r#""path_pattern":"/tmp/**""#,
        ),
        (
            r#""tool_name":"x""#,
            r#""tool_name":"x","operations":["read"]"#,
        ),
    ];
    for (narrow, wide) in free {
        let found = warned(&format!(
            "{},{}",
            rule("narrow", "allow", narrow),
            rule("wide", "deny", wide)
        ));
        assert!(
            found.iter().all(|(id, _)| id != "narrow"),
            "{narrow} / {wide}: {found:?}"
        );
    }
    // Equal effects do not shadow, and neither does a weaker one.
    for (first, second) in [("allow", "allow"), ("deny", "allow"), ("hitl", "allow")] {
        let both = format!(
            "{},{}",
            rule("a", first, r#""tool_name":"x""#),
            rule("b", second, r#""tool_name":"*""#)
        );
        assert_eq!(warned(&both), [], "{first} {second}");
    }
}

/// What is shown of a rule is what is counted of it.
#[test]
fn readings_agree_with_the_judgement() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/policies");
    for name in [
        "4-rule.json",
        "50-rule.json",
        "allow-all.json",
        "expressions.json",
    ] {
        let text = std::fs::read_to_string(root.join(name)).unwrap();
        let policy = Policy::load(&text, None, &[]).unwrap();
        for tool in ["read_file", "write_file", "move_path", "delete_file", "x"] {
            for path in ["/tmp/a.txt", "/tmp/k.pem", "/etc/hosts", "~/x", "rel"] {
                let facts = Facts {
                    method: "tools/call".into(),
                    tool_name: Fact::Known(tool.into()),
                    resource_type: Some(ResourceType::Tool),
                    paths: Fact::Known(vec![PathArgument {
                        text: path.into(),
                        role: Role::Source,
                        content: false,
                        meaning: meanings(path, None),
                    }]),
                    ..Facts::default()
                };
                let judgement = policy.judge(&facts);
                let matched: Vec<&str> = judgement.matched_rules().map(|r| r.id.as_str()).collect();
                let mut unsure: Vec<&str> =
                    judgement.unsure_rules().map(|r| r.id.as_str()).collect();
                let readings = policy.readings(&facts);
                let of = |value: Tri| -> Vec<&str> {
                    readings
                        .iter()
                        .filter(|r| r.outcome == value)
                        .map(|r| r.rule.id.as_str())
                        .collect()
                };
                assert_eq!(of(Tri::Yes), matched, "{name} {tool} {path}");
                let mut read_unsure = of(Tri::Unknown);
                unsure.sort_unstable();
                read_unsure.sort_unstable();
                assert_eq!(read_unsure, unsure, "{name} {tool} {path}");
                for reading in &readings {
                    let by_parts = reading
                        .conditions
                        .iter()
                        .map(|(_, value)| *value)
                        .min()
                        .unwrap_or(Tri::Yes);
                    assert_eq!(by_parts, reading.outcome, "{}", reading.rule.id);
                }
            }
        }
    }
}

#[test]
fn an_allow_rule_on_names_and_operations_is_named() {
    let by_name = r#""tool_name":["read_file","get_*"],"operations":["read"]"#;
    let found = warned(&rule("r", "allow", by_name));
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].1.contains("get_*"), "{found:?}");
    for fine in [
        r#""tool_name":["read_file","git_log"],"operations":["read"]"#,
        r#""tool_name":"*","operations":["read"]"#,
        r#""tool_name":"get_*","operations":["read","unknown"]"#,
    ] {
        assert_eq!(warned(&rule("r", "allow", fine)), [], "{fine}");
    }
    assert_eq!(warned(&rule("r", "deny", by_name)), []);
}

#[test]
fn a_rule_on_operations_names_the_tools_that_it_lets_no_call_of_pass() {
    let rules = [
        rule("bare", "allow", r#""operations":["read"]"#),
        rule("all", "allow", r#""operations":["read","unknown"]"#),
        rule(
            "named",
            "allow",
            r#""operations":["read"],"tool_name":"look""#,
        ),
        rule(
            "elsewhere",
            "allow",
            r#""operations":["read"],"backend_id":"docs""#,
        ),
        rule("asks", "hitl", r#""operations":["write"]"#),
    ];
    let text = format!("{{\"rules\":[{}]}}", rules.join(","));
    let policy = Policy::load(&text, None, &[]).unwrap();
    let unknown = |tools: &[&str]| UnknownTools {
        server: "files".into(),
        tools: tools.iter().map(|tool| (*tool).into()).collect(),
    };
    let warnings = unknown_tools(policy.rules(), &[unknown(&["look", "zap"])]);
    let [warning] = &warnings[..] else {
        panic!("{warnings:?}");
    };
    assert_eq!((warning.number, warning.id.as_str()), (1, "bare"));
    assert!(
        warning.message.contains("2 tools of \"files\""),
        "{warning}"
    );
    assert!(warning.message.ends_with("look, zap"), "{warning}");
    assert!(warning.hint.contains("servers.files.tools"), "{warning}");
    let many = unknown_tools(policy.rules(), &[unknown(&["a"; 9])]);
    assert!(many[0].message.ends_with("a, a, a, a, a, ..."), "{many:?}");
    assert_eq!(unknown_tools(policy.rules(), &[]), []);
}
