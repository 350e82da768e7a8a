//! Reads the strings of one call.

use std::borrow::Cow;

use ahash::AHashSet as HashSet;
use percent_encoding::percent_decode_str;

use super::below::command_reads_below;
use super::escapes::{decode_escapes, decode_references, fold_lines};
use super::literals::{Literals, read_literals};
use super::pieces::pieces;
use super::plain::is_simple;
use super::texts::{
    behind_unknown, compatible, cuts, ends_line, is_command_key, is_glob, is_glob_key,
    is_nothing_but_content, plain_glob, unquoted, without_unseen,
};
use super::{Reach, Text};
use crate::paths::StepBudget;
use crate::paths::canonical::{found, lexical, reading_steps};
use crate::paths::view::{Link, PathView};
use crate::paths::{PathArgument, Role, is_content_key, role_of_key, scheme_of};

/// Most readings within one another: JSON in a string, percent-encoding, quotes.
const DEPTH_MAX: usize = 8;
/// Most entries of each list of a [`Reach`].
const ENTRIES_MAX: usize = 4_096;
/// Most places whose links are looked at.
const LOOKS_MAX: usize = 256;
/// Longest path that can be opened, in bytes, and longest glob that is held against patterns.
const OPENED_BYTES_MAX: usize = 4 * 1024;
/// Longest text that is decoded or expanded as a whole, in bytes; of a longer one its pieces are.
const DECODED_BYTES_MAX: usize = 64 * 1024;
/// Most schemes before one another that are taken off, as in `jar:file:`; behind more, the rest is not read.
const SCHEMES_MAX: usize = 16;
/// Steps for each byte of a piece that is decoded and expanded: each of its readings reads it again.
const STEPS_PER_PIECE_BYTE: usize = 8;
/// Longest piece that is remembered, in bytes, and most of them: text that repeats itself is read once.
const PIECE_SEEN_BYTES_MAX: usize = 256;
const PIECES_SEEN_MAX: usize = 16_384;
/// So many path arguments are compared one by one.
const FEW: usize = 8;
/// Longest name of a file, in bytes.
const NAME_BYTES_MAX: usize = 255;

/// Schemes of which the path is on another host.
const WEB: [&str; 6] = ["http", "https", "ws", "wss", "ftp", "mailto"];

/// Reads strings into a [`Reach`].
pub struct Reader<'r> {
    view: Option<&'r dyn PathView>,
    /// What the call's arguments plainly say.
    known: &'r [PathArgument],
    /// Their texts and places, where they are many.
    known_texts: HashSet<&'r str>,
    known_places: HashSet<&'r str>,
    /// What is in each list of `out`.
    listed: [HashSet<Box<str>>; 4],
    budget: &'r StepBudget,
    looks_left: usize,
    /// Pieces of the string that is being read.
    pieces: HashSet<(Box<str>, PieceKind)>,
    out: Reach,
}

/// What decides on how a piece of one string is read: path, command, decoded, and how deep.
type PieceKind = (bool, bool, bool, usize);

/// What is known of a string from where it stands.
#[derive(Debug, Clone, Copy)]
struct Of<'t> {
    key: &'t str,
    is_path: bool,
    is_content: bool,
    is_command: bool,
    /// It is a part of a longer string.
    is_piece: bool,
    /// It shows to those alone who decode the string.
    is_decoded: bool,
}

impl<'r> Reader<'r> {
    /// A reader for one call. `known` are its path arguments.
    #[must_use]
    pub fn new(
        known: &'r [PathArgument],
        view: Option<&'r dyn PathView>,
        budget: &'r StepBudget,
    ) -> Self {
        let many = if known.len() > FEW { known } else { &[] };
        let places = many.iter().flat_map(|known| &known.meaning.places);
        Self {
            view,
            known,
            known_texts: many.iter().map(|known| known.text.as_str()).collect(),
            known_places: places.map(String::as_str).collect(),
            listed: Default::default(),
            budget,
            looks_left: LOOKS_MAX,
            pieces: HashSet::default(),
            out: Reach::default(),
        }
    }

    /// The same for further strings of a call, of which this was read before.
    #[must_use]
    pub fn with_reach(mut self, read: Reach) -> Self {
        for (list, entries) in [&read.places, &read.words, &read.relative, &read.globs]
            .into_iter()
            .enumerate()
        {
            if let Some(listed) = self.listed.get_mut(list) {
                listed.extend(entries.iter().map(|entry| entry.as_str().into()));
            }
        }
        self.out = read;
        self
    }

