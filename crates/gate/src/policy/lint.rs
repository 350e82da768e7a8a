//! Rules that load and yet do nothing: they can never match, or a stronger rule always decides first.
//!
//! What is reported is certain as far as the text of the policy goes; what is not reported may still
//! do nothing.

mod deceptive;

use std::fmt;

use super::conditions::{Asked, Conditions, WHEN};
use super::glob::is_literal;
use super::matcher::Matcher;
use super::rule::Rule;
use crate::effect::Effect;
use crate::effects::{self, CallEffects, Operation, OperationSet};
use crate::facts::ResourceType;

/// Something about one rule that its author did not mean.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Warning {
    /// The rule's number in the policy, from 1.
    pub number: usize,
    /// The rule.
    pub id: String,
    /// Lowercase sentence.
    pub message: String,
    /// What to do about it.
    pub hint: String,
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "rule {} \"{}\": {}\n  hint: {}",
            self.number, self.id, self.message, self.hint
        )
    }
}

/// Most rules that are held against each other for shadowing: the work grows with the square.
pub const SHADOW_RULES_MAX: usize = 1_000;

/// Looks through the rules of a policy. `methods` are those under which calls of other protocols than MCP are judged.
#[must_use]
pub fn warnings(rules: &[Rule], methods: &[&str]) -> Vec<Warning> {
    let mut out = Vec::new();
    for (at, rule) in rules.iter().enumerate() {
        let own = deceptive::unseen_member(rule)
            .or_else(|| impossible(rule))
            .or_else(|| by_name_and_operation(rule))
            .or_else(|| misspelt(rule))
            .or_else(|| deceptive::deceptive(rule, methods))
            .or_else(|| allows_pathless(rule));
        let found = own.or_else(|| {
            let stronger = rules.iter().take(SHADOW_RULES_MAX);
            shadow(rule, stronger).map(|by| {
                (
                    format!(
                        "never decides: every call that it matches is also matched by the {} rule \"{}\"",
                        by.effect.label(),
                        by.id
                    ),
                    "narrow that rule, or remove this one".to_owned(),
                )
            })
        });
        out.extend(found.map(|(message, hint)| Warning {
            number: at + 1,
            id: rule.id.clone(),
            message,
            hint,
        }));
    }
    out
}

/// Most names of tools that a warning lists.
const TOOLS_NAMED_MAX: usize = 5;

/// Tools of one server of which nothing says what they do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownTools {
    /// The server's name.
    pub server: String,
    /// Their names; at least one.
    pub tools: Vec<String>,
}

/// Returns a warning for each rule that allows by operations alone and so lets no call of these tools pass.
#[must_use]
pub fn unknown_tools(rules: &[Rule], servers: &[UnknownTools]) -> Vec<Warning> {
    let mut out = Vec::new();
    for (at, rule) in rules.iter().enumerate() {
        let c = &rule.conditions;
        let operations = c
            .list("operations")
            .filter(|_| rule.effect == Effect::Allow);
        let Some(operations) = operations.filter(|_| c.list("tool_name").is_none()) else {
            continue;
        };
        if operations.iter().any(|of| of == Operation::Unknown.label()) {
            continue;
        }
        let is_meant = |unknown: &&UnknownTools| {
            let named = c.list("backend_id");
            named.is_none_or(|named| {
                named
                    .iter()
                    .any(|name| !is_literal(name) || *name == unknown.server)
            })
        };
        out.extend(servers.iter().filter(is_meant).map(|unknown| {
            let UnknownTools { server, tools } = unknown;
            let shown = tools.iter().take(TOOLS_NAMED_MAX).map(String::as_str);
            let more = match tools.len() > TOOLS_NAMED_MAX {
                true => ", ...",
                false => "",
            };
            Warning {
                number: at + 1,
                id: rule.id.clone(),
                message: format!(
                    "allows no call of {} of \"{server}\", because nothing says what they do: {}{more}",
                    match tools.len() {
                        1 => "1 tool".to_owned(),
                        several => format!("{several} tools"),
                    },
                    shown.collect::<Vec<_>>().join(", ")
                ),
                hint: format!(
                    "declare them under servers.{server}.tools in durward.yaml; `durward pins approve {server} --all` proposes how"
                ),
            }
        }));
    }
    out
}

