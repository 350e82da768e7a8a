//! Finds the URLs in strings.

use super::read::{
    URL_BYTES_MAX, begins_url, floor, is_scheme_byte, is_special, read, split_scheme,
};
use super::{CallUrls, UrlArgument, UrlPosition};
use crate::memo::Memo;

/// Most URLs of a call that are kept.
const URLS_MAX: usize = 512;
/// Most bytes of URLs that are read for one call, each reading counted.
const BYTES_MAX: usize = 512 * 1024;
/// Longest scheme that is looked for, in bytes.
const SCHEME_BYTES_MAX: usize = 32;
/// Longest address without a scheme, in bytes.
const BARE_BYTES_MAX: usize = 2 * 1024;

/// Last words of argument names whose values are addresses, even without a scheme.
const ADDRESS_WORDS: [&str; 20] = [
    "url",
    "urls",
    "uri",
    "uris",
    "href",
    "link",
    "links",
    "endpoint",
    "endpoints",
    "website",
    "webpage",
    "webhook",
    "domain",
    "domains",
    "host",
    "hosts",
    "hostname",
    "site",
    "ip",
    "addr",
];

/// Returns whether an argument's name says that its value is an address.
fn is_address_key(key: &str) -> bool {
    thread_local! {
        static KEYS: Memo<bool> = Memo::default();
    }
    !key.is_empty() && KEYS.with(|keys| keys.of(key, read_key))
}

fn read_key(key: &str) -> bool {
    const KEY_BYTES_MAX: usize = 48;
    if key.len() > KEY_BYTES_MAX {
        return false;
    }
    let words = crate::words::words(key);
    let last = words
        .last()
        .map(|word| word.trim_end_matches(|c: char| c.is_ascii_digit()));
    last.is_some_and(|last| ADDRESS_WORDS.contains(&last))
}

/// Returns whether an argument's name says that even a single word in it is an address.
fn needs_no_dot(key: &str) -> bool {
    const WORDS: [&str; 8] = [
        "url",
        "urls",
        "href",
        "endpoint",
        "endpoints",
        "webhook",
        "webpage",
        "website",
    ];
    crate::words::words(key)
        .last()
        .is_some_and(|last| WORDS.contains(&last.as_str()))
}

/// Returns whether a text looks like a host rather than a word.
fn is_host(text: &str) -> bool {
    text.contains(['.', ':', '/']) || text.eq_ignore_ascii_case("localhost")
}

/// Returns whether a text is a URI of a scheme without a host, as `urn:isbn:1` is.
fn is_opaque(text: &str) -> bool {
    split_scheme(text).is_some_and(|(_, rest)| !rest.starts_with(|c: char| c.is_ascii_digit()))
}

/// Returns whether a text is a URL with a host, whatever else it may be read as.
pub(crate) fn is_url(text: &str) -> bool {
    let bare = bare(text);
    let start = head_without_breaks(bare);
    let start = start.as_deref().unwrap_or(bare);
    begins_url(start)
        && !start
            .get(..5)
            .is_some_and(|scheme| scheme.eq_ignore_ascii_case("file:"))
}

/// Returns a text without what URL parsers take off its ends.
fn bare(text: &str) -> &str {
    text.trim_matches(|c: char| c.is_whitespace() || c.is_control() || c == '\u{feff}')
}

impl CallUrls {
    /// Adds the URLs of a string. `key` names its argument; of a content only the whole is a URL; what is `decoded`
    /// shows a URL to those alone who decode it.
    pub fn add_from(&mut self, text: &str, key: &str, is_content: bool, decoded: bool) {
        let bare = bare(text);
        let has_colon = bare.contains(':');
        if !has_colon && (bare.is_empty() || is_content || !is_address_key(key)) {
            return;
        }
        let whole = match bare.contains(char::is_whitespace) {
            false => UrlPosition::Whole,
            true => UrlPosition::Part,
        };
        let nested_or = |position| match decoded || is_content {
            true => UrlPosition::Nested,
            false => position,
        };
        let start = head_without_breaks(bare);
        let is_url = begins_url(start.as_deref().unwrap_or(bare));
        if is_url {
            self.add(bare, nested_or(whole));
        } else if !is_content && is_address_key(key) && !is_opaque(bare) {
            let position = match needs_no_dot(key) || is_host(bare) {
                true => UrlPosition::Whole,
                // An argument of such a name may be a word as well.
                false => UrlPosition::Nested,
            };
            self.add_bare(bare, nested_or(position));
        }
        if has_colon && !is_content {
            self.add_parts(bare, is_url, decoded);
        }
    }

