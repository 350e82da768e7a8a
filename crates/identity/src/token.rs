//! A signed token (RFC 7515, RFC 7519, RFC 9068): parts, header, signature.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use gate::identity::TokenFault;
use serde_json::{Map, Value};

use crate::algorithm::Algorithm;
use crate::jwks::{KEY_ID_BYTES_MAX, VerifyingKey};

/// Longest token, in bytes.
pub const TOKEN_BYTES_MAX: usize = 16 * 1024;
/// Longest signature, in bytes: RSA of 8,192 bits.
const SIGNATURE_BYTES_MAX: usize = 1024;

/// Purpose of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenKind {
    /// Opens what it is shown to.
    Access,
    /// States that a session has ended (OpenID Connect Back-Channel Logout 1.0).
    Logout,
}

/// A token that was taken apart and not verified yet.
#[derive(Debug)]
pub struct UnverifiedToken<'a> {
    algorithm: Algorithm,
    key_id: String,
    /// Header and claims as they were sent, which the signature covers.
    signed: &'a [u8],
    signature: Vec<u8>,
    claims: Map<String, Value>,
}

impl<'a> UnverifiedToken<'a> {
    /// Takes a token apart. The header is judged first: a token that cannot count costs no more than that.
    ///
    /// # Errors
    /// [`TokenFault`] of the form and of the header.
    pub fn read(text: &'a str, kind: TokenKind) -> Result<Self, TokenFault> {
        if text.len() > TOKEN_BYTES_MAX {
            return Err(TokenFault::TooLong);
        }
        let parts: Vec<&str> = text.splitn(6, '.').collect();
        let (header, claims, signature) = match parts.as_slice() {
            [header, claims, signature] => (*header, *claims, *signature),
            [_, _, _, _, _] => return Err(TokenFault::Encrypted),
            _ => return Err(TokenFault::Malformed),
        };
        let header = decode(header)?;
        let header = toolkit::face::object(&header).map_err(|_| TokenFault::HeaderUnfit)?;
        let (algorithm, key_id) = read_header(&header, kind)?;
        let signature = decode(signature)?;
        if signature.is_empty() || signature.len() > SIGNATURE_BYTES_MAX {
            return Err(TokenFault::Signature);
        }
        let bytes = decode(claims)?;
        let claims = toolkit::face::object(&bytes).map_err(|_| TokenFault::ClaimsUnfit)?;
        let end = text.rfind('.').ok_or(TokenFault::Malformed)?;
        Ok(Self {
            algorithm,
            key_id,
            signed: text.get(..end).ok_or(TokenFault::Malformed)?.as_bytes(),
            signature,
            claims,
        })
    }

    /// Returns the issuer that the token names, which only chooses the keys.
    ///
    /// # Errors
    /// [`TokenFault::IssuerMissing`], [`TokenFault::ClaimsUnfit`].
    pub fn issuer(&self) -> Result<&str, TokenFault> {
        match self.claims.get("iss") {
            None => Err(TokenFault::IssuerMissing),
            Some(Value::String(issuer)) => Ok(issuer),
            Some(_) => Err(TokenFault::ClaimsUnfit),
        }
    }

    /// Returns whether one of these keys has the id that the token names.
    pub fn has_key(&self, keys: &[VerifyingKey]) -> bool {
        keys.iter().any(|key| key.id() == self.key_id)
    }

    /// Verifies the signature with the key that the token names; returns the claims.
    ///
    /// # Errors
    /// [`TokenFault`] of algorithm, key and signature.
    pub fn verify(
        self,
        keys: &[VerifyingKey],
        allowed: &[Algorithm],
    ) -> Result<Map<String, Value>, TokenFault> {
        if !allowed.contains(&self.algorithm) {
            return Err(TokenFault::Algorithm);
        }
        if !self.has_key(keys) {
            return Err(TokenFault::KeyUnknown);
        }
        let mut fitting = keys
            .iter()
            .filter(|key| key.id() == self.key_id && key.fits(self.algorithm))
            .peekable();
        if fitting.peek().is_none() {
            return Err(TokenFault::KeyMismatch);
        }
        match fitting.any(|key| key.verifies(self.algorithm, self.signed, &self.signature)) {
            true => Ok(self.claims),
            false => Err(TokenFault::Signature),
        }
    }
}

fn decode(part: &str) -> Result<Vec<u8>, TokenFault> {
    // Strict: another spelling of the same bytes would be another token.
    let decoded = URL_SAFE_NO_PAD.decode(part);
    decoded.map_err(|_| TokenFault::Malformed)
}

/// Judges the header; returns algorithm and key id.
fn read_header(
    header: &Map<String, Value>,
    kind: TokenKind,
) -> Result<(Algorithm, String), TokenFault> {
    let has = |names: &[&str]| names.iter().any(|name| header.contains_key(*name));
    if has(&["enc"]) {
        return Err(TokenFault::Encrypted);
    }
    if has(&["jku", "jwk", "x5c", "x5u"]) {
        return Err(TokenFault::CarriesKey);
    }
    if has(&["crit", "b64", "zip"]) {
        return Err(TokenFault::HeaderExtension);
    }
    let text = |name: &str| match header.get(name) {
        None => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.as_str())),
        Some(_) => Err(TokenFault::HeaderUnfit),
    };
    let algorithm = text("alg")?.ok_or(TokenFault::HeaderUnfit)?;
    let algorithm = match Algorithm::from_name(algorithm) {
        Some(algorithm) => algorithm,
        None if algorithm.eq_ignore_ascii_case("none") => return Err(TokenFault::Unsigned),
        None if algorithm.starts_with("HS") => return Err(TokenFault::Symmetric),
        None => return Err(TokenFault::Algorithm),
    };
    if let Some(typ) = text("typ")? {
        let typ = typ.strip_prefix("application/").unwrap_or(typ);
        let typ = typ.to_ascii_lowercase();
        match (kind, typ.as_str()) {
            (_, "jwt") | (TokenKind::Access, "at+jwt") | (TokenKind::Logout, "logout+jwt") => {}
            (TokenKind::Access, "logout+jwt") => return Err(TokenFault::LogoutToken),
            _ => return Err(TokenFault::Type),
        }
    }
    if let Some(kind) = text("cty")?
        && !kind.is_empty()
    {
        // A token within a token.
        return Err(TokenFault::Type);
    }
    let key_id = text("kid")?.ok_or(TokenFault::KeyIdMissing)?;
    let is_odd = |c: char| c.is_control() || c.is_whitespace() || c == '\\' || !c.is_ascii();
    let leads_elsewhere = ["..", "://", "//"].iter().any(|part| key_id.contains(part));
    let is_unfit = key_id.is_empty()
        || key_id.len() > KEY_ID_BYTES_MAX
        || key_id.contains(is_odd)
        || key_id.starts_with('/')
        || leads_elsewhere;
    match is_unfit {
        true => Err(TokenFault::KeyIdUnfit),
        false => Ok((algorithm, key_id.to_owned())),
    }
}
