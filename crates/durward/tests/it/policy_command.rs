//! `durward policy init | check | show | explain | test` as a person calls them.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use crate::support::decisions::Table;
use crate::support::world::World;
use gate::policy::starter::STARTER_POLICY;
use serde_json::{Value, json};

/// Exit code, standard output, standard error.
fn run(world: &World, args: &[&str]) -> (i32, String, String) {
    let args: Vec<String> = args.iter().map(|arg| world.fill(arg)).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let output = world.durward(&[&["policy"], args.as_slice()].concat());
    (
        output.status.code().unwrap(),
        String::from_utf8(output.stdout).unwrap(),
        String::from_utf8(output.stderr).unwrap(),
    )
}

fn four_rules() -> World {
    World::new(Table::policy("4-rule").as_deref())
}

#[test]
fn init_writes_the_starter_policy_and_never_over_another() {
    let world = World::new(None);
    let file = world.tmp.join("rules.json");
    assert_eq!(run(&world, &["init", "rules.json"]).0, 0);
    assert_eq!(fs::read_to_string(&file).unwrap(), STARTER_POLICY);
    let mode = fs::metadata(&file).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode, 0o600);
    fs::write(&file, "mine").unwrap();
    let (code, _, said) = run(&world, &["init", "rules.json"]);
    assert_eq!(code, 16);
    assert!(said.contains("--force"), "{said}");
    assert_eq!(fs::read_to_string(&file).unwrap(), "mine");
    assert_eq!(run(&world, &["init", "rules.json", "--force"]).0, 0);
    assert_eq!(fs::read_to_string(&file).unwrap(), STARTER_POLICY);
    assert_eq!(run(&world, &["init", "no/such/folder/x.json"]).0, 16);
    let (code, said, _) = run(&world, &["check", "rules.json", "--strict"]);
    assert_eq!(code, 0, "{said}");
}

#[test]
fn check_points_at_the_fault() {
    let world = World::new(None);
    let cases = [
        (
            "{\n  \"rules\": [\n    {\"efect\": \"deny\"}\n  ]\n}",
            "line 3, column 6",
            "effect",
        ),
        ("{\"version\": \"2\"}", "line 1, column 13", "hint"),
        ("{", "line 1, column", "EOF"),
        ("\u{feff}{}", "line 1, column 1", ""),
        ("", "the file is empty", ""),
    ];
    for (text, place, more) in cases {
        fs::write(world.tmp.join("p.json"), text).unwrap();
        let (code, out, err) = run(&world, &["check", "p.json"]);
        assert_eq!((code, out.as_str()), (16, ""), "{text}");
        assert!(err.contains(place) && err.contains(more), "{text}: {err}");
        assert!(err.contains("p.json"), "{err}");
    }
    fs::write(world.tmp.join("p.json"), b"{\"a\xff\":1}").unwrap();
    assert!(
        run(&world, &["check", "p.json"])
            .2
            .contains("byte 3 is not UTF-8")
    );
    assert_eq!(run(&world, &["check", "missing.json"]).0, 16);
}

