//! The tables of the policy: what the four-rule policy says of each call, what a listing shows, and
//! the traps of the originals.

use gate::facts::{Fact, FactId, Facts, ResourceType};
use gate::paths::view::Link;
use gate::paths::{
    PathArgument, PathView, Role, is_content_key, looks_like_path, meanings, role_of_key,
};
use gate::policy::{Effect, NAMED_MAX, Policy};

struct Disk;

impl PathView for Disk {
    fn home(&self) -> Option<String> {
        Some("/home/u".into())
    }
    fn current_dir(&self) -> Option<String> {
        Some("/srv".into())
    }
    fn read_link(&self, path: &str) -> Link {
        match path {
            "/tmp/link" => Link::To("/etc".into()),
            "/data" => Link::To("/mnt/disk1".into()),
            _ => Link::NotALink,
        }
    }
}

const FOUR: &str = r#"{"version":"1","default_action":"deny","rules":[
 {"id":"allow-read-tmp","effect":"allow","conditions":{"tool_name":"read_file","path_pattern":"/tmp/**"}},
 {"id":"allow-list-tmp","effect":"allow","conditions":{"tool_name":"list_files","path_pattern":"/tmp/**"}},
 {"id":"deny-sensitive-extensions","effect":"deny","conditions":{"extension":[".key",".pem",".env"]}},
 {"id":"hitl-write-ops","effect":"hitl","conditions":{"operations":["write","delete"]}}]}"#;

fn policy(text: &str) -> Policy {
    Policy::load(text, Some(&Disk), &["/home/u/.durward".into()]).unwrap_or_else(|e| panic!("{e}"))
}

fn facts(tool: &str, args: &[(&str, &str)]) -> Facts {
    let mut paths = Vec::new();
    for (key, text) in args {
        let role = role_of_key(key).or_else(|| looks_like_path(text).then_some(Role::Shape));
        if let Some(role) = role {
            paths.push(PathArgument {
                text: (*text).into(),
                role,
                content: is_content_key(key),
                meaning: meanings(text, Some(&Disk)),
            });
        }
    }
    Facts {
        method: "tools/call".into(),
        tool_name: Fact::Known(tool.into()),
        backend_id: "files".into(),
        resource_type: Some(ResourceType::Tool),
        subject_id: "u".into(),
        paths: Fact::Known(paths),
        ..Facts::default()
    }
}

fn check(policy: &Policy, tool: &str, args: &[(&str, &str)], effect: Effect, rule: &str) {
    let facts = facts(tool, args);
    let judgement = policy.judge(&facts);
    let verdict = judgement.verdict();
    assert_eq!(
        (verdict.effect, verdict.final_rule),
        (effect, rule),
        "{tool} {args:?}"
    );
}

