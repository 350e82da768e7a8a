//! Patterns over URLs, and classes of the addresses that they lead to.

use super::read::{is_wild, texts};
use super::{Misspelt, name};
use crate::effect::Effect;
use crate::facts::{Fact, FactId, Facts};
use crate::policy::document::{Document, Entry, PolicyError};
use crate::policy::pattern::Pattern;
use crate::policy::seen::Seen;
use crate::policy::shell;
use crate::policy::tri::Tri;
use crate::urls::{
    AddressClass, UrlPosition, UrlReading, default_port, host_aliases, one_host, spellings,
};

/// Longest URL pattern, in bytes.
const PATTERN_BYTES_MAX: usize = 1_024;

/// A pattern `SCHEME://HOST[:PORT]/PATH`.
#[derive(Debug, Clone)]
pub(in crate::policy) struct UrlPattern {
    scheme: Glob,
    host: Glob,
    port: PortPattern,
    path: PathGlob,
}

/// A part of a pattern: any text, or what a glob matches.
#[derive(Debug, Clone)]
enum Glob {
    Any,
    Of(Vec<Pattern>),
}

#[derive(Debug, Clone, Copy)]
enum PortPattern {
    Any,
    OfScheme,
    Is(u16),
}

/// The path of a pattern.
#[derive(Debug, Clone)]
enum PathGlob {
    /// The pattern ends behind its host.
    Unsaid,
    Of(Glob),
}

impl Glob {
    fn of(text: &str) -> Result<Self, Misspelt> {
        if matches!(text, "*" | "**") {
            return Ok(Self::Any);
        }
        let bad = |message| (message, "write * for one part, ** for any".to_owned());
        Pattern::path(text, None).map(Self::Of).map_err(bad)
    }

    fn matches(&self, text: &str) -> bool {
        match self {
            Self::Any => true,
            Self::Of(patterns) => patterns.iter().any(|pattern| pattern.matches(text, "")),
        }
    }
}

impl UrlPattern {
    /// Returns whether a text is meant as a pattern over URLs.
    pub fn is_meant(text: &str) -> bool {
        text.contains("://") && !crate::paths::is_file_uri(text)
    }

    /// Reads a pattern.
    ///
    /// # Errors
    /// What is wrong with it, and what to write instead.
    pub fn parse(text: &str) -> Result<Self, Misspelt> {
        let any = Self {
            scheme: Glob::Any,
            host: Glob::Any,
            port: PortPattern::Any,
            path: PathGlob::Of(Glob::Any),
        };
        if matches!(text, "*" | "**") {
            return Ok(any);
        }
        if text.len() > PATTERN_BYTES_MAX {
            let message = "the URL pattern is longer than 1,024 bytes";
            return Err((message.to_owned(), "split it into several".to_owned()));
        }
        let form = || "write SCHEME://HOST[:PORT]/PATH, as in https://example.org/**".to_owned();
        let fault = |message: &str, hint: String| Err((format!("\"{text}\" {message}"), hint));
        let Some((scheme, rest)) = text.split_once("://") else {
            return fault("is not a URL pattern", form());
        };
        let is_scheme = |c: char| c.is_ascii_alphanumeric() || "+-.*?".contains(c);
        if scheme.is_empty() || !scheme.chars().all(is_scheme) {
            return fault("has no scheme", form());
        }
        if rest.contains('#') {
            let hint = "leave out what begins with #; clients do not send it".to_owned();
            return fault("has a fragment, which is not compared", hint);
        }
        let (authority, path) = match rest.find('/').and_then(|at| rest.split_at_checked(at)) {
            Some((authority, path)) => (authority, Some(path)),
            None => (rest, None),
        };
        if authority.contains('@') {
            let hint =
                "leave it out; to match URLs that carry one use when: url_userinfo == \"yes\"";
            return fault("has a user name or a password", hint.to_owned());
        }
        if authority.is_empty() && scheme != "file" {
            return fault("has no host", form());
        }
        let scheme = Glob::of(&scheme.to_ascii_lowercase())?;
        if authority == "**" && path.is_none() {
            return Ok(Self { scheme, ..any });
        }
        let (host, port) = split_port(authority);
        let port = match port {
            None => PortPattern::OfScheme,
            Some("*") => PortPattern::Any,
            Some(port) => match port.parse() {
                Ok(port) => PortPattern::Is(port),
                Err(_) => {
                    let hint = "write a number from 0 to 65535, or * for any".to_owned();
                    return fault(&format!("has the port \"{port}\""), hint);
                }
            },
        };
        let host = match is_wild(host) || host.is_empty() {
            true => Glob::of(&host.to_lowercase()).unwrap_or(Glob::Of(Vec::new())),
            false => match one_host(host) {
                Some(host) => Glob::Of(Pattern::path(&host.text, None).unwrap_or_default()),
                None => {
                    let hint = "write a name, an IPv4 address as four decimals, or an IPv6 address in brackets";
                    return fault(
                        "has no host that all readers take for the same",
                        hint.to_owned(),
                    );
                }
            },
        };
        let path = match path {
            None => PathGlob::Unsaid,
            Some(path) => {
                let mut patterns = Vec::new();
                for spelling in spellings(path) {
                    match Glob::of(&spelling)? {
                        Glob::Any => {}
                        Glob::Of(some) => patterns.extend(some),
                    }
                }
                PathGlob::Of(Glob::Of(patterns))
            }
        };
        Ok(Self {
            scheme,
            host,
            port,
            path,
        })
    }

