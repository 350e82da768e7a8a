//! From JSON text to rules, with errors that say where and what to do.

use sha2::{Digest as _, Sha256};

use super::conditions::{ConditionDef, Conditions};
use super::document::{Document, Entry, PolicyError};
use super::matcher::word;
use super::rule::Rule;
use crate::channel::Channel;
use crate::effect::Effect;
use crate::effects::SIDE_EFFECTS;

/// Most rules in one policy.
pub const RULES_MAX: usize = 20_000;
/// Longest policy text, in bytes.
pub const POLICY_BYTES_MAX: usize = 8 * 1024 * 1024;

/// Reads a policy. `{}` is the policy without rules: it refuses everything.
///
/// # Errors
/// The first fault, with line, column and a hint.
pub fn parse(text: &str) -> Result<Vec<Rule>, PolicyError> {
    let doc = Document { text };
    if text.len() > POLICY_BYTES_MAX {
        return Err(doc.error(
            text,
            "the policy is longer than 8 MiB",
            Some("split it".into()),
        ));
    }
    let mut rules = Vec::new();
    for entry in doc.entries(text)? {
        match entry.name.as_ref() {
            "version" => version(doc, &entry)?,
            "default_action" => default_action(doc, &entry)?,
            "rules" => rules = rule_list(doc, &entry)?,
            "$schema" | "description" => {}
            _ => {
                return Err(doc.unknown(
                    &entry,
                    "key",
                    &["version", "default_action", "rules", "description"],
                ));
            }
        }
    }
    Ok(rules)
}

fn version(doc: Document<'_>, entry: &Entry<'_>) -> Result<(), PolicyError> {
    match entry.value.get() {
        "\"1\"" | "1" => Ok(()),
        other => Err(doc.error(
            other,
            format!("policy version {other} is not supported"),
            Some("write \"version\": \"1\"".into()),
        )),
    }
}

fn default_action(doc: Document<'_>, entry: &Entry<'_>) -> Result<(), PolicyError> {
    if doc.string(entry.value, "default_action")? == "deny" {
        return Ok(());
    }
    Err(doc.error(
        entry.value.get(),
        "default_action can only be \"deny\"",
        Some("to allow everything, add a rule {\"effect\": \"allow\", \"conditions\": {\"tool_name\": \"*\"}}".into()),
    ))
}

fn rule_list<'a>(doc: Document<'a>, entry: &Entry<'a>) -> Result<Vec<Rule>, PolicyError> {
    let raw = doc.list(entry.value.get())?;
    if raw.len() > RULES_MAX {
        return Err(doc.error(
            entry.value.get(),
            format!("the policy has more than {RULES_MAX} rules"),
            None,
        ));
    }
    let mut rules: Vec<Rule> = Vec::with_capacity(raw.len());
    let mut seen = std::collections::HashMap::new();
    for (number, value) in raw.iter().enumerate() {
        let (rule, id_at) = rule(doc, value.get())?;
        if let Some(earlier) = seen.insert(rule.id.clone(), number + 1) {
            return Err(doc.error(
                id_at,
                format!("rule id \"{}\" is also the id of rule {earlier}", rule.id),
                Some("give each rule an id of its own, or leave ids out".into()),
            ));
        }
        rules.push(rule);
    }
    Ok(rules)
}

