//! From a request to the facts that the gate judges by.

use std::borrow::Cow;
use std::cell::Cell;
use std::sync::Arc;

use gate::Caller;
use gate::effects::Annotations;
use gate::facts::{Direction, Fact, Facts, ResourceType};
use gate::paths::canonical::Meaning;
use gate::paths::reach::{Reader, Text, may_say_below, reads_below};
use gate::paths::{
    PathArgument, PathView, Role, StepBudget, is_content_key, is_file_uri, looks_like_path,
    meanings, meanings_within, role_of_key,
};
use gate::pins::Quarantine;
use toolkit::mcp::Builtin;
use wire::jsonrpc::{member, string};
use wire::scan::{Bounds, Leaf, Scan, scan_request};
use wire::text::unescape;

mod address;
mod beside;
mod completion;
mod effects;
mod names;
mod nested;
mod outputs;
mod roles;
mod schemas;
mod subscribed;
pub use address::ELICIT;
pub use effects::{annotations_of, is_unknown, proposed};
pub use names::ArgumentNames;
pub use outputs::Outputs;
pub use roles::{ArgumentRoles, Said};
pub use schemas::PathSchemas;

/// What is known of the definitions that a session was shown.
pub trait Defined {
    /// The digest of a tool's definition, as its server listed it last.
    fn definition_digest(&self, tool: &str) -> Option<Arc<str>>;

    /// Whether a tool may not be shown or called.
    fn quarantine(&self, tool: &str) -> Option<Quarantine>;

    /// Whether what bears this name may not be reached, because the name cannot be seen.
    fn unseen_name(&self, name: &str) -> Option<Quarantine>;

    /// Returns what a tool's definition says of its effects, and whether a person approved it.
    fn annotations(&self, tool: &str) -> Annotations;
}

/// Steps that a call may take on the thread that serves everybody; what needs more is described elsewhere.
pub const INLINE_STEPS_MAX: u64 = 64 * 1024;

/// Bounds a description to [`INLINE_STEPS_MAX`] steps for each part of the call, and notes that it needs more.
#[derive(Debug, Default)]
pub struct InlineBound {
    is_exceeded: Cell<bool>,
}

impl InlineBound {
    /// Whether the description needs more steps. Its facts are not those of the whole call then.
    #[must_use]
    pub fn is_exceeded(&self) -> bool {
        self.is_exceeded.get()
    }
}

/// What describing needs to know beside the request.
pub struct Context<'c> {
    /// The server's name.
    pub backend_id: &'c str,
    /// The caller.
    pub caller: &'c Caller,
    /// The file system that the server sees, where it is ours.
    pub view: Option<&'c dyn PathView>,
    /// The tools that the server has listed, and their arguments that are paths.
    pub schemas: &'c PathSchemas,
    /// What the configuration says of arguments.
    pub roles: &'c ArgumentRoles,
    /// What a session learned of the tools' definitions, where there is a session.
    pub definitions: Option<&'c dyn Defined>,
    /// The server itself, where it is a built-in one: it states what its tools do.
    pub builtin: Option<&'c Builtin>,
    /// Bounds the steps below those of the call's size.
    pub inline: Option<&'c InlineBound>,
}

impl Context<'_> {
    /// Returns what reading these strings may cost.
    fn budget_of(&self, leaves: &[Leaf<'_>]) -> StepBudget {
        self.budget_for(leaves.iter().map(|leaf| leaf.value.len()).sum())
    }

    fn budget_for(&self, bytes: usize) -> StepBudget {
        let budget = StepBudget::for_input(bytes);
        match self.inline {
            Some(_) => budget.at_most(INLINE_STEPS_MAX),
            None => budget,
        }
    }

    /// Notes whether a part of the call needed more than its budget.
    fn note_spent(&self, budget: &StepBudget) {
        if let Some(inline) = self.inline.filter(|_| budget.is_exceeded()) {
            inline.is_exceeded.set(true);
        }
    }
}

/// Describes a request of the protocol's own traffic: who asks which server, and nothing more.
#[must_use]
pub fn control_request(method: &str, context: &Context<'_>) -> Facts {
    Facts {
        direction: Direction::ToServer,
        method: method.to_owned(),
        backend_id: context.backend_id.to_owned(),
        ..Facts::of(context.caller)
    }
}

/// The arguments of a call, as MCP has them: an object, or nothing. The rules see the members of one, and nothing of a text
/// that a lenient server might read in its place.
fn arguments_of<'s>(scan: &Scan<'s>) -> Result<&'s str, &'static str> {
    let arguments = member(&scan.params, "arguments").unwrap_or_default();
    match arguments.trim_start().as_bytes().first() {
        None | Some(b'{' | b'n') => Ok(arguments),
        Some(_) => Err("the arguments must be an object"),
    }
}