#[test]
fn check_warns_of_rules_that_do_nothing() {
    let world = World::new(Some(
        r#"{"rules":[
            {"id":"relative","effect":"deny","conditions":{"path_pattern":"tmp/**"}},
            {"id":"never","effect":"allow","conditions":{"tool_name":"read_file"}},
            {"id":"no-reads","effect":"deny","conditions":{"tool_name":"read_*"}},
            {"id":"fine","effect":"hitl","conditions":{"tool_name":"write_*"}}
        ]}"#,
    ));
    let (code, out, _) = run(&world, &["check", "{POLICY}"]);
    assert_eq!(code, 0);
    assert!(
        out.contains("rule 1 \"relative\": can never match"),
        "{out}"
    );
    assert!(out.contains("rule 2 \"never\": never decides"), "{out}");
    assert!(out.contains("4 rules, 2 warnings"), "{out}");
    let (code, out, _) = run(&world, &["check", "--json", "{POLICY}"]);
    let found: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!((code, &found["rules"]), (0, &serde_json::json!(4)), "{out}");
    let first = &found["warnings"][0];
    assert_eq!(
        (&first["rule"], &first["id"]),
        (&1.into(), &"relative".into())
    );
    assert!(
        first["hint"].is_string() && first["message"].is_string(),
        "{out}"
    );
    assert_eq!(run(&world, &["check", "--strict", "{POLICY}"]).0, 16);
    for name in ["4-rule", "50-rule", "allow-all"] {
        let world = World::new(Table::policy(name).as_deref());
        let (code, out, _) = run(&world, &["check", "{POLICY}"]);
        assert_eq!(code, 0);
        let idle = out.matches("warning: ").count();
        // The fifty rules hold one that matches nobody on purpose, and four that deny side effects.
        let expect = if name == "50-rule" { 5 } else { 0 };
        assert_eq!(idle, expect, "{name}: {out}");
    }
}

#[test]
fn check_knows_the_methods_of_model_apis() {
    let check = |method: &str| {
        let rules =
            json!({"rules": [{"id": "x", "effect": "deny", "conditions": {"mcp_method": method}}]});
        let world = World::new(Some(&rules.to_string()));
        run(&world, &["check", "{POLICY}"]).1
    };
    for known in ["chat/completions", "messages", "images/*", "tools/call"] {
        assert!(check(known).contains("0 warnings"), "{known}");
    }
    let out = check("chat/completion");
    assert!(out.contains("did you mean \"chat/completions\"?"), "{out}");
}

/// What is not given is what applies: the policy that the configuration names.
#[test]
fn without_a_file_it_is_about_the_configuration() {
    let world = World::new(None);
    let rule = |id: &str| json!({"rules": [{"id": id, "effect": "deny", "conditions": {"tool_name": "read_*"}}]});
    fs::write(world.config().join("mine.json"), rule("mine").to_string()).unwrap();
    fs::write(world.config().join("its.json"), rule("its").to_string()).unwrap();
    let text = "servers:\n  other: { command: x, policy: its.json }\npolicy: mine.json\n";
    fs::write(world.config().join("durward.yaml"), text).unwrap();
    let call = ["explain", "--tool", "read_file", "--path", "/tmp/a"];
    let (code, out, err) = run(&world, &call);
    assert_eq!(code, 0, "{err}");
    assert!(out.contains("rule \"mine\""), "{out}");
    assert!(
        err.contains("the configuration") && err.contains("mine.json"),
        "{err}"
    );
    let (_, out, _) = run(&world, &[&call[..], &["--backend", "other"]].concat());
    assert!(out.contains("rule \"its\""), "{out}");
    let (_, out, _) = run(&world, &["show"]);
    assert!(out.contains("mine"), "{out}");
    let (code, out, _) = run(&world, &["check"]);
    assert_eq!(code, 0);
    assert!(out.contains("mine.json: 1 rule, 0 warnings"), "{out}");
    fs::write(world.config().join("durward.yaml"), "").unwrap();
    let (_, _, err) = run(&world, &call);
    assert!(err.contains("the starter policy"), "{err}");
}

