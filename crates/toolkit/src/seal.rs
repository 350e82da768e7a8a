//! Encryption of secrets at rest that are read again: keys of providers, tokens of people.
//!
//! ChaCha20-Poly1305 with a random nonce for each text. The purpose is authenticated, so that a sealed text cannot be moved to
//! another user or provider.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use zeroize::Zeroizing;

/// A key that seals and opens.
pub struct Seal(LessSafeKey);

impl fmt::Debug for Seal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Seal(…)")
    }
}

impl Seal {
    /// Derives the key of a kind of secrets from the master key; `None` if the library refuses it, which it does not for 32
    /// bytes.
    #[must_use]
    pub fn new(kind: &'static str, master: &[u8; 32]) -> Option<Self> {
        let key = Zeroizing::new(blake3::derive_key(kind, master));
        let key = UnboundKey::new(&CHACHA20_POLY1305, key.as_slice()).ok()?;
        Some(Self(LessSafeKey::new(key)))
    }

    /// Seals a text for one purpose. The nonce has to be random.
    #[must_use]
    pub fn seal(&self, purpose: &str, text: &str, nonce: [u8; NONCE_LEN]) -> Option<String> {
        let mut sealed = text.as_bytes().to_vec();
        let aad = Aad::from(purpose.as_bytes());
        let at = Nonce::assume_unique_for_key(nonce);
        self.0.seal_in_place_append_tag(at, aad, &mut sealed).ok()?;
        Some(STANDARD.encode([nonce.as_slice(), &sealed].concat()))
    }

    /// Returns the text; `None` if it was sealed with another key, for another purpose, or was changed.
    #[must_use]
    pub fn open(&self, purpose: &str, sealed: &str) -> Option<Zeroizing<String>> {
        let mut bytes = Zeroizing::new(STANDARD.decode(sealed).ok()?);
        let (nonce, rest) = bytes.split_at_mut_checked(NONCE_LEN)?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).ok()?;
        let aad = Aad::from(purpose.as_bytes());
        let text = self.0.open_in_place(nonce, aad, rest).ok()?;
        Some(Zeroizing::new(String::from_utf8(text.to_vec()).ok()?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_sealed_opens_with_its_key_for_its_purpose_and_unchanged_only() {
        let (own, other) = (
            Seal::new("k", &[1; 32]).unwrap(),
            Seal::new("k", &[2; 32]).unwrap(),
        );
        let sealed = own.seal("u_1 openai", "sk-secret", [7; NONCE_LEN]).unwrap();
        assert!(!sealed.contains("secret"));
        let opened = |seal: &Seal, purpose, text: &str| {
            let text = seal.open(purpose, text);
            text.map(|text| text.to_string())
        };
        assert_eq!(
            opened(&own, "u_1 openai", &sealed).as_deref(),
            Some("sk-secret")
        );
        assert_eq!(opened(&own, "u_2 openai", &sealed), None);
        assert_eq!(opened(&other, "u_1 openai", &sealed), None);
        let of_another_kind = Seal::new("l", &[1; 32]).unwrap();
        assert_eq!(opened(&of_another_kind, "u_1 openai", &sealed), None);
        for at in 0..sealed.len() {
            let mut changed = sealed.clone().into_bytes();
            changed[at] = if changed[at] == b'A' { b'B' } else { b'A' };
            let changed = String::from_utf8(changed).unwrap();
            assert_eq!(opened(&own, "u_1 openai", &changed), None, "{at}");
        }
        for odd in ["", "AAAA", "no base64!"] {
            assert_eq!(opened(&own, "u_1 openai", odd), None, "{odd}");
        }
        assert_eq!(format!("{own:?}"), "Seal(…)");
    }
}
