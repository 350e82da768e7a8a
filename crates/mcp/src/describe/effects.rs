//! What is known of a call's effects beside the tool's name: what the operator declares, what the definition says,
//! what the arguments show.

use gate::effects::{
    Annotations, ArgumentSigns, Evidence, OperationSet, SchemaSigns, is_option_like,
    is_output_name, of_evidence, propose,
};
use gate::facts::{Fact, Facts};
use gate::paths::Role;
use gate::paths::reach::read_literals;
use wire::scan::Leaf;
use wire::text::unescape;

use super::{Context, Defined, is_content, nested, role_of};

/// Schemes of addresses beyond this machine, and the beginning of a network share.
const OUTWARD: [&str; 8] = [
    "http://", "https://", "ws://", "wss://", "ftp://", "ftps://", "sftp://", "\\\\",
];
/// Deepest schema that is walked; a deeper one counts as suspicious.
const SCHEMA_DEPTH_MAX: usize = 32;

/// States the tool's name, and what is known of the call's effects beside it.
pub(super) fn state(facts: &mut Facts, tool: &str, leaves: &[Leaf<'_>], context: &Context<'_>) {
    facts.tool_name = Fact::Known(tool.to_owned());
    if facts.operation.is_some() {
        // A built-in server states what its tools do.
        return;
    }
    let definitions = context.definitions;
    let mut evidence = Evidence {
        declared: context.roles.declared(tool),
        annotations: definitions
            .map(|definitions| Defined::annotations(definitions, tool))
            .unwrap_or_default(),
        suspicious_schema: context.schemas.is_suspicious(tool),
        arguments: ArgumentSigns::default(),
    };
    facts.evidence = evidence;
    // Arguments only make a class worse: nothing is worse than unknown.
    if facts.effects().is_some_and(|effects| !effects.is_open) {
        evidence.arguments = signs(tool, leaves, context);
    }
    facts.state_evidence(evidence);
}

/// Returns what the arguments show.
fn signs(tool: &str, leaves: &[Leaf<'_>], context: &Context<'_>) -> ArgumentSigns {
    let mut signs = ArgumentSigns::default();
    for leaf in leaves {
        let Some(text) = unescape(leaf.value) else {
            continue;
        };
        if leaf.is_name {
            signs.output |= is_output_name(&text);
            continue;
        }
        let role = role_of(tool, leaf, context);
        if is_content(role, leaf, tool, context) {
            continue;
        }
        let declared = context
            .roles
            .of(tool, &leaf.key)
            .and_then(super::Said::role);
        signs.output |= declared == Some(Role::Destination);
        read_string(&text, nested::DEPTH_MAX, &mut signs);
    }
    signs
}

/// Adds what a string shows, and what the strings show that some server parses out of it. `depth` is how many more
/// strings within one another are read; what is deeper counts as an option.
fn read_string(text: &str, depth: usize, signs: &mut ArgumentSigns) {
    signs.option |= is_option_like(text);
    signs.address |= is_address(text);
    let Some(found) = read_literals(text) else {
        return;
    };
    let Some(depth) = depth.checked_sub(1).filter(|_| !found.is_truncated) else {
        signs.option = true;
        return;
    };
    for literal in found.strings {
        match literal.is_name {
            true => signs.output |= is_output_name(&literal.text),
            false => read_string(&literal.text, depth, signs),
        }
    }
}

/// Returns whether a string is an address beyond this machine.
fn is_address(text: &str) -> bool {
    let text = text.trim_start();
    OUTWARD.iter().any(|scheme| {
        text.get(..scheme.len())
            .is_some_and(|start| start.eq_ignore_ascii_case(scheme))
    })
}

/// Returns whether a schema has an argument that no tool has that only reads.
pub(super) fn has_suspicious_argument(schema: &serde_json::Value) -> bool {
    schema_signs(schema).is_suspicious()
}

/// Returns what the names of a schema's arguments show, those of nested ones included.
fn schema_signs(schema: &serde_json::Value) -> SchemaSigns {
    let mut signs = SchemaSigns::default();
    add_signs(schema, SCHEMA_DEPTH_MAX, &mut signs);
    signs
}

fn add_signs(schema: &serde_json::Value, depth: usize, signs: &mut SchemaSigns) {
    let Some(depth) = depth.checked_sub(1) else {
        *signs = SchemaSigns::UNREAD;
        return;
    };
    match schema {
        serde_json::Value::Object(members) => {
            for (name, child) in members {
                let properties = (name == "properties").then(|| child.as_object()).flatten();
                let names = properties.into_iter().flat_map(serde_json::Map::keys);
                names.for_each(|name| signs.add(name));
                add_signs(child, depth, signs);
            }
        }
        serde_json::Value::Array(children) => {
            for child in children {
                add_signs(child, depth, signs);
            }
        }
        _ => {}
    }
}

/// Returns what a tool's definition, a JSON text, says of its effects.
#[must_use]
pub fn annotations_of(definition: &str) -> Annotations {
    if !definition.contains("annotations") {
        return Annotations::default();
    }
    let entry = serde_json::from_str(definition).unwrap_or_default();
    annotations_in(&entry)
}

fn annotations_in(entry: &serde_json::Value) -> Annotations {
    let hint = |name: &str| entry.get("annotations")?.get(name)?.as_bool();
    Annotations {
        read_only: hint("readOnlyHint"),
        destructive: hint("destructiveHint"),
        open_world: hint("openWorldHint"),
        approved: false,
    }
}

/// Returns whether nothing that counts says what a tool with this definition does, so that a rule on operations allows no
/// call of it. `by_person`: a person approved the definition.
#[must_use]
pub fn is_unknown(tool: &str, definition: &str, by_person: bool) -> bool {
    let entry: serde_json::Value = serde_json::from_str(definition).unwrap_or_default();
    let schema = entry.get("inputSchema");
    let evidence = Evidence {
        annotations: Annotations {
            approved: by_person,
            ..annotations_in(&entry)
        },
        suspicious_schema: schema.is_some_and(has_suspicious_argument),
        ..Evidence::default()
    };
    of_evidence(tool, &evidence).is_open
}

/// Returns what a person is proposed to declare of a tool with this definition; `None` where nothing tells what it does.
#[must_use]
pub fn proposed(tool: &str, definition: &str) -> Option<OperationSet> {
    let entry: serde_json::Value = serde_json::from_str(definition).unwrap_or_default();
    let schema = entry.get("inputSchema");
    let schema = schema.map(schema_signs).unwrap_or_default();
    propose(tool, annotations_in(&entry), schema)
}
