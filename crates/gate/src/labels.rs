//! Labels of data flow: what the results that a caller has received say of what may be in its hands. A
//! leaf: it imports nothing of ours.

/// A label.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Label {
    /// Somebody else may have written it: a page, a mail, an issue.
    Untrusted,
    /// It is not for everybody.
    Private,
}

impl Label {
    /// All, in the order of the reference page.
    pub const ALL: [Self; 2] = [Self::Untrusted, Self::Private];

    /// The word for a session that has all of them, in policies and in records.
    pub const BOTH: &str = "untrusted+private";

    /// The words that a rule may ask for.
    pub(crate) fn asked() -> Vec<&'static str> {
        let mut words = Self::ALL.map(Self::word).to_vec();
        words.push(Self::BOTH);
        words
    }

    /// The word in the configuration, in policies and in records.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Untrusted => "untrusted",
            Self::Private => "private",
        }
    }

    /// Reads the word.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|label| label.word() == word)
    }

    fn bit(self) -> u8 {
        match self {
            Self::Untrusted => 1,
            Self::Private => 2,
        }
    }
}

/// A set of labels.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Labels(u8);

impl Labels {
    /// Whether there is none.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Whether this one is among them.
    #[must_use]
    pub fn has(self, label: Label) -> bool {
        self.0 & label.bit() != 0
    }

    /// Those of both.
    #[must_use]
    pub fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Each of them.
    pub fn iter(self) -> impl Iterator<Item = Label> {
        Label::ALL.into_iter().filter(move |label| self.has(*label))
    }
}

impl FromIterator<Label> for Labels {
    fn from_iter<I: IntoIterator<Item = Label>>(labels: I) -> Self {
        Self(labels.into_iter().fold(0, |bits, label| bits | label.bit()))
    }
}
