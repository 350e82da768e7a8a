//! Members of conditions that look as if they matched and do not: written for another kind of pattern, for a directory
//! without what is in it, or with characters that nobody sees.

use super::super::conditions::{ConditionDef, Conditions, WHEN};
use super::super::glob::is_literal;
use super::super::matcher::{Matcher, leaves_open};
use super::super::rule::Rule;
use crate::effect::Effect;
use crate::effects;
use crate::facts::URL_FACTS;

/// What is wrong, and what to write instead.
type Found = (String, String);

/// The methods of MCP that a policy is asked about, or that it may mean to be.
const METHODS: [&str; 31] = [
    "initialize",
    "ping",
    "tools/list",
    "tools/call",
    "resources/list",
    "resources/templates/list",
    "resources/read",
    "resources/subscribe",
    "resources/unsubscribe",
    "prompts/list",
    "prompts/get",
    "completion/complete",
    "logging/setLevel",
    "roots/list",
    "sampling/createMessage",
    "elicitation/create",
    "server/discover",
    "subscriptions/listen",
    "tasks/get",
    "tasks/list",
    "tasks/result",
    "tasks/update",
    "tasks/cancel",
    "notifications/initialized",
    "notifications/cancelled",
    "notifications/progress",
    "notifications/message",
    "notifications/roots/list_changed",
    "notifications/tools/list_changed",
    "notifications/resources/list_changed",
    "notifications/prompts/list_changed",
];

/// Names of directories that a rule means with all that is in them.
const DIRECTORIES: [&str; 29] = [
    "etc",
    "usr",
    "var",
    "home",
    "root",
    "bin",
    "sbin",
    "lib",
    "opt",
    "tmp",
    "proc",
    "sys",
    "dev",
    "boot",
    "mnt",
    "media",
    "srv",
    "run",
    ".ssh",
    ".aws",
    ".gnupg",
    ".kube",
    ".config",
    ".docker",
    ".azure",
    ".git",
    "secrets",
    "Documents",
    "Desktop",
];

fn lists(rule: &Rule) -> impl Iterator<Item = (&'static ConditionDef, &[String])> {
    let asked = rule.conditions.all().iter();
    asked.map(|asked| (asked.row, asked.texts.as_slice()))
}

/// The first member with a blank at an end or a character that cannot be seen.
pub(super) fn unseen_member(rule: &Rule) -> Option<Found> {
    lists(rule)
        .filter(|(row, _)| !matches!(row.matcher, Matcher::Expression))
        .find_map(|(row, texts)| texts.iter().find_map(|text| unseen(row.key, text)))
}

/// The first member of the rule that never does what it seems to.
pub(super) fn deceptive(rule: &Rule, methods: &[&str]) -> Option<Found> {
    let of_kind = |matcher: &Matcher, key: &str, text: &str| match matcher {
        Matcher::Name { .. } => regular(key, text).or_else(|| method(key, text, methods)),
        Matcher::Path(_) => relative(key, text).or_else(|| regular(key, text)),
        _ => None,
    };
    let mut found = lists(rule).filter_map(|(row, texts)| {
        let mut members = texts.iter();
        members.find_map(|text| of_kind(&row.matcher, row.key, text))
    });
    found
        .next()
        .or_else(|| directory_alone(rule))
        .or_else(|| open_address(rule))
        .or_else(|| url_as_text(rule))
        .or_else(|| by_effects_alone(rule))
}

/// A directory where everything in it is meant, in a rule that keeps calls off.
fn directory_alone(rule: &Rule) -> Option<Found> {
    let holds_off = rule.effect != Effect::Allow;
    let mut of_paths =
        lists(rule).filter(|(row, _)| holds_off && matches!(row.matcher, Matcher::Path(_)));
    of_paths.find_map(|(row, texts)| texts.iter().find_map(|text| bare(row.key, text, texts)))
}

/// A rule that keeps calls off one port of an address of this machine or its networks, and leaves the others open.
fn open_address(rule: &Rule) -> Option<Found> {
    let holds_off = rule.effect != Effect::Allow;
    let mut of_urls =
        lists(rule).filter(|(row, _)| holds_off && matches!(row.matcher, Matcher::Url));
    of_urls.find_map(|(row, texts)| {
        let found = texts.iter().find_map(|text| leaves_open(text));
        found.map(|(message, hint)| (format!("{} {message}", row.key), hint))
    })
}

/// An expression that compares the text of a URL: other spellings of the same address pass it by.
fn url_as_text(rule: &Rule) -> Option<Found> {
    const SCHEMES: [&str; 4] = ["http://", "https://", "ws://", "wss://"];
    let text = rule.conditions.list(WHEN)?.first()?;
    let names_one = SCHEMES.iter().any(|scheme| text.contains(scheme));
    let mut known = URL_FACTS.iter().map(|id| id.row().name);
    let is_text = names_one && !known.any(|name| text.contains(name));
    is_text.then(|| {
        (
            "compares the text of a URL: other spellings of its address pass it by".to_owned(),
            "write url_pattern or host, or compare url_host and url_path in the expression"
                .to_owned(),
        )
    })
}

/// Blanks at an end, and characters that take no room: the name that is meant has none.
fn unseen(key: &str, text: &str) -> Option<Found> {
    let shown = spelt(text);
    if shown != text {
        let plain: String = text.chars().filter(|c| !is_unseen(*c)).collect();
        return Some((
            format!(
                "{key} \"{shown}\" has an invisible character, and matches only names that have it too"
            ),
            format!("write \"{}\"", plain.trim()),
        ));
    }
    (text.trim() != text).then(|| {
        (
            format!("{key} \"{text}\" begins or ends with a blank, and matches only names that do so too"),
            format!("write \"{}\"", text.trim()),
        )
    })
}

