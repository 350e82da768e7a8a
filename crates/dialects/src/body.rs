//! The body of a request: the members of its top, and how single ones are replaced.

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;

use super::json;
use super::write::ObjectWriter;
use wire::error::WireError;
use wire::fold;
use wire::scan::{Bounds, scan_request};
use wire::text::push_string;

/// A request's body that was looked over: JSON, an object, no name twice in any object, and at the top no
/// name that can be read as one that the gate reads or writes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Body {
    text: String,
    members: Vec<(String, Range<usize>)>,
}

/// Why a body is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BodyFault {
    /// It is not JSON, or a name is repeated or is like a known one.
    Wire(WireError),
    /// It is JSON and no object.
    NotAnObject,
}

impl fmt::Display for BodyFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Wire(error) => error.fmt(f),
            Self::NotAnObject => f.write_str("the body is not a JSON object"),
        }
    }
}

impl std::error::Error for BodyFault {}

impl Body {
    /// Looks a body over; `known` are the names that the gate reads or writes.
    ///
    /// # Errors
    /// [`BodyFault`].
    pub fn read(bytes: &[u8], known: &[&str]) -> Result<Self, BodyFault> {
        let scan = scan_request(bytes, &Bounds::default()).map_err(BodyFault::Wire)?;
        let text = std::str::from_utf8(bytes).unwrap_or_default();
        if !text.trim_start().starts_with('{') {
            return Err(BodyFault::NotAnObject);
        }
        let start = text.as_ptr().addr();
        let mut members = Vec::with_capacity(scan.members.len());
        for (name, value) in &scan.members {
            let at = value.as_ptr().addr().saturating_sub(start);
            if let Some(known) = fold::mistaken_for(name, known) {
                return Err(BodyFault::Wire(WireError::ambiguous_member(
                    at, name, known,
                )));
            }
            members.push((name.clone().into_owned(), at..at + value.len()));
        }
        Ok(Self {
            text: text.to_owned(),
            members,
        })
    }

    /// Returns the whole body.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns the members, with their raw values.
    pub fn members(&self) -> impl Iterator<Item = (&str, &str)> {
        self.members.iter().filter_map(|(name, at)| {
            let value = self.text.get(at.clone())?;
            Some((name.as_str(), value))
        })
    }