#[test]
fn four_rule_policy_as_the_seed_has_it() {
    let p = policy(FOUR);
    let (allow, deny, hitl) = (Effect::Allow, Effect::Deny, Effect::Hitl);
    let read = "allow-read-tmp";
    let ext = "deny-sensitive-extensions";
    let write = "hitl-write-ops";
    check(
        &p,
        "read_file",
        &[("path", "/tmp/mcp-acp-test.txt")],
        allow,
        read,
    );
    check(&p, "READ_FILE", &[("path", "/tmp/x")], allow, read);
    check(
        &p,
        "list_files",
        &[("path", "/tmp")],
        allow,
        "allow-list-tmp",
    );
    check(&p, "read_file", &[("path", "/tmp/k.pem")], deny, ext);
    check(&p, "read_file", &[("path", "/tmp/K.PEM")], deny, ext);
    check(&p, "read_file", &[("path", "/tmp/.env")], deny, ext);
    check(
        &p,
        "read_file",
        &[("path", "/tmp/../etc/hosts")],
        deny,
        "default",
    );
    check(
        &p,
        "read_file",
        &[("path", "/tmp/%2e%2e/etc/hosts")],
        deny,
        "default",
    );
    check(
        &p,
        "read_file",
        &[("path", "file:///tmp/%2e%2e/etc/hosts")],
        deny,
        "default",
    );
    check(
        &p,
        "read_file",
        &[("path", "/tmp/link/hosts")],
        deny,
        "default",
    );
    check(&p, "read_file", &[("path", "~/x")], deny, "default");
    check(
        &p,
        "read_file",
        &[("path", "/tmp/x"), ("odd", "/etc/hosts")],
        deny,
        "default",
    );
    check(
        &p,
        "read_file",
        &[("path", "/tmp/x"), ("content", "/etc/hosts")],
        allow,
        read,
    );
    check(&p, "read_file", &[], deny, "default");
    check(&p, "write_file", &[("path", "/tmp/a.txt")], hitl, write);
    check(&p, "write_file", &[("path", "/tmp/a.pem")], deny, ext);
    check(&p, "delete_file", &[("path", "/tmp/a.txt")], hitl, write);
    check(&p, "create_directory", &[("path", "/tmp/d")], hitl, write);
    check(
        &p,
        "set_filesystem_default",
        &[("path", "/tmp")],
        hitl,
        write,
    );
    check(
        &p,
        "copy_path",
        &[("source_path", "/tmp/a"), ("destination_path", "/tmp/b")],
        hitl,
        write,
    );
    check(
        &p,
        "move_path",
        &[("source_path", "/tmp/a"), ("destination_path", "/tmp/b")],
        hitl,
        write,
    );
}

#[test]
fn listing_hides_only_what_nothing_could_allow() {
    let p = policy(FOUR);
    let tools = [
        "read_file",
        "write_file",
        "update_file",
        "list_files",
        "copy_path",
        "move_path",
        "delete_file",
        "delete_directory",
        "create_directory",
        "set_filesystem_default",
    ];
    let shown: Vec<_> = tools
        .into_iter()
        .filter(|tool| {
            p.judge(&Facts {
                paths: Fact::Unknown,
                ..facts(tool, &[])
            })
            .may_be_listed()
        })
        .collect();
    // Whatever may be a write can wait for a person.
    assert_eq!(shown, tools);
    let unlisted = Facts {
        paths: Fact::Unknown,
        ..facts("directory_tree", &[])
    };
    assert!(!p.judge(&unlisted).may_be_listed());
    let none = policy("{}");
    assert!(
        !none
            .judge(&Facts {
                paths: Fact::Unknown,
                ..facts("read_file", &[])
            })
            .may_be_listed()
    );
}

#[test]
fn protected_paths_are_refused_on_every_argument_before_any_rule() {
    let p = policy(r#"{"rules":[{"effect":"allow","conditions":{"tool_name":"*"}}]}"#);
    let rule = "built_in_protected_path";
    for args in [
        &[("path", "/home/u/.durward/journal/x")][..],
        &[("path", "~/.durward")],
        &[("path", "/home/u/x/../.durward/keys")],
        &[
            ("path", "/tmp/a"),
            ("destination_path", "/home/u/.durward/a"),
        ],
        &[("odd_name", "/home/u/.durward/a")],
        &[("path", "file:///home/u/%2edurward/a")],
        &[("odd_name", "/home/u/.durward\n")],
        &[("odd_name", "%7e/.durward")],
        &[("path", "file:///home/u/.durward?x")],
        &[("odd_name", "file:///home/u/.durward#x")],
        &[("path", "file:\\home\\u\\.durward")],
        &[("odd_name", "fi\nle:/home/u/.durward")],
        &[("path", "/proc/self/fd/7")],
        &[("path", "~other/.durward")],
    ] {
        check(&p, "read_file", args, Effect::Deny, rule);
    }
    check(
        &p,
        "delete_directory",
        &[("path", "/home/u")],
        Effect::Deny,
        rule,
    );
    check(
        &p,
        "move_path",
        &[("source", "/home/u"), ("to", "/tmp/x")],
        Effect::Deny,
        rule,
    );
    check(
        &p,
        "list_files",
        &[("path", "/home/u")],
        Effect::Allow,
        p.rules()[0].id.as_str(),
    );
    check(
        &p,
        "read_file",
        &[("path", "/home/u/.durwardish")],
        Effect::Allow,
        p.rules()[0].id.as_str(),
    );
}

#[test]
fn paths_of_another_machine_lead_to_no_protected_place_and_other_rules_hold_for_them() {
    let p = policy(
        r#"{"rules":[
      {"id":"a","effect":"allow","conditions":{"tool_name":"*"}},
      {"id":"d","effect":"deny","conditions":{"path_pattern":"/secret/**"}}]}"#,
    );
    let judged = |text: &str| {
        let mut f = facts("run", &[]);
        f.is_elsewhere = true;
        f.paths = Fact::Known(vec![PathArgument {
            text: text.into(),
            role: Role::Path,
            content: false,
            meaning: meanings(text, None),
        }]);
        let verdict = p.judge(&f).verdict();
        (verdict.effect, verdict.final_rule.to_owned())
    };
    assert_eq!(judged("/home/u/.durward/keys"), (Effect::Allow, "a".into()));
    assert_eq!(judged("/secret/x"), (Effect::Deny, "d".into()));
    // Nobody knows where it leads: a rule may be about it, and that rule is named.
    assert_eq!(judged("library/alpine"), (Effect::Deny, "d".into()));
}

