//! Canonical frames: a message written anew, so that every reader reads in it what the gate read.
//!
//! The frame that is judged, shown, recorded and sent is this one text, never the peer's. What the
//! writer does, in the one validating walk of [`crate::scan`]:
//!
//! - white space between tokens is dropped, so no reader that cuts lines at CR, NEL, LS or PS finds
//!   a second message inside;
//! - in strings and names each character has one spelling: itself, but for what JSON forbids there
//!   and for U+0085, U+2028 and U+2029, which are escaped (`\n` and its like in their short form,
//!   else `\u` and four lowercase digits). So `\/` becomes `/`, `\u0053` becomes `S`, and two
//!   escaped surrogates become their character;
//! - what parsers disagree on is refused: invalid UTF-8, a byte order mark, lone surrogates, names
//!   that stand twice, and members of the message that a lenient reader takes for JSON-RPC's
//!   (`Method`, `paramſ`; see [`crate::fold`]);
//! - members of a request or notification that JSON-RPC does not know are dropped; those of a
//!   response, of `params` and of results are kept, unless [`Canonical::params_are`] or
//!   [`Canonical::reply_is`] finds one that is like a known one;
//! - the spelling of numbers and the order of members are kept.
//!
//! Writing a canonical frame again gives the same bytes. Cost: one copy, at most 2 µs per KiB.

mod arguments;
mod envelope;
mod writer;

use std::borrow::Cow;
use std::ops::Range;

pub use arguments::{Declared, NameTree};
pub use writer::{Name, Part};

use crate::error::WireError;
use crate::jsonrpc::{Envelope, Own};
use crate::members::Shape;
use crate::scan::{Bounds, Leaf, Member, Notes, OwnPlaces, Rules, Scan, Walker};
use writer::{Writer, Written};

/// A frame that this module wrote, and where things stand in it.
#[derive(Debug)]
pub struct Canonical {
    text: String,
    unescaped: Vec<Box<str>>,
    /// Boxed, since frames are handed on more often than they are written.
    noted: Box<Noted>,
}

/// Where things stand in it.
#[derive(Debug)]
struct Noted {
    notes: Notes<Name, Part>,
    own: OwnPlaces,
}

impl Canonical {
    /// Writes a message, or a batch of them, anew.
    ///
    /// No name may stand twice in an object; deeper in a `result` or `error` than its members it
    /// may, for that belongs to the server and its client. The messages of a batch are taken out by
    /// [`Canonical::batch`] and written each for itself; until then what JSON-RPC does not know stays
    /// in them.
    ///
    /// # Errors
    /// The first fault, with its byte offset in `frame`.
    pub fn of(frame: &[u8], bounds: &Bounds) -> Result<Self, WireError> {
        let walker = Walker::new(frame, bounds, Rules::Canonical, Writer::of)?;
        let walked = walker.run()?;
        let Written { text, unescaped } = walked.sink.into_written();
        let mut canonical = Self {
            text,
            unescaped,
            noted: Box::new(Noted {
                notes: walked.notes,
                own: walked.own.at,
            }),
        };
        if walked.own.has_unknown {
            canonical.drop_unknown_members();
        }
        Ok(canonical)
    }

    /// The frame.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The frame alone, to be sent.
    #[must_use]
    pub fn into_bytes(self) -> Vec<u8> {
        self.text.into_bytes()
    }

