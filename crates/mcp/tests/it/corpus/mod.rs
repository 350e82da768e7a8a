//! Many calls, and what the rules say of each: ways to places that are refused, and calls of ordinary
//! servers that are not.

use std::fmt::Write as _;

use gate::paths::PathView;
use gate::paths::view::Link;
use gate::policy::{Effect, Policy};
use gate::{Caller, facts::ResourceType};
use mcp::describe::{self, ArgumentRoles, Context, PathSchemas};
use wire::{Bounds, scan_request};

/// A machine: a server started in `/srv/work`, two links, and nothing else.
struct Machine;

impl PathView for Machine {
    fn home(&self) -> Option<String> {
        Some("/home/u".into())
    }

    fn current_dir(&self) -> Option<String> {
        Some("/srv/work".into())
    }

    fn read_link(&self, path: &str) -> Link {
        match path {
            "/tmp/vault" => Link::To("/srv/work/vault".into()),
            "/srv/work/way" | "/srv/work/sub/way" => Link::To("/proc/self/fd/9".into()),
            "/tmp/state" => Link::To("/srv/work/state".into()),
            "/proc/self/cwd" => Link::To("/srv/work".into()),
            _ => Link::NotALink,
        }
    }
}

/// A place that is refused.
struct Place {
    name: &'static str,
    rules: &'static str,
    protected: &'static [&'static str],
}

const ALLOW: &str = r#"{"id":"all","effect":"allow","conditions":{"tool_name":"*"}}"#;
const DENIED: Place = Place {
    name: "vault",
    rules: r#"{"id":"no","effect":"deny","conditions":{"path_pattern":"/srv/work/vault/**"}}"#,
    protected: &[],
};
const PROTECTED: Place = Place {
    name: "state",
    rules: r#"{"id":"more","effect":"allow","conditions":{"operations":"read"}}"#,
    protected: &["/srv/work/state"],
};

impl Place {
    fn policy(&self) -> Policy {
        let text = format!(
            r#"{{"version":"1","default_action":"deny","rules":[{ALLOW},{}]}}"#,
            self.rules
        );
        let protected: Vec<String> = self.protected.iter().map(|p| (*p).to_owned()).collect();
        Policy::load(&text, Some(&Machine), &protected).unwrap()
    }

    /// A line of the corpus, about this place.
    fn about(&self, line: &str) -> String {
        let (name, file) = (self.name, "key.txt");
        let rel = format!("{name}/{file}");
        let abs = format!("/srv/work/{rel}");
        let encoded: String = abs.bytes().fold(String::new(), |mut out, b| {
            let _ = write!(out, "%{b:02x}");
            out
        });
        // "/srv/work/vault/key.txt" or the like, in base64.
        let base64 = if name == "vault" {
            "L3Nydi93b3JrL3ZhdWx0L2tleS50eHQ="
        } else {
            "L3Nydi93b3JrL3N0YXRlL2tleS50eHQ="
        };
        line.replace("{abs}", &abs)
            .replace("{rel}", &rel)
            .replace("{dir}", &format!("/srv/work/{name}"))
            .replace("{top}", "/srv/work")
            .replace("{name}", name)
            .replace("{file}", file)
            .replace("{link}", &format!("/tmp/{name}"))
            .replace("{long}", &"/./".repeat(3_000))
            .replace("{enc}", &encoded)
            .replace("{b64}", base64)
    }
}

fn lines(text: &str) -> impl Iterator<Item = &str> {
    text.lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
}

/// What the rules say of a call: `tool {arguments}`.
fn effect(policy: &Policy, call: &str) -> (Effect, String) {
    let (tool, arguments) = call.split_once(' ').unwrap_or((call, "{}"));
    let params = format!(r#"{{"name":"{tool}","arguments":{arguments}}}"#);
    effect_of(policy, ("tools/call", Some(ResourceType::Tool)), &params)
}

/// The same of a request with these parameters.
fn effect_of(
    policy: &Policy,
    (method, reaches_for): (&str, Option<ResourceType>),
    params: &str,
) -> (Effect, String) {
    let frame = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{params}}}"#);
    let scan = scan_request(frame.as_bytes(), &Bounds::default())
        .unwrap_or_else(|fault| panic!("{params}: {fault}"));
    let caller = Caller::local("u");
    let context = Context {
        backend_id: "s",
        caller: &caller,
        view: Some(&Machine),
        schemas: &PathSchemas::default(),
        roles: &ArgumentRoles::default(),
        definitions: None,
        builtin: None,
        inline: None,
    };
    let facts = describe::client_request(method, reaches_for, &scan, &context).unwrap();
    let judgement = policy.judge(&facts);
    let verdict = judgement.verdict();
    (
        verdict.effect,
        format!("{} of {facts:?}", verdict.final_rule),
    )
}

