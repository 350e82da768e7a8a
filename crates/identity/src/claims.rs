//! From the claims of a verified token to a caller.

use std::sync::Arc;

use gate::caller::{Caller, Proof, SignIn};
use gate::identity::TokenFault;
use serde_json::{Map, Value};

use crate::options::{IdentityOptions, IssuerOptions};

/// Longest subject, in bytes, as OpenID Connect bounds it.
const SUBJECT_BYTES_MAX: usize = 255;
/// Most groups of a token, and most scopes.
const NAMES_MAX: usize = 256;
/// Longest name of a group, scope, session, client or audience, in bytes.
const NAME_BYTES_MAX: usize = 512;
/// Most audiences of a token.
const AUDIENCES_MAX: usize = 64;

/// Everything that a verified token states.
#[derive(Debug, Clone)]
pub struct VerifiedToken {
    /// The caller.
    pub caller: Caller,
    /// Audiences of single paths; `None` if the token is for all paths.
    pub audiences: Option<Arc<[Box<str>]>>,
    /// From when the token counts, in milliseconds since 1970.
    pub not_before_ms: i64,
    /// Until when the token counts, in milliseconds since 1970.
    pub expires_ms: i64,
}

impl VerifiedToken {
    /// Reads verified claims.
    ///
    /// # Errors
    /// [`TokenFault`] of the claim that is wrong.
    pub fn of(
        claims: &Map<String, Value>,
        issuer: &IssuerOptions,
        options: &IdentityOptions,
        now_ms: i64,
    ) -> Result<Self, TokenFault> {
        refuse_other_kinds(claims)?;
        let expires_ms = time_ms(claims, "exp")?.ok_or(TokenFault::ExpiryMissing)?;
        let issued_ms = time_ms(claims, "iat")?;
        let not_before_ms = time_ms(claims, "nbf")?.unwrap_or(i64::MIN);
        if issued_ms.is_some_and(|issued| issued > now_ms.saturating_add(options.skew_ms)) {
            return Err(TokenFault::IssuedInFuture);
        }
        let since_ms = issued_ms.unwrap_or(now_ms);
        if expires_ms.saturating_sub(since_ms) > options.lifetime_ms_max {
            return Err(TokenFault::Lifetime);
        }
        let audiences = audiences(claims)?;
        let is_for_all = audiences
            .iter()
            .any(|own| issuer.audiences.iter().any(|wanted| **wanted == **own));
        let groups = groups(claims, &issuer.groups_claim)?;
        let subject = subject(claims, &issuer.subject_claim)?;
        let name = |claim: &str| match claims.get(claim) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) if text.len() <= NAME_BYTES_MAX => {
                Ok(Some(Arc::<str>::from(text.as_str())))
            }
            Some(_) => Err(TokenFault::ClaimsUnfit),
        };
        let sign_in = SignIn {
            issuer: issuer.issuer.as_str().into(),
            scopes: scopes(claims)?.into(),
            sid: name("sid")?,
            client_id: match name("client_id")? {
                Some(id) => Some(id),
                None => name("azp")?,
            },
        };
        let token = Self {
            caller: Caller {
                subject: format!("{}#{subject}", issuer.issuer).into(),
                groups: groups.into(),
                proof: Proof::AccessToken,
                until_ms: Some(expires_ms),
                sign_in: Some(Arc::new(sign_in)),
                ..Caller::default()
            },
            audiences: (!is_for_all).then(|| audiences.into()),
            not_before_ms,
            expires_ms,
        };
        token.check_time(now_ms, options.skew_ms)?;
        Ok(token)
    }

    /// Checks that the token counts at this time.
    ///
    /// # Errors
    /// [`TokenFault::Expired`], [`TokenFault::NotYetValid`].
    pub fn check_time(&self, now_ms: i64, skew_ms: i64) -> Result<(), TokenFault> {
        if now_ms.saturating_sub(skew_ms) >= self.expires_ms {
            return Err(TokenFault::Expired);
        }
        match self.not_before_ms > now_ms.saturating_add(skew_ms) {
            true => Err(TokenFault::NotYetValid),
            false => Ok(()),
        }
    }

    /// Checks that the token is for this resource; `None` if no resource is known for the path.
    ///
    /// # Errors
    /// [`TokenFault::Audience`].
    pub fn check_audience(&self, resource: Option<&str>) -> Result<(), TokenFault> {
        let Some(audiences) = &self.audiences else {
            return Ok(());
        };
        let is_for = |resource: &str| audiences.iter().any(|own| **own == *resource);
        match resource.is_some_and(is_for) {
            true => Ok(()),
            false => Err(TokenFault::Audience),
        }
    }
}

/// Refuses tokens that an issuer signs with the same keys for other purposes.
fn refuse_other_kinds(claims: &Map<String, Value>) -> Result<(), TokenFault> {
    let text = |name: &str| claims.get(name).and_then(Value::as_str);
    // Keycloak states the kind in a claim, Cognito in `token_use`.
    match text("typ") {
        Some("ID") => return Err(TokenFault::IdToken),
        Some("Refresh" | "Offline") => return Err(TokenFault::RefreshToken),
        Some("Logout") => return Err(TokenFault::LogoutToken),
        _ => {}
    }
    match text("token_use") {
        Some("id") => return Err(TokenFault::IdToken),
        Some("refresh") => return Err(TokenFault::RefreshToken),
        _ => {}
    }
    if claims.contains_key("events") {
        return Err(TokenFault::LogoutToken);
    }
    let of_id_tokens = ["at_hash", "c_hash", "s_hash", "nonce"];
    match of_id_tokens.iter().any(|name| claims.contains_key(*name)) {
        true => Err(TokenFault::IdToken),
        false => Ok(()),
    }
}