/// The first member of the rule that loads and yet cannot mean what it seems to, because it is written in
/// the manner of another tool. One such member among good ones is a hole that nobody sees.
fn misspelt(rule: &Rule) -> Option<(String, String)> {
    let mut asked = rule.conditions.all().iter();
    let found = asked.find_map(|asked| {
        let (row, mut texts) = (asked.row, asked.texts.iter());
        texts.find_map(|text| row.matcher.misspelt(row.key, text))
    });
    found.or_else(|| never_remembered(rule))
}

fn never_remembered(rule: &Rule) -> Option<(String, String)> {
    let mut borne = rule.cache_side_effects.iter();
    borne
        .find(|effect| effects::NEVER_REMEMBERED.contains(&effect.as_str()))
        .map(|effect| {
            (
                format!("cache_side_effects has {effect}, but calls with this side effect are always asked about"),
                "take it out".to_owned(),
            )
        })
}

/// Whether an allow rule means its paths and lets calls without any through: `all` holds of an empty list.
fn allows_pathless(rule: &Rule) -> Option<(String, String)> {
    let c = &rule.conditions;
    let plain: String = c.list(WHEN)?.first()?.split_whitespace().collect();
    let asks = path_lists(c).next().is_some();
    let vacuous = rule.effect == Effect::Allow
        && !asks
        && plain.contains("paths.all(")
        && !plain.contains("size(paths)")
        && !plain.contains("paths.size()");
    vacuous.then(|| {
        (
            "also allows calls without any path: all() is true for an empty list".to_owned(),
            "write size(paths) > 0 && before it".to_owned(),
        )
    })
}

/// Why no call can meet these conditions.
fn impossible(rule: &Rule) -> Option<(String, String)> {
    let c = &rule.conditions;
    if let Some(empty) = c.all().iter().find(|asked| asked.texts.is_empty()) {
        let key = empty.row.key;
        return Some((
            format!("can never match: the list of {key} is empty"),
            "add a member, or leave the condition out".into(),
        ));
    }
    for (name, list) in path_lists(c) {
        let reasons: Option<Vec<_>> = list.iter().map(|p| unreachable_path(p)).collect();
        if let Some((pattern, why, hint)) = reasons.and_then(|reasons| reasons.into_iter().next()) {
            return Some((
                format!("can never match: {name} \"{pattern}\" {why}"),
                hint.to_owned(),
            ));
        }
    }
    tool_contradiction(rule)
}

/// The conditions over paths, by their keys.
fn path_lists(c: &Conditions) -> impl Iterator<Item = (&'static str, &[String])> {
    let paths = |asked: &&Asked| matches!(asked.row.matcher, Matcher::Path(_));
    let asked = c.all().iter().filter(paths);
    asked.map(|asked| (asked.row.key, asked.texts.as_slice()))
}

/// Why no canonical path matches a pattern, where that is so.
fn unreachable_path(pattern: &str) -> Option<(&str, &'static str, &'static str)> {
    let anchored =
        pattern.starts_with(['/', '*', '?']) || pattern.starts_with("~/") || pattern.contains(':');
    if !anchored {
        return Some((
            pattern,
            "is not absolute, and every path is made absolute before it is compared",
            "begin it with /, ~/ or **/",
        ));
    }
    let after = pattern.find(['*', '?']).and_then(|at| pattern.get(at..))?;
    let odd = after.split('/').skip(1);
    let mut odd = odd.filter(|part| matches!(*part, "." | ".."));
    odd.next().map(|_| {
        (
            pattern,
            "has . or .. behind a wildcard, and both are resolved before paths are compared",
            "write the path without them",
        )
    })
}

/// Conditions on tools that contradict each other.
fn tool_contradiction(rule: &Rule) -> Option<(String, String)> {
    let c = &rule.conditions;
    let tools = c.list("tool_name")?;
    let has = |list: &[String], word: &str| list.iter().any(|text| text == word);
    if let Some(kinds) = c.list("resource_type")
        && !has(kinds, ResourceType::Tool.label())
    {
        return Some((
            "can never match: it names a tool, and its resource_type is not \"tool\"".into(),
            "remove one of the two conditions".into(),
        ));
    }
    let names = Matcher::Name { fold: false };
    if let Some(methods) = c.list("mcp_method")
        && !methods.iter().any(|m| names.covers(m, "tools/call"))
    {
        return Some((
            "can never match: it names a tool, and its mcp_method does not include tools/call"
                .into(),
            "remove one of the two conditions".into(),
        ));
    }
    let literal: Option<Vec<&str>> = tools
        .iter()
        .map(|t| is_literal(t).then_some(t.as_str()))
        .collect();
    let literal = literal?;
    c.list("operations")
        .and_then(|listed| operations_contradict(rule.effect, &literal, listed))
        .or_else(|| {
            c.list("side_effects")
                .and_then(|listed| side_effects_contradict(rule.effect, &literal, listed))
        })
}