#[test]
fn j06_j08_j12_every_way_to_a_denied_and_to_a_protected_place_is_refused() {
    let ways: Vec<&str> = lines(include_str!("ways.txt")).collect();
    assert!(ways.len() >= 150, "{} ways", ways.len());
    let mut passed = Vec::new();
    for place in [DENIED, PROTECTED] {
        let policy = place.policy();
        for way in &ways {
            let call = place.about(way);
            if effect(&policy, &call).0 != Effect::Deny {
                passed.push(format!("{}: {way}", place.name));
            }
        }
    }
    assert!(
        passed.is_empty(),
        "{} of {} pass:\n{}",
        passed.len(),
        2 * ways.len(),
        passed.join("\n")
    );
}

/// A method, and what it reaches for.
type Asked = (&'static str, Option<ResourceType>);

const COMPLETION: Asked = ("completion/complete", None);
const VENDOR: Asked = ("vendor/run", Some(ResourceType::Server));
const TOOL: Asked = ("tools/call", Some(ResourceType::Tool));
const READ: Asked = ("resources/read", Some(ResourceType::Resource));
const PROMPT: Asked = ("prompts/get", Some(ResourceType::Prompt));

/// Parameters of other requests, and those of a call that the protocol does not know.
const REQUESTS: &[(Asked, &str)] = &[
    (
        COMPLETION,
        r#"{"ref":{"type":"ref/resource","uri":"{abs}"},"argument":{"name":"a","value":"b"}}"#,
    ),
    (
        COMPLETION,
        r#"{"ref":{"type":"ref/resource","uri":"x://h?f={abs}"},"argument":{"name":"a","value":"b"}}"#,
    ),
    (
        COMPLETION,
        r#"{"ref":{"type":"ref/prompt","name":"{abs}"},"argument":{"name":"a","value":"b"}}"#,
    ),
    (
        COMPLETION,
        r#"{"ref":{"type":"ref/prompt","name":"n"},"argument":{"name":"a","value":"--file={abs}"}}"#,
    ),
    (
        COMPLETION,
        r#"{"ref":{"type":"ref/prompt","name":"n"},"argument":{"name":"a","value":"{abs}","n":1e999}}"#,
    ),
    (
        COMPLETION,
        r#"{"ref":{"type":"ref/prompt","name":"n"},"argument":["{abs}"]}"#,
    ),
    (VENDOR, r#"{"ref":{"path":"{abs}"}}"#),
    (VENDOR, r#"{"argument":["{abs}"]}"#),
    (VENDOR, r#"{"ref":{"uri":"{enc}"}}"#),
    (VENDOR, r#"{"path":"{top}","recursive":1}"#),
    (TOOL, r#"{"name":"read","path":"{abs}"}"#),
    (TOOL, r#"{"name":"read","arguments":{},"path":"{rel}"}"#),
    (
        TOOL,
        r#"{"name":"list","arguments":{"path":"{top}"},"options":{"recursive":"yes"}}"#,
    ),
    (
        TOOL,
        r#"{"name":"ask","arguments":{},"inputResponses":{"k":{"action":"accept","content":{"file":"{abs}"}}}}"#,
    ),
    (READ, r#"{"uri":"a://b","path":"{abs}"}"#),
    (
        READ,
        r#"{"uri":"a://b","inputResponses":{"k":{"x":"{enc}"}}}"#,
    ),
    (PROMPT, r#"{"name":"p","x":"{abs}"}"#),
];

#[test]
fn j12_a_refused_place_is_found_wherever_it_stands_in_a_request() {
    for place in [DENIED, PROTECTED] {
        let rules = place.rules;
        let text = format!(
            r#"{{"version":"1","default_action":"deny","rules":[{{"id":"all","effect":"allow","conditions":{{"mcp_method":"*"}}}},{rules}]}}"#
        );
        let protected: Vec<String> = place.protected.iter().map(|p| (*p).to_owned()).collect();
        let policy = Policy::load(&text, Some(&Machine), &protected).unwrap();
        for (method, params) in REQUESTS {
            let (effect, why) = effect_of(&policy, *method, &place.about(params));
            assert_eq!(effect, Effect::Deny, "{}: {params}: {why}", place.name);
        }
        for (method, params) in [
            (
                COMPLETION,
                r#"{"ref":{"type":"ref/prompt","name":"n"},"argument":{"name":"path","value":"/srv/work/op"}}"#,
            ),
            (
                VENDOR,
                r#"{"ref":{"path":"/srv/work/open"},"_meta":{"x":"{abs}"},"requestState":"{abs}"}"#,
            ),
            (
                TOOL,
                r#"{"name":"read","arguments":{"path":"/srv/work/open/a"},"task":{"ttl":1}}"#,
            ),
        ] {
            let (effect, why) = effect_of(&policy, method, &place.about(params));
            assert_eq!(effect, Effect::Allow, "{}: {params}: {why}", place.name);
        }
    }
}

#[test]
fn j12_a_path_beside_the_arguments_is_one_that_an_allow_rule_asks_about() {
    let policy = Policy::load(
        r#"{"version":"1","default_action":"deny","rules":[
            {"id":"open","effect":"allow","conditions":{"path_pattern":"/srv/work/open/**"}}]}"#,
        Some(&Machine),
        &[],
    );
    let policy = policy.unwrap();
    let says = |more: &str| {
        let params =
            format!(r#"{{"name":"read","arguments":{{"path":"/srv/work/open/a"}}{more}}}"#);
        effect_of(&policy, ("tools/call", Some(ResourceType::Tool)), &params).0
    };
    assert_eq!(says(""), Effect::Allow);
    assert_eq!(says(r#","path":"/srv/work/open/b""#), Effect::Allow);
    assert_eq!(says(r#","path":"/etc/passwd""#), Effect::Deny);
    assert_eq!(
        says(r#","inputResponses":{"k":{"content":{"file":"/etc/passwd"}}}"#),
        Effect::Deny
    );
}

/// What an allow rule on a folder says of a call.
fn allowed_below_a_folder(call: &str) -> bool {
    let policy = Policy::load(
        r#"{"version":"1","default_action":"deny","rules":[
            {"id":"open","effect":"allow","conditions":{"path_pattern":"/srv/work/open/**"}}]}"#,
        Some(&Machine),
        &[],
    );
    effect(&policy.unwrap(), call).0 == Effect::Allow
}

#[test]
fn j05_json_in_a_string_is_read_as_a_list() {
    for paths in [
        r#"["/etc/passwd"]"#,
        r#"["/srv/work/open/a","/etc/passwd"]"#,
        r#" ["/etc/passwd"]"#,
        r#""/etc/passwd""#,
        r#"{"path":"/etc/passwd"}"#,
    ] {
        let call = format!(r#"read {{"paths":{}}}"#, serde_json::Value::from(paths));
        assert!(!allowed_below_a_folder(&call), "{call}");
    }
    assert!(allowed_below_a_folder(
        r#"read {"paths":["/srv/work/open/a"]}"#
    ));
}

/// An argument that is an object or a list for the tool may come as a string: a server that reads JSON there
/// finds the paths in it.
#[test]
fn j05_json_in_any_string_is_read_as_what_it_holds() {
    let beside = |held: &str| {
        let held = serde_json::Value::from(held);
        format!(r#"read {{"path":"/srv/work/open/a","below":{held}}}"#)
    };
    for held in [
        r#"{"path":"/etc/passwd"}"#,
        r#"{"path":"/srv/work/open/b"}"#,
        " {\"p\\u0061th\":\"\\u002fetc/passwd\"}",
        r#"["/etc/passwd"]"#,
        r#"{"deep":[{"file":"x"}]}"#,
    ] {
        assert!(!allowed_below_a_folder(&beside(held)), "{held}");
    }
    for held in [
        "",
        "word",
        "{",
        r#"{"deep":true}"#,
        r#"["a","b"]"#,
        r#"{"query":"a/b"}"#,
    ] {
        assert!(allowed_below_a_folder(&beside(held)), "{held}");
    }
    let written = r#"read {"path":"/srv/work/open/a","content":"{\"path\":\"/x\"}"}"#;
    assert!(
        allowed_below_a_folder(written),
        "what is written is not a place"
    );
}

#[test]
fn j12_an_allow_rule_asks_for_one_plain_reading() {
    for path in [
        "/srv/work/open/a\\n/etc/passwd",
        "/srv/work/open/a:/etc/passwd",
        "/srv/work/open/a,/etc/passwd",
        "/srv/work/open/a /etc/passwd",
        "/srv/work/open/a;../../x",
        "/srv/work/open/{a,../../../etc/passwd}",
        "/srv/work/open/..\\\\..\\\\vault",
        "/srv/work/open/\\u200b../../vault",
        "'/srv/work/open/a'",
        "/srv/work/open\\uff0f..\\uff0fvault",
    ] {
        let call = format!(r#"read {{"path":"{path}"}}"#);
        assert!(!allowed_below_a_folder(&call), "{call}");
    }
    for path in [
        "/srv/work/open/a b.txt",
        "/srv/work/open/[id].tsx",
        "/srv/work/open/a=b@c.txt",
        "/srv/work/open/$types.ts",
        "/srv/work/open/über.md",
        "open/a",
    ] {
        let call = format!(r#"read {{"path":"{path}"}}"#);
        assert!(allowed_below_a_folder(&call), "{call}");
    }
}

/// A second path beside the one that is allowed is a path by its name.
#[test]
fn j06_every_argument_that_is_named_like_a_path_has_to_be_allowed() {
    for name in [
        "relative_path",
        "notebook_path",
        "repo_path",
        "directory",
        "dir",
        "cwd",
        "uri",
        "input_file",
        "oldPath",
        "image_path",
    ] {
        let call = format!(r#"read {{"path":"/srv/work/open/a","{name}":"policy.json"}}"#);
        assert!(!allowed_below_a_folder(&call), "{call}");
    }
}

/// What reading alone misses is known, and stays what it is: a way that is found moves to `ways.txt`.
#[test]
fn what_reading_alone_misses_is_listed() {
    let page = include_str!("../../../../../docs/what_is_read.md");
    for place in [DENIED, PROTECTED] {
        let policy = place.policy();
        for line in lines(include_str!("missed.txt")) {
            let (way, reason) = line.rsplit_once(" | ").unwrap();
            let (found, why) = effect(&policy, &place.about(way));
            assert_eq!(found, Effect::Allow, "{way}: found after all, by {why}");
            assert!(
                page.contains(reason),
                "docs/what_is_read.md lacks: {reason}"
            );
        }
    }
}

#[test]
fn calls_of_official_servers_pass_but_those_that_the_page_explains() {
    let text = r#"{"version":"1","default_action":"deny","rules":[
        {"id":"all","effect":"allow","conditions":{"tool_name":"*"}},
        {"id":"vault","effect":"deny","conditions":{"path_pattern":"/srv/work/vault/**"}},
        {"id":"names","effect":"deny","conditions":{"path_pattern":["**/*.pem","**/.env","**/.ssh/**"]}},
        {"id":"keys","effect":"hitl","conditions":{"extension":[".key",".p12"]}},
        {"id":"system","effect":"deny","conditions":{"path_pattern":["/etc/**","/opt/keys/**"]}}]}"#;
    let protected = [
        "/home/u/.local/state/durward",
        "/home/u/.config/durward/durward.yaml",
        "/home/u/.config/durward/policy.json",
        "/run/user/1000/durward",
        "/usr/local/bin/durward",
    ];
    let protected: Vec<String> = protected.iter().map(|p| (*p).to_owned()).collect();
    let policy = Policy::load(text, Some(&Machine), &protected).unwrap();
    let page = include_str!("../../../../../docs/what_is_read.md");
    let calls: Vec<&str> = lines(include_str!("benign.txt")).collect();
    assert!(calls.len() >= 300, "{} calls", calls.len());
    let mut wrong = Vec::new();
    for line in calls {
        let (call, reason) = line
            .split_once(" | ")
            .map_or((line, None), |(c, r)| (c, Some(r)));
        let (_, call) = call.split_once(' ').unwrap();
        let (found, why) = effect(&policy, call);
        match reason {
            None if found != Effect::Allow => wrong.push(format!("{line}\n    {why}")),
            Some(reason) if found == Effect::Allow || !page.contains(reason) => {
                wrong.push(format!("{line}: passes, or the page does not say why not"));
            }
            _ => {}
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
