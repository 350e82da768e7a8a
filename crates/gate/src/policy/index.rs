//! Finds the rules that can match a call without holding each against it.
//!
//! What is found may still not match; what is not found certainly does not.

use ahash::AHashMap as HashMap;

use crate::facts::Fact;
use crate::paths::PathArgument;
use crate::paths::canonical::extension;

use super::compiled::Compiled;
use super::judge::Numbers;
use super::pattern::Pattern;
use super::rule::Rule;
use super::seen::Seen;

/// Rules by tool, and those of a tool (or of none) by their paths.
#[derive(Debug, Default)]
pub(super) struct Index {
    /// Rules that name this tool exactly (folded).
    tools: HashMap<String, Shelf>,
    /// Rules with a wildcard for the tool name, or without that condition.
    others: Shelf,
}

/// Each rule stands in the first of these that fits it.
#[derive(Debug, Default)]
struct Shelf {
    /// Rules that need a path at or below this one.
    anchors: HashMap<String, Vec<u32>>,
    /// Rules that need a path of this extension.
    extensions: HashMap<String, Vec<u32>>,
    /// All rules of the two before: where a path is not known, each may match.
    by_path: Vec<u32>,
    /// All others.
    rest: Vec<u32>,
}

impl Index {
    pub fn of<'r>(rules: impl Iterator<Item = (&'r Rule, &'r Compiled)>) -> Self {
        let mut index = Self::default();
        for (number, (rule, compiled)) in (0_u32..).zip(rules) {
            let literals: Option<Vec<&str>> = compiled
                .tool_names()
                .and_then(|patterns| patterns.iter().map(Pattern::literal).collect());
            match literals {
                Some(names) => names.iter().for_each(|name| {
                    let shelf = index.tools.entry((*name).to_owned()).or_default();
                    shelf.put(number, rule, compiled);
                }),
                None => index.others.put(number, rule, compiled),
            }
        }
        index
    }

    /// The rules that may match, in the policy's order, each once.
    pub fn candidates(&self, seen: &Seen<'_>) -> Numbers {
        let mut found = Numbers::new();
        self.others.find(seen, &mut found);
        if let Some(shelf) = self.tools.get(seen.tool_folded()) {
            shelf.find(seen, &mut found);
        }
        found.sort_unstable();
        found.dedup();
        found
    }
}

impl Shelf {
    fn put(&mut self, number: u32, rule: &Rule, compiled: &Compiled) {
        if let Some(anchors) = anchors(compiled) {
            add(&mut self.anchors, anchors, number);
            self.by_path.push(number);
        } else if let Some(extensions) = rule.conditions.list("extension") {
            let extensions = extensions.iter().map(String::as_str);
            add(&mut self.extensions, extensions, number);
            self.by_path.push(number);
        } else {
            self.rest.push(number);
        }
    }

    fn find(&self, seen: &Seen<'_>, found: &mut Numbers) {
        let reach = &seen.facts().reach;
        // What is no plain place may lead anywhere.
        let leads_anywhere = seen.reaches_below()
            || reach.unread
            || !reach.relative.is_empty()
            || !reach.globs.is_empty();
        found.extend_from_slice(&self.rest);
        match &seen.facts().paths {
            Fact::Absent if !leads_anywhere => {}
            Fact::Known(paths) if !leads_anywhere && paths.iter().all(is_resolved) => {
                let plain = paths.iter().flat_map(|argument| &argument.meaning.places);
                self.of_places(plain.map(String::as_str).chain(reach.every_place()), found);
            }
            Fact::Known(_) | Fact::Unknown | Fact::Absent => found.extend_from_slice(&self.by_path),
        }
    }

    fn of_places<'p>(&self, places: impl Iterator<Item = &'p str>, found: &mut Numbers) {
        let mut before = None;
        for place in places.filter(|place| before.replace(*place) != Some(*place)) {
            if !self.anchors.is_empty() {
                let slashes = place.bytes().enumerate().filter(|(_, byte)| *byte == b'/');
                let above = slashes.filter_map(|(at, _)| place.get(..at));
                for anchor in above.chain([place]) {
                    found.extend_from_slice(listed(&self.anchors, anchor));
                }
            }
            if !self.extensions.is_empty()
                && let Some(extension) = extension(place)
            {
                found.extend_from_slice(listed(&self.extensions, &extension));
            }
        }
    }
}

fn is_resolved(argument: &PathArgument) -> bool {
    !argument.meaning.uncertain && !argument.meaning.places.is_empty()
}

/// Where the paths have to be that one of the rule's conditions asks for; `None` where none of them
/// says so of all its patterns.
fn anchors(compiled: &Compiled) -> Option<Vec<&str>> {
    compiled
        .path_patterns()
        .filter(|patterns| !patterns.iter().any(Pattern::is_url))
        .find_map(|patterns| patterns.iter().map(Pattern::anchor).collect())
}

fn add<'k>(
    map: &mut HashMap<String, Vec<u32>>,
    keys: impl IntoIterator<Item = &'k str>,
    number: u32,
) {
    for key in keys {
        let list = map.entry(key.to_owned()).or_default();
        if list.last() != Some(&number) {
            list.push(number);
        }
    }
}

fn listed<'m>(map: &'m HashMap<String, Vec<u32>>, key: &str) -> &'m [u32] {
    map.get(key).map(Vec::as_slice).unwrap_or_default()
}