#[test]
fn show_lists_rules_in_the_order_in_which_they_decide() {
    let world = four_rules();
    let (code, out, _) = run(&world, &["show", "{POLICY}"]);
    assert_eq!(code, 0);
    let effects: Vec<&str> = out
        .lines()
        .skip(1)
        .map(|line| line.split_whitespace().nth(1).unwrap())
        .collect();
    assert_eq!(
        effects,
        ["deny", "deny", "hitl", "hitl", "allow", "allow", "deny"],
        "{out}"
    );
    let (_, out, _) = run(&world, &["show", "{POLICY}", "--json"]);
    let shown: Value = serde_json::from_str(&out).unwrap();
    let written: Value =
        serde_json::from_str(&fs::read_to_string(world.policy.as_ref().unwrap()).unwrap()).unwrap();
    let rules = shown["rules"].as_array().unwrap();
    assert_eq!(rules.len(), written["rules"].as_array().unwrap().len());
    for rule in rules {
        let number = usize::try_from(rule["number"].as_u64().unwrap()).unwrap();
        assert_eq!(rule["id"], written["rules"][number - 1]["id"]);
    }
    let (code, out, err) = run(&world, &["show"]);
    assert_eq!(code, 0);
    assert!(err.contains("starter policy") && out.contains("starter-allow-reads"));
}

/// What explain says is what the tables say that the binary does.
#[test]
fn explain_agrees_with_the_tables() {
    let table = Table::read("seed10");
    for policy in ["4-rule", "50-rule"] {
        let world = World::new(Table::policy(policy).as_deref());
        // Every seventh keeps the run short; the whole table is held against the running binary elsewhere.
        for case in table.cases(policy, &world).iter().step_by(7) {
            let arguments = case.arguments.to_string();
            let line = [
                "explain", "--policy", "{POLICY}", "--tool", &case.tool, "--args", &arguments,
                "--json",
            ];
            let (code, out, err) = run(&world, &line);
            assert_eq!(code, 0, "{err}");
            let said: Value = serde_json::from_str(&out).unwrap();
            assert_eq!(
                said["decision"],
                case.decision.label(),
                "{policy} {} {arguments}",
                case.tool
            );
            if let Some(rule) = &case.rule {
                assert_eq!(said["final_rule"], rule.as_str(), "{arguments}");
            }
        }
    }
}

#[test]
fn explain_says_which_condition_fails_and_where_a_path_leads() {
    let world = four_rules();
    let policy = "{POLICY}";
    let line = [
        "explain",
        "--policy",
        policy,
        "--tool",
        "read_file",
        "--path",
        "{TMP}/link-to-pem.txt",
    ];
    let (code, out, _) = run(&world, &line);
    assert_eq!(code, 0);
    let pem = world.fill("{TMP}/k.pem");
    for part in [
        "DENY",
        "<- decides",
        pem.as_str(),
        "tool_name: ",
        "extension: ",
    ] {
        assert!(out.contains(part), "{part}: {out}");
    }
    let json = [&line[..], &["--json"]].concat();
    let said: Value = serde_json::from_str(&run(&world, &json).1).unwrap();
    assert_eq!(
        said["paths"][0]["places"],
        json!([world.fill("{TMP}/link-to-pem.txt"), pem])
    );
    assert_eq!(said["listed"], true);
    let deciding: Vec<&Value> = said["rules"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|rule| rule["id"] == said["final_rule"])
        .collect();
    assert_eq!(deciding[0]["outcome"], "yes");
    let no = said["rules"]
        .as_array()
        .unwrap()
        .iter()
        .find(|rule| rule["outcome"] == "no")
        .unwrap();
    let conditions = no["conditions"].as_array().unwrap();
    assert!(
        conditions
            .iter()
            .any(|condition| condition["outcome"] == "no")
    );
}