/// Describes a client's request.
///
/// # Errors
/// A sentence, where the request lacks what its method cannot do without.
pub fn client_request(
    method: &str,
    reaches_for: Option<ResourceType>,
    scan: &Scan<'_>,
    context: &Context<'_>,
) -> Result<Box<Facts>, &'static str> {
    let mut facts = Box::new(Facts {
        direction: Direction::ToServer,
        method: method.to_owned(),
        backend_id: context.backend_id.to_owned(),
        resource_type: reaches_for,
        paths: Fact::Known(Vec::new()),
        ..Facts::of(context.caller)
    });
    let text = |name| {
        member(&scan.params, name)
            .and_then(string)
            .map(Cow::into_owned)
    };
    match reaches_for {
        Some(ResourceType::Tool) => {
            let name = text("name").ok_or("tools/call needs the tool's name as a string")?;
            let arguments = arguments_of(scan)?;
            find_paths(&mut facts, &name, scan, arguments, context);
            define(&mut facts, &name, context);
            facts.unlisted = !context.schemas.has(&name);
            effects::state(&mut facts, &name, &scan.leaves, context);
        }
        Some(ResourceType::Resource) => {
            let uri = text("uri").ok_or("the request needs the resource's uri as a string")?;
            let known = vec![path_of_uri(&uri, context.view)];
            let text = Text {
                text: &uri,
                key: "uri",
                is_path: true,
                is_content: false,
            };
            let budget = context.budget_for(uri.len());
            let mut reader = Reader::new(&known, context.view, &budget);
            reader.take(text);
            facts.reach = reader.done(false);
            context.note_spent(&budget);
            facts.paths = Fact::Known(known);
            beside::add_others(&mut facts, scan, &["uri"], context);
            facts.quarantine = context.definitions.and_then(|d| d.unseen_name(&uri));
            facts.uri = Fact::Known(uri);
        }
        Some(ResourceType::Prompt) => {
            let name = text("name").ok_or("prompts/get needs the prompt's name as a string")?;
            arguments_of(scan)?;
            facts.quarantine = context.definitions.and_then(|d| d.unseen_name(&name));
            find_paths(&mut facts, "", scan, "", context);
        }
        Some(ResourceType::Server | ResourceType::Model) | None => {
            beside::find_paths_of_params(&mut facts, scan, context);
        }
    }
    Ok(facts)
}

/// States what is known of a tool's definition.
fn define(facts: &mut Facts, tool: &str, context: &Context<'_>) {
    let known = context.definitions;
    facts.quarantine = known.and_then(|d| d.quarantine(tool));
    facts.definition = match known.and_then(|d| d.definition_digest(tool)) {
        Some(digest) => Fact::Known(digest),
        None => Fact::Unknown,
    };
    if let Some(builtin) = context.builtin {
        builtin.define(tool, facts);
    }
}

/// States every path-like string of the arguments, and whatever else strings of the call may lead to.
fn find_paths(
    facts: &mut Facts,
    tool: &str,
    scan: &Scan<'_>,
    arguments: &str,
    context: &Context<'_>,
) {
    let budget = context.budget_of(&scan.leaves);
    let paths = paths_of(tool, &scan.leaves, context, &budget);
    let mut reader = Reader::new(&paths, context.view, &budget);
    take_leaves(&mut reader, tool, &scan.leaves, context);
    facts.reach = reader.done(is_below(tool, &scan.leaves, arguments));
    context.note_spent(&budget);
    facts.paths = Fact::Known(paths);
    beside::add_others(facts, scan, &["name", "arguments"], context);
}

/// Whether a call reads what lies below its places.
fn is_below(tool: &str, leaves: &[Leaf<'_>], arguments: &str) -> bool {
    // An escape may hide the word, in a name or in a string that is parsed again.
    let is_escaped = |text: &str| text.contains("\\u") || text.contains("\\\\");
    let may_say_so = |leaf: &Leaf<'_>| may_say_below(leaf.value) || is_escaped(leaf.value);
    let arguments = match leaves.iter().any(may_say_so) {
        true => arguments,
        false => "",
    };
    reads_below(tool, arguments)
}

/// Has all strings of the arguments read for what they may lead to, beside the path arguments.
fn take_leaves(reader: &mut Reader<'_>, tool: &str, leaves: &[Leaf<'_>], context: &Context<'_>) {
    for leaf in leaves {
        if leaf.is_name
            && !leaf
                .value
                .contains(|c: char| !c.is_ascii_alphanumeric() && c != '_')
        {
            continue;
        }
        let named = role_of(tool, leaf, context);
        if let Some(text) = unescape(leaf.value) {
            reader.take(Text {
                text: &text,
                key: &leaf.key,
                is_path: named.is_some(),
                is_content: is_text(named, leaf, tool, context),
            });
        }
    }
}