/// Reads a time, in milliseconds since 1970.
pub fn time_ms(claims: &Map<String, Value>, name: &str) -> Result<Option<i64>, TokenFault> {
    /// Last second of the year 9999.
    const SECONDS_MAX: f64 = 253_402_300_799.0;
    let seconds = match claims.get(name) {
        None => return Ok(None),
        Some(Value::Number(number)) => number.as_f64().ok_or(TokenFault::ClaimsUnfit)?,
        Some(_) => return Err(TokenFault::ClaimsUnfit),
    };
    if !(0.0..=SECONDS_MAX).contains(&seconds) {
        return Err(TokenFault::ClaimsUnfit);
    }
    #[expect(
        clippy::cast_possible_truncation,
        reason = "the range was checked above"
    )]
    let ms = (seconds * 1_000.0) as i64;
    Ok(Some(ms))
}

pub fn audiences(claims: &Map<String, Value>) -> Result<Vec<Box<str>>, TokenFault> {
    let one = |value: &Value| match value {
        Value::String(text) if text.len() <= NAME_BYTES_MAX => Ok(text.as_str().into()),
        _ => Err(TokenFault::ClaimsUnfit),
    };
    match claims.get("aud") {
        None => Err(TokenFault::AudienceMissing),
        Some(Value::Array(list)) if list.is_empty() => Err(TokenFault::AudienceMissing),
        Some(Value::Array(list)) if list.len() > AUDIENCES_MAX => Err(TokenFault::ClaimsUnfit),
        Some(Value::Array(list)) => list.iter().map(one).collect(),
        Some(value) => Ok(vec![one(value)?]),
    }
}

fn subject<'c>(claims: &'c Map<String, Value>, claim: &str) -> Result<&'c str, TokenFault> {
    let subject = match find(claims, claim) {
        None | Some(Value::Null) => return Err(TokenFault::SubjectMissing),
        Some(Value::String(subject)) => subject.as_str(),
        Some(_) => return Err(TokenFault::SubjectUnfit),
    };
    let is_unseen = |c: char| {
        c.is_control()
            || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
    };
    match subject.trim() {
        "" => Err(TokenFault::SubjectMissing),
        trimmed
            if trimmed.len() != subject.len()
                || subject.len() > SUBJECT_BYTES_MAX
                || subject.contains(is_unseen) =>
        {
            Err(TokenFault::SubjectUnfit)
        }
        _ => Ok(subject),
    }
}

fn groups(claims: &Map<String, Value>, claim: &str) -> Result<Vec<Arc<str>>, TokenFault> {
    let Some(value) = find(claims, claim) else {
        // Entra ID leaves them out of a token that would be too long.
        let elsewhere = claims.get("_claim_names").and_then(Value::as_object);
        let is_elsewhere = elsewhere.is_some_and(|names| names.contains_key(claim))
            || claims.contains_key("hasgroups");
        return match is_elsewhere {
            true => Err(TokenFault::GroupsElsewhere),
            false => Ok(Vec::new()),
        };
    };
    match value {
        Value::Null => Ok(Vec::new()),
        Value::Array(list) => names(list.iter().map(Value::as_str), TokenFault::GroupsUnfit),
        _ => Err(TokenFault::GroupsUnfit),
    }
}

/// Reads `scope`, else `scp`: a text of words, or a list.
fn scopes(claims: &Map<String, Value>) -> Result<Vec<Arc<str>>, TokenFault> {
    match claims.get("scope").or_else(|| claims.get("scp")) {
        None | Some(Value::Null) => Ok(Vec::new()),
        Some(Value::String(text)) => {
            let words = text.split(' ').filter(|word| !word.is_empty());
            names(words.map(Some), TokenFault::ScopesUnfit)
        }
        Some(Value::Array(list)) => names(list.iter().map(Value::as_str), TokenFault::ScopesUnfit),
        Some(_) => Err(TokenFault::ScopesUnfit),
    }
}

fn names<'c>(
    list: impl Iterator<Item = Option<&'c str>>,
    fault: TokenFault,
) -> Result<Vec<Arc<str>>, TokenFault> {
    let mut names: Vec<Arc<str>> = Vec::new();
    for name in list {
        let name = name.filter(|name| {
            (1..=NAME_BYTES_MAX).contains(&name.len()) && !name.contains(char::is_control)
        });
        let name = name.ok_or(fault)?;
        if names.len() >= NAMES_MAX {
            return Err(fault);
        }
        if !names.iter().any(|known| **known == *name) {
            names.push(name.into());
        }
    }
    Ok(names)
}

/// Returns a claim by its name, or by the names of the objects that lead to it.
fn find<'c>(claims: &'c Map<String, Value>, name: &str) -> Option<&'c Value> {
    if let Some(value) = claims.get(name) {
        return Some(value);
    }
    let mut parts = name.split('.');
    let mut value = claims.get(parts.next()?)?;
    let mut went_in = false;
    for part in parts {
        value = value.as_object()?.get(part)?;
        went_in = true;
    }
    went_in.then_some(value)
}
