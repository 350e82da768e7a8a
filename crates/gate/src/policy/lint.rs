//! Rules that load and yet do nothing: they can never match, or a stronger rule always decides first.
//!
//! What is reported is certain as far as the text of the policy goes; what is not reported may still
//! do nothing.

mod spelling;

use std::fmt;

use super::effects;
use super::glob::is_literal;
use super::operation::{self, Operation};
use super::pattern::Pattern;
use super::rule::{Conditions, Effect, Rule};
use super::shell;
use crate::facts::ResourceType;
use spelling::misspelt;

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

/// Looks through the rules of a policy.
#[must_use]
pub fn warnings(rules: &[Rule]) -> Vec<Warning> {
    let mut out = Vec::new();
    for (at, rule) in rules.iter().enumerate() {
        let own = impossible(&rule.conditions)
            .or_else(|| misspelt(rule))
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

/// Whether an allow rule means its paths and lets calls without any through: `all` holds of an empty list.
fn allows_pathless(rule: &Rule) -> Option<(String, String)> {
    let c = &rule.conditions;
    let plain: String = c.when.as_ref()?.text().split_whitespace().collect();
    let asks = c.path_pattern.is_some() || c.source_path.is_some() || c.dest_path.is_some();
    let vacuous = rule.effect == Effect::Allow
        && !asks
        && plain.contains("paths.all(")
        && !plain.contains("size(paths)")
        && !plain.contains("paths.size()");
    vacuous.then(|| {
        (
            "allows calls without any path too: all() holds of an empty list".to_owned(),
            "write size(paths) > 0 && before it".to_owned(),
        )
    })
}

/// Why no call can meet these conditions.
fn impossible(c: &Conditions) -> Option<(String, String)> {
    let empty = super::CONDITION_NAMES
        .into_iter()
        .find(|name| c.asked(name).is_some_and(|list| list.is_empty()));
    if let Some(name) = empty {
        return Some((
            format!("can never match: the list of {name} is empty"),
            "add a member, or leave the condition out".into(),
        ));
    }
    let lists = [
        ("path_pattern", &c.path_pattern),
        ("source_path", &c.source_path),
        ("dest_path", &c.dest_path),
    ];
    for (name, list) in lists {
        let reasons: Option<Vec<_>> = list
            .as_ref()
            .and_then(|list| list.iter().map(|p| unreachable_path(p)).collect());
        if let Some((pattern, why, hint)) = reasons.and_then(|reasons| reasons.into_iter().next()) {
            return Some((
                format!("can never match: {name} \"{pattern}\" {why}"),
                hint.to_owned(),
            ));
        }
    }
    tool_contradiction(c)
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
fn tool_contradiction(c: &Conditions) -> Option<(String, String)> {
    let tools = c.tool_name.as_ref()?;
    if let Some(kinds) = &c.resource_type
        && !kinds.contains(&ResourceType::Tool)
    {
        return Some((
            "can never match: it names a tool, and its resource_type is not \"tool\"".into(),
            "remove one of the two conditions".into(),
        ));
    }
    if let Some(methods) = &c.mcp_method
        && !methods.iter().any(|m| covers_name(m, "tools/call", false))
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
    if let Some(operations) = &c.operations
        && !literal
            .iter()
            .any(|tool| operations.contains(&operation::infer(tool).unwrap_or(Operation::Unknown)))
    {
        let tool = literal.first().copied().unwrap_or_default();
        let label = operation::infer(tool).unwrap_or(Operation::Unknown).label();
        return Some((
            format!("can never match: the operation of tool \"{tool}\" is {label}"),
            format!("write \"{label}\" in operations, or leave operations out"),
        ));
    }
    let wanted = c.side_effects.as_ref()?;
    let has = |tool: &&str| {
        effects::of_tool(tool)
            .is_some_and(|e| e.iter().any(|effect| wanted.iter().any(|w| w == effect)))
    };
    (!literal.iter().any(has)).then(|| {
        (
            "can never match: none of its tools is known to have these side effects".to_owned(),
            "leave side_effects out; the tool's name is condition enough".to_owned(),
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

/// Whether whatever meets `narrow` meets `wide` too, as far as the text shows.
fn is_covered(narrow: &Conditions, wide: &Conditions) -> bool {
    let names = |n: &Option<Vec<String>>, w: &Option<Vec<String>>, fold| {
        within(n, w, |inner, outer| covers_name(outer, inner, fold))
    };
    let paths = |n: &Option<Vec<String>>, w: &Option<Vec<String>>| {
        within(n, w, |inner, outer| covers_path(outer, inner))
    };
    let same = |n: &Option<Vec<String>>, w: &Option<Vec<String>>| within(n, w, |a, b| a == b);
    names(&narrow.tool_name, &wide.tool_name, true)
        && names(&narrow.backend_id, &wide.backend_id, true)
        && names(&narrow.mcp_method, &wide.mcp_method, false)
        && paths(&narrow.path_pattern, &wide.path_pattern)
        && paths(&narrow.source_path, &wide.source_path)
        && paths(&narrow.dest_path, &wide.dest_path)
        && same(&narrow.extension, &wide.extension)
        && same(&narrow.scheme, &wide.scheme)
        && same(&narrow.subject_id, &wide.subject_id)
        && same(&narrow.side_effects, &wide.side_effects)
        && within(&narrow.resource_type, &wide.resource_type, |a, b| a == b)
        && within(&narrow.operations, &wide.operations, |a, b| a == b)
        && wide.when.as_ref().is_none_or(|wide| {
            let narrow = narrow.when.as_ref();
            narrow.is_some_and(|narrow| narrow.text() == wide.text())
        })
}

/// Every member of `narrow` is covered by one of `wide`; what `wide` does not ask covers everything.
fn within<T>(
    narrow: &Option<Vec<T>>,
    wide: &Option<Vec<T>>,
    covers: impl Fn(&T, &T) -> bool,
) -> bool {
    match (narrow, wide) {
        (_, None) => true,
        (None, Some(_)) => false,
        (Some(narrow), Some(wide)) => narrow
            .iter()
            .all(|inner| wide.iter().any(|outer| covers(inner, outer))),
    }
}

/// Whether every name that `inner` matches is matched by `outer`.
fn covers_name(outer: &str, inner: &str, fold: bool) -> bool {
    let folded = |text: &str| {
        if fold {
            shell::fold(text)
        } else {
            text.to_owned()
        }
    };
    outer.chars().all(|c| c == '*')
        || folded(outer) == folded(inner)
        || is_literal(inner)
            && Pattern::name(outer, fold).is_ok_and(|p| p.matches(inner, &shell::fold(inner)))
}

/// Whether every path that `inner` matches is matched by `outer`.
fn covers_path(outer: &str, inner: &str) -> bool {
    if outer == inner || outer == "**" || (outer == "/**" && inner.starts_with('/')) {
        return true;
    }
    let plain = !inner.split('/').any(|part| matches!(part, "." | ".."));
    let below = outer
        .strip_suffix("/**")
        .filter(|top| !top.contains(['*', '?']) && plain)
        .is_some_and(|top| {
            inner
                .strip_prefix(top)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        });
    below
        || (plain && !inner.contains(['*', '?']))
            && Pattern::path(outer, None)
                .is_ok_and(|patterns| patterns.iter().any(|p| p.matches(inner, "")))
}