/// The part that an argument's name gives it: as the configuration says, by its name, by the schema.
fn role_of(tool: &str, leaf: &Leaf<'_>, context: &Context<'_>) -> Option<Role> {
    match leaf.is_name {
        true => None,
        false => role_of_argument(tool, &leaf.key, context),
    }
}

/// The same for a member of this name, wherever it stands.
fn role_of_argument(tool: &str, key: &str, context: &Context<'_>) -> Option<Role> {
    match context.roles.of(tool, key) {
        Some(said) => said.role(),
        None => {
            let by_schema = || context.schemas.says_path(tool, key).then_some(Role::Path);
            role_of_key(key).or_else(by_schema)
        }
    }
}

/// Whether a string is content that its server takes as it is: it is declared as text, or the operator says so.
fn is_text(named: Option<Role>, leaf: &Leaf<'_>, tool: &str, context: &Context<'_>) -> bool {
    is_content(named, leaf, tool, context)
        && (!context.schemas.says_structured(tool, &leaf.top)
            || context.roles.of(tool, &leaf.top) == Some(Said::Content))
}

/// Whether a string is what is written rather than where.
fn is_content(named: Option<Role>, leaf: &Leaf<'_>, tool: &str, context: &Context<'_>) -> bool {
    let said = |key| context.roles.of(tool, key) == Some(Said::Content);
    named.is_none()
        && (is_content_key(&leaf.key)
            || is_content_key(&leaf.top)
            || said(&leaf.key)
            || said(&leaf.top))
}

/// Describes a request that a server makes of its client; `asked` is its text.
#[must_use]
pub fn server_request(method: &str, asked: &[u8], context: &Context<'_>) -> Facts {
    let mut facts = Facts {
        direction: Direction::ToClient,
        method: method.to_owned(),
        backend_id: context.backend_id.to_owned(),
        resource_type: None,
        paths: Fact::Known(Vec::new()),
        ..Facts::of(context.caller)
    };
    if method == ELICIT {
        address::state(&mut facts, asked);
    }
    facts
}

/// Describes a client's answer to a request of its server, of which `asked` is known. A server does with a person's
/// answer whatever it likes, as with an argument, so its strings are read like arguments. The roots of a client are
/// its configuration and lead to nothing by themselves.
#[must_use]
pub fn client_answer(asked: &Facts, answer: &[u8], context: &Context<'_>) -> Facts {
    let mut facts = Facts {
        direction: Direction::ToServer,
        paths: Fact::Known(Vec::new()),
        ..asked.clone()
    };
    if facts.method == "roots/list" {
        return facts;
    }
    let is_form = facts.method == ELICIT;
    match beside::answer_as_params(answer, is_form) {
        Some(frame) => match scan_request(frame.as_bytes(), &Bounds::default()) {
            Ok(scan) => beside::add_others(&mut facts, &scan, &[], context),
            // One level deeper than it came, it is too deep to be read.
            Err(_) => facts.paths = Fact::Unknown,
        },
        None => facts.paths = Fact::Unknown,
    }
    facts
}

/// Describes an entry of a list: as a call of it would be described, arguments unknown.
#[must_use]
pub fn listed(reaches_for: ResourceType, name: &str, context: &Context<'_>) -> Facts {
    let mut facts = Facts {
        backend_id: context.backend_id.to_owned(),
        resource_type: Some(reaches_for),
        paths: Fact::Unknown,
        ..Facts::of(context.caller)
    };
    match reaches_for {
        ResourceType::Tool | ResourceType::Server | ResourceType::Model => {
            facts.method = "tools/call".into();
            define(&mut facts, name, context);
            effects::state(&mut facts, name, &[], context);
        }
        ResourceType::Prompt => facts.method = "prompts/get".into(),
        ResourceType::Resource => {
            facts.method = "resources/read".into();
            facts.uri = Fact::Known(name.to_owned());
            facts.reach.urls.add_from(name, "uri", false, false);
            facts.paths = Fact::Known(vec![path_of_uri(name, context.view)]);
        }
    }
    facts
}

/// Describes a resource template: which resource will be read is unknown.
#[must_use]
pub fn listed_template(context: &Context<'_>) -> Facts {
    Facts {
        uri: Fact::Unknown,
        paths: Fact::Unknown,
        ..listed(ResourceType::Resource, "", context)
    }
}

fn path_of_uri(uri: &str, view: Option<&dyn PathView>) -> PathArgument {
    let meaning = if is_file_uri(uri) || looks_like_path(uri) {
        meanings(uri, view)
    } else {
        Meaning {
            places: vec![uri.to_owned()],
            ..Meaning::default()
        }
    };
    PathArgument {
        text: uri.to_owned(),
        role: Role::Path,
        content: false,
        meaning,
    }
}