    /// Reads one string.
    pub fn take(&mut self, text: Text<'_>) {
        let of = Of {
            key: text.key,
            is_path: text.is_path,
            is_content: text.is_content,
            is_command: is_command_key(text.key),
            is_piece: false,
            is_decoded: false,
        };
        if of.is_command && command_reads_below(text.text) {
            self.out.below = true;
        }
        self.pieces.clear();
        self.string(text.text, of, DEPTH_MAX);
    }

    /// What was found. `below` where the call reads what lies below its places.
    #[must_use]
    pub fn done(mut self, below: bool) -> Reach {
        self.out.below |= below;
        self.out
    }

    fn string(&mut self, text: &str, of: Of<'_>, depth: usize) {
        if text.is_empty() || (of.is_content && is_nothing_but_content(text)) {
            return;
        }
        if !self.may_read(text.len()) {
            return;
        }
        self.out
            .urls
            .add_from(text, of.key, of.is_content, of.is_decoded);
        if is_simple(text) {
            if of.is_content {
                self.content(text, of);
            } else {
                self.path(text, of);
            }
            return;
        }
        let Some(depth) = depth.checked_sub(1) else {
            self.out.unread = true;
            return;
        };
        if let Some(tidy) = without_unseen(text) {
            self.string(&tidy, of, depth);
            return;
        }
        let bare = text.trim();
        if bare.len() < text.len() {
            self.string(bare, of, depth);
            return;
        }
        if let Some(plain) = compatible(text) {
            self.string(&plain, of, depth);
        }
        if of.is_content {
            if !text.contains(char::is_control) {
                self.encoded(text, of, depth);
                self.content(text, of);
            }
            return;
        }
        if let Some(found) = read_literals(text) {
            self.literals(&found, of, depth);
            if found.is_json {
                return;
            }
        }
        if let Some(inside) = unquoted(text) {
            self.string(inside, of, depth);
            return;
        }
        if text.contains(ends_line) {
            if let Some(folded) = fold_lines(text) {
                self.string(&folded, of, depth);
            }
            for line in text.split(ends_line) {
                if self.is_over() {
                    return;
                }
                self.string(line, of, depth);
            }
            return;
        }
        self.encoded(text, of, depth);
        self.path(text, of);
        self.parts(text, of, depth);
    }

    /// Whatever stands in a string beside the whole of it.
    fn parts(&mut self, text: &str, of: Of<'_>, depth: usize) {
        for below in behind_unknown(text) {
            if !self.may_read(below.len()) {
                return;
            }
            let of = Of {
                is_path: true,
                ..of
            };
            self.relative(below, of);
        }
        if of.is_command {
            let words = text
                .split_whitespace()
                .map(|word| unquoted(word).unwrap_or(word));
            for word in words.filter(|word| word.contains('/') && is_glob(word)) {
                if !self.may_read(word.len()) {
                    return;
                }
                self.glob(word, of);
            }
        }
        for piece in pieces(text, of.is_command) {
            let of = Of {
                is_path: of.is_path && piece.is_value,
                is_piece: true,
                ..of
            };
            for text in [Some(piece.text), piece.whole].into_iter().flatten() {
                if self.is_over() {
                    return;
                }
                if !self.is_seen(text, of, depth) {
                    self.piece(text, of, depth);
                }
            }
        }
    }

    /// Returns whether nothing more needs to be read: that something was left out is all that counts of what follows.
    fn is_over(&self) -> bool {
        self.out.unread || self.budget.is_exceeded()
    }

    /// Returns whether a piece of this string was read in this way before, and remembers it.
    fn is_seen(&mut self, text: &str, of: Of<'_>, depth: usize) -> bool {
        if text.len() > PIECE_SEEN_BYTES_MAX {
            return false;
        }
        let kind = (of.is_path, of.is_command, of.is_decoded, depth);
        let piece = (Box::from(text), kind);
        match self.pieces.len() < PIECES_SEEN_MAX {
            true => !self.pieces.insert(piece),
            false => self.pieces.contains(&piece),
        }
    }

