//! Accounts as JSON. No text of a token and no key of a provider is in it, but the token that has just been made.

use gate::journal::format_utc;
use serde_json::{Map, Value, json};

use crate::accounts::record::{Team, Token, User};

/// What stands in the place of a provider's key.
const HIDDEN: &str = "********";

/// A user as the answer to a registration has it.
pub(super) fn registered(user: &User, token: &str) -> Value {
    let mut value = of_user(user);
    if let Some(members) = value.as_object_mut() {
        members.insert("token".to_owned(), token.into());
    }
    value
}

/// A user.
pub(super) fn of_user(user: &User) -> Value {
    let hidden = |provider: &String| (provider.clone(), HIDDEN.into());
    let keys: Map<String, Value> = user.provider_keys.keys().map(hidden).collect();
    json!({
        "id": user.id,
        "username": user.name,
        "token": null,
        "created_at": format_utc(user.created_ms),
        "provider_keys": keys,
        "config_overrides": {},
        "is_active": user.is_active,
        "role": user.role,
        "team": user.team,
    })
}

/// A token, without its text.
pub(super) fn of_token(token: &Token, budgets: Value) -> Value {
    json!({
        "id": token.id,
        "name": token.name,
        "created_at": format_utc(token.created_ms),
        "expires_at": token.expires_ms.map(format_utc),
        "budgets": budgets,
    })
}

/// A team or a tenant.
pub(super) fn of_group(name: &str, team: &Team, budgets: Value) -> Value {
    json!({ "name": name, "tenant": team.tenant, "budgets": budgets })
}