#[test]
fn read_only_paths_are_left_to_the_rules_where_a_call_only_reads() {
    let p = policy(r#"{"rules":[{"id":"all","effect":"allow","conditions":{"tool_name":"*"}}]}"#)
        .with_read_only(&["/tmp/link/tool".into()], Some(&Disk));
    let rule = "built_in_protected_path";
    // As it is spelled, and where its links lead.
    for path in ["/tmp/link/tool", "/etc/tool", "/etc/./tool/below"] {
        check(&p, "read_file", &[("path", path)], Effect::Allow, "all");
        for tool in [
            "write_file",
            "delete_file",
            "relocate",
            "run_it",
            "read_and_overwrite",
        ] {
            check(&p, tool, &[("path", path)], Effect::Deny, rule);
        }
    }
    // What holds it can be listed and read, not taken away.
    check(&p, "list_files", &[("path", "/etc")], Effect::Allow, "all");
    check(&p, "move_path", &[("source", "/etc")], Effect::Deny, rule);
    check(
        &p,
        "write_file",
        &[("path", "/etc/tools")],
        Effect::Allow,
        "all",
    );
}

#[test]
fn deny_outranks_hitl_outranks_allow() {
    let p = policy(
        r#"{"rules":[
      {"id":"a","effect":"allow","conditions":{"tool_name":"*"}},
      {"id":"h","effect":"hitl","conditions":{"tool_name":"write_*"}},
      {"id":"d","effect":"deny","conditions":{"path_pattern":"/secret/**"}}]}"#,
    );
    check(&p, "write_x", &[("path", "/secret/a")], Effect::Deny, "d");
    check(&p, "write_x", &[("path", "/a")], Effect::Hitl, "h");
    check(&p, "other", &[("path", "/a")], Effect::Allow, "a");
    // A path that cannot be resolved may be the denied one.
    check(
        &p,
        "other",
        &[("path", "~who/a")],
        Effect::Deny,
        "built_in_protected_path",
    );
    let remote = Policy::load(
        r#"{"rules":[{"id":"a","effect":"allow","conditions":{"tool_name":"*"}},
      {"id":"d","effect":"deny","conditions":{"path_pattern":"/secret/**"}}]}"#,
        None,
        &[],
    )
    .unwrap();
    let mut f = facts("other", &[]);
    f.paths = Fact::Known(vec![PathArgument {
        text: "a/b".into(),
        role: Role::Path,
        content: false,
        meaning: meanings("a/b", None),
    }]);
    let judgement = remote.judge(&f);
    assert_eq!(
        (judgement.verdict().effect, judgement.verdict().unsure),
        (Effect::Deny, true)
    );
}