    /// Reads the strings of a list or map in a string. They play the part of the string that they stand in, and that
    /// which their own names give them.
    fn literals(&mut self, found: &Literals<'_>, of: Of<'_>, depth: usize) {
        self.out.unread |= found.is_truncated;
        for literal in &found.strings {
            if self.is_over() {
                return;
            }
            let own = literal.key.as_deref().unwrap_or_default();
            let key = if own.is_empty() { of.key } else { own };
            let of = Of {
                key,
                is_path: !literal.is_name && (of.is_path || role_of_key(own).is_some()),
                is_content: !literal.is_name && is_content_key(own),
                is_command: of.is_command || is_command_key(own),
                is_piece: false,
                is_decoded: of.is_decoded,
            };
            self.string(&literal.text, of, depth);
        }
    }

    /// Readings of those that decode or expand a string before they use it.
    fn encoded(&mut self, text: &str, of: Of<'_>, depth: usize) {
        let of = Of {
            is_decoded: true,
            ..of
        };
        if text.contains('%')
            && let Ok(Cow::Owned(decoded)) = percent_decode_str(text).decode_utf8()
        {
            self.string(&decoded, of, depth);
        }
        if text.len() <= DECODED_BYTES_MAX {
            let escaped = decode_escapes(text);
            #[cfg(debug_assertions)]
            let escaped = escaped.filter(|_| !super::blind::skips_escapes());
            for decoded in [escaped, decode_references(text)].into_iter().flatten() {
                self.string(&decoded, of, depth);
            }
        }
        if text.contains('\\') && text.len() <= OPENED_BYTES_MAX {
            self.string(&text.replace('\\', "/"), of, depth);
            self.string(&text.replace('\\', ""), of, depth);
        }
        if let Some(expanded) = self.expanded(text) {
            self.string(&expanded, of, depth);
        }
        if let Some(user) = text.strip_prefix('~')
            && user.starts_with(|c: char| c.is_ascii_alphanumeric())
        {
            self.string(&format!("/home/{user}"), of, depth);
            self.string(&format!("/{user}"), of, depth);
        }
    }

    /// Returns a text with the variables of the server's environment in their places, as a shell expands them; `None` if
    /// it names none.
    fn expanded(&self, text: &str) -> Option<String> {
        let view = self
            .view
            .filter(|_| text.contains('$') && text.len() <= DECODED_BYTES_MAX)?;
        let mut expanded = String::with_capacity(text.len());
        let mut rest = text;
        while let Some((before, behind)) = rest.split_once('$') {
            expanded.push_str(before);
            let is_braced = behind.starts_with('{');
            let named = if is_braced { behind.get(1..)? } else { behind };
            let is_part = |b: &u8| b.is_ascii_alphanumeric() || *b == b'_';
            let length = named.bytes().take_while(is_part).count();
            let name = named.get(..length)?;
            if name.is_empty() {
                expanded.push('$');
                rest = behind;
                continue;
            }
            let value = match name {
                "HOME" => view.home(),
                "PWD" => view.current_dir(),
                _ => view.variable(name),
            };
            expanded.push_str(value.as_deref().unwrap_or_default());
            rest = named.get(length..)?;
            if is_braced {
                // `${NAME:-x}` and its like: what stands in for a value is read with the rest of the text.
                rest = rest.split_once('}').map_or(rest, |(_, behind)| behind);
            }
        }
        expanded.push_str(rest);
        (expanded != text).then_some(expanded)
    }

    /// A part of a string that may be a path of its own.
    fn piece(&mut self, text: &str, of: Of<'_>, depth: usize) {
        let is_simple = is_simple(text);
        let weight = if is_simple { 1 } else { STEPS_PER_PIECE_BYTE };
        if !self.may_read(text.len().saturating_mul(weight)) {
            return;
        }
        if !is_simple {
            let Some(depth) = depth.checked_sub(1) else {
                self.out.unread = true;
                return;
            };
            self.encoded(text, of, depth);
        }
        self.path(text, of);
    }

    /// What is written is a path only where all of it is one.
    fn content(&mut self, text: &str, of: Of<'_>) {
        let is_one = text.starts_with(['/', '~']) || !text.contains(char::is_whitespace);
        if is_one && text.contains('/') && text.len() <= OPENED_BYTES_MAX {
            self.one_path(text, of);
        }
    }

    /// Whether a text is a path argument's.
    fn is_known(&self, text: &str) -> bool {
        match self.known.len() > FEW {
            true => self.known_texts.contains(text),
            false => self.known.iter().any(|known| known.text == text),
        }
    }

