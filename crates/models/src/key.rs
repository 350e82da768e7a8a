//! A key of a provider, and how it is shown.

use std::fmt;
use std::sync::Arc;

use http::HeaderValue;
use zeroize::Zeroizing;

/// A key of a provider. Neither `Debug` nor a log shows it.
#[derive(Clone)]
pub struct Key(Kind);

#[derive(Clone)]
enum Kind {
    /// One that stands in a request's head.
    Text {
        bearer: HeaderValue,
        plain: HeaderValue,
    },
    /// One that requests are signed with.
    Aws(Arc<AwsKey>),
}

impl Key {
    /// `None` where it is empty or cannot stand in a header.
    #[must_use]
    pub fn new(text: &str) -> Option<Self> {
        if !is_key(text) {
            return None;
        }
        Some(Self(Kind::Text {
            bearer: hidden(&format!("Bearer {text}"))?,
            plain: hidden(text)?,
        }))
    }

    /// One of AWS, that requests are signed with; `None` as for [`Key::new`].
    #[must_use]
    pub fn aws(access: &str, secret: &str, token: Option<&str>) -> Option<Self> {
        let key = AwsKey::new(access, secret, token)?;
        Some(Self(Kind::Aws(Arc::new(key))))
    }

    /// As `Authorization` wants it.
    pub(crate) fn bearer(&self) -> Option<HeaderValue> {
        match &self.0 {
            Kind::Text { bearer, .. } => Some(bearer.clone()),
            Kind::Aws(_) => None,
        }
    }

    /// By itself.
    pub(crate) fn plain(&self) -> Option<HeaderValue> {
        match &self.0 {
            Kind::Text { plain, .. } => Some(plain.clone()),
            Kind::Aws(_) => None,
        }
    }

    /// What requests are signed with.
    pub(crate) fn signing(&self) -> Option<&AwsKey> {
        match &self.0 {
            Kind::Aws(key) => Some(key),
            Kind::Text { .. } => None,
        }
    }

    /// Whether another one is the same text.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (Kind::Text { plain: own, .. }, Kind::Text { plain: other, .. }) => own == other,
            _ => false,
        }
    }

    /// Whether it stands in a text.
    pub(crate) fn is_in(&self, text: &[u8]) -> bool {
        let has = |own: &[u8]| text.windows(own.len()).any(|part| part == own);
        match &self.0 {
            Kind::Text { plain, .. } => has(plain.as_bytes()),
            Kind::Aws(key) => key.parts().any(|part| has(part.as_bytes())),
        }
    }
}

/// A key of AWS.
pub(crate) struct AwsKey {
    access: String,
    /// Behind `AWS4`, as signatures begin with it.
    seed: Zeroizing<String>,
    token: Option<Zeroizing<String>>,
}

impl AwsKey {
    pub fn new(access: &str, secret: &str, token: Option<&str>) -> Option<Self> {
        let is_good = is_key(access) && is_key(secret) && token.is_none_or(is_key);
        is_good.then(|| Self {
            access: access.to_owned(),
            seed: Zeroizing::new(format!("AWS4{secret}")),
            token: token.map(|token| Zeroizing::new(token.to_owned())),
        })
    }

    pub fn access(&self) -> &str {
        &self.access
    }

    /// What the keys of signatures are derived from.
    pub fn seed(&self) -> &str {
        &self.seed
    }

    pub fn token(&self) -> Option<&str> {
        self.token.as_ref().map(|token| token.as_str())
    }

    fn parts(&self) -> impl Iterator<Item = &str> {
        let secret = self.seed.strip_prefix("AWS4").unwrap_or_default();
        [self.access(), secret].into_iter().chain(self.token())
    }
}

impl fmt::Debug for AwsKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AwsKey(…)")
    }
}

/// Whether a text can be a key.
fn is_key(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| (0x21..=0x7e).contains(&b))
}

/// A header's value that no log shows.
pub(crate) fn hidden(text: &str) -> Option<HeaderValue> {
    let mut value = HeaderValue::try_from(text).ok()?;
    value.set_sensitive(true);
    Some(value)
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_part_of_a_key_of_aws_is_shown_and_each_is_found() {
        let key = Key::aws("AKID", "s3cret/+", Some("tok==")).unwrap();
        assert_eq!(
            format!("{key:?} {:?}", key.signing()),
            "Key(…) Some(AwsKey(…))"
        );
        for text in ["x AKID x", "s3cret/+", "x-amz-security-token:tok=="] {
            assert!(key.is_in(text.as_bytes()), "{text}");
        }
        assert!(!key.is_in(b"AWS4") && !key.is_in(b""));
        for (access, secret, token) in [
            ("", "s", None),
            ("a", "", None),
            ("a", "s", Some("")),
            ("a b", "s", None),
        ] {
            assert!(Key::aws(access, secret, token).is_none());
        }
    }
}