#[test]
fn sources_and_destinations() {
    let p = policy(
        r#"{"rules":[{"id":"c","effect":"allow",
      "conditions":{"tool_name":"copy_path","source_path":"/tmp/**","dest_path":"/out/**"}}]}"#,
    );
    check(
        &p,
        "copy_path",
        &[("source", "/tmp/a"), ("dest", "/out/b")],
        Effect::Allow,
        "c",
    );
    check(
        &p,
        "copy_path",
        &[("source", "/tmp/a"), ("dest", "/etc/b")],
        Effect::Deny,
        "default",
    );
    check(
        &p,
        "copy_path",
        &[("source", "/tmp/a"), ("dest", "/out/b"), ("odd", "/etc/b")],
        Effect::Deny,
        "default",
    );
    check(
        &p,
        "copy_path",
        &[("source", "/tmp/a")],
        Effect::Deny,
        "default",
    );
    // A rule about one of the two does not leave the other free.
    for condition in ["source_path", "dest_path"] {
        let one = policy(&format!(
            r#"{{"rules":[{{"id":"o","effect":"allow","conditions":{{"{condition}":"/tmp/**"}}}}]}}"#
        ));
        let both = [("source", "/tmp/a"), ("dest", "/tmp/b")];
        check(&one, "copy_path", &both, Effect::Allow, "o");
        for stray in [
            [("source", "/tmp/a"), ("dest", "/etc/b")],
            [("source", "/etc/a"), ("dest", "/tmp/b")],
        ] {
            check(&one, "copy_path", &stray, Effect::Deny, "default");
        }
    }
    let all = policy(
        r#"{"rules":[{"id":"t","effect":"allow","conditions":{"path_pattern":"/tmp/**"}}]}"#,
    );
    check(
        &all,
        "copy_path",
        &[("path", "/tmp/a"), ("destination", "/etc/b")],
        Effect::Deny,
        "default",
    );
}

#[test]
fn a_rule_about_a_linked_directory_means_the_directory() {
    let p = policy(
        r#"{"rules":[{"id":"d","effect":"allow","conditions":{"path_pattern":"/data/**"}}]}"#,
    );
    check(&p, "read_file", &[("path", "/data/x")], Effect::Allow, "d");
    check(
        &p,
        "read_file",
        &[("path", "/mnt/disk1/x")],
        Effect::Allow,
        "d",
    );
    check(
        &p,
        "read_file",
        &[("path", "/mnt/disk2/x")],
        Effect::Deny,
        "default",
    );
}

#[test]
fn specificity_only_picks_the_name() {
    let p = policy(
        r#"{"rules":[
      {"id":"wide","effect":"allow","conditions":{"tool_name":"*"}},
      {"id":"narrow","effect":"allow","conditions":{"tool_name":"read_file","path_pattern":"/tmp/a/**"}},
      {"id":"twin","effect":"allow","conditions":{"tool_name":"read_file","path_pattern":"/tmp/b/**"}}]}"#,
    );
    check(
        &p,
        "read_file",
        &[("path", "/tmp/a/x")],
        Effect::Allow,
        "narrow",
    );
    check(&p, "read_file", &[("path", "/x")], Effect::Allow, "wide");
}