/// The members of a rule, as found.
struct Parts<'a> {
    id: Option<String>,
    id_at: &'a str,
    description: Option<String>,
    effect: Option<Effect>,
    conditions: Option<Conditions>,
    cache: Option<(Vec<String>, &'a str)>,
    approvers: Option<(Vec<Channel>, &'a str)>,
}

const RULE_KEYS: [&str; 6] = [
    "id",
    "description",
    "effect",
    "conditions",
    "cache_side_effects",
    "approvers",
];

fn rule_parts<'a>(doc: Document<'a>, text: &'a str) -> Result<Parts<'a>, PolicyError> {
    let mut parts = Parts {
        id: None,
        id_at: text,
        description: None,
        effect: None,
        conditions: None,
        cache: None,
        approvers: None,
    };
    for entry in doc.entries(text)? {
        match entry.name.as_ref() {
            "id" => {
                let given = doc.string(entry.value, "id")?;
                if given.trim().is_empty()
                    || given.len() > 128
                    || given.chars().any(char::is_control)
                {
                    return Err(doc.error(
                        entry.value.get(),
                        "a rule id has 1 to 128 printable characters",
                        None,
                    ));
                }
                parts.id_at = entry.value.get();
                parts.id = Some(given);
            }
            "description" => parts.description = Some(doc.string(entry.value, "description")?),
            "effect" => parts.effect = Some(read_effect(doc, &entry)?),
            "conditions" => parts.conditions = Some(Conditions::read(doc, &entry)?),
            "cache_side_effects" => {
                parts.cache = Some((
                    word::read(doc, &entry, "side effect", &SIDE_EFFECTS)?,
                    entry.value.get(),
                ))
            }
            "approvers" => parts.approvers = Some((approvers(doc, &entry)?, entry.value.get())),
            name if ConditionDef::named(name).is_some() => {
                return Err(doc.error(
                    entry.value.get(),
                    format!("{name} is a condition; put it into \"conditions\""),
                    Some(format!("put it into \"conditions\": {{\"{name}\": …}}")),
                ));
            }
            _ => return Err(doc.unknown(&entry, "rule key", &RULE_KEYS)),
        }
    }
    Ok(parts)
}

fn rule<'a>(doc: Document<'a>, text: &'a str) -> Result<(Rule, &'a str), PolicyError> {
    let Parts {
        id,
        id_at,
        description,
        effect,
        conditions,
        cache,
        approvers,
    } = rule_parts(doc, text)?;
    let missing = |message: &str, hint: &str| doc.error(text, message, Some(hint.into()));
    let effect = effect.ok_or_else(|| {
        missing(
            "the rule has no effect",
            "add \"effect\": \"allow\", \"deny\" or \"hitl\"",
        )
    })?;
    let conditions = conditions.ok_or_else(|| {
        missing(
            "the rule has no conditions",
            "add \"conditions\": {\"tool_name\": \"…\"}",
        )
    })?;
    let of_hitl = [
        ("cache_side_effects", cache.as_ref().map(|(_, at)| *at)),
        ("approvers", approvers.as_ref().map(|(_, at)| *at)),
    ];
    for (key, at) in of_hitl {
        if let (Some(at), true) = (at, effect != Effect::Hitl) {
            let hint = "remove it, or make the effect \"hitl\"";
            let message = format!("{key} belongs to hitl rules only");
            return Err(doc.error(at, message, Some(hint.into())));
        }
    }
    let id = id.unwrap_or_else(|| derived_id(text));
    let cache_side_effects = cache.map(|(list, _)| list).unwrap_or_default();
    Ok((
        Rule {
            id,
            description,
            effect,
            conditions,
            cache_side_effects,
            approvers: approvers.map_or_else(|| Channel::DEFAULT.to_vec(), |(list, _)| list),
        },
        id_at,
    ))
}

/// Who may answer: at least one channel, or nobody could.
fn approvers<'a>(doc: Document<'a>, entry: &Entry<'a>) -> Result<Vec<Channel>, PolicyError> {
    let list = words(doc, entry, "approver", &Channel::ALL, Channel::label)?;
    if list.is_empty() {
        return Err(doc.error(
            entry.value.get(),
            "approvers is empty, so nobody could answer",
            Some("name cli, client or console, or make the effect \"deny\"".into()),
        ));
    }
    Ok(list)
}

/// `rule_` and eight hex digits of the rule's text without blanks.
fn derived_id(text: &str) -> String {
    let compact: String = text.chars().filter(|c| !c.is_whitespace()).collect();
    let hash = Sha256::digest(compact.as_bytes());
    let hex: String = hash.iter().take(4).map(|b| format!("{b:02x}")).collect();
    format!("rule_{hex}")
}

fn read_effect<'a>(doc: Document<'a>, entry: &Entry<'a>) -> Result<Effect, PolicyError> {
    let text = doc.string(entry.value, "effect")?;
    let known = Effect::ALL
        .into_iter()
        .find(|effect| effect.label() == text);
    known.ok_or_else(|| {
        let labels = Effect::ALL.map(Effect::label);
        doc.unknown_word(entry.value.get(), &text, "effect", &labels)
    })
}

fn words<'a, T: Copy>(
    doc: Document<'a>,
    entry: &Entry<'a>,
    what: &str,
    all: &[T],
    label: fn(T) -> &'static str,
) -> Result<Vec<T>, PolicyError> {
    let known: Vec<&str> = all.iter().map(|t| label(*t)).collect();
    let list = word::read(doc, entry, what, &known)?;
    let found = |text: &String| all.iter().copied().find(|t| label(*t) == text);
    Ok(list.iter().filter_map(found).collect())
}
