//! Rules made ready: patterns compiled, conditions held against facts.

use crate::facts::{Fact, Facts, ResourceType};
use crate::paths::canonical::extension;
use crate::paths::{PathArgument, PathView, Role, trimmed, without_line_ends};

use super::effects;
use super::operation::{self, Operation};
use super::pattern::Pattern;
use super::rule::{Effect, Rule, WHEN};
use super::shell::fold;
use super::tri::Tri;

/// Names the demand that an allow rule about sources or destinations makes of every other path.
pub const OTHER_PATHS: &str = "other paths";

/// A rule with its patterns compiled.
#[derive(Debug)]
pub(super) struct Compiled {
    pub(super) effect: Effect,
    /// As [`super::rule::Conditions::specificity`] has it: every decision asks for it.
    pub(super) specificity: usize,
    pub(super) tool_name: Option<Vec<Pattern>>,
    backend_id: Option<Vec<Pattern>>,
    mcp_method: Option<Vec<Pattern>>,
    pub(super) path_pattern: Option<Vec<Pattern>>,
    pub(super) source_path: Option<Vec<Pattern>>,
    pub(super) dest_path: Option<Vec<Pattern>>,
}

/// What is derived from the facts once per judgement.
pub(super) struct Seen<'f> {
    facts: &'f Facts,
    tool_folded: String,
    backend_folded: String,
    operation: Option<Operation>,
    effects: Option<&'static [&'static str]>,
}

impl<'f> Seen<'f> {
    pub fn new(facts: &'f Facts) -> Self {
        let tool = facts.tool_name.known();
        Self {
            facts,
            tool_folded: tool.map(|t| fold(t)).unwrap_or_default(),
            backend_folded: fold(&facts.backend_id),
            operation: tool.map_or_else(|| operation_of_method(facts), |t| operation::infer(t)),
            effects: tool.and_then(|t| effects::of_tool(t)),
        }
    }

    pub fn facts(&self) -> &'f Facts {
        self.facts
    }

    /// The tool's name in lower case; empty where there is none.
    pub fn tool_folded(&self) -> &str {
        &self.tool_folded
    }

    pub fn operation(&self) -> Option<Operation> {
        self.operation
    }

    pub fn effects(&self) -> Option<&'static [&'static str]> {
        self.effects
    }
}

/// Reading a resource and getting a prompt are reads; other methods have no operation.
fn operation_of_method(facts: &Facts) -> Option<Operation> {
    match facts.resource_type {
        Some(ResourceType::Resource | ResourceType::Prompt) => Some(Operation::Read),
        Some(ResourceType::Tool | ResourceType::Server) | None => None,
    }
}

impl Compiled {
    pub fn new(rule: &Rule, view: Option<&dyn PathView>) -> Result<Self, String> {
        let c = &rule.conditions;
        let names = |list: &Option<Vec<String>>, fold| -> Result<_, String> {
            list.as_ref()
                .map(|l| l.iter().map(|p| Pattern::name(p, fold)).collect())
                .transpose()
        };
        let paths = |list: &Option<Vec<String>>| -> Result<Option<Vec<Pattern>>, String> {
            let Some(list) = list else { return Ok(None) };
            let mut out = Vec::with_capacity(list.len());
            for pattern in list {
                out.extend(Pattern::path(pattern, view)?);
            }
            Ok(Some(out))
        };
        Ok(Self {
            effect: rule.effect,
            specificity: c.specificity(),
            tool_name: names(&c.tool_name, true)?,
            backend_id: names(&c.backend_id, true)?,
            mcp_method: names(&c.mcp_method, false)?,
            path_pattern: paths(&c.path_pattern)?,
            source_path: paths(&c.source_path)?,
            dest_path: paths(&c.dest_path)?,
        })
    }

    /// Whether the rule matches: all its conditions, cheap ones first.
    pub fn matches(&self, rule: &Rule, seen: &Seen<'_>) -> Tri {
        let mut out = Tri::Yes;
        // One after the other: a condition that does not hold spares the rest.
        self.walk(rule, seen, |_, value| {
            out = out.min(value);
            out != Tri::No
        });
        out
    }