#[test]
fn of_many_rules_that_match_the_deciding_one_is_named_and_the_rest_counted() {
    let rule = |n: usize| {
        let more = if n == 30 {
            r#","mcp_method":"tools/call""#
        } else {
            ""
        };
        format!(r#"{{"id":"d{n}","effect":"deny","conditions":{{"tool_name":"x"{more}}}}}"#)
    };
    let named = |count: usize| {
        let rules: Vec<String> = (0..count).map(rule).collect();
        let p = policy(&format!(r#"{{"rules":[{}]}}"#, rules.join(",")));
        let facts = facts("x", &[]);
        let judgement = p.judge(&facts);
        let decided = judgement.verdict().final_rule.to_owned();
        let (named, omitted) = judgement.named_rules(&decided);
        let names: Vec<String> = named.iter().map(|(id, _)| id.to_string()).collect();
        (decided, names, omitted)
    };
    let (decided, names, omitted) = named(NAMED_MAX);
    assert_eq!(
        (decided.as_str(), names.len(), omitted),
        ("d0", NAMED_MAX, 0)
    );
    let (decided, names, omitted) = named(40);
    assert_eq!(
        (decided.as_str(), names.len(), omitted),
        ("d30", NAMED_MAX + 1, 23)
    );
    assert_eq!(
        (names[0].as_str(), names.last().unwrap().as_str()),
        ("d0", "d30")
    );
}

#[test]
fn other_conditions() {
    let p = policy(
        r#"{"rules":[
      {"id":"net","effect":"deny","conditions":{"side_effects":["network_egress","code_exec"]}},
      {"id":"who","effect":"deny","conditions":{"subject_id":"mallory"}},
      {"id":"res","effect":"allow","conditions":{"resource_type":"resource","scheme":["docs"]}},
      {"id":"empty","effect":"deny","conditions":{"tool_name":[]}},
      {"id":"ok","effect":"allow","conditions":{"backend_id":"FILES","mcp_method":"tools/*"}}]}"#,
    );
    check(&p, "bash", &[], Effect::Deny, "net");
    check(&p, "create_entities", &[], Effect::Allow, "ok");
    // What nothing is known of may reach the network.
    check(&p, "unheard_of", &[], Effect::Deny, "net");
    let mut f = facts("create_entities", &[]);
    f.subject_id = "mallory".into();
    assert_eq!(p.judge(&f).verdict().final_rule, "who");
    let resource = |uri: &str| Facts {
        method: "resources/read".into(),
        uri: Fact::Known(uri.into()),
        resource_type: Some(ResourceType::Resource),
        paths: Fact::Known(vec![]),
        ..Facts::default()
    };
    assert_eq!(p.judge(&resource("docs://a")).verdict().final_rule, "res");
    assert_eq!(
        p.judge(&resource("file:///a")).verdict().final_rule,
        "default"
    );
}

#[test]
fn an_allowed_scheme_covers_every_path_of_the_call() {
    let p = policy(
        r#"{"rules":[
      {"id":"https","effect":"allow","conditions":{"scheme":"https"}},
      {"id":"file","effect":"deny","conditions":{"scheme":"file"}}]}"#,
    );
    let from = ("source", "https://h/x");
    check(&p, "get", &[from], Effect::Allow, "https");
    check(
        &p,
        "get",
        &[from, ("dest", "/etc/x")],
        Effect::Deny,
        "default",
    );
    check(&p, "get", &[("path", "/etc/x")], Effect::Deny, "default");
    for file in [" file:/x", "FILE:/x", "fi\tle:/x", "\u{1}file:/x"] {
        check(&p, "get", &[from, ("dest", file)], Effect::Deny, "file");
    }
}

#[test]
fn a_group_of_callers_is_a_condition_a_fact_and_a_member_of_the_record() {
    use gate::Caller;
    use gate::facts::{FactId, Value};
    let policy = Policy::load(
        r#"{"rules":[
          {"id":"all","effect":"allow","conditions":{"tool_name":"*"}},
          {"id":"no-robots","effect":"deny","conditions":{"subject_group":["robots","guests"]}},
          {"id":"night","effect":"hitl","conditions":{"when":"subject_groups != null && subject_groups.exists(g, g == 'night')"}}]}"#,
        None,
        &[],
    )
    .unwrap();
    let of = |groups: &[&str]| {
        let caller = Caller {
            groups: groups.iter().map(|group| (*group).into()).collect(),
            ..Caller::local("ada")
        };
        Facts {
            method: "tools/call".into(),
            tool_name: Fact::Known("read".into()),
            ..Facts::of(&caller)
        }
    };
    for (groups, rule) in [
        (&[][..], "all"),
        (&["people"], "all"),
        (&["people", "robots"], "no-robots"),
        (&["night"], "night"),
        (&["night", "guests"], "no-robots"),
    ] {
        let facts = of(groups);
        assert_eq!(
            policy.judge(&facts).verdict().final_rule,
            rule,
            "{groups:?}"
        );
        let told = facts.get(FactId::SubjectGroups);
        let told = told
            .known()
            .map(|value: &Value<'_>| value.texts().collect::<Vec<_>>());
        assert_eq!(told.unwrap_or_default(), groups);
    }
    let wild = r#"{"rules":[{"effect":"deny","conditions":{"subject_group":"rob*"}}]}"#;
    let rules = gate::policy::load::parse(wild).unwrap();
    let warned = gate::policy::lint::warnings(&rules, &[]);
    assert!(
        warned[0].message.contains("compared literally"),
        "{warned:?}"
    );
}

