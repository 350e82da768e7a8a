//! The run that a call belongs to: what an agent did for one task, over every face.

use std::fmt;
use std::sync::Arc;

/// Most characters of a run's name.
pub const RUN_ID_CHARS_MAX: usize = 64;

/// Hexadecimal digits of a trace id (W3C Trace Context §3.2.2.3).
const TRACE_ID_DIGITS: usize = 32;

/// The name of a run: 1 to [`RUN_ID_CHARS_MAX`] of the characters `A-Z a-z 0-9 . _ : -`, as the caller chose it, or the
/// trace id of its `traceparent`. It only joins records: nothing is allowed or refused because of it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct RunId {
    name: Arc<str>,
    parent: Option<Parent>,
}

/// The caller's own span, as its `traceparent` names it (W3C Trace Context §3.2.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Parent {
    /// The trace; not zero.
    pub trace: u128,
    /// The span within it; not zero.
    pub span: u64,
    /// Whether the caller records its trace.
    pub is_sampled: bool,
}

impl RunId {
    /// A name as a caller gave it; `None` where it is no name of a run.
    #[must_use]
    pub fn named(text: &str) -> Option<Self> {
        let is_plain = |c: u8| c.is_ascii_alphanumeric() || b"._:-".contains(&c);
        let fits = (1..=RUN_ID_CHARS_MAX).contains(&text.len());
        (fits && text.bytes().all(is_plain)).then(|| Self {
            name: text.into(),
            parent: None,
        })
    }

    /// The trace id of a `traceparent` (W3C Trace Context §3.2); `None` where that is not one, or its trace id is zero.
    #[must_use]
    pub fn of_trace(traceparent: &str) -> Option<Self> {
        let is_hex = |text: &str| {
            text.bytes()
                .all(|c| c.is_ascii_digit() || (b'a'..=b'f').contains(&c))
        };
        let mut parts = traceparent.split('-');
        let (version, trace, parent, flags) =
            (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
        let lengths = (version.len(), trace.len(), parent.len(), flags.len());
        let may_go_on = version != "00" || parts.next().is_none();
        let is_valid = lengths == (2, TRACE_ID_DIGITS, 16, 2)
            && version != "ff"
            && may_go_on
            && [version, trace, parent, flags].into_iter().all(is_hex);
        if !is_valid {
            return None;
        }
        let flags = u8::from_str_radix(flags, 16).ok()?;
        let parent = Parent {
            trace: u128::from_str_radix(trace, 16).ok()?,
            span: u64::from_str_radix(parent, 16).ok()?,
            is_sampled: flags & 1 == 1,
        };
        (parent.trace != 0 && parent.span != 0).then(|| Self {
            name: trace.into(),
            parent: Some(parent),
        })
    }

    /// The same run, called from this span where it has none of its own.
    #[must_use]
    pub fn or_parent(self, parent: Option<Parent>) -> Self {
        Self {
            parent: self.parent.or(parent),
            ..self
        }
    }

    /// The caller's span, where it named one.
    #[must_use]
    pub fn parent(&self) -> Option<Parent> {
        self.parent
    }

    /// As it stands in records.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.name
    }
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_named_or_has_a_trace() {
        for good in [
            "a",
            "nightly-7",
            "4bf92f3577b34da6a3ce929d0e0e4736",
            "a.b_c:d",
        ] {
            assert_eq!(RunId::named(good).unwrap().as_str(), good);
        }
        let long = "x".repeat(RUN_ID_CHARS_MAX + 1);
        for bad in ["", "a b", "a/b", "é", "a\n", long.as_str()] {
            assert_eq!(RunId::named(bad), None, "{bad:?}");
        }
        let trace = "4bf92f3577b34da6a3ce929d0e0e4736";
        for good in [
            format!("00-{trace}-00f067aa0ba902b7-01"),
            format!("cc-{trace}-00f067aa0ba902b7-01-what-comes-later"),
        ] {
            let run = RunId::of_trace(&good).unwrap();
            assert_eq!(run.as_str(), trace, "{good}");
            let parent = Parent {
                trace: 0x4bf9_2f35_77b3_4da6_a3ce_929d_0e0e_4736,
                span: 0x00f0_67aa_0ba9_02b7,
                is_sampled: true,
            };
            assert_eq!(run.parent(), Some(parent), "{good}");
            let named = RunId::named("nightly").unwrap().or_parent(run.parent());
            assert_eq!((named.as_str(), named.parent()), ("nightly", run.parent()));
        }
        for bad in [
            String::new(),
            trace.to_owned(),
            format!("00-{trace}-00f067aa0ba902b7"),
            format!("00-{trace}-00f067aa0ba902b7-01-more"),
            format!("ff-{trace}-00f067aa0ba902b7-01"),
            format!("00-{}-00f067aa0ba902b7-01", trace.to_uppercase()),
            format!("00-{}-00f067aa0ba902b7-01", "0".repeat(32)),
            format!("00-{trace}-{}-01", "0".repeat(16)),
            format!("00-{}-00f067aa0ba902b7-01", &trace[1..]),
        ] {
            assert_eq!(RunId::of_trace(&bad), None, "{bad:?}");
        }
    }
}