    /// Adds an address without a scheme, which tools complete with `http:` or `https:`.
    fn add_bare(&mut self, text: &str, position: UrlPosition) {
        let behind = text.trim_start_matches(['/', '\\']);
        let is_network_path = text.len() >= behind.len() + 2;
        let is_odd = behind.len() > BARE_BYTES_MAX
            || behind.contains(char::is_whitespace)
            || (behind.len() < text.len() && !is_network_path)
            || behind.starts_with(['.', '~']);
        if is_odd || behind.is_empty() || !self.may_read(2 * behind.len()) {
            return;
        }
        let mut both: Option<UrlArgument> = None;
        for scheme in ["http", "https"] {
            let found = read(&format!("{scheme}://{behind}"), UrlPosition::Whole);
            match (&mut both, found.filter(|url| !url.readings.is_empty())) {
                (Some(both), Some(found)) => both.readings.extend(found.readings),
                (both, found) => *both = found.or(both.take()),
            }
        }
        if let Some(mut both) = both {
            both.position = position;
            both.uncertain = false;
            self.push(both);
        }
    }

    /// Adds the URLs that begin anywhere in a string.
    fn add_parts(&mut self, text: &str, begins: bool, decoded: bool) {
        // Up to here everything belongs to a URL that was found.
        let mut covered = 0;
        for (colon, _) in text.match_indices(':') {
            let Some((start, behind)) = candidate(text, colon) else {
                continue;
            };
            let Some(from) = text.get(start..) else {
                continue;
            };
            let from = floor(from, URL_BYTES_MAX);
            let end = from.find(ends_url).unwrap_or(from.len());
            let cut = from.get(..end).unwrap_or(from);
            let is_first = start == 0 && begins;
            let separated = text
                .get(..start)
                .is_some_and(|before| before.ends_with([',', ';', '|']));
            let position = match decoded || (start < covered && !separated) {
                true => UrlPosition::Nested,
                false => UrlPosition::Part,
            };
            if !is_first || end < from.len() {
                self.add(cut, position);
            }
            let trimmed =
                cut.trim_end_matches(['.', ',', ';', ':', '!', '?', ')', ']', '}', '*', '\'']);
            if trimmed.len() < cut.len() && trimmed.len() > behind - start {
                self.add(trimmed, UrlPosition::Nested);
            }
            if let Some((list, _)) = cut.split_once([',', ';', '|', '&', '(', ')', '\'', '$'])
                && list.len() > behind - start
            {
                self.add(list, UrlPosition::Nested);
            }
            self.add_suffix(cut);
            covered = covered.max(start + end);
            if self.unread {
                return;
            }
        }
    }

    /// Adds what a search for `http://` finds where letters stand before it.
    fn add_suffix(&mut self, text: &str) {
        let Some((scheme, rest)) = split_scheme(text) else {
            return;
        };
        if is_special(&scheme) {
            return;
        }
        let known = ["https", "http", "wss", "ws", "ftp"];
        if let Some(known) = known.into_iter().find(|known| scheme.ends_with(known)) {
            self.add(&format!("{known}:{rest}"), UrlPosition::Nested);
        }
    }

    fn add(&mut self, text: &str, position: UrlPosition) {
        if !self.may_read(text.len().min(URL_BYTES_MAX)) {
            return;
        }
        if let Some(url) = read(text, position)
            && (position == UrlPosition::Whole || !url.readings.is_empty())
        {
            self.push(url);
        }
    }

    fn push(&mut self, url: UrlArgument) {
        if self.list.contains(&url) {
            return;
        }
        if self.list.len() < URLS_MAX {
            self.list.push(url);
        } else {
            self.unread = true;
        }
    }

    fn may_read(&mut self, bytes: usize) -> bool {
        self.bytes_read = self.bytes_read.saturating_add(bytes);
        self.unread |= self.bytes_read > BYTES_MAX;
        !self.unread
    }
}

/// Returns the beginning of a text without tabs and line ends, which URL parsers drop; absent where it has none.
fn head_without_breaks(text: &str) -> Option<String> {
    const DROPPED: [char; 3] = ['\t', '\n', '\r'];
    let head = text.chars().take(4 * SCHEME_BYTES_MAX);
    let has_any = head.clone().any(|c| DROPPED.contains(&c));
    has_any.then(|| head.filter(|c| !DROPPED.contains(c)).collect())
}

/// Returns where the scheme before a colon begins, and where its rest does; absent where no URL begins there.
fn candidate(text: &str, colon: usize) -> Option<(usize, usize)> {
    let bytes = text.as_bytes();
    let before = bytes.get(..colon)?;
    let run = before.iter().rev().take(SCHEME_BYTES_MAX);
    let length = run.take_while(|byte| is_scheme_byte(**byte)).count();
    let run = before.get(colon - length..)?;
    let skipped = run.iter().position(u8::is_ascii_alphabetic)?;
    let start = colon - length + skipped;
    let scheme = text.get(start..colon)?.to_ascii_lowercase();
    let rest = text.get(colon + 1..)?;
    let is_one = rest.starts_with("//")
        || rest.starts_with("\\/\\/")
        || ((is_special(&scheme) || scheme == "file")
            && rest.starts_with(|c: char| !c.is_whitespace() && !ends_url(c)));
    (scheme.len() > 1 && is_one).then_some((start, colon + 1))
}

/// Returns whether a character ends a URL in a longer text.
fn ends_url(c: char) -> bool {
    c.is_whitespace() || c.is_control() || matches!(c, '"' | '<' | '>' | '`')
}