#[test]
fn a_bad_policy_says_where_and_what_to_do() {
    let cases = [
        ("{\"rulez\": []}", 1, "unknown key \"rulez\"", "rules"),
        (
            "{\"rules\":[\n  {\"effect\":\"allow\",\"conditions\":{\"tool_nam\":\"*\"}}]}",
            2,
            "unknown condition \"tool_nam\"",
            "tool_name",
        ),
        (
            "{\"rules\":[\n{\"id\":\"a\",\"effect\":\"allow\",\"conditions\":{\"tool_name\":\"[x\"}}]}",
            2,
            "bad glob",
            "close it",
        ),
        (
            "{\"rules\":[{\"id\":\"a\",\"effect\":\"deny\",\"conditions\":{\"tool_name\":\"x\"}},\n {\"id\":\"a\",\"effect\":\"deny\",\"conditions\":{\"tool_name\":\"y\"}}]}",
            2,
            "also the id of rule 1",
            "id of its own",
        ),
        (
            "{\"rules\":[{\"effect\":\"alow\",\"conditions\":{\"tool_name\":\"x\"}}]}",
            1,
            "unknown effect \"alow\"",
            "\"allow\"",
        ),
        (
            "{\"rules\":[{\"effect\":\"allow\",\"conditions\":{}}]}",
            1,
            "no condition",
            "tool_name",
        ),
        (
            "{\"rules\":[{\"effect\":\"allow\"}]}",
            1,
            "no conditions",
            "conditions",
        ),
        (
            "{\"rules\":[{\"effect\":\"allow\",\"conditions\":{\"tool_name\":\" \"}}]}",
            1,
            "blank",
            "leave",
        ),
        (
            "{\"rules\":[{\"effect\":\"allow\",\"conditions\":{\"extension\":\"pem\"}}]}",
            1,
            "not an extension",
            ".pem",
        ),
        (
            "{\"rules\":[{\"effect\":\"deny\",\"cache_side_effects\":[],\"conditions\":{\"tool_name\":\"x\"}}]}",
            1,
            "hitl rules only",
            "hitl",
        ),
        ("{\"default_action\":\"allow\"}", 1, "can only be", "rule"),
        ("{\"version\":\"2\"}", 1, "not supported", "1"),
        (
            "{\"rules\":[{\"effect\":\"deny\",\"conditions\":{\"operations\":[\"reed\"]}}]}",
            1,
            "unknown operation",
            "read",
        ),
        (
            "{\"version\":\"1\",\"version\":\"1\"}",
            1,
            "given twice",
            "keep one",
        ),
    ];
    for (text, line, message, hint) in cases {
        let error = Policy::load(text, None, &[]).expect_err(text);
        assert_eq!(error.line, line, "{text}: {error}");
        assert!(error.column >= 1);
        assert!(error.message.contains(message), "{text}: {error}");
        assert!(
            error.hint.as_deref().unwrap_or("").contains(hint),
            "{text}: {error}"
        );
    }
    let error = Policy::load("{\n  \"rules\": [\n    {,}\n  ]\n}", None, &[]).unwrap_err();
    assert_eq!((error.line, error.column), (3, 6), "{error}");
}

#[test]
fn the_starter_policy_loads_and_reads_pass() {
    let p = policy(gate::policy::starter::STARTER_POLICY);
    check(
        &p,
        "read_file",
        &[("path", "/anything")],
        Effect::Allow,
        "starter-allow-reads",
    );
    check(
        &p,
        "write_file",
        &[("path", "/anything")],
        Effect::Hitl,
        "starter-ask-tools",
    );
    check(
        &p,
        "copy_path",
        &[("source", "/a")],
        Effect::Hitl,
        "starter-ask-tools",
    );
}