/// Returns why no call of these tools can have one of the operations that are listed.
fn operations_contradict(
    effect: Effect,
    tools: &[&str],
    listed: &[String],
) -> Option<(String, String)> {
    let listed = listed.iter().filter_map(|text| Operation::from_label(text));
    let of = listed.fold(OperationSet::NONE, |set, of| set.with(OperationSet::of(of)));
    let may_match = |effects: &CallEffects| match (effect, effects.is_open) {
        (_, true) => true,
        (Effect::Allow, false) => effects.operations.without(of).is_empty(),
        (Effect::Deny | Effect::Hitl, false) => {
            effects.operations.meets(of) || effects.may_do_anything()
        }
    };
    if tools.iter().any(|tool| may_match(&effects::of_name(tool))) {
        return None;
    }
    let tool = tools.first()?;
    let label = effects::of_name(tool).operation()?.label();
    Some((
        format!("can never match: the operation of tool \"{tool}\" is {label}"),
        format!("write \"{label}\" in operations, or leave operations out"),
    ))
}

/// Returns why no call of these tools can have one of the side effects that are listed.
fn side_effects_contradict(
    effect: Effect,
    tools: &[&str],
    listed: &[String],
) -> Option<(String, String)> {
    let wants = |tool: &&str| match effects::of_name(tool).side_effects {
        Some(effects) => effects
            .iter()
            .any(|effect| listed.iter().any(|text| text == effect)),
        None => effect != Effect::Allow,
    };
    (!tools.iter().any(wants)).then(|| {
        (
            "can never match: none of its tools is known to have these side effects".to_owned(),
            "leave side_effects out; the tool's name is condition enough".to_owned(),
        )
    })
}

/// Returns why an allow rule on names and operations matches fewer tools than it seems to: a verb in a name does not
/// make an operation known.
fn by_name_and_operation(rule: &Rule) -> Option<(String, String)> {
    let c = &rule.conditions;
    let (tools, operations) = (c.list("tool_name")?, c.list("operations")?);
    let lists_unknown = operations.iter().any(|of| of == Operation::Unknown.label());
    let is_unknown = |tool: &&String| !is_literal(tool) || effects::of_name(tool).is_open;
    let tool = tools.iter().find(is_unknown)?;
    (rule.effect == Effect::Allow && !lists_unknown && tool != "*").then(|| {
        (
            format!("operations says nothing of tools like \"{tool}\" until you declare them: a tool's name does not say what it does"),
            "declare them under servers.NAME.tools in durward.yaml, or leave operations out".to_owned(),
        )
    })
}

/// A rule of higher precedence that matches whatever `rule` matches.
fn shadow<'r>(rule: &Rule, mut others: impl Iterator<Item = &'r Rule>) -> Option<&'r Rule> {
    let outranks = |other: &Rule| match rule.effect {
        Effect::Deny => false,
        Effect::Hitl => other.effect == Effect::Deny,
        Effect::Allow => matches!(other.effect, Effect::Deny | Effect::Hitl),
    };
    others.find(|other| outranks(other) && is_covered(&rule.conditions, &other.conditions))
}

/// Whether whatever meets `narrow` meets `wide` too, as far as the text shows: every member of a list of
/// `narrow` is covered by one of `wide`; what `wide` does not ask covers everything.
fn is_covered(narrow: &Conditions, wide: &Conditions) -> bool {
    wide.all().iter().all(|outer| {
        let covers = |text: &String| {
            let mut members = outer.texts.iter();
            members.any(|member| outer.row.matcher.covers(member, text))
        };
        let inner = narrow.list(outer.row.key);
        inner.is_some_and(|texts| texts.iter().all(covers))
    })
}
