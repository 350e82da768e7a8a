//! Path globs over the places that arguments may lead to.

use super::read::{globs, has_alternatives};
use super::url::{self, UrlPattern};
use super::{Misspelt, Part};
use crate::effect::Effect;
use crate::facts::{Fact, Facts};
use crate::paths::{PathArgument, PathView, Role, is_file_uri};
use crate::policy::document::{Document, Entry, PolicyError};
use crate::policy::glob;
use crate::policy::pattern::Pattern;
use crate::policy::seen::Seen;
use crate::policy::target::Target;
use crate::policy::tri::Tri;
use crate::urls::{UrlArgument, UrlPosition, UrlReading, host_aliases, is_url};

/// Globs over the path arguments of one part.
#[derive(Debug)]
pub(in crate::policy) struct Paths {
    pub(super) patterns: Vec<Pattern>,
    pub(super) part: Part,
    /// As [`over`] takes it.
    all: bool,
    /// The patterns, to be held against what is no plain place; none where `all` is asked for.
    targets: Vec<Target>,
    /// Those of them that are URLs.
    urls: Vec<UrlPattern>,
    /// Those that may match the text of a URL, though they are none.
    loose: Vec<Pattern>,
}

impl Paths {
    pub fn new(
        texts: &[String],
        part: Part,
        effect: Effect,
        view: Option<&dyn PathView>,
    ) -> Result<Self, String> {
        let mut patterns = Vec::with_capacity(texts.len());
        let mut targets = Vec::new();
        let (mut urls, mut loose) = (Vec::new(), Vec::new());
        for text in texts {
            let compiled = Pattern::path(text, view)?;
            if UrlPattern::is_meant(text) {
                urls.extend(UrlPattern::parse(text).ok());
            }
            if !text.starts_with(['/', '~']) {
                loose.extend_from_slice(&compiled);
            }
            patterns.extend(compiled);
            if effect != Effect::Allow {
                let spellings = Pattern::spellings(text, view);
                targets.extend(spellings.iter().map(|text| Target::of(text)));
            }
        }
        Ok(Self {
            patterns,
            part,
            all: effect == Effect::Allow,
            targets,
            urls,
            loose,
        })
    }

    /// Returns whether a reading of a URL matches one of the patterns.
    fn matches_url(&self, reading: &UrlReading) -> bool {
        let mut urls = self.urls.iter();
        urls.any(|pattern| pattern.matches(reading, self.all))
    }

    /// Compares the URLs of the call with patterns for rules that refuse or ask.
    fn is_any_url(&self, facts: &Facts) -> Tri {
        if self.urls.is_empty() && self.loose.is_empty() {
            return Tri::No;
        }
        let is_loose = |reading: &UrlReading| {
            let matches = |text: &str| self.loose.iter().any(|p| p.matches(text, ""));
            let mut paths = reading.paths.iter();
            paths.any(|path| {
                let mut aliases = host_aliases(&reading.host, reading.class).iter();
                matches(&reading.with_host(&reading.host, path))
                    || aliases.any(|host| matches(&reading.with_host(host, path)))
            })
        };
        match url::over(facts, false, &|reading| {
            self.matches_url(reading) || is_loose(reading)
        }) {
            Tri::Unknown if self.urls.is_empty() => Tri::No,
            found => found,
        }
    }

    /// Compares paths and URLs with patterns of which some are URLs, for rules that allow.
    fn is_every_url(&self, facts: &Facts) -> Tri {
        let urls = &facts.reach.urls;
        let is_path = |argument: &PathArgument| !is_url(&argument.text);
        let mut known = facts.paths.known().into_iter().flatten();
        let has_paths = known.any(|argument| !argument.content && is_path(argument));
        let paths = match has_paths || facts.paths.is_unknown() {
            true => over(facts, true, &is_path, &|place| {
                self.patterns.iter().any(|p| p.matches(place, ""))
            }),
            false => Tri::Yes,
        };
        let counted = |url: &UrlArgument| url.position != UrlPosition::Nested;
        let has_urls = urls.is_unread() || urls.list().iter().any(counted);
        let of_urls = match has_urls || !has_paths {
            true => url::over(facts, true, &|reading| self.matches_url(reading)),
            false => Tri::Yes,
        };
        paths.min(of_urls)
    }

    pub fn hold(&self, seen: &Seen<'_>) -> Tri {
        let facts = seen.facts();
        let is_of_part = |argument: &PathArgument| match (self.part, argument.role) {
            (Part::Any, _)
            | (Part::Source, Role::Source)
            | (Part::Destination, Role::Destination) => true,
            // What only looks like a path may be either; an allow rule does not count on that.
            (Part::Source | Part::Destination, Role::Shape) => !self.all,
            (Part::Source | Part::Destination, Role::Path | Role::Source | Role::Destination) => {
                false
            }
        };
        if self.all && self.part == Part::Any && !self.urls.is_empty() {
            return self.is_every_url(facts);
        }
        let plain = over(facts, self.all, &is_of_part, &|place| {
            self.patterns.iter().any(|p| p.matches(place, ""))
        });
        if plain != Tri::Yes && !self.all && self.is_reached(seen) {
            return Tri::Yes;
        }
        match self.all {
            true => plain,
            false => plain.max(self.is_any_url(facts)),
        }
    }