/// The text with its unseen characters spelt out.
fn spelt(text: &str) -> String {
    let spell = |c: char| {
        if is_unseen(c) {
            format!("\\u{{{:x}}}", u32::from(c))
        } else {
            c.to_string()
        }
    };
    text.chars().map(spell).collect()
}

/// Controls, characters without width, marks of direction, and blanks that are not the usual one.
fn is_unseen(c: char) -> bool {
    c.is_control()
        || c.is_whitespace() && c != ' '
        || matches!(
            c,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
        )
        || matches!(c, '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}')
        || matches!(c, '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}')
        || matches!(c, '\u{e0000}'..='\u{e0fff}')
}

/// A regular expression where a glob stands.
fn regular(key: &str, text: &str) -> Option<Found> {
    let of_names = !key.contains("path");
    let dotted = text
        .match_indices(".*")
        .chain(text.match_indices(".+"))
        .any(|(at, _)| {
            let before = text.get(..at).and_then(|before| before.chars().next_back());
            // `files.*` are the tools of a group, `/.*` the hidden files of a directory.
            of_names && before.is_none_or(|c| !c.is_alphanumeric())
        });
    let marked = text.starts_with('^')
        || text.ends_with('$')
        || text.contains("\\.")
        || text.contains("\\d")
        || text.contains("\\w")
        || (text.contains('(') && text.contains('|') && text.contains(')'));
    (dotted || marked).then(|| {
        let glob = text
            .trim_start_matches('^')
            .trim_end_matches('$')
            .replace("\\.", ".")
            .replace(".*", "*")
            .replace(".+", "?*");
        let plain = !glob.contains(['\\', '(', '|']);
        (
            format!("{key} \"{text}\" looks like a regular expression, but is read as a glob, in which only * and ? are special"),
            if plain {
                format!("write \"{glob}\"")
            } else {
                "give a list of globs, one for each".to_owned()
            },
        )
    })
}

/// A method that neither MCP nor another protocol has.
fn method(key: &str, text: &str, others: &[&str]) -> Option<Found> {
    let known = |method: &&&str| Matcher::Name { fold: false }.covers(text, method);
    let all = || METHODS.iter().chain(others);
    if key != "mcp_method" || all().any(|method| known(&method)) {
        return None;
    }
    let near = all().min_by_key(|method| distance(method, text))?;
    Some((
        format!("{key} \"{text}\" is not a method of MCP or of a model API"),
        format!("did you mean \"{near}\"? names count with their case"),
    ))
}

/// Letters to change, add or take out to make one text the other.
fn distance(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().map(|c| c.to_ascii_lowercase()).collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for c in one.chars().map(|c| c.to_ascii_lowercase()) {
        let mut diagonal = row.first().copied().unwrap_or(0);
        let mut left = diagonal.saturating_add(1);
        let mut next = vec![left];
        for (to, above) in other.iter().zip(row.iter().skip(1)) {
            let changed = diagonal.saturating_add(usize::from(c != *to));
            left = changed
                .min(above.saturating_add(1))
                .min(left.saturating_add(1));
            diagonal = *above;
            next.push(left);
        }
        row = next;
    }
    row.last().copied().unwrap_or(0)
}

/// `*.pem`: one star stands for no `/`, and every path begins with one.
fn relative(key: &str, text: &str) -> Option<Found> {
    let wild = text.starts_with(['*', '?']) && !text.starts_with("**") && !text.contains(':');
    (wild && text != "*").then(|| {
        let rest = text.trim_start_matches("*/");
        (
            format!("{key} \"{text}\" never matches: every path begins with /, and * does not stand for that"),
            format!("write \"**/{rest}\""),
        )
    })
}

/// `/etc`: the directory itself and nothing in it.
fn bare(key: &str, text: &str, beside: &[String]) -> Option<Found> {
    let top = text.trim_end_matches('/');
    let last = top.rsplit('/').next().unwrap_or_default();
    let slash = top.len() < text.len();
    let means_all =
        is_literal(text) && !text.contains(':') && (slash || DIRECTORIES.contains(&last));
    let below = format!("{top}/**");
    let covered = beside
        .iter()
        .any(|other| *other == below || other == "**" || other == "/**");
    (means_all && !top.is_empty() && !covered).then(|| {
        (
            format!("{key} \"{text}\" matches the directory itself and nothing in it"),
            format!("write \"{below}\", which matches the directory too"),
        )
    })
}

/// Returns what else a deny on side effects denies: tools whose side effects are not known.
fn by_effects_alone(rule: &Rule) -> Option<Found> {
    let c: &Conditions = &rule.conditions;
    if rule.effect != Effect::Deny {
        return None;
    }
    c.list("side_effects")?;
    let is_listed = |tool: &String| is_literal(tool) && effects::of_tool(tool).is_some();
    let listed = c
        .list("tool_name")
        .is_some_and(|tools| tools.iter().all(is_listed));
    (!listed).then(|| {
        (
            "also denies every tool whose side effects are not known: it may have these".to_owned(),
            "declare what your tools do under servers.NAME.tools in durward.yaml, or make it a hitl rule, which asks about them".to_owned(),
        )
    })
}
