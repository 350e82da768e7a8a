//! The places that a path may lead to.

use std::borrow::Cow;

use percent_encoding::percent_decode_str;
use unicode_normalization::UnicodeNormalization;

use super::budget::{STEPS_PER_LOOKUP, StepBudget};
use super::reach::is_plain_path;
use super::view::{Link, PathView};
use super::{is_file_uri, trimmed, without_line_ends};

/// The places that one path may lead to, in canonical form: absolute, NFC, no `.`/`..`, no doubled
/// or trailing slash.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Meaning {
    /// Every place known. The first is the plain lexical reading, for the journal.
    pub places: Vec<String>,
    /// There are places that nobody at the door can name (`~user`, a link that cannot be read,
    /// a fourth layer of percent-encoding).
    pub uncertain: bool,
    /// It can be read as something else than one path. An allow rule does not count on that; whatever
    /// else it may be is in [`super::Reach`].
    pub ambiguous: bool,
    /// Where its parts lead if a server reads it as a list. An allow rule asks that they match as well.
    pub parts: Vec<String>,
}

/// What was found of a path.
pub(super) struct Found {
    pub meaning: Meaning,
    /// It goes through what only a process has that opens it: its directory, its descriptors.
    pub of_process: bool,
}

/// Most links followed for one path, as in Linux.
const LINKS_MAX: usize = 40;
/// Most layers of percent-encoding that are taken off.
pub(super) const DECODINGS_MAX: usize = 3;
/// Longest path that is read, in bytes.
const PATH_BYTES_MAX: usize = 8 * 1024;

impl Meaning {
    fn add(&mut self, place: String) {
        if !self.places.contains(&place) {
            self.places.push(place);
        }
    }
}

/// Reads `text` as a path in every way a server might.
///
/// Without a `view` (a remote upstream) links, `~` and relative paths cannot be resolved: `~` and
/// relative paths are then uncertain.
#[must_use]
pub fn meanings(text: &str, view: Option<&dyn PathView>) -> Meaning {
    found(text, view).meaning
}

/// The same within a budget; nothing is known of a path for which no steps are left.
#[must_use]
pub fn meanings_within(text: &str, view: Option<&dyn PathView>, budget: &StepBudget) -> Meaning {
    if budget.spend(reading_steps(text, view)) {
        return meanings(text, view);
    }
    Meaning {
        uncertain: true,
        ambiguous: true,
        ..Meaning::default()
    }
}

/// Returns the steps that reading a path takes at most: each name of it is looked up in each of its readings.
pub(super) fn reading_steps(text: &str, view: Option<&dyn PathView>) -> u64 {
    if text.len() > PATH_BYTES_MAX {
        return 1;
    }
    let names = 1 + text.bytes().filter(|b| matches!(b, b'/' | b'%')).count();
    let readings = if text.contains(['%', ',', ';', '|']) {
        4
    } else {
        1
    };
    let a_name = if view.is_some() { STEPS_PER_LOOKUP } else { 8 };
    let names = u64::try_from(names).unwrap_or(u64::MAX);
    let bytes = u64::try_from(text.len()).unwrap_or(u64::MAX);
    names
        .saturating_mul(a_name)
        .saturating_add(bytes)
        .saturating_mul(readings)
}