    /// What the walk noted, as slices of the frame.
    #[must_use]
    pub fn scan(&self) -> Scan<'_> {
        let notes = &self.noted.notes;
        Scan {
            members: self.slices(&notes.members).collect(),
            params: self.slices(&notes.params).collect(),
            reply: self.slices(&notes.reply).collect(),
            leaves: self.leaves().collect(),
            objects: self.noted.notes.objects.clone(),
            batch: self.batch().map(Iterator::collect),
        }
    }

    /// The envelope: what the message is, and its raw payload.
    ///
    /// # Errors
    /// As [`Envelope::of`].
    pub fn envelope(&self) -> Result<Envelope<'_>, WireError> {
        Envelope::read(self.noted.notes.batch.is_some(), |own| self.own(own))
    }

    /// Whether the message has this member.
    #[must_use]
    pub fn has(&self, own: Own) -> bool {
        self.own(own).is_some()
    }

    /// The raw value of a member that JSON-RPC knows.
    fn own(&self, own: Own) -> Option<&str> {
        let at = (*self.noted.own.get(own as usize)?)?;
        let (_, part) = self.noted.notes.members.get(at)?;
        self.slice(part)
    }

    /// The raw value of a member of the message.
    #[must_use]
    pub fn member(&self, name: &str) -> Option<&str> {
        if let Some(own) = Own::of(name) {
            return self.own(own);
        }
        self.slice(&self.find(&self.noted.notes.members, name)?)
    }

    /// Where the raw value of a member of the message stands.
    #[must_use]
    pub fn member_range(&self, name: &str) -> Option<Range<usize>> {
        self.find(&self.noted.notes.members, name)
    }

    /// The raw value of a member of `params`.
    #[must_use]
    pub fn param(&self, name: &str) -> Option<&str> {
        self.slice(&self.find(&self.noted.notes.params, name)?)
    }

    /// The raw value of a member of `result` or `error`.
    #[must_use]
    pub fn reply_member(&self, name: &str) -> Option<&str> {
        self.slice(&self.find(&self.noted.notes.reply, name)?)
    }

    /// Members of `params`.
    pub fn params(&self) -> impl Iterator<Item = Member<'_>> {
        self.slices(&self.noted.notes.params)
    }

    /// Strings below `params.arguments`.
    pub fn leaves(&self) -> impl Iterator<Item = Leaf<'_>> {
        self.noted.notes.leaves.iter().map(|leaf| Leaf {
            key: Cow::Borrowed(self.name(&leaf.key)),
            value: self.slice(&leaf.value).unwrap_or_default(),
            is_name: leaf.is_name,
            top: Cow::Borrowed(self.name(&leaf.top)),
            object: leaf.object,
        })
    }

    /// The messages of a batch, each of which is to be written for itself. `None` where the frame is
    /// no array.
    #[must_use]
    pub fn batch(&self) -> Option<impl Iterator<Item = &str>> {
        let parts = self.noted.notes.batch.as_ref()?;
        Some(parts.iter().filter_map(|part| self.slice(part)))
    }

    /// Refuses `params` with a member that is like one of `shape`'s without being it. Members that
    /// are like none are kept.
    ///
    /// # Errors
    /// [`crate::WireErrorKind::AmbiguousMember`], or a name that stands twice where the shape says
    /// that names are read.
    pub fn params_are(&self, shape: &Shape) -> Result<(), WireError> {
        self.members_are(&self.noted.notes.params, shape)
    }

    /// Refuses a `result` or `error` with a member that is like one of `shape`'s without being it.
    ///
    /// # Errors
    /// As [`Canonical::params_are`].
    pub fn reply_is(&self, shape: &Shape) -> Result<(), WireError> {
        self.members_are(&self.noted.notes.reply, shape)
    }

    /// Refuses arguments in which a name can be read as another of the same object, or as one that
    /// the tool's schema declares there; a declared name is never refused.
    ///
    /// # Errors
    /// [`crate::WireErrorKind::AmbiguousArgument`].
    pub fn arguments_are(&self, declared: &impl Declared) -> Result<(), WireError> {
        arguments::check(self, declared)
    }

    fn members_are(&self, members: &[(Name, Part)], shape: &Shape) -> Result<(), WireError> {
        for (name, part) in members {
            let value = self.slice(part).unwrap_or_default();
            shape.check_member(name.at().start, self.name(name), value)?;
        }
        Ok(())
    }

    fn find(&self, members: &[(Name, Part)], name: &str) -> Option<Part> {
        let found = members.iter().find(|(noted, _)| self.name(noted) == name);
        found.map(|(_, part)| part.clone())
    }

    fn slices<'s>(&'s self, members: &'s [(Name, Part)]) -> impl Iterator<Item = Member<'s>> {
        let slice = |part| self.slice(part).unwrap_or_default();
        members
            .iter()
            .map(move |(name, part)| (Cow::Borrowed(self.name(name)), slice(part)))
    }

    fn name<'s>(&'s self, name: &'s Name) -> &'s str {
        match name.unescaped() {
            Some(at) => self.unescaped.get(at).map_or("", AsRef::as_ref),
            None => self.slice(&name.at()).unwrap_or_default(),
        }
    }

    fn slice(&self, part: &Part) -> Option<&str> {
        self.text.get(part.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::WireErrorKind as K;

    fn written(frame: &str) -> Result<String, K> {
        let canonical = Canonical::of(frame.as_bytes(), &Bounds::default());
        Ok(canonical.map_err(|error| error.kind)?.text().to_owned())
    }

    #[test]
    fn frames_are_written_in_one_spelling() {
        let cases = [
            (
                " { \"jsonrpc\" : \"2.0\",\t\"id\" :1.0e0,\r\"method\":\"a\\/b\" } ",
                Ok(r#"{"jsonrpc":"2.0","id":1.0e0,"method":"a/b"}"#),
            ),
            (
                "{\"method\":\"ping\",\"params\":{\"x\":\r{\"method\":\"tools\\u002fcall\"}\r}}",
                Ok(r#"{"method":"ping","params":{"x":{"method":"tools/call"}}}"#),
            ),
            (
                r#"{"x":[1],"method":"m","Y":{},"params":{"arguments":{"a":"b"}},"z":"}"}"#,
                Ok(r#"{"method":"m","params":{"arguments":{"a":"b"}}}"#),
            ),
            (r#"{"x":1,"\u006dethod":"m"}"#, Ok(r#"{"method":"m"}"#)),
            (
                r#"{"id":1,"x" : 1,"result":{ "a":{"b":1,"b":2}}}"#,
                Ok(r#"{"id":1,"x":1,"result":{"a":{"b":1,"b":2}}}"#),
            ),
            (
                r#"[ {"x":1,"method":"m"},{"result":{"a":{"b":1,"b":2}}} ]"#,
                Ok(r#"[{"x":1,"method":"m"},{"result":{"a":{"b":1,"b":2}}}]"#),
            ),
            (
                r#"{"method":"ping","Method":"tools/call"}"#,
                Err(K::AmbiguousMember),
            ),
            (r#"{"id":1,"result":{},"ID":2}"#, Err(K::AmbiguousMember)),
            (
                r#"{"method":"m","param\u017f":{}}"#,
                Err(K::AmbiguousMember),
            ),
            (
                r#"{"result":{"tools":[],"tools":[]}}"#,
                Err(K::DuplicateKey),
            ),
            (r#"{"params":{"a":{"b":1,"b":2}}}"#, Err(K::DuplicateKey)),
            (r#"[{"params":{"a":1,"a":2}}]"#, Err(K::DuplicateKey)),
            (r#"{"x":{"b":1,"b":2},"method":"m"}"#, Err(K::DuplicateKey)),
            ("", Err(K::Syntax)),
        ];
        for (frame, expect) in cases {
            assert_eq!(written(frame), expect.map(str::to_owned), "{frame}");
        }
    }

    #[test]
    fn what_is_noted_is_what_is_written() {
        let frame = r#"{"drop" : "\u0041", "jsonrpc":"2.0","params":{ "_meta" : {"a\nb":1},"name":"t",
            "arguments": {"\u0061\n":["\u002f\u2028x", {"y":"z"}]}},"more":{"params":{}},"method":"tools/call","id":"\u0037","end":0}"#;
        let canonical = Canonical::of(frame.as_bytes(), &Bounds::default()).unwrap();
        let again = crate::scan_request(canonical.text().as_bytes(), &Bounds::default()).unwrap();
        let noted = canonical.scan();
        assert_eq!(noted.members, again.members);
        assert_eq!(noted.params, again.params);
        assert_eq!(noted.leaves, again.leaves);
        assert_eq!(noted.objects, again.objects);
        assert_eq!(canonical.member("id"), Some("\"7\""));
        assert_eq!(canonical.param("name"), Some("\"t\""));
        assert_eq!(canonical.member("drop"), None);
        assert_eq!(canonical.leaves().nth(1).unwrap().value, "/\\u2028x");
        assert_eq!(canonical.leaves().nth(1).unwrap().key, "a\n");
        let range = canonical.member_range("id").unwrap();
        assert_eq!(canonical.text().get(range), Some("\"7\""));
    }

    #[test]
    fn names_are_kept_where_they_are_noted_and_nowhere_else() {
        let deep = r#"{"\n":{"\n":1},"a":[{"\n":2},{"\n":3}]}"#;
        let frames = [
            (format!(r#"{{"id":1,"result":{deep}}}"#), 1),
            (
                format!(r#"{{"method":"m","params":{{"_meta":{deep}}}}}"#),
                0,
            ),
            (
                format!(r#"{{"method":"m","params":{{"arguments":{deep}}}}}"#),
                4,
            ),
            (format!(r#"[{{"id":1,"result":{deep}}}]"#), 0),
        ];
        for (frame, kept) in frames {
            let canonical = Canonical::of(frame.as_bytes(), &Bounds::default()).unwrap();
            assert_eq!(canonical.text(), frame);
            assert_eq!(canonical.unescaped.len(), kept, "{frame}");
        }
    }

    #[test]
    fn errors_name_the_member_and_say_what_to_do() {
        let frame = br#"{"method":"ping","Method\u001b":"","METHOD":""}"#;
        let error = Canonical::of(frame, &Bounds::default()).unwrap_err();
        assert_eq!(
            error.to_string(),
            "a member name can be read as another; use the protocol's spelling (\"METHOD\" is like \"method\" but for case, \"_\" or \"-\") at byte 35"
        );
    }
}