/// A call that runs these commands.
fn running(commands: &[&[&str]]) -> Facts {
    let mut f = facts("batch", &[]);
    let apart = gate::facts::COMMANDS_APART;
    let words = |of: &dyn Fn(&[&str]) -> Vec<String>| -> gate::facts::Stated {
        let each: Vec<Vec<String>> = commands.iter().map(|command| of(command)).collect();
        let joined = each.join(&apart.to_owned());
        joined.iter().map(|word| word.as_str().into()).collect()
    };
    let argv = words(&|command| command.iter().map(|word| (*word).to_owned()).collect());
    let operands = words(&|command| {
        command
            .iter()
            .skip(1)
            .map(|word| (*word).to_owned())
            .collect()
    });
    f.set(FactId::Argv, Fact::Known(argv)).unwrap();
    f.set(FactId::Operands, Fact::Known(operands)).unwrap();
    f.set(FactId::Program, Fact::Unknown).unwrap();
    f
}

#[test]
fn several_commands_are_judged_one_by_one() {
    let p = policy(
        r#"{"rules":[
      {"id":"host","effect":"allow","conditions":{"program":"hostname"}},
      {"id":"tail","effect":"allow","conditions":{"argv":["tail [-n WORD] PATH"]}},
      {"id":"plus","effect":"deny","conditions":{"program":"lsof","when":"argv.exists(word, word.startsWith('+'))"}},
      {"id":"named","effect":"deny","conditions":{"program":"cat","operands":"secret"}},
      {"id":"lsof","effect":"allow","conditions":{"program":"lsof"}},
      {"id":"ask","effect":"hitl","conditions":{"program":"reboot"}}]}"#,
    );
    for (commands, effect, rule) in [
        // Two rules allow what is one of the first kind and one of the second.
        (
            &[&["hostname"][..], &["tail", "-n", "+5", "x"]][..],
            Effect::Allow,
            "host",
        ),
        // The plus sign is another command's.
        (
            &[&["lsof"][..], &["tail", "-n", "+5", "x"]],
            Effect::Allow,
            "lsof",
        ),
        (&[&["hostname"][..], &["lsof", "+D"]], Effect::Deny, "plus"),
        (
            &[&["hostname"][..], &["cat", "secret"]],
            Effect::Deny,
            "named",
        ),
        (
            &[&["hostname", "secret"][..], &["cat", "x"]],
            Effect::Deny,
            "default",
        ),
        (&[&["hostname"][..], &["hostname"]], Effect::Allow, "host"),
        (&[&["hostname"][..], &["rm"]], Effect::Deny, "default"),
        (&[&["reboot"][..], &["hostname"]], Effect::Hitl, "ask"),
    ] {
        let facts = running(commands);
        let judgement = p.judge(&facts);
        let verdict = judgement.verdict();
        assert_eq!(
            (verdict.effect, verdict.final_rule, verdict.unsure),
            (effect, rule, false),
            "{commands:?}"
        );
        // What a person reads of it is what was counted.
        for reading in p.readings(&facts) {
            let counted = judgement
                .matched_rules()
                .any(|matched| matched.id == reading.rule.id);
            assert_eq!(
                reading.outcome == gate::policy::Tri::Yes,
                counted,
                "{commands:?}"
            );
        }
    }
}

#[test]
fn the_starter_policy_asks_before_a_secret_is_read() {
    let p = policy(gate::policy::starter::STARTER_POLICY);
    for path in [
        "~/.ssh/id_ed25519",
        "/home/me/.ssh/config",
        "/srv/app/.env",
        "/home/me/.aws/credentials",
        "/etc/shadow",
        "/home/me/.netrc",
        "/tmp/server.key",
    ] {
        let rule = "starter-ask-secrets";
        check(&p, "read_file", &[("path", path)], Effect::Hitl, rule);
    }
    for path in [
        "/srv/app/environment.md",
        "/home/me/ssh/notes",
        "/etc/hosts",
    ] {
        let rule = "starter-allow-reads";
        check(&p, "read_file", &[("path", path)], Effect::Allow, rule);
    }
}

