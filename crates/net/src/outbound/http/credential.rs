//! What proves to a server who we are. Unprintable.

use std::fmt;

use http::HeaderValue;

/// The value of an `Authorization` header. Neither `Debug` nor a log shows it.
#[derive(Clone)]
pub struct Credential(HeaderValue);

impl Credential {
    /// A bearer token or API key. `None` where it is empty or holds what cannot stand in a header.
    #[must_use]
    pub fn bearer(token: &str) -> Option<Self> {
        if token.is_empty() || !token.bytes().all(|b| (0x21..=0x7e).contains(&b)) {
            return None;
        }
        let mut value = HeaderValue::try_from(format!("Bearer {token}")).ok()?;
        value.set_sensitive(true);
        Some(Self(value))
    }

    /// Any header's value that is nobody else's business. `None` where it holds what cannot stand
    /// in a header.
    #[must_use]
    pub fn header_value(text: &str) -> Option<HeaderValue> {
        let mut value = HeaderValue::try_from(text).ok()?;
        value.set_sensitive(true);
        Some(value)
    }

    pub(super) fn header(&self) -> HeaderValue {
        self.0.clone()
    }
}

impl fmt::Debug for Credential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Credential(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_credential_is_fit_for_a_header_and_never_shown() {
        let credential = Credential::bearer("s3cret").unwrap();
        assert_eq!(credential.header().as_bytes(), b"Bearer s3cret");
        assert!(!format!("{credential:?} {:?}", credential.header()).contains("s3cret"));
        for bad in ["", "a b", "a\r\nX: y", "caf\u{e9}", "\0"] {
            assert!(Credential::bearer(bad).is_none(), "{bad:?}");
        }
    }
}
