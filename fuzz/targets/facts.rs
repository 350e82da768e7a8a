//! Any arguments and rules: no panic; two evaluations agree; what an allow rule finds a deny rule finds too; a further
//! deny rule lets nothing pass; and what a listing hides no call could do.
#![no_main]

use gate::Caller;
use gate::facts::{FACTS, Facts, ResourceType};
use gate::paths::PathView;
use gate::paths::view::Link;
use gate::policy::{Effect, Policy};
use libfuzzer_sys::fuzz_target;
use mcp::describe::{self, ArgumentRoles, Context, PathSchemas};
use serde_json::{Value, json};
use wire::{Bounds, scan_request};

/// Conditions that look for something: where they hold of what an allow rule sees, they hold of all that a deny rule
/// sees. Expressions are written so.
const CONDITIONS: &[(&str, &str)] = &[
    ("tool_name", r#""*""#),
    ("tool_name", r#"["read_*","t"]"#),
    ("path_pattern", r#""/srv/**""#),
    ("path_pattern", r#"["/etc/*","**/*.pem"]"#),
    ("path_pattern", r#""/**""#),
    ("extension", r#"[".pem",".key"]"#),
    ("operations", r#""read""#),
    ("operations", r#"["write","unknown"]"#),
    ("side_effects", r#"["fs_read","network_egress"]"#),
    ("reads_only", r#""yes""#),
    ("sends_outward", r#""yes""#),
    ("resource_type", r#""tool""#),
    ("backend_id", r#""S""#),
    ("subject_id", r#""u""#),
    ("when", r#""tool_name == 't'""#),
    ("when", r#""paths.exists(p, p.startsWith('/srv/'))""#),
    (
        "when",
        r#""paths.exists(p, p.endsWith('x')) || tool_name.contains('r')""#,
    ),
    (
        "when",
        r#""'fs_read' in side_effects && operation == 'read'""#,
    ),
    ("when", r#""size(tool_name) > 3 && backend_id == 's'""#),
];

const TOOLS: [&str; 8] = [
    "t",
    "read_file",
    "write_file",
    "delete_x",
    "fetch",
    "run_command",
    "directory_tree",
    "move_file",
];

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
            "/srv/l" => Link::To("/etc".into()),
            "/srv/o" => Link::To("o".into()),
            _ => Link::NotALink,
        }
    }
}

/// Each byte is a rule: its effect, and one condition or two.
fn rules(bytes: &[u8]) -> Vec<Value> {
    let condition = |at: usize| CONDITIONS[at % CONDITIONS.len()];
    let rule = |(number, pair): (usize, &[u8])| {
        let effect = ["allow", "deny", "hitl"][usize::from(pair[0]) % 3];
        let mut conditions = serde_json::Map::new();
        for at in [usize::from(pair[0] / 3), usize::from(pair[1])] {
            let (name, value) = condition(at);
            let value = serde_json::from_str(value).expect("a condition of the table");
            conditions.entry(name).or_insert(value);
        }
        json!({ "id": format!("r{number}"), "effect": effect, "conditions": conditions })
    };
    bytes
        .chunks_exact(2)
        .take(12)
        .enumerate()
        .map(rule)
        .collect()
}

fn load(rules: &[Value]) -> Option<Policy> {
    let text = json!({ "version": "1", "default_action": "deny", "rules": rules }).to_string();
    Policy::load(&text, Some(&Machine), &["/srv/work/state".into()]).ok()
}

fn context(caller: &Caller) -> Context<'_> {
    Context {
        backend_id: "s",
        caller,
        view: Some(&Machine),
        schemas: SCHEMAS.get_or_init(PathSchemas::default),
        roles: ROLES.get_or_init(ArgumentRoles::default),
        definitions: None,
        builtin: None,
        inline: None,
    }
}

static SCHEMAS: std::sync::OnceLock<PathSchemas> = std::sync::OnceLock::new();
static ROLES: std::sync::OnceLock<ArgumentRoles> = std::sync::OnceLock::new();

fn facts(tool: &str, arguments: &str, caller: &Caller) -> Option<Facts> {
    let frame = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"{tool}","arguments":{arguments}}}}}"#
    );
    let scan = scan_request(frame.as_bytes(), &Bounds::default()).ok()?;
    let context = context(caller);
    let facts = describe::client_request("tools/call", Some(ResourceType::Tool), &scan, &context);
    facts.ok().map(|facts| *facts)
}

/// One rule with one condition of the table, under either effect.
fn deny_sees_what_allow_sees(facts: &Facts, which: u8) {
    let (name, value) = CONDITIONS[usize::from(which) % CONDITIONS.len()];
    let value: Value = serde_json::from_str(value).expect("a condition of the table");
    let all = json!({ "id": "all", "effect": "allow", "conditions": { "tool_name": "*" } });
    let one = |effect| json!({ "id": "one", "effect": effect, "conditions": { name: value } });
    let allows = load(&[one("allow")]).expect("a policy");
    let denies = load(&[all, one("deny")]).expect("a policy");
    if allows.judge(facts).verdict().effect == Effect::Allow {
        let found = denies.judge(facts).verdict();
        assert_eq!(found.effect, Effect::Deny, "{name} {value} of {facts:?}");
    }
}

fuzz_target!(|input: (u8, u8, &[u8], &str, &str)| {
    let (tool, which, bytes, when, arguments) = input;
    let caller = Caller::local("u");
    let tool = TOOLS[usize::from(tool) % TOOLS.len()];
    let mut rules = rules(bytes);
    if !when.is_empty() {
        let effect = ["allow", "deny", "hitl"][usize::from(which) % 3];
        let own = json!({ "id": "when", "effect": effect, "conditions": { "when": when } });
        // One that cannot be read is refused as a whole.
        if load(std::slice::from_ref(&own)).is_some() {
            rules.push(own);
        }
    }
    let Some(facts) = facts(tool, arguments, &caller) else {
        return;
    };
    for row in FACTS {
        let _ = facts.get(row.id);
    }
    let Some(policy) = load(&rules) else {
        return;
    };
    let (first, second) = (policy.judge(&facts), policy.judge(&facts));
    assert_eq!(first.verdict(), second.verdict());
    let again = load(&rules).expect("the same policy");
    assert_eq!(again.judge(&facts).verdict(), first.verdict());
    let effect = first.verdict().effect;

    let listed = describe::listed(ResourceType::Tool, tool, &context(&caller));
    assert!(
        effect == Effect::Deny || policy.judge(&listed).may_be_listed(),
        "{tool} is hidden, and {arguments} passes under {rules:?}"
    );

    let (name, value) = CONDITIONS[usize::from(which) % CONDITIONS.len()];
    let value: Value = serde_json::from_str(value).expect("a condition of the table");
    rules.push(json!({ "id": "more", "effect": "deny", "conditions": { name: value } }));
    if let Some(more) = load(&rules) {
        let stricter = more.judge(&facts).verdict().effect;
        assert!(
            stricter == effect || stricter == Effect::Deny,
            "{rules:?} {arguments}"
        );
    }
    deny_sees_what_allow_sees(&facts, which);
});
