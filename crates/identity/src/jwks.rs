//! Published keys of an issuer (RFC 7517).

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ED25519, RSA_PKCS1_2048_8192_SHA256, RSA_PSS_2048_8192_SHA256,
    RsaPublicKeyComponents, UnparsedPublicKey,
};
use serde_json::{Map, Value};

use crate::algorithm::Algorithm;

/// Most keys of an issuer.
pub const KEYS_MAX: usize = 64;
/// Longest key id, in bytes.
pub const KEY_ID_BYTES_MAX: usize = 256;
/// Length of a coordinate of P-256 and of a key of Ed25519, in bytes.
const POINT_BYTES: usize = 32;
/// Longest modulus of RSA, in bytes.
const MODULUS_BYTES_MAX: usize = 1024;

/// Public key of an issuer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VerifyingKey {
    id: String,
    /// `alg` of the key, if it has one.
    algorithm: Option<Algorithm>,
    material: KeyMaterial,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum KeyMaterial {
    Rsa { modulus: Vec<u8>, exponent: Vec<u8> },
    P256([u8; 2 * POINT_BYTES + 1]),
    Ed25519([u8; POINT_BYTES]),
}

/// Why a set of keys is not used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JwksFault {
    /// Not a JSON object with a list `keys`.
    Malformed,
    /// More keys than [`KEYS_MAX`].
    TooMany,
    /// No key that can verify one of the algorithms.
    NoneUsable,
}

impl JwksFault {
    /// Returns a sentence for the operator.
    #[must_use]
    pub const fn sentence(self) -> &'static str {
        match self {
            Self::Malformed => "its keys are not a JSON object with a list \"keys\"",
            Self::TooMany => "it publishes more than 64 keys",
            Self::NoneUsable => "it publishes no key for RS256, PS256, ES256 or EdDSA",
        }
    }
}

/// Reads a set of keys. Keys of other kinds, for encryption or of a wrong form are left out.
///
/// # Errors
/// [`JwksFault`].
pub fn read(document: &[u8]) -> Result<Vec<VerifyingKey>, JwksFault> {
    let members = toolkit::face::object(document).map_err(|_| JwksFault::Malformed)?;
    let Some(Value::Array(keys)) = members.get("keys") else {
        return Err(JwksFault::Malformed);
    };
    if keys.len() > KEYS_MAX {
        return Err(JwksFault::TooMany);
    }
    let read: Vec<VerifyingKey> = keys
        .iter()
        .filter_map(Value::as_object)
        .filter_map(VerifyingKey::read)
        .collect();
    match read.is_empty() {
        true => Err(JwksFault::NoneUsable),
        false => Ok(read),
    }
}

impl VerifyingKey {
    fn read(key: &Map<String, Value>) -> Option<Self> {
        let text = |name: &str| key.get(name).and_then(Value::as_str);
        if text("use").is_some_and(|purpose| purpose != "sig") {
            return None;
        }
        if let Some(operations) = key.get("key_ops") {
            let operations = operations.as_array()?;
            if !operations.iter().any(|own| own.as_str() == Some("verify")) {
                return None;
            }
        }
        // A private key that is published is known to everyone.
        if key.contains_key("d") {
            return None;
        }
        let algorithm = match key.get("alg") {
            None => None,
            Some(name) => Some(Algorithm::from_name(name.as_str()?)?),
        };
        let id = text("kid").filter(|id| id.len() <= KEY_ID_BYTES_MAX)?;
        let bytes = |name: &str| URL_SAFE_NO_PAD.decode(text(name)?).ok();
        let material = match (text("kty")?, text("crv")) {
            ("RSA", _) => {
                let (modulus, exponent) = (bytes("n")?, bytes("e")?);
                let is_fit = (256..=MODULUS_BYTES_MAX).contains(&modulus.len())
                    && (1..=8).contains(&exponent.len());
                if !is_fit {
                    return None;
                }
                KeyMaterial::Rsa { modulus, exponent }
            }
            ("EC", Some("P-256")) => {
                let (x, y) = (bytes("x")?, bytes("y")?);
                if x.len() != POINT_BYTES || y.len() != POINT_BYTES {
                    return None;
                }
                let point = [&[4_u8][..], &x, &y].concat();
                KeyMaterial::P256(point.try_into().ok()?)
            }
            ("OKP", Some("Ed25519")) => KeyMaterial::Ed25519(bytes("x")?.try_into().ok()?),
            _ => return None,
        };
        let key = Self {
            id: id.to_owned(),
            algorithm,
            material,
        };
        // A key that says it is for an algorithm of another kind is for none.
        algorithm.is_none_or(|own| key.fits(own)).then_some(key)
    }

    /// Returns the key id.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Returns whether the key is for this algorithm.
    pub fn fits(&self, algorithm: Algorithm) -> bool {
        let is_own = self.algorithm.is_none_or(|own| own == algorithm);
        let is_of_kind = match &self.material {
            KeyMaterial::Rsa { .. } => matches!(algorithm, Algorithm::Rs256 | Algorithm::Ps256),
            KeyMaterial::P256(_) => algorithm == Algorithm::Es256,
            KeyMaterial::Ed25519(_) => algorithm == Algorithm::EdDsa,
        };
        is_own && is_of_kind
    }

    /// Returns whether `signature` is this key's over `message`.
    pub fn verifies(&self, algorithm: Algorithm, message: &[u8], signature: &[u8]) -> bool {
        if !self.fits(algorithm) {
            return false;
        }
        let verified = match &self.material {
            KeyMaterial::Rsa { modulus, exponent } => {
                let scheme = match algorithm {
                    Algorithm::Ps256 => &RSA_PSS_2048_8192_SHA256,
                    _ => &RSA_PKCS1_2048_8192_SHA256,
                };
                let key = RsaPublicKeyComponents {
                    n: modulus,
                    e: exponent,
                };
                key.verify(scheme, message, signature)
            }
            KeyMaterial::P256(point) => {
                UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point).verify(message, signature)
            }
            KeyMaterial::Ed25519(key) => {
                UnparsedPublicKey::new(&ED25519, key).verify(message, signature)
            }
        };
        verified.is_ok()
    }
}