    /// Tells `each` every condition by its name and whether it holds (one that the rule does not
    /// ask does), until `each` says that it has heard enough.
    pub fn walk(
        &self,
        rule: &Rule,
        seen: &Seen<'_>,
        mut each: impl FnMut(&'static str, Tri) -> bool,
    ) {
        if self.walk_plain(rule, seen, &mut each) && self.walk_paths(rule, seen.facts, &mut each) {
            // Last: an expression costs more than all the others.
            let when = rule.conditions.when.as_ref();
            each(
                WHEN,
                when.map_or(Tri::Yes, |when| when.holds(seen, rule.effect)),
            );
        }
    }

    fn walk_plain(
        &self,
        rule: &Rule,
        seen: &Seen<'_>,
        each: &mut impl FnMut(&'static str, Tri) -> bool,
    ) -> bool {
        let (c, facts) = (&rule.conditions, seen.facts);
        let tool = || {
            name(
                self.tool_name.as_deref(),
                &facts.tool_name,
                &seen.tool_folded,
            )
        };
        let subject = || {
            c.subject_id
                .as_ref()
                .is_none_or(|list| list.contains(&facts.subject_id))
        };
        let kind = || {
            c.resource_type
                .as_ref()
                .is_none_or(|list| facts.resource_type.is_some_and(|t| list.contains(&t)))
        };
        let operation = || {
            c.operations
                .as_ref()
                .is_none_or(|list| list.contains(&seen.operation.unwrap_or(Operation::Unknown)))
        };
        let effects = || {
            c.side_effects.as_ref().is_none_or(|list| {
                seen.effects
                    .is_some_and(|e| e.iter().any(|effect| list.iter().any(|l| l == effect)))
            })
        };
        let method = || {
            self.mcp_method
                .as_ref()
                .is_none_or(|patterns| any_name(patterns, &facts.method, ""))
        };
        let backend = || {
            self.backend_id
                .as_ref()
                .is_none_or(|patterns| any_name(patterns, &facts.backend_id, &seen.backend_folded))
        };
        each("tool_name", tool())
            && each("subject_id", subject().into())
            && each("resource_type", kind().into())
            && each("operations", operation().into())
            && each("side_effects", effects().into())
            && each("mcp_method", method().into())
            && each("backend_id", backend().into())
    }

    fn walk_paths(
        &self,
        rule: &Rule,
        facts: &Facts,
        each: &mut impl FnMut(&'static str, Tri) -> bool,
    ) -> bool {
        let all = self.effect == Effect::Allow;
        let shape = |role| !all && role == Role::Shape;
        let by_pattern = |patterns: &Option<Vec<Pattern>>,
                          select: &dyn Fn(&PathArgument) -> bool| {
            patterns.as_ref().map_or(Tri::Yes, |patterns| {
                over_paths(facts, all, select, &|place| {
                    patterns.iter().any(|p| p.matches(place, ""))
                })
            })
        };
        let extension = || {
            rule.conditions.extension.as_ref().map_or(Tri::Yes, |list| {
                over_paths(facts, all, &|_| true, &|place| {
                    extension(place).is_some_and(|e| list.iter().any(|l| *l == e))
                })
            })
        };
        let scheme = || {
            rule.conditions
                .scheme
                .as_ref()
                .map_or(Tri::Yes, |list| scheme(facts, all, list))
        };
        let source = |a: &PathArgument| a.role == Role::Source || shape(a.role);
        let destination = |a: &PathArgument| a.role == Role::Destination || shape(a.role);
        each("path_pattern", by_pattern(&self.path_pattern, &|_| true))
            && each("extension", extension())
            && each("source_path", by_pattern(&self.source_path, &source))
            && each("dest_path", by_pattern(&self.dest_path, &destination))
            && each(OTHER_PATHS, self.strays(facts))
            && each("scheme", scheme())
    }

    /// An allow rule that speaks of sources or destinations must not let a path of another part slip
    /// by: each such path has to match one of its patterns.
    fn strays(&self, facts: &Facts) -> Tri {
        let roles = self.source_path.iter().chain(&self.dest_path).flatten();
        if self.effect != Effect::Allow
            || self.path_pattern.is_some()
            || roles.clone().next().is_none()
        {
            return Tri::Yes;
        }
        let stray = |a: &&PathArgument| {
            !a.content
                && match a.role {
                    Role::Path | Role::Shape => true,
                    Role::Source => self.source_path.is_none(),
                    Role::Destination => self.dest_path.is_none(),
                }
        };
        match &facts.paths {
            Fact::Known(paths) => Tri::all(
                paths
                    .iter()
                    .filter(stray)
                    .map(|a| every_place(a, &|place| roles.clone().any(|p| p.matches(place, "")))),
            ),
            Fact::Unknown => Tri::Unknown,
            Fact::Absent => Tri::Yes,
        }
    }
}

fn name(patterns: Option<&[Pattern]>, fact: &Fact<String>, folded: &str) -> Tri {
    match (patterns, fact) {
        (None, _) => Tri::Yes,
        (Some(patterns), Fact::Known(text)) => any_name(patterns, text, folded).into(),
        (Some(_), Fact::Unknown) => Tri::Unknown,
        (Some(_), Fact::Absent) => Tri::No,
    }
}

fn any_name(patterns: &[Pattern], text: &str, folded: &str) -> bool {
    patterns.iter().any(|p| p.matches(text, folded))
}

/// One condition over paths. `all`: every selected path that is not content has to match in every
/// place it may lead to, and there has to be one; else any place of any path suffices.
fn over_paths(
    facts: &Facts,
    all: bool,
    select: &dyn Fn(&PathArgument) -> bool,
    test: &dyn Fn(&str) -> bool,
) -> Tri {
    let paths = match &facts.paths {
        Fact::Known(paths) => paths,
        Fact::Unknown => return Tri::Unknown,
        Fact::Absent => return Tri::No,
    };
    if !all {
        return Tri::any(paths.iter().filter(|a| select(a)).map(|a| {
            if a.meaning.places.iter().any(|place| test(place)) {
                Tri::Yes
            } else if a.meaning.uncertain {
                Tri::Unknown
            } else {
                Tri::No
            }
        }));
    }
    let mut selected = paths.iter().filter(|a| select(a) && !a.content).peekable();
    if selected.peek().is_none() {
        return Tri::No;
    }
    Tri::all(selected.map(|a| every_place(a, test)))
}

fn every_place(argument: &PathArgument, test: &dyn Fn(&str) -> bool) -> Tri {
    if !argument.meaning.places.iter().all(|place| test(place)) {
        Tri::No
    } else if argument.meaning.uncertain || argument.meaning.places.is_empty() {
        // Without a place nothing is known of where it leads; "all" would be true of nothing.
        Tri::Unknown
    } else {
        Tri::Yes
    }
}

/// `all`: the URI and every path that is not content have to be of a listed scheme, and one of them has
/// to be there; else any of them suffices.
fn scheme(facts: &Facts, all: bool, list: &[String]) -> Tri {
    let (Fact::Known(_) | Fact::Absent, Fact::Known(_) | Fact::Absent) = (&facts.uri, &facts.paths)
    else {
        return Tri::Unknown;
    };
    let paths = facts.paths.known().into_iter().flatten();
    let texts = facts
        .uri
        .known()
        .into_iter()
        .chain(paths.filter(|a| !a.content).map(|a| &a.text));
    let mut known = texts.map(|text| scheme_of(text).is_some_and(|scheme| list.contains(&scheme)));
    if all {
        let first = known.next();
        (first == Some(true) && known.all(|k| k)).into()
    } else {
        known.any(|k| k).into()
    }
}

/// The scheme of a URI (RFC 3986 §3.1), lower case, as URL parsers find it: blanks around it and line
/// ends in it do not count.
pub(crate) fn scheme_of(text: &str) -> Option<String> {
    let (scheme, _) = trimmed(text).split_once(':')?;
    let whole = without_line_ends(scheme);
    let scheme = whole.as_deref().unwrap_or(scheme);
    let mut chars = scheme.chars();
    let starts = chars.next().is_some_and(|c| c.is_ascii_alphabetic());
    (starts && chars.all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c)))
        .then(|| scheme.to_lowercase())
}