/// The same, and whether the path goes through what only the process has that opens it.
pub(super) fn found(text: &str, view: Option<&dyn PathView>) -> Found {
    let mut found = Found {
        meaning: Meaning {
            ambiguous: text.len() > PATH_BYTES_MAX || !is_plain_path(text),
            ..Meaning::default()
        },
        of_process: false,
    };
    let meaning = &mut found.meaning;
    if text.len() > PATH_BYTES_MAX || text.contains('\0') {
        meaning.uncertain = true;
        return found;
    }
    read(text, view, &mut found);
    read_parts(text, view, &mut found);
    if text.contains("://") && !is_file_uri(text) {
        // Read as a path it would be relative; a server that knows URIs goes elsewhere.
        found.meaning.add(text.to_owned());
    }
    read_bare(text, view, &mut found);
    if text.contains('%') {
        let mut layer = Cow::Borrowed(text);
        for round in 0.. {
            if round == DECODINGS_MAX {
                found.meaning.uncertain = true;
                break;
            }
            match percent_decode_str(&layer).decode_utf8() {
                Ok(next) if next == layer => break,
                Ok(next) => layer = Cow::Owned(next.into_owned()),
                Err(_) => {
                    found.meaning.uncertain = true;
                    break;
                }
            }
            if layer.contains('\0') {
                found.meaning.uncertain = true;
                break;
            }
            read(&layer, view, &mut found);
            read_bare(&layer, view, &mut found);
        }
    }
    found
}

/// Reads the parts of a text as the entries of a list.
fn read_parts(text: &str, view: Option<&dyn PathView>, found: &mut Found) {
    /// Most parts that are read; of more nobody says where they lead.
    const PARTS_MAX: usize = 64;
    let separators = [',', ';', '|'];
    if !text.contains(separators) {
        return;
    }
    for (number, part) in text.split(separators).map(trimmed).enumerate() {
        if number == PARTS_MAX {
            found.meaning.ambiguous = true;
            return;
        }
        let mut of_part = Found {
            meaning: Meaning::default(),
            of_process: false,
        };
        if !part.is_empty() {
            read(part, view, &mut of_part);
        }
        // A text with a comma in its name is no reason to refuse a call: only an allow rule asks for more.
        found.meaning.ambiguous |= of_part.meaning.uncertain && view.is_some();
        found.meaning.parts.append(&mut of_part.meaning.places);
    }
}

/// The readings of servers that tidy their input first: without blanks around it, or parsed as a URL.
fn read_bare(text: &str, view: Option<&dyn PathView>, found: &mut Found) {
    let bare = trimmed(text);
    if bare != text && !bare.is_empty() {
        read(bare, view, found);
    }
    let bare = without_line_ends(bare).map_or(Cow::Borrowed(bare), Cow::Owned);
    if is_file_uri(&bare) {
        match url_path(&bare) {
            Some(path) => read(&path, view, found),
            None => found.meaning.uncertain = true,
        }
    }
}

/// The path of a `file:` URI as URL parsers find it: backslashes are slashes, query and fragment are
/// no part of it, and it always begins at the root. `None` where it is on another host.
fn url_path(uri: &str) -> Option<String> {
    let rest = uri.get(5..)?.split(['?', '#']).next()?.replace('\\', "/");
    match rest.strip_prefix("//") {
        Some(authority_and_path) => on_this_host(authority_and_path).map(str::to_owned),
        None if rest.starts_with('/') => Some(rest),
        None => Some(format!("/{rest}")),
    }
}

/// One reading: scheme off, `~` and relative resolved, then lexically and through the links.
fn read(text: &str, view: Option<&dyn PathView>, found: &mut Found) {
    let meaning = &mut found.meaning;
    let normal = nfc(text);
    let Some(absolute) = absolute(&normal, view) else {
        meaning.uncertain = true;
        meaning.add(lexical(&normal));
        return;
    };
    let plain = lexical(&absolute);
    meaning.add(plain.clone());
    match through_process(&plain) {
        Some(Through::Root(rest)) => meaning.add(rest.to_owned()),
        Some(Through::Directory(below)) => {
            meaning.uncertain = true;
            found.of_process = true;
            // Most servers stay where they were started.
            if let Some(base) = view.and_then(PathView::current_dir) {
                meaning.add(lexical(&format!("{base}{below}")));
            }
        }
        None => {}
    }
    if let Some(view) = view {
        // The links are asked for by the spelling that the server will use.
        let spelled = if normal == text {
            None
        } else {
            self::absolute(text, Some(view))
        };
        for path in std::iter::once(absolute).chain(spelled) {
            if path == plain && view.is_without_links(&path) {
                continue;
            }
            match physical(&path, view) {
                Ok(place) if place.is_ascii() => meaning.add(place),
                Ok(place) => meaning.add(place.nfc().collect()),
                Err(unknown) => {
                    meaning.uncertain = true;
                    found.of_process |= unknown == Unknown::OfProcess;
                }
            }
        }
    }
}