    /// A text as a path, as a URI, and as a glob.
    fn path(&mut self, text: &str, of: Of<'_>) {
        let is_one = !is_glob(text) && !text.contains([':', '#', ';']);
        if is_one && self.is_known(text) {
            // Its places are known; what stays is a directory that only the server knows.
            self.relative(text, of);
            return;
        }
        if let Some(scheme) = scheme_of(text) {
            self.uri(text, &scheme, of, SCHEMES_MAX);
        }
        self.one_path(text, of);
        for cut in cuts(text) {
            self.one_path(cut, of);
        }
        if is_glob(text) {
            self.glob(text, of);
        }
    }

    fn one_path(&mut self, text: &str, of: Of<'_>) {
        if text.starts_with(['/', '~']) || crate::paths::is_file_uri(text) {
            self.place(text, of);
        } else {
            self.relative(text, of);
        }
    }

    /// The path of a URI of whichever scheme, and what stands behind its scheme. At most `schemes_left` schemes stand before
    /// one another.
    fn uri(&mut self, text: &str, scheme: &str, of: Of<'_>, schemes_left: usize) {
        let Some(schemes_left) = schemes_left.checked_sub(1) else {
            self.out.unread = true;
            return;
        };
        if !self.may_read(text.len()) {
            return;
        }
        if !self.out.schemes.iter().any(|known| known == scheme) {
            self.out.schemes.push(scheme.to_owned());
        }
        let Some((_, behind)) = text.split_once(':') else {
            return;
        };
        let of = Of {
            is_path: true,
            ..of
        };
        let Some(authority_and_path) = behind.strip_prefix("//") else {
            if behind.contains(['/', '.', ':']) {
                if let Some(scheme) = scheme_of(behind) {
                    self.uri(behind, &scheme, of, schemes_left);
                }
                self.one_path(behind, of);
                for cut in cuts(behind) {
                    self.one_path(cut, of);
                }
            }
            return;
        };
        let (authority, path) = authority_and_path
            .find('/')
            .and_then(|at| authority_and_path.split_at_checked(at))
            .unwrap_or((authority_and_path, ""));
        if WEB.contains(&scheme) && !authority.is_empty() {
            return;
        }
        for reading in [path, authority_and_path] {
            let cut = cuts(reading);
            for reading in std::iter::once(reading).chain(cut) {
                self.one_path(reading, of);
                let bare = reading.trim_start_matches('/');
                self.relative(bare, of);
                let rooted = format!("/{bare}");
                if reading.len() > 1 {
                    self.place(&rooted, of);
                }
            }
        }
    }

    /// Where a path leads that begins at the root, at a home, or at the server's directory.
    fn place(&mut self, text: &str, of: Of<'_>) {
        let is_looked_up = text.len() <= OPENED_BYTES_MAX && self.looks_left > 0;
        if is_looked_up {
            if !self.may_spend(reading_steps(text, self.view)) {
                return;
            }
            self.looks_left -= 1;
            let found = found(text, self.view);
            // What somebody writes about such places opens none of them.
            self.out.unread |= found.of_process && (of.is_path || of.is_command || !of.is_piece);
            for place in found.meaning.places {
                self.add_place(place);
            }
        } else if text.starts_with('/') {
            self.add_place(lexical(text));
        } else if let (Some(below), Some(home)) =
            (text.strip_prefix('~'), self.view.and_then(PathView::home))
        {
            self.add_place(lexical(&format!("{home}/{below}")));
        }
    }

    /// A text below the server's directory, which is known, or is not.
    fn relative(&mut self, text: &str, of: Of<'_>) {
        if text.starts_with(['/', '~', '-']) || (!of.is_path && text.contains(char::is_whitespace))
        {
            return;
        }
        let tidy = lexical(text);
        let tidy = tidy.trim_start_matches('/');
        if tidy.is_empty() {
            return;
        }
        let is_word = !tidy.contains('/');
        if !self.is_known(text) {
            if is_word && !of.is_path {
                self.word(tidy, of);
            } else if text.len() <= OPENED_BYTES_MAX && self.view.is_some() {
                self.place(text, of);
            }
        }
        let is_base_known = self.view.is_some_and(PathView::is_base_known);
        let names_a_file = of.is_path || !is_word || tidy.contains('.');
        // Of a glob that begins with a wildcard any directory could be the beginning.
        let begins_wild = tidy.split('/').next().is_some_and(is_glob);
        if !is_base_known && names_a_file && !begins_wild && tidy.len() <= OPENED_BYTES_MAX {
            self.list(List::Relative, tidy);
        }
    }