/// Every path-like string of the arguments: by its name, by the schema, or by its looks.
fn paths_of(
    tool: &str,
    leaves: &[Leaf<'_>],
    context: &Context<'_>,
    budget: &StepBudget,
) -> Vec<PathArgument> {
    let mut out = Vec::new();
    for leaf in leaves {
        let named = role_of(tool, leaf, context);
        let is_content = is_content(named, leaf, tool, context);
        let is_long = leaf.value.len() > 6 * gate::paths::SHAPE_BYTES_MAX;
        let is_read_again = !leaf.is_name && !is_text(named, leaf, tool, context);
        if named.is_none() && is_long && !is_read_again {
            // Even fully escaped it would be longer than a path by its looks may be.
            continue;
        }
        let Some(text) = unescape(leaf.value) else {
            continue;
        };
        if is_read_again {
            let outer = nested::OuterString {
                role: named,
                is_content,
            };
            let reading = nested::Reading {
                tool,
                context,
                budget,
            };
            nested::paths_in(&text, outer, reading, nested::DEPTH_MAX, &mut out);
        }
        let Some(role) = named.or_else(|| looks_like_path(&text).then_some(Role::Shape)) else {
            continue;
        };
        if text.is_empty() {
            continue;
        }
        out.push(PathArgument {
            role,
            content: is_content,
            meaning: meanings_within(&text, context.view, budget),
            text: text.into_owned(),
        });
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_call_is_searched_for_paths_too() {
        let cases: [(&str, &str, &[&str]); 7] = [
            (
                "subscriptions/listen",
                r#"{"notifications":{"toolsListChanged":true,"resourceSubscriptions":["note:x","file:///etc/x"]}}"#,
                &["note:x", "/etc/x"],
            ),
            (
                "subscriptions/listen",
                r#"{"notifications":{"resourceSubscriptions":"note:x","new":["/etc/x"]}}"#,
                &["note:x", "/etc/x"],
            ),
            (
                "completion/complete",
                r#"{"ref":{"type":"ref/resource","uri":"file:///{path}"},"argument":{"name":"path","value":"etc/pa"}}"#,
                &["/{path}", "/etc/pa", "/etc/pa"],
            ),
            (
                "completion/complete",
                r#"{"ref":{"type":"ref/prompt","name":"p"},"argument":{"name":"x","value":"/etc/"}}"#,
                &["/etc"],
            ),
            (
                "completion/complete",
                r#"{"ref":{"type":"ref/prompt","name":"p"},"argument":{"name":"x","value":"word"},"context":{"arguments":{"dir":"/etc"}}}"#,
                &["/etc"],
            ),
            (
                "other/method",
                r#"{"_meta":{"x":"/no"},"deep":[{"file":"/etc/x"}]}"#,
                &["/etc/x"],
            ),
            ("other/method", "{}", &[]),
        ];
        let schemas = PathSchemas::default();
        let context = Context {
            backend_id: "s",
            caller: &Caller::local("u"),
            view: None,
            schemas: &schemas,
            roles: &ArgumentRoles::default(),
            definitions: None,
            builtin: None,
            inline: None,
        };
        for (method, params, places) in cases {
            let frame =
                format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{params}}}"#);
            let scan = scan_request(frame.as_bytes(), &Bounds::default()).unwrap();
            let facts = client_request(method, None, &scan, &context).unwrap();
            let found: Vec<&str> = facts
                .paths
                .known()
                .unwrap()
                .iter()
                .map(|argument| argument.meaning.places[0].as_str())
                .collect();
            assert_eq!(found, places, "{params}");
        }
    }

    #[test]
    fn arguments_that_are_no_object_are_refused() {
        let cases = [
            (r#"{"path":"/a"}"#, true),
            ("{}", true),
            ("null", true),
            (r#""/srv/vault/key""#, false),
            (r#" ["/srv/vault/key"]"#, false),
            ("7", false),
            ("true", false),
        ];
        let schemas = PathSchemas::default();
        let context = Context {
            backend_id: "s",
            caller: &Caller::local("u"),
            view: None,
            schemas: &schemas,
            roles: &ArgumentRoles::default(),
            definitions: None,
            builtin: None,
            inline: None,
        };
        for (method, kind) in [
            ("tools/call", ResourceType::Tool),
            ("prompts/get", ResourceType::Prompt),
        ] {
            for (arguments, passes) in cases {
                let frame = format!(
                    r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{{"name":"t","arguments":{arguments}}}}}"#
                );
                let scan = scan_request(frame.as_bytes(), &Bounds::default()).unwrap();
                let read = client_request(method, Some(kind), &scan, &context);
                assert_eq!(read.is_ok(), passes, "{method} {arguments}");
            }
        }
    }
}
