//! Labels of closed sets. A leaf: it imports nothing of ours.
//!
//! What ends in records and metrics is never free text: a label can only be had from a type that lists
//! all its values. Each face has sets of its own; the gate does not have to know them.

use std::fmt;

/// A type whose values are all known, each with a label.
pub trait ClosedSet: Copy + 'static {
    /// Every value.
    const EVERY: &'static [Self];

    /// The label of one.
    fn word(self) -> &'static str;
}

/// A closed set whose values are explained, so that an operator can look a name up.
pub trait Explained: ClosedSet {
    /// What it means, in one sentence.
    fn sentence(self) -> &'static str;
}

/// Declares a closed set by its table: `Value "label": "sentence";`, one row for each value.
#[macro_export]
macro_rules! closed_set {
    ($(#[$about:meta])* $vis:vis enum $set:ident { $($value:ident $label:literal: $sentence:literal;)* }) => {
        $(#[$about])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        $vis enum $set {
            $(#[doc = $sentence] $value,)*
        }

        impl $set {
            /// All, in the order of the reference page.
            pub const ALL: &'static [Self] = &[$(Self::$value,)*];

            /// The label, as it stands in records.
            #[must_use]
            pub const fn label(self) -> &'static str {
                match self { $(Self::$value => $label,)* }
            }

            /// What it means, in one sentence.
            #[must_use]
            pub const fn sentence(self) -> &'static str {
                match self { $(Self::$value => $sentence,)* }
            }
        }

        impl $crate::label::ClosedSet for $set {
            const EVERY: &'static [Self] = Self::ALL;

            fn word(self) -> &'static str {
                self.label()
            }
        }

        impl $crate::label::Explained for $set {
            fn sentence(self) -> &'static str {
                Self::sentence(self)
            }
        }
    };
}

/// The label of a value of some [`ClosedSet`].
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Label(&'static str);

impl Label {
    /// As it stands in records.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        self.0
    }
}

impl<T: ClosedSet> From<T> for Label {
    fn from(value: T) -> Self {
        Self(value.word())
    }
}

impl fmt::Debug for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Label({})", self.0)
    }
}

impl fmt::Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reason::Reason;

    #[test]
    fn a_label_is_that_of_its_value() {
        for reason in Reason::EVERY {
            assert_eq!(Label::from(*reason).as_str(), reason.label());
        }
    }
}
