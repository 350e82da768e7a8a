//! Claims of a logout token (OpenID Connect Back-Channel Logout 1.0).

use gate::identity::TokenFault;
use serde_json::{Map, Value};

use crate::claims::{audiences, time_ms};

/// Event that a logout token states.
const EVENT: &str = "http://schemas.openid.net/event/backchannel-logout";
/// How old a logout token may be, in milliseconds.
const AGE_MS_MAX: i64 = 5 * 60_000;

/// Returns the session that a verified logout token ends. A token without a session would end those that begin later too.
///
/// # Errors
/// [`TokenFault::LogoutUnfit`], or the fault of a claim.
pub fn read_session<'c>(
    claims: &'c Map<String, Value>,
    client_id: Option<&str>,
    (now_ms, skew_ms): (i64, i64),
) -> Result<&'c str, TokenFault> {
    let events = claims.get("events").and_then(Value::as_object);
    let is_logout = events.is_some_and(|events| events.get(EVENT).is_some_and(Value::is_object));
    let is_for_us = audiences(claims)?
        .iter()
        .any(|own| client_id == Some(&**own));
    let issued_ms = time_ms(claims, "iat")?.ok_or(TokenFault::LogoutUnfit)?;
    let is_young = issued_ms <= now_ms.saturating_add(skew_ms)
        && now_ms.saturating_sub(issued_ms) <= AGE_MS_MAX.saturating_add(skew_ms);
    let expires_ms = time_ms(claims, "exp")?;
    let is_valid = expires_ms.is_none_or(|end| end > now_ms.saturating_sub(skew_ms));
    let sid = claims.get("sid").and_then(Value::as_str);
    match sid.filter(|sid| (1..=512).contains(&sid.len())) {
        Some(sid)
            if is_logout && is_for_us && is_young && is_valid && !claims.contains_key("nonce") =>
        {
            Ok(sid)
        }
        _ => Err(TokenFault::LogoutUnfit),
    }
}