/// NFC, without work where the text has it already (all ASCII has).
fn nfc(text: &str) -> Cow<'_, str> {
    if text.is_ascii() {
        Cow::Borrowed(text)
    } else {
        Cow::Owned(text.nfc().collect())
    }
}

/// Makes a path absolute; `None` where that cannot be known.
fn absolute(text: &str, view: Option<&dyn PathView>) -> Option<String> {
    let path = strip_file_scheme(text)?;
    if path.starts_with('/') {
        return Some(path.to_owned());
    }
    if let Some(below) = path.strip_prefix('~') {
        if !below.is_empty() && !below.starts_with('/') {
            return None;
        }
        return Some(format!("{}{below}", view?.home()?));
    }
    Some(format!("{}/{path}", view?.current_dir()?))
}

/// `file:/p`, `file:///p` and `file://localhost/p` are `/p`; another host cannot be known.
fn strip_file_scheme(text: &str) -> Option<&str> {
    if !is_file_uri(text) {
        return Some(text);
    }
    let rest = text.get(5..)?;
    let Some(authority_and_path) = rest.strip_prefix("//") else {
        return Some(rest);
    };
    on_this_host(authority_and_path)
}

/// The path behind a host that is this one.
fn on_this_host(authority_and_path: &str) -> Option<&str> {
    let slash = authority_and_path.find('/')?;
    let (host, path) = authority_and_path.split_at_checked(slash)?;
    (host.is_empty() || host.eq_ignore_ascii_case("localhost")).then_some(path)
}

/// Collapses `.`, `..` and doubled slashes without looking at the disk.
#[must_use]
pub fn lexical(path: &str) -> String {
    let mut kept: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                kept.pop();
            }
            part => kept.push(part),
        }
    }
    join(&kept)
}

/// Where a path leads through what the kernel shows of a process.
enum Through<'p> {
    /// To this place below its root, which is ours.
    Root(&'p str),
    /// To its directory, which nobody here knows, and from there on.
    Directory(&'p str),
}

/// Whether a path goes through `/proc/PID/root` or `/proc/PID/cwd` of a process.
fn through_process(path: &str) -> Option<Through<'_>> {
    let mut found = None;
    let mut rest = path;
    while let Some(behind) = rest.strip_prefix("/proc/") {
        let mut parts = behind.splitn(3, '/');
        let (Some(_), Some(what)) = (parts.next(), parts.next()) else {
            break;
        };
        let start = rest.len() - parts.next().map_or(0, |below| below.len() + 1);
        let below = rest.get(start..).unwrap_or_default();
        match what {
            "root" => {
                rest = if below.is_empty() { "/" } else { below };
                found = Some(Through::Root(rest));
            }
            "cwd" => return Some(Through::Directory(below)),
            _ => break,
        }
    }
    found
}

fn join(parts: &[&str]) -> String {
    let mut out = String::with_capacity(parts.iter().map(|p| p.len() + 1).sum::<usize>().max(1));
    for part in parts {
        out.push('/');
        out.push_str(part);
    }
    if out.is_empty() {
        out.push('/');
    }
    out
}

/// Why nobody here knows where a path leads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unknown {
    /// A link cannot be read, or there are too many.
    Link,
    /// It goes through what only the process has that opens it.
    OfProcess,
}