#[test]
fn explain_takes_other_methods_and_refuses_what_it_cannot_answer() {
    let world = four_rules();
    let explain = |args: &[&str]| {
        run(
            &world,
            &[&["explain", "--policy", "{POLICY}"], args].concat(),
        )
    };
    for (args, code, part) in [
        (
            &["--method", "sampling/createMessage"][..],
            0,
            "no rule allows it",
        ),
        (
            &["--method", "resources/read", "--uri", "file:///etc/hosts"],
            0,
            "/etc/hosts",
        ),
        (
            &["--tool", "read_file", "--path", "{STATE}/x"],
            0,
            "protected path",
        ),
        (
            &["--tool", "read_file", "--path", "~other/x"],
            0,
            "cannot be resolved",
        ),
        (&["--method", "tools/list"], 2, "ask about the entry"),
        (&["--method", "ping"], 2, "without being judged"),
        (&[], 2, "--tool"),
        (&["--method", "resources/read"], 2, "--uri"),
        (&["--tool", "x", "--args", "[1]"], 2, "not a JSON object"),
        (&["--tool", "x", "--args", "{"], 2, "not JSON"),
        (
            &["--tool", "x", "--args", "{\"a\":1,\"a\":2}"],
            2,
            "cannot be used",
        ),
    ] {
        let (is, out, err) = explain(args);
        assert_eq!(is, code, "{args:?}: {out}{err}");
        assert!(format!("{out}{err}").contains(part), "{args:?}: {out}{err}");
    }
    // A name that would drive the terminal is shown, not obeyed.
    assert!(!explain(&["--tool", "x\u{1b}[2J"]).1.contains('\u{1b}'));
}

#[test]
fn test_prints_every_failure() {
    let world = four_rules();
    let file = world.tmp.join("cases.json");
    let cases = json!([
        { "tool": "read_file", "args": { "path": "/tmp/a.txt" }, "expect": "allow" },
        { "tool": "read_file", "path": "/tmp/k.pem", "expect": "deny", "rule": "deny-sensitive-extensions" },
        { "tool": "write_file", "path": "/tmp/a.txt", "expect": "hitl" },
    ]);
    fs::write(&file, cases.to_string()).unwrap();
    let line = ["test", "cases.json", "--policy", "{POLICY}"];
    let (code, out, _) = run(&world, &line);
    assert_eq!((code, out.as_str()), (0, "3 cases: 3 as expected, 0 not\n"));
    let cases = json!([
        { "tool": "read_file", "path": "/tmp/a.txt", "expect": "deny", "note": "private" },
        { "tool": "read_file", "path": "/tmp/k.pem", "expect": "deny", "rule": "other" },
        { "method": "ping", "expect": "allow" },
        { "tool": "x", "path": "/a", "args": {}, "expect": "deny" },
        { "tool": "read_file", "path": "/etc/hosts", "expect": "deny", "rule": "default" },
    ]);
    fs::write(&file, cases.to_string()).unwrap();
    let (code, out, _) = run(&world, &line);
    assert_eq!(code, 1);
    for part in [
        "case 1 (private): read_file /tmp/a.txt\n  expected deny\n  is       allow, because: rule",
        "case 2: read_file /tmp/k.pem\n  expected deny by rule \"other\"",
        "case 3: ping",
        "case 4: x /a {}\n",
        "5 cases: 1 as expected, 4 not",
    ] {
        assert!(out.contains(part), "{part}\n{out}");
    }
    let (_, out, _) = run(&world, &[&line[..], &["--json"]].concat());
    let passed: Vec<bool> = out
        .lines()
        .map(|line| {
            serde_json::from_str::<Value>(line).unwrap()["passed"]
                .as_bool()
                .unwrap()
        })
        .collect();
    assert_eq!(passed, [false, false, false, false, true]);
}

#[test]
fn a_file_of_cases_that_cannot_be_used_is_refused() {
    let world = four_rules();
    for (text, part) in [
        ("[]", "no case"),
        ("{}", "line 1 column"),
        ("[{\"tool\":\"x\"}]", "expect"),
        ("[{\"tool\":\"x\",\"expect\":\"maybe\"}]", "maybe"),
        ("[{\"tol\":\"x\",\"expect\":\"deny\"}]", "tol"),
    ] {
        fs::write(world.tmp.join("cases.json"), text).unwrap();
        let (code, _, err) = run(&world, &["test", "cases.json", "--policy", "{POLICY}"]);
        assert_eq!(code, 16, "{text}");
        assert!(err.contains(part), "{text}: {err}");
    }
}
