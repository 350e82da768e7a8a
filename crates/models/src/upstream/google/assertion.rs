//! What a service account signs to be given a token: a JWT with RS256.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use ring::rand::SystemRandom;
use ring::signature::{RSA_PKCS1_SHA256, RsaKeyPair};
use serde_json::json;
use zeroize::Zeroizing;

/// How long an assertion is good for, in seconds; Google takes no longer one.
const GOOD_S: i64 = 3_600;
/// What the token is for.
const SCOPE: &str = "https://www.googleapis.com/auth/cloud-platform";

/// A private key of RSA. Nothing shows it.
pub(super) struct Signer(RsaKeyPair);

impl fmt::Debug for Signer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Signer(…)")
    }
}

impl Signer {
    /// From PEM, as the files of Google have it; `None` where it is no private key of RSA with 2048 to 4096 bits.
    pub fn read(pem: &str) -> Option<Self> {
        let body = |label: &str| {
            let (_, rest) = pem.split_once(&format!("-----BEGIN {label}-----"))?;
            let (body, _) = rest.split_once(&format!("-----END {label}-----"))?;
            let text = body.split_ascii_whitespace().collect::<String>();
            let text = Zeroizing::new(text);
            STANDARD.decode(text.as_bytes()).ok().map(Zeroizing::new)
        };
        let pair = match body("PRIVATE KEY") {
            Some(der) => RsaKeyPair::from_pkcs8(&der),
            None => RsaKeyPair::from_der(&body("RSA PRIVATE KEY")?),
        };
        pair.ok().map(Self)
    }

    /// The assertion of an account for an endpoint of tokens; `None` where there is no randomness.
    pub fn assertion(
        &self,
        email: &str,
        key_id: Option<&str>,
        audience: &str,
        now_s: i64,
    ) -> Option<String> {
        let mut head = json!({ "typ": "JWT", "alg": "RS256" });
        if let (Some(key_id), Some(head)) = (key_id, head.as_object_mut()) {
            head.insert("kid".to_owned(), key_id.into());
        }
        let claims = json!({
            "iat": now_s, "exp": now_s.saturating_add(GOOD_S), "iss": email, "aud": audience, "scope": SCOPE,
        });
        let part = |value: &serde_json::Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let mut out = format!("{}.{}", part(&head), part(&claims));
        let mut signature = vec![0; self.0.public().modulus_len()];
        let random = SystemRandom::new();
        self.0
            .sign(&RSA_PKCS1_SHA256, &random, out.as_bytes(), &mut signature)
            .ok()?;
        out.push('.');
        out.push_str(&URL_SAFE_NO_PAD.encode(&signature));
        Some(out)
    }
}
