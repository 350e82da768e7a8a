//! Operations of a call, and sets of them.

/// What a call does to what it touches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Operation {
    /// It reads.
    Read,
    /// It sends something to somebody else, or beyond this machine.
    Send,
    /// It changes or makes something.
    Write,
    /// It removes something.
    Delete,
    /// It runs code or a program, which may do anything.
    Execute,
    /// It may do anything: no source that counts says what it does.
    Unknown,
}

impl Operation {
    /// All that a policy can name.
    pub const ALL: [Self; 6] = [
        Self::Read,
        Self::Write,
        Self::Delete,
        Self::Execute,
        Self::Send,
        Self::Unknown,
    ];

    /// Returns the words of all operations.
    pub(crate) fn labels() -> Vec<&'static str> {
        Self::ALL.map(Self::label).to_vec()
    }

    /// Returns the word used in policies and in the journal.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Send => "send",
            Self::Write => "write",
            Self::Delete => "delete",
            Self::Execute => "execute",
            Self::Unknown => "unknown",
        }
    }

    /// Returns the operation of this label.
    #[must_use]
    pub fn from_label(label: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|operation| operation.label() == label)
    }
}

/// A set of operations other than [`Operation::Unknown`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OperationSet(u8);

impl OperationSet {
    /// No operation.
    pub const NONE: Self = Self(0);
    /// Reading alone.
    pub const READ: Self = Self(1);
    /// Sending alone.
    pub const SEND: Self = Self(2);
    /// Writing alone.
    pub const WRITE: Self = Self(4);
    /// Removing alone.
    pub const DELETE: Self = Self(8);
    /// Running code alone.
    pub const EXECUTE: Self = Self(16);

    /// The operations that a person can declare, from the mildest.
    const NAMED: [(Operation, Self); 5] = [
        (Operation::Read, Self::READ),
        (Operation::Send, Self::SEND),
        (Operation::Write, Self::WRITE),
        (Operation::Delete, Self::DELETE),
        (Operation::Execute, Self::EXECUTE),
    ];

    /// The words that name a member.
    pub const WORDS: [&'static str; 5] = ["read", "write", "delete", "execute", "send"];

    /// Returns the set that a text names: words with commas between them. `None` where one is no operation, or there
    /// is none.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let mut set = Self::NONE;
        for word in text.split(',') {
            let one = Self::of(Operation::from_label(word.trim())?);
            if one.is_empty() {
                return None;
            }
            set = set.with(one);
        }
        Some(set)
    }

    /// Returns the set of one operation; of an unknown one, the empty set.
    #[must_use]
    pub fn of(operation: Operation) -> Self {
        let named = Self::NAMED.iter().find(|(of, _)| *of == operation);
        named.map_or(Self::NONE, |(_, set)| *set)
    }

    /// Returns the operations of both sets.
    #[must_use]
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Returns the operations of this set that are not in the other.
    #[must_use]
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// Returns whether the sets share an operation.
    #[must_use]
    pub const fn meets(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// Returns whether the set has no operation.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Returns the operations, from the mildest to the worst.
    pub fn iter(self) -> impl Iterator<Item = Operation> {
        let named = Self::NAMED.into_iter();
        named
            .filter(move |(_, set)| self.meets(*set))
            .map(|(operation, _)| operation)
    }

    /// Returns the words of the operations, as [`OperationSet::parse`] reads them.
    #[must_use]
    pub fn words(self) -> String {
        let words: Vec<&str> = self.iter().map(Operation::label).collect();
        words.join(", ")
    }

    /// Returns the worst operation; `None` of the empty set.
    #[must_use]
    pub fn worst(self) -> Option<Operation> {
        self.iter().last()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_knows_its_members_and_its_worst() {
        let set = OperationSet::READ.with(OperationSet::DELETE);
        assert_eq!(set.worst(), Some(Operation::Delete));
        assert_eq!(set.without(OperationSet::DELETE), OperationSet::READ);
        assert_eq!(OperationSet::of(Operation::Unknown), OperationSet::NONE);
        assert_eq!(OperationSet::NONE.worst(), None);
        let both = OperationSet::WRITE.with(OperationSet::SEND);
        assert_eq!(OperationSet::parse("write, send"), Some(both));
        assert_eq!(OperationSet::parse(&both.words()), Some(both));
        for text in ["", "unknown", "write,", "writes", "read write"] {
            assert_eq!(OperationSet::parse(text), None, "{text}");
        }
        for word in OperationSet::WORDS {
            assert!(OperationSet::parse(word).is_some(), "{word}");
        }
        for operation in Operation::ALL {
            assert_eq!(Operation::from_label(operation.label()), Some(operation));
        }
    }
}