    /// A single word below the server's directory.
    fn word(&mut self, word: &str, of: Of<'_>) {
        if word.len() > NAME_BYTES_MAX {
            return;
        }
        let Some(view) = self.view else { return };
        let Some(base) = view.current_dir() else {
            return;
        };
        let place = lexical(&format!("{base}/{word}"));
        if self.looks_left > 0 {
            self.looks_left -= 1;
            if let Link::To(_) = view.read_link(&place) {
                self.place(&place, of);
            }
        }
        self.list(List::Words, &place);
    }

    /// A glob: absolute, below a path of the same call, or below the server's directory.
    fn glob(&mut self, text: &str, of: Of<'_>) {
        let plain = plain_glob(text);
        let text = &*plain;
        let has_blanks = text.contains(char::is_whitespace);
        let first = text.trim_start_matches('/').split('/').next();
        let is_fixed = first.is_some_and(|first| first.contains(char::is_alphanumeric));
        let is_all_wild = !text.contains(char::is_alphanumeric);
        let is_meant = of.is_path || is_glob_key(of.key);
        if text.len() > OPENED_BYTES_MAX
            || (has_blanks && !(text.starts_with('/') && is_fixed))
            || (is_all_wild && !is_meant)
        {
            return;
        }
        if text.starts_with('/') {
            self.list(List::Globs, text);
            return;
        }
        let known = self.known;
        let named = known.iter().filter(|argument| {
            argument.role != Role::Shape && !argument.content && argument.text != text
        });
        let mut bases: Vec<&str> = named
            .flat_map(|argument| argument.meaning.places.iter().map(String::as_str))
            .collect();
        let own = self.view.and_then(PathView::current_dir);
        if bases.is_empty() {
            bases.extend(own.as_deref());
        }
        for base in bases {
            let glob = format!("{}/{text}", base.trim_end_matches('/'));
            self.list(List::Globs, &glob);
        }
    }

    fn add_place(&mut self, place: String) {
        let is_known = match self.known.len() > FEW {
            true => self.known_places.contains(place.as_str()),
            false => self
                .known
                .iter()
                .any(|argument| argument.meaning.places.contains(&place)),
        };
        if !is_known {
            self.list(List::Places, &place);
        }
    }

    fn list(&mut self, list: List, text: &str) {
        let listed = self.listed.get_mut(list as usize);
        if listed.is_none_or(|listed| !listed.insert(text.into())) {
            return;
        }
        let list = match list {
            List::Places => &mut self.out.places,
            List::Words => &mut self.out.words,
            List::Relative => &mut self.out.relative,
            List::Globs => &mut self.out.globs,
        };
        if list.len() < ENTRIES_MAX {
            list.push(text.to_owned());
        } else {
            self.out.unread = true;
        }
    }

    /// Whether so many more bytes may be read.
    fn may_read(&mut self, bytes: usize) -> bool {
        /// What a reading costs however short its text is.
        const STEPS_PER_READING: u64 = 64;
        self.may_spend(
            u64::try_from(bytes)
                .unwrap_or(u64::MAX)
                .saturating_add(STEPS_PER_READING),
        )
    }

    fn may_spend(&mut self, steps: u64) -> bool {
        let may = self.budget.spend(steps);
        self.out.unread |= !may;
        may
    }
}

/// A list of a [`Reach`].
#[derive(Debug, Clone, Copy)]
enum List {
    Places,
    Words,
    Relative,
    Globs,
}

impl std::fmt::Debug for Reader<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reader")
            .field("out", &self.out)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> (Reach, u64) {
        let budget = StepBudget::for_input(text.len());
        let mut reader = Reader::new(&[], None, &budget);
        reader.take(Text {
            text,
            key: "q",
            is_path: false,
            is_content: false,
        });
        (reader.done(false), budget.spent())
    }

    #[test]
    fn schemes_before_one_another_end_and_are_counted() {
        for count in [100, 2_000, 500_000] {
            let (reach, _) = read(&"a:".repeat(count));
            assert!(reach.unread, "{count}");
        }
        let (reach, _) = read("jar:file:///srv/x.jar!/y");
        assert!(!reach.unread && reach.schemes == ["jar", "file"]);
        assert!(reach.places.contains(&"/srv/x.jar".to_owned()), "{reach:?}");
    }

    #[test]
    fn a_piece_that_is_repeated_is_read_once() {
        let (once, few) = read("see /srv/a?b, ");
        let (often, many) = read(&"see /srv/a?b, ".repeat(1_000));
        assert!(!often.unread && often.places == once.places);
        assert!(many < 1_000 * few / 8, "{many} steps, {few} of one");
    }
}
