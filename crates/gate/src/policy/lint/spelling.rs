//! Members of conditions that load and yet match nothing, because they are written in the manner of
//! another tool. One such member among good ones is a hole that nobody sees.

use crate::approval::NEVER_REMEMBERED;
use crate::paths::is_file_uri;
use crate::policy::rule::{Conditions, Rule};
use crate::policy::scheme_of;

/// What is wrong, and what to write instead.
type Found = (String, String);

/// The first member of the rule that cannot mean what it seems to.
pub(super) fn misspelt(rule: &Rule) -> Option<Found> {
    let c = &rule.conditions;
    in_paths(c)
        .or_else(|| in_names(c))
        .or_else(|| in_words(c))
        .or_else(|| never_remembered(rule))
}

fn members<'c>(
    lists: impl IntoIterator<Item = (&'static str, &'c Option<Vec<String>>)>,
) -> impl Iterator<Item = (&'static str, &'c str)> {
    lists.into_iter().flat_map(|(name, list)| {
        let list = list.as_deref().unwrap_or_default();
        list.iter().map(move |text| (name, text.as_str()))
    })
}

fn in_paths(c: &Conditions) -> Option<Found> {
    let mut patterns = members([
        ("path_pattern", &c.path_pattern),
        ("source_path", &c.source_path),
        ("dest_path", &c.dest_path),
    ]);
    patterns.find_map(|(name, pattern)| {
        if is_file_uri(pattern) {
            let path = pattern.get(5..).unwrap_or_default().trim_start_matches('/');
            return Some((
                format!("{name} \"{pattern}\" matches no file: what a file: URI leads to is compared as a path"),
                format!("write \"/{path}\""),
            ));
        }
        if has_alternatives(pattern) || has_class(pattern) {
            return Some((
                format!("{name} \"{pattern}\": brackets and braces stand for themselves in paths"),
                "give a list of patterns, one for each".to_owned(),
            ));
        }
        None
    })
}

fn in_names(c: &Conditions) -> Option<Found> {
    let mut globs = members([
        ("tool_name", &c.tool_name),
        ("backend_id", &c.backend_id),
        ("mcp_method", &c.mcp_method),
    ]);
    globs
        .find(|(_, glob)| has_alternatives(glob))
        .map(|(name, glob)| {
            (
                format!("{name} \"{glob}\": braces stand for themselves"),
                "give a list of names, one for each".to_owned(),
            )
        })
}

fn in_words(c: &Conditions) -> Option<Found> {
    let wild = |text: &str| text.contains(['*', '?']);
    members([("subject_id", &c.subject_id)])
        .find(|(_, subject)| wild(subject))
        .map(|(name, subject)| {
            (
                format!("{name} \"{subject}\" is compared as it stands: * and ? mean nothing there"),
                "name each caller, or write a when with subject_id.startsWith(…)".to_owned(),
            )
        })
        .or_else(|| {
            members([("extension", &c.extension)])
                .find(|(_, text)| wild(text) || text.trim_start_matches('.').contains('.'))
                .map(|(name, text)| {
                    let last = text.rsplit('.').next().unwrap_or_default();
                    (
                        format!("{name} \"{text}\" never matches: an extension is what stands behind the last dot, without wildcards"),
                        format!("write \".{last}\", or a path_pattern \"**/*{text}\""),
                    )
                })
        })
        .or_else(|| {
            members([("scheme", &c.scheme)])
                .find(|(_, text)| scheme_of(&format!("{text}:")).as_deref() != Some(text))
                .map(|(name, text)| {
                    let plain = text.split(':').next().unwrap_or_default();
                    (
                        format!("{name} \"{text}\" is no scheme"),
                        format!("write it without what follows, as in \"{plain}\""),
                    )
                })
        })
}

fn never_remembered(rule: &Rule) -> Option<Found> {
    let mut borne = rule.cache_side_effects.iter();
    borne
        .find(|effect| NEVER_REMEMBERED.contains(&effect.as_str()))
        .map(|effect| {
            (
                format!("cache_side_effects has {effect}, which is asked about each time whatever a rule says"),
                "take it out".to_owned(),
            )
        })
}

/// Whether a text has `{a,b}`.
fn has_alternatives(text: &str) -> bool {
    text.split('{').skip(1).any(|rest| {
        rest.split_once('}')
            .is_some_and(|(inside, _)| inside.contains(','))
    })
}

/// Whether a text has what looks like a class of characters: `[a-z]`, `[!x]`. Other brackets are names
/// that real files have.
fn has_class(text: &str) -> bool {
    text.split('[').skip(1).any(|rest| {
        rest.split_once(']').is_some_and(|(inside, _)| {
            inside.starts_with(['!', '^'])
                || matches!(inside.as_bytes(), [from, b'-', to, ..] if from < to)
        })
    })
}
