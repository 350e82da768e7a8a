//! Values of facts: as they are read, and as they are stated.

use std::borrow::Cow;
use std::sync::Arc;

/// A fact's value, borrowed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value<'f> {
    /// One text.
    Text(Cow<'f, str>),
    /// Words of a closed set.
    Words(&'static [&'static str]),
    /// Names.
    Names(&'f [Arc<str>]),
    /// Places of paths.
    Places(Vec<&'f str>),
    /// Texts that were made for the answer.
    Made(Vec<Cow<'f, str>>),
    /// A number.
    Number(u64),
}

impl Value<'_> {
    /// The text, where it is one.
    #[must_use]
    pub fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            Self::Words(_) | Self::Names(_) | Self::Places(_) | Self::Made(_) | Self::Number(_) => {
                None
            }
        }
    }

    /// The text, or the members of the list; a number has none.
    pub fn texts(&self) -> impl Iterator<Item = &str> {
        let made: &[Cow<'_, str>] = match self {
            Self::Made(made) => made,
            _ => &[],
        };
        let (one, words, names, places): (_, &[&str], &[Arc<str>], &[&str]) = match self {
            Self::Text(text) => (Some(text.as_ref()), &[], &[], &[]),
            Self::Words(words) => (None, words, &[], &[]),
            Self::Names(names) => (None, &[], names, &[]),
            Self::Places(places) => (None, &[], &[], places),
            Self::Made(_) | Self::Number(_) => (None, &[], &[], &[]),
        };
        let lists = words.iter().chain(places).copied();
        one.into_iter()
            .chain(lists)
            .chain(names.iter().map(AsRef::as_ref))
            .chain(made.iter().map(AsRef::as_ref))
    }
}

/// A fact's value as somebody states it who knows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stated {
    /// One text.
    Text(String),
    /// One text, a word of a closed set.
    Word(&'static str),
    /// A list of texts.
    Texts(Arc<[Arc<str>]>),
    /// A number.
    Number(u64),
}

impl Stated {
    pub(super) fn value(&self) -> Value<'_> {
        match self {
            Self::Text(text) => Value::Text(text.into()),
            Self::Word(word) => Value::Text(Cow::Borrowed(word)),
            Self::Texts(texts) => Value::Names(texts),
            Self::Number(number) => Value::Number(*number),
        }
    }
}

impl From<&str> for Stated {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<u64> for Stated {
    fn from(number: u64) -> Self {
        Self::Number(number)
    }
}

impl From<&Arc<[Arc<str>]>> for Stated {
    fn from(texts: &Arc<[Arc<str>]>) -> Self {
        Self::Texts(Arc::clone(texts))
    }
}

impl FromIterator<Arc<str>> for Stated {
    fn from_iter<I: IntoIterator<Item = Arc<str>>>(texts: I) -> Self {
        Self::Texts(texts.into_iter().collect())
    }
}