    /// Returns the raw value of a member of the top; `null` is as good as none.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        let raw = self.text.get(self.range(name)?)?;
        (raw != "null").then_some(raw)
    }

    /// Returns a member that is a string.
    #[must_use]
    pub fn text(&self, name: &str) -> Option<Cow<'_, str>> {
        json::text(self.get(name)?)
    }

    /// Returns a member that is a whole number.
    #[must_use]
    pub fn number(&self, name: &str) -> Option<u64> {
        json::number(self.get(name)?)
    }

    /// Returns whether a member is `true`.
    #[must_use]
    pub fn is_true(&self, name: &str) -> bool {
        self.get(name) == Some("true")
    }

    /// Returns the body with these members of the top given these raw values, and every other byte as it is.
    #[must_use]
    pub fn with(&self, edits: &[(&str, &str)]) -> String {
        let added: usize = edits.iter().map(|(n, v)| n.len() + v.len() + 4).sum();
        let mut out = Vec::with_capacity(self.text.len() + added);
        let mut at = 0;
        let mut copy = |out: &mut Vec<u8>, to: usize, next: usize| {
            out.extend_from_slice(self.text.get(at..to).unwrap_or_default().as_bytes());
            at = next;
        };
        // New members come first, so that nothing has to be known of the end.
        let is_new = |(name, _): &&(&str, &str)| self.range(name).is_none();
        let mut new = edits.iter().filter(is_new).peekable();
        if new.peek().is_some() {
            let open = self.text.find('{').map_or(0, |open| open + 1);
            copy(&mut out, open, open);
        }
        while let Some((name, value)) = new.next() {
            push_string(&mut out, name);
            out.push(b':');
            out.extend_from_slice(value.as_bytes());
            if new.peek().is_some() || !self.members.is_empty() {
                out.push(b',');
            }
        }
        for (name, range) in &self.members {
            if let Some((_, value)) = edits.iter().find(|(edited, _)| edited == name) {
                copy(&mut out, range.start, range.end);
                out.extend_from_slice(value.as_bytes());
            }
        }
        copy(&mut out, self.text.len(), self.text.len());
        // Both the text and what was put in are UTF-8.
        String::from_utf8(out).unwrap_or_default()
    }

    /// Returns the body with other members of the top: those of these names are left out, and these are put in front;
    /// the values of all others are as they came.
    #[must_use]
    pub fn without(&self, names: &[&str], added: &[(&str, &str)]) -> String {
        let own = self.members().filter(|(name, _)| {
            !names.contains(name) && !added.iter().any(|(added, _)| added == name)
        });
        let all = added.iter().copied().chain(own);
        let written = all.fold(ObjectWriter::new(), |out, (name, value)| {
            out.raw(name, value)
        });
        // Names and values are UTF-8.
        String::from_utf8(written.end()).unwrap_or_default()
    }

    fn range(&self, name: &str) -> Option<Range<usize>> {
        let found = self.members.iter().find(|(own, _)| own == name);
        found.map(|(_, range)| range.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use wire::error::WireErrorKind as K;

    fn read(text: &str) -> Result<Body, BodyFault> {
        Body::read(text.as_bytes(), &["model", "stream", "stream_options"])
    }

    #[test]
    fn names_that_stand_twice_or_fold_are_refused() {
        let cases = [
            (r#"{"model":"a","model":"b"}"#, K::DuplicateKey),
            (r#"{"model":"a","mod\u0065l":"b"}"#, K::DuplicateKey),
            (r#"{"model":"a","Model":"b"}"#, K::AmbiguousMember),
            (r#"{"model":"a","STREAM":true}"#, K::AmbiguousMember),
            (r#"{"streamOptions":{}}"#, K::AmbiguousMember),
            (r#"{"messages":[{"role":"a","role":"b"}]}"#, K::DuplicateKey),
            (r#"{"model":"a"#, K::Syntax),
            ("", K::Syntax),
        ];
        for (text, kind) in cases {
            match read(text) {
                Err(BodyFault::Wire(error)) => assert_eq!(error.kind, kind, "{text}"),
                other => panic!("{text}: {other:?}"),
            }
        }
        for text in ["[]", "7", "\"x\"", "null"] {
            assert_eq!(read(text), Err(BodyFault::NotAnObject), "{text}");
        }
    }

    #[test]
    fn members_are_left_out_and_the_others_keep_their_values() {
        let text = r#" {"model":"a", "x" : 1.0e0 ,"stream":true,"mod\u0065ls":[ 1 ],"v":"old"}"#;
        let body = Body::read(text.as_bytes(), &[]).unwrap();
        assert_eq!(
            body.without(&["model", "stream"], &[("v", "\"new\"")]),
            r#"{"v":"new","x":1.0e0,"models":[ 1 ]}"#
        );
        assert_eq!(read("{}").unwrap().without(&["model"], &[]), "{}");
    }

    #[test]
    fn only_the_members_that_are_written_change() {
        let text = " { \"temperature\" : 1.0e0, \"model\":\"a\\u0062\" ,\"x\":{\"model\":1}}\n";
        let body = read(text).unwrap();
        assert_eq!(body.text("model").as_deref(), Some("ab"));
        assert_eq!(
            body.with(&[("model", "\"c\"")]),
            " { \"temperature\" : 1.0e0, \"model\":\"c\" ,\"x\":{\"model\":1}}\n"
        );
        assert_eq!(
            body.with(&[("stream", "true"), ("model", "\"c\""), ("n", "1")]),
            " {\"stream\":true,\"n\":1, \"temperature\" : 1.0e0, \"model\":\"c\" ,\"x\":{\"model\":1}}\n"
        );
        assert_eq!(body.with(&[]), text);
        assert_eq!(read("{}").unwrap().with(&[("n", "1")]), "{\"n\":1}");
        let two = read("{}").unwrap().with(&[("n", "1"), ("m", "2")]);
        assert_eq!(two, "{\"n\":1,\"m\":2}");
        for edited in [
            body.with(&[("n", "1")]),
            read("{ }").unwrap().with(&[("n", "1")]),
        ] {
            assert!(read(&edited).is_ok(), "{edited}");
        }
    }

    #[test]
    fn numbers_and_flags_are_read_in_every_spelling() {
        let body =
            read(r#"{"a":7,"b":7.0,"c":1e3,"d":-1,"e":1.5,"f":"7","g":true,"h":null}"#).unwrap();
        let numbers = ["a", "b", "c", "d", "e", "f", "h"].map(|name| body.number(name));
        assert_eq!(
            numbers,
            [Some(7), Some(7), Some(1_000), None, None, None, None]
        );
        assert!(body.is_true("g") && !body.is_true("h") && body.get("h").is_none());
    }

    fn value() -> impl Strategy<Value = String> {
        let leaf = prop_oneof![
            Just("null".to_owned()),
            Just("true".to_owned()),
            "-?[1-9][0-9]{0,3}(\\.[0-9]{1,3})?",
            "\"[a-z \u{e9}]{0,6}\"",
            Just("\"\\u0041\\\\\"".to_owned()),
        ];
        leaf.prop_recursive(3, 12, 3, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..3)
                    .prop_map(|list| format!("[{}]", list.join(" ,"))),
                inner.prop_map(|value| format!("{{ \"model\" :{value}}}")),
            ]
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn what_is_written_is_the_body_with_what_was_put_in(
            members in prop::collection::btree_map("[a-c]|model|stream", value(), 0..5),
            blank in "[ \n\t]{0,2}",
        ) {
            let list: Vec<String> = members.iter().map(|(name, value)| format!("{blank}\"{name}\":{blank}{value}")).collect();
            let text = format!("{blank}{{{}{blank}}}", list.join(","));
            let body = read(&text).unwrap();
            prop_assert_eq!(body.with(&[]), text.as_str());
            let written = body.with(&[("model", "\"x\""), ("stream", "true")]);
            let again = read(&written).unwrap();
            prop_assert_eq!(again.get("model"), Some("\"x\""));
            prop_assert!(again.is_true("stream"));
            for (name, value) in members.iter().filter(|(name, _)| !["model", "stream"].contains(&name.as_str())) {
                prop_assert_eq!(again.get(name), Some(value.as_str()).filter(|value| *value != "null"));
            }
        }

        #[test]
        fn no_bytes_make_a_reader_panic(bytes in prop::collection::vec(any::<u8>(), 0..64), which in 0..5_usize) {
            let endpoint = super::super::Endpoint::ALL[which];
            let mut watch = super::super::StreamWatch::new(endpoint);
            watch.see(&bytes);
            if let Ok(body) = Body::read(&bytes, endpoint.known_members()) {
                let _ = endpoint.tools_offered(&body);
                let _ = endpoint.has_images(&body);
            }
        }
    }
}
