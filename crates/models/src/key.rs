//! A key of a provider, as it stands in a request's head.

use std::fmt;

use http::HeaderValue;

/// A key of a provider. Neither `Debug` nor a log shows it.
#[derive(Clone)]
pub struct Key {
    bearer: HeaderValue,
    plain: HeaderValue,
}

impl Key {
    /// `None` where it is empty or cannot stand in a header.
    #[must_use]
    pub fn new(text: &str) -> Option<Self> {
        if text.is_empty() || !text.bytes().all(|b| (0x21..=0x7e).contains(&b)) {
            return None;
        }
        Some(Self {
            bearer: hidden(&format!("Bearer {text}"))?,
            plain: hidden(text)?,
        })
    }

    /// As `Authorization` wants it.
    pub(crate) fn bearer(&self) -> HeaderValue {
        self.bearer.clone()
    }

    /// Whether it stands in a text.
    pub(crate) fn is_in(&self, text: &[u8]) -> bool {
        let own = self.plain.as_bytes();
        text.windows(own.len()).any(|part| part == own)
    }

    /// By itself.
    pub(crate) fn plain(&self) -> HeaderValue {
        self.plain.clone()
    }
}

/// A header's value that no log shows.
fn hidden(text: &str) -> Option<HeaderValue> {
    let mut value = HeaderValue::try_from(text).ok()?;
    value.set_sensitive(true);
    Some(value)
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(…)")
    }
}
