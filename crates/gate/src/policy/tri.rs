//! Three-valued logic (Kleene): what touches an unknown is unknown, unless the rest decides.

/// A truth value. The order makes AND the minimum and OR the maximum.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Tri {
    /// Certainly not.
    No,
    /// It depends on what nobody knows.
    Unknown,
    /// Certainly.
    Yes,
}

impl From<bool> for Tri {
    fn from(value: bool) -> Self {
        if value { Self::Yes } else { Self::No }
    }
}

impl Tri {
    /// AND over all; stops at the first `No`. True of nothing.
    pub fn all(values: impl IntoIterator<Item = Self>) -> Self {
        let mut out = Self::Yes;
        for value in values {
            out = out.min(value);
            if out == Self::No {
                break;
            }
        }
        out
    }

    /// OR over any; stops at the first `Yes`. False of nothing.
    pub fn any(values: impl IntoIterator<Item = Self>) -> Self {
        let mut out = Self::No;
        for value in values {
            out = out.max(value);
            if out == Self::Yes {
                break;
            }
        }
        out
    }
}