/// Walks the path as the kernel would, following links, `..` taken from where a link led.
fn physical(path: &str, view: &dyn PathView) -> Result<String, Unknown> {
    let mut todo: Vec<Cow<'_, str>> = path.split('/').rev().map(Cow::Borrowed).collect();
    let mut here = String::with_capacity(path.len());
    let mut links = 0;
    let mut missing = false;
    while let Some(part) = todo.pop() {
        match &*part {
            "" | "." => continue,
            ".." => {
                here.truncate(here.rfind('/').unwrap_or(0));
                missing = false;
                continue;
            }
            _ => {}
        }
        let parent = here.len();
        here.push('/');
        here.push_str(&part);
        if missing {
            continue;
        }
        // What the process has that opens the path is not what we have: our own links say nothing of it.
        let own = below_own_process(&here);
        if own.is_some_and(|own| matches!(own, "/cwd" | "/fd" | "/map_files" | "/task")) {
            return Err(Unknown::OfProcess);
        }
        let link = match own {
            Some("") => Link::NotALink,
            _ => view.read_link(&here),
        };
        match link {
            Link::NotALink => {}
            Link::Missing => missing = true,
            Link::Unreadable => return Err(Unknown::Link),
            Link::To(_) if own.is_some_and(|own| own != "/root") => return Err(Unknown::OfProcess),
            Link::To(target) => {
                links += 1;
                if links > LINKS_MAX {
                    return Err(Unknown::Link);
                }
                here.truncate(if target.starts_with('/') { 0 } else { parent });
                todo.extend(target.split('/').rev().map(|part| part.to_owned().into()));
            }
        }
    }
    if here.is_empty() {
        here.push('/');
    }
    Ok(here)
}

/// What follows in a place behind the process that opens it.
fn below_own_process(place: &str) -> Option<&str> {
    let process = ["/proc/self", "/proc/thread-self"];
    let mut below = process.iter().filter_map(|own| place.strip_prefix(own));
    below.find(|below| below.is_empty() || below.starts_with('/'))
}