    /// Returns whether a reading matches. A rule that allows (`all`) needs every reading of the path and the host as it
    /// is; others match other texts of the same machine too.
    pub fn matches(&self, reading: &UrlReading, all: bool) -> bool {
        let port = match self.port {
            PortPattern::Any => true,
            PortPattern::OfScheme => reading.port == default_port(&reading.scheme),
            PortPattern::Is(port) => reading.port == Some(port),
        };
        let host = || {
            let aliases = host_aliases(&reading.host, reading.class);
            self.host.matches(&reading.host)
                || (!all && aliases.iter().any(|alias| self.host.matches(alias)))
        };
        let path = || match &self.path {
            PathGlob::Unsaid => !all || reading.paths.iter().all(|path| path == "/"),
            PathGlob::Of(glob) if all => reading.paths.iter().all(|path| glob.matches(path)),
            PathGlob::Of(glob) => reading.paths.iter().any(|path| glob.matches(path)),
        };
        port && self.scheme.matches(&reading.scheme) && host() && path()
    }

    /// Returns whether it names one port of one address that is no name.
    fn is_one_port(&self) -> bool {
        matches!(self.port, PortPattern::OfScheme)
    }
}

/// Splits the host of a pattern from its port.
fn split_port(authority: &str) -> (&str, Option<&str>) {
    let inside = authority.rfind(']').map_or(0, |at| at + 1);
    let behind = authority.get(inside..).unwrap_or_default();
    match behind.rfind(':') {
        Some(at) => (
            authority.get(..inside + at).unwrap_or_default(),
            behind.get(at + 1..),
        ),
        None => (authority, None),
    }
}

/// Compares the URLs of a call. A rule that allows (`all`) needs every URL to match in every reading, and at least one;
/// for others any reading of any URL suffices.
pub(super) fn over(facts: &Facts, all: bool, test: &dyn Fn(&UrlReading) -> bool) -> Tri {
    let urls = &facts.reach.urls;
    let unknown = facts.paths.is_unknown() || urls.is_unread() || facts.reach.unread;
    if !all {
        if urls.readings(true).any(test) {
            return Tri::Yes;
        }
        let mut list = urls.list().iter();
        let unread = list.any(|url| url.uncertain && url.position == UrlPosition::Whole);
        return match unknown || unread {
            true => Tri::Unknown,
            false => Tri::No,
        };
    }
    let list = urls.list().iter();
    let mut list = list
        .filter(|url| url.position != UrlPosition::Nested)
        .peekable();
    if list.peek().is_none() {
        return match unknown {
            true => Tri::Unknown,
            false => Tri::No,
        };
    }
    let every = Tri::all(list.map(|url| {
        if !url.readings.iter().all(test) {
            Tri::No
        } else if url.uncertain || url.ambiguous || url.readings.is_empty() {
            Tri::Unknown
        } else {
            Tri::Yes
        }
    }));
    match unknown {
        true => every.min(Tri::Unknown),
        false => every,
    }
}

/// Patterns over URLs.
#[derive(Debug)]
pub(in crate::policy) struct UrlPatterns {
    patterns: Vec<UrlPattern>,
    all: bool,
}

impl UrlPatterns {
    pub fn new(texts: &[String], effect: Effect) -> Result<Self, String> {
        let patterns = texts.iter().map(|text| UrlPattern::parse(text));
        let patterns: Result<_, Misspelt> = patterns.collect();
        Ok(Self {
            patterns: patterns.map_err(|(message, _)| message)?,
            all: effect == Effect::Allow,
        })
    }

    pub fn hold(&self, facts: &Facts) -> Tri {
        over(facts, self.all, &|reading| {
            let mut patterns = self.patterns.iter();
            patterns.any(|pattern| pattern.matches(reading, self.all))
        })
    }
}