#[test]
fn a_person_is_asked_before_an_unknown_tool_gets_the_parent_of_a_protected_path() {
    let p = policy(r#"{"rules":[{"id":"a","effect":"allow","conditions":{"tool_name":"*"}}]}"#);
    let (refused, asked) = ("built_in_protected_path", "built_in_protected_ancestor");
    let moves = [
        "relocate",
        "swap",
        "rotate",
        "move_things",
        "delete_folder",
        "git_checkout",
    ];
    let unknown = [
        "replace_folder",
        "import_profile",
        "checkout",
        "run_shell",
        "frobnicate",
        "get_settings",
    ];
    let moves = moves.map(|tool| (tool, Effect::Deny, refused));
    let unknown = unknown.map(|tool| (tool, Effect::Hitl, asked));
    for (tool, effect, rule) in moves.into_iter().chain(unknown) {
        let args = [("from", "/home/u"), ("to", "/tmp/x")];
        check(&p, tool, &args, effect, rule);
        let elsewhere = [("from", "/home/u/work"), ("to", "/tmp/x")];
        check(&p, tool, &elsewhere, Effect::Allow, "a");
    }
    for tool in ["list_directory", "create_directory", "git_status"] {
        check(&p, tool, &[("path", "/home/u")], Effect::Allow, "a");
    }
    // A single slash in a text is no directory that moves.
    check(&p, "frobnicate", &[("separator", "/")], Effect::Allow, "a");
    check(&p, "frobnicate", &[("path", "/")], Effect::Hitl, asked);
}

#[test]
fn a_question_about_the_parent_of_a_protected_path_lets_nothing_pass_that_rules_refuse() {
    let args = [("path", "/home/u")];
    let none = policy(r#"{"rules":[]}"#);
    check(&none, "frobnicate", &args, Effect::Deny, "default");
    let denies = policy(
        r#"{"rules":[{"id":"a","effect":"allow","conditions":{"tool_name":"*"}},
        {"id":"d","effect":"deny","conditions":{"tool_name":"frobnicate"}}]}"#,
    );
    check(&denies, "frobnicate", &args, Effect::Deny, "d");
    let asks = policy(r#"{"rules":[{"id":"h","effect":"hitl","conditions":{"tool_name":"*"}}]}"#);
    let rule = "built_in_protected_ancestor";
    check(&asks, "frobnicate", &args, Effect::Hitl, rule);
    check(&asks, "list_directory", &args, Effect::Hitl, "h");
}

#[test]
fn operations_match_what_is_known_and_keep_off_what_may_be() {
    let p = policy(
        r#"{"rules":[
      {"id":"reads","effect":"allow","conditions":{"operations":["read"]}},
      {"id":"no-change","effect":"deny","conditions":{"operations":["write","delete"]}}]}"#,
    );
    let misleading = include_str!("misleading_names.txt").lines();
    for tool in misleading.chain(["get_weather", "move_file", "bash"]) {
        if tool == "read_and_forward" {
            // Its verb says that it sends, which this rule does not refuse.
            check(&p, tool, &[], Effect::Deny, "default");
            continue;
        }
        check(&p, tool, &[], Effect::Deny, "no-change");
    }
    check(&p, "read_file", &[], Effect::Allow, "reads");
    check(&p, "fetch", &[], Effect::Deny, "default");
    let unknown = policy(
        r#"{"rules":[{"id":"u","effect":"allow","conditions":{"operations":["unknown"]}},
      {"id":"w","effect":"allow","conditions":{"operations":["write","delete"]}}]}"#,
    );
    check(&unknown, "get_weather", &[], Effect::Allow, "u");
    // A verb in the name counts against the call, and does not make it known.
    check(&unknown, "delete_things", &[], Effect::Deny, "default");
    check(&unknown, "delete_file", &[], Effect::Allow, "w");
}