    /// Whether what is no plain place may lead to a pattern's places.
    fn is_reached(&self, seen: &Seen<'_>) -> bool {
        let facts = seen.facts();
        let reach = &facts.reach;
        self.targets.iter().any(|target| {
            reach.relative.iter().any(|text| target.ends(text))
                || reach.globs.iter().any(|glob| target.meets(glob))
                || (seen.reaches_below() && seen.tops().any(|place| target.is_below(place)))
        })
    }
}

/// An allow rule that speaks of sources or destinations must not let a path of another part slip by:
/// each such path has to match one of its patterns.
#[derive(Debug)]
pub(in crate::policy) struct OtherPaths {
    patterns: Vec<Pattern>,
    has_source: bool,
    has_destination: bool,
}

impl OtherPaths {
    /// What follows from the conditions over paths of an allow rule; `None` where nothing does.
    pub fn of<'p>(tests: impl Iterator<Item = (Part, &'p [Pattern])>) -> Option<Self> {
        let mut others = Self {
            patterns: Vec::new(),
            has_source: false,
            has_destination: false,
        };
        for (part, patterns) in tests {
            match part {
                Part::Any => return None,
                Part::Source => others.has_source = true,
                Part::Destination => others.has_destination = true,
            }
            others.patterns.extend_from_slice(patterns);
        }
        (!others.patterns.is_empty()).then_some(others)
    }

    pub fn hold(&self, facts: &Facts) -> Tri {
        let stray = |a: &&PathArgument| {
            !a.content
                && match a.role {
                    Role::Path | Role::Shape => true,
                    Role::Source => !self.has_source,
                    Role::Destination => !self.has_destination,
                }
        };
        let matches = |place: &str| self.patterns.iter().any(|p| p.matches(place, ""));
        match &facts.paths {
            Fact::Known(paths) => {
                let strays = paths.iter().filter(stray);
                Tri::all(strays.map(|a| every_place(a, &matches)))
            }
            Fact::Unknown => Tri::Unknown,
            Fact::Absent => Tri::Yes,
        }
    }
}

/// One condition over paths. `all`: every selected path that is not content has to match in every
/// place it may lead to, and there has to be one; else any place of any path suffices.
pub(super) fn over(
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
        if facts.reach.every_place().any(test) {
            return Tri::Yes;
        }
        let unread = Tri::from(facts.reach.unread).min(Tri::Unknown);
        let plain = Tri::any(paths.iter().filter(|a| select(a)).map(|a| {
            if a.meaning.places.iter().any(|place| test(place)) {
                Tri::Yes
            } else if a.meaning.uncertain {
                Tri::Unknown
            } else {
                Tri::No
            }
        }));
        return plain.max(unread);
    }
    let mut selected = paths.iter().filter(|a| select(a) && !a.content).peekable();
    if selected.peek().is_none() {
        return Tri::No;
    }
    Tri::all(selected.map(|a| every_place(a, test)))
}

fn every_place(argument: &PathArgument, test: &dyn Fn(&str) -> bool) -> Tri {
    let meaning = &argument.meaning;
    let mut leads_to = meaning.places.iter().chain(&meaning.parts);
    if !leads_to.all(|place| test(place)) {
        Tri::No
    } else if argument.meaning.uncertain
        || argument.meaning.ambiguous
        || argument.meaning.places.is_empty()
    {
        // Without a place nothing is known of where it leads; "all" would be true of nothing.
        Tri::Unknown
    } else {
        Tri::Yes
    }
}

pub(super) fn read<'a>(doc: Document<'a>, entry: &Entry<'a>) -> Result<Vec<String>, PolicyError> {
    globs(doc, entry, glob::path)
}

/// Whether every path that `inner` matches is matched by `outer`.
pub(super) fn covers(outer: &str, inner: &str) -> bool {
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

pub(super) fn misspelt(key: &str, pattern: &str) -> Option<Misspelt> {
    if is_file_uri(pattern) {
        let path = pattern.get(5..).unwrap_or_default().trim_start_matches('/');
        return Some((
            format!(
                "{key} \"{pattern}\" matches no file: what a file: URI leads to is compared as a path"
            ),
            format!("write \"/{path}\""),
        ));
    }
    if let Some(found) = url::as_path(key, pattern) {
        return Some(found);
    }
    (has_alternatives(pattern) || has_class(pattern)).then(|| {
        (
            format!("{key} \"{pattern}\": brackets and braces are not special in paths"),
            "give a list of patterns, one for each".to_owned(),
        )
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