pub(super) fn read<'a>(doc: Document<'a>, entry: &Entry<'a>) -> Result<Vec<String>, PolicyError> {
    let list = texts(doc, entry)?.into_iter();
    list.map(|(text, at)| match UrlPattern::parse(&text) {
        Ok(_) => Ok(text),
        Err((message, hint)) => {
            let message = format!("bad pattern in {}: {message}", entry.name);
            Err(doc.error(at, message, Some(hint)))
        }
    })
    .collect()
}

/// Classes of addresses.
#[derive(Debug)]
pub(in crate::policy) struct AddressClasses {
    texts: Vec<String>,
    all: bool,
}

impl AddressClasses {
    pub fn new(texts: &[String], effect: Effect) -> Self {
        Self {
            texts: texts.to_vec(),
            all: effect == Effect::Allow,
        }
    }

    pub fn hold(&self, facts: &Facts) -> Tri {
        let is_listed = |class: AddressClass| self.texts.iter().any(|text| text == class.label());
        over(facts, self.all, &|reading| {
            let is_of = reading.class.is_some_and(is_listed);
            // A metadata service has an address of another class as well.
            let also = AddressClass::beside_metadata(&reading.host).filter(|_| !self.all);
            is_of || also.is_some_and(is_listed)
        })
    }
}

/// Globs over the machine that a call reaches: a configured host, or the hosts of its URLs.
#[derive(Debug)]
pub(in crate::policy) struct Hosts {
    pub(super) names: name::Names,
    all: bool,
}

impl Hosts {
    pub fn new(texts: &[String], effect: Effect) -> Result<Self, String> {
        let plain: Vec<String> = texts.iter().map(|text| canonical(text)).collect();
        let both: Vec<String> = texts.iter().chain(&plain).cloned().collect();
        Ok(Self {
            names: name::Names::new(&both, FactId::Host, true)?,
            all: effect == Effect::Allow,
        })
    }

    pub fn hold(&self, seen: &Seen<'_>) -> Tri {
        let configured = self.names.hold(seen);
        let of_urls = || {
            over(seen.facts(), self.all, &|reading| {
                let aliases = host_aliases(&reading.host, reading.class);
                let is_one = |host: &str| self.names.any(host, &shell::fold(host));
                is_one(&reading.host) || (!self.all && aliases.iter().any(|host| is_one(host)))
            })
        };
        match seen.get(FactId::Host) {
            // The machine that a built-in server reaches is what it says; URLs there are data.
            Fact::Known(_) | Fact::Unknown if self.all => configured,
            _ if configured == Tri::Yes => configured,
            _ => configured.max(of_urls()),
        }
    }
}

/// Returns the canonical form of a host without wildcards; others stay.
fn canonical(text: &str) -> String {
    let is_host = !is_wild(text) && !text.contains('[');
    let host = is_host.then(|| one_host(text)).flatten();
    match host {
        // Brackets of an IPv6 address are no class of characters here.
        Some(host) if !host.text.starts_with('[') => host.text,
        Some(_) | None => text.to_owned(),
    }
}

/// What is wrong with a pattern that loads.
pub(super) fn misspelt(key: &str, text: &str) -> Option<Misspelt> {
    let (_, rest) = text.split_once("://")?;
    if let Some((before, query)) = rest.split_once('?')
        && query.contains('=')
    {
        return Some((
            format!("{key} \"{text}\" has a query, and queries are not compared"),
            format!(
                "write \"{}://{before}\"",
                text.split("://").next().unwrap_or_default()
            ),
        ));
    }
    None
}

/// What a rule that keeps calls off leaves open: other ports and schemes of an address.
pub(in crate::policy) fn leaves_open(text: &str) -> Option<Misspelt> {
    let (scheme, rest) = text.split_once("://")?;
    let pattern = UrlPattern::parse(text).ok()?;
    let authority = rest.split('/').next().unwrap_or_default();
    let host = one_host(authority)?;
    let is_inside = !matches!(host.class, AddressClass::Name | AddressClass::Public);
    (pattern.is_one_port() && is_inside).then(|| {
        let port = default_port(scheme).map_or_else(String::new, |port| format!(" {port}"));
        (
            format!("\"{text}\" covers port{port} of {} alone", host.text),
            format!(
                "write \"*://{}:*/**\" for all ports, or address_class",
                host.text
            ),
        )
    })
}

/// What is wrong with a URL among patterns over paths.
pub(super) fn as_path(key: &str, text: &str) -> Option<Misspelt> {
    UrlPattern::is_meant(text).then(|| match UrlPattern::parse(text) {
        Ok(_) => (
            format!("{key} \"{text}\" compares a URL as a path"),
            format!("write \"url_pattern\": \"{text}\", which knows every spelling of an address"),
        ),
        Err((message, hint)) => (format!("{key}: {message}, so no URL matches it"), hint),
    })
}