/// The extension that policies see: from the last dot of the last component, lower case, dot
/// included. A dotfile is its own extension (`/tmp/.env` has `.env`).
#[must_use]
pub fn extension(place: &str) -> Option<Cow<'_, str>> {
    let name = place.rsplit('/').next()?;
    let extension = name.get(name.rfind('.')?..)?;
    if extension.len() < 2 {
        return None;
    }
    let folded = extension
        .bytes()
        .all(|b| b.is_ascii() && !b.is_ascii_uppercase());
    Some(if folded {
        Cow::Borrowed(extension)
    } else {
        Cow::Owned(extension.to_lowercase())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    struct Disk(BTreeMap<&'static str, &'static str>);

    impl PathView for Disk {
        fn home(&self) -> Option<String> {
            Some("/home/u".into())
        }
        fn current_dir(&self) -> Option<String> {
            Some("/srv".into())
        }
        fn read_link(&self, path: &str) -> Link {
            match self.0.get(path) {
                Some(&"!") => Link::Unreadable,
                Some(target) => Link::To((*target).into()),
                None => Link::NotALink,
            }
        }
    }

    fn check(text: &str, places: &[&str], uncertain: bool) {
        let disk = Disk(BTreeMap::from([
            ("/tmp/link", "/etc"),
            ("/tmp/rel", "../var"),
            ("/tmp/loop", "loop"),
            ("/tmp/shut", "!"),
            ("/dev/fd", "/proc/self/fd"),
            ("/tmp/way", "/proc/self/attr/../cwd"),
            ("/proc/self", "77"),
            ("/proc/self/cwd", "/ours"),
            ("/proc/self/exe", "/ours"),
            ("/proc/self/root", "/"),
            ("/proc/77/cwd", "/ours"),
            ("/proc/77/fd/3", "/ours"),
        ]));
        let meaning = meanings(text, Some(&disk));
        assert_eq!(
            (
                meaning
                    .places
                    .iter()
                    .map(String::as_str)
                    .collect::<Vec<_>>(),
                meaning.uncertain
            ),
            (places.to_vec(), uncertain),
            "{text}"
        );
    }

    #[test]
    fn every_reading_is_found() {
        check("/tmp/a", &["/tmp/a"], false);
        check("/tmp//a/./b/", &["/tmp/a/b"], false);
        check("/tmp/../etc/hosts", &["/etc/hosts"], false);
        check("/..", &["/"], false);
        check("~/x", &["/home/u/x"], false);
        check("~root/x", &["/~root/x"], true);
        check("a/b", &["/srv/a/b"], false);
        check(
            "/tmp/link/passwd",
            &["/tmp/link/passwd", "/etc/passwd"],
            false,
        );
        check("/tmp/link/../x", &["/tmp/x", "/x"], false);
        check("/tmp/rel/x", &["/tmp/rel/x", "/var/x"], false);
        check("/tmp/loop", &["/tmp/loop"], true);
        check("/tmp/shut/x", &["/tmp/shut/x"], true);
        check(
            "/tmp/%2e%2e/etc/hosts",
            &["/tmp/%2e%2e/etc/hosts", "/etc/hosts"],
            false,
        );
        check(
            "/tmp/%252e%252e/x",
            &["/tmp/%252e%252e/x", "/tmp/%2e%2e/x", "/x"],
            false,
        );
        check("file:///tmp/../etc/passwd", &["/etc/passwd"], false);
        check("file:///%2e%2e/etc", &["/%2e%2e/etc", "/etc"], false);
        check("FILE://localhost/etc", &["/etc"], false);
        check(
            "https://h/tmp/a",
            &["/srv/https:/h/tmp/a", "https://h/tmp/a"],
            false,
        );
        check("file://host/etc", &["/file:/host/etc"], true);
        // As URL parsers read them.
        check("file:///etc/x?q#f", &["/etc/x?q#f", "/etc/x"], false);
        check("file:etc/x", &["/srv/etc/x", "/etc/x"], false);
        check("file:\\\\\\etc\\x", &["/srv/\\\\\\etc\\x", "/etc/x"], false);
        check("file:\\\\host\\x", &["/srv/\\\\host\\x"], true);
        check(
            "fi\tle:///etc/x",
            &["/srv/fi\tle:/etc/x", "fi\tle:///etc/x", "/etc/x"],
            false,
        );
        check("/tmp/x\n", &["/tmp/x\n", "/tmp/x"], false);
        check(
            " %2fetc/x",
            &["/srv/ %2fetc/x", "/srv/%2fetc/x", "/srv/ /etc/x", "/etc/x"],
            false,
        );
        // Another process's descriptors and directory are not ours.
        check("/proc/self/fd/3/x", &["/proc/self/fd/3/x"], true);
        check("/proc/self/attr/../fd/3", &["/proc/self/fd/3"], true);
        check("/dev/fd/3", &["/dev/fd/3"], true);
        check("/proc/self/exe", &["/proc/self/exe"], true);
        let directory = ["/proc/self/cwd/x", "/srv/x"];
        check("/proc/self/cwd/x", &directory, true);
        check("/proc/self/attr/../cwd/x", &directory, true);
        check("/proc/9/cwd", &["/proc/9/cwd", "/srv"], true);
        check("/tmp/way/x", &["/tmp/way/x"], true);
        check("/proc/self/root/x", &["/proc/self/root/x", "/x"], false);
        check("/proc/self/status", &["/proc/self/status"], false);
        check("/tmp/e\u{301}", &["/tmp/\u{e9}"], false);
        check(" /etc/passwd", &["/srv/ /etc/passwd", "/etc/passwd"], false);
        check("/tmp/\0/x", &[], true);
    }

    #[test]
    fn extensions() {
        for (place, expect) in [
            ("/a/k.PEM", Some(".pem")),
            ("/a/.env", Some(".env")),
            ("/a.d/x", None),
            ("/a/x.", None),
            ("/a/x.tar.gz", Some(".gz")),
        ] {
            assert_eq!(extension(place).as_deref(), expect, "{place}");
        }
    }
}
