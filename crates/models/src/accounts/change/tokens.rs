//! Tokens of users: made, shown once, revoked.

use std::sync::Arc;

use super::super::fault::AccountFault;
use super::super::record::{Limit, Token, check_all, is_name};
use super::super::roll::{Digest, TOKENS};
use super::super::{Accounts, TOKEN_PREFIX};
use super::{Done, NAME_RULE, Note, TOKENS_MAX, put, unfit};

/// Longest life of a token that ends at all, in seconds: ten years.
const LIFE_S_MAX: u64 = 10 * 366 * 86_400;

/// What a new token is to be.
#[derive(Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NewToken {
    /// What its owner calls it.
    pub name: String,
    /// When its time is over, in seconds from now; never where it is absent.
    pub expires_in_s: Option<u64>,
    /// Inside those of the user.
    #[serde(default)]
    pub budgets: Vec<Limit>,
}

impl Accounts {
    /// Makes a token; gives it and its text, which is kept nowhere.
    pub(crate) fn add_token(
        &self,
        user: &str,
        new: NewToken,
        now_ms: i64,
        note: &Note,
    ) -> Done<(Arc<Token>, String)> {
        if !is_name(&new.name) {
            return unfit(NAME_RULE);
        }
        check_all(&new.budgets).map_err(AccountFault::Unfit)?;
        let expires_ms = match new.expires_in_s {
            Some(s) if (1..=LIFE_S_MAX).contains(&s) => {
                Some(now_ms.saturating_add_unsigned(s.saturating_mul(1_000)))
            }
            Some(_) => {
                return unfit(format!(
                    "expires_in_s is from 1 to {LIFE_S_MAX} (ten years)"
                ));
            }
            None => None,
        };
        let _alone = self.alone();
        self.user(user)?;
        let own = self.roll().tokens_of(user);
        if own.iter().any(|(_, token)| token.name == new.name) {
            return Err(AccountFault::Taken("token"));
        }
        if own.len() >= TOKENS_MAX {
            return Err(AccountFault::Full("tokens of one user"));
        }
        let (text, digest) = self.fresh()?;
        let token = Token {
            id: self.id("t_")?,
            name: new.name,
            user: user.to_owned(),
            created_ms: now_ms,
            expires_ms,
            budgets: new.budgets,
        };
        let what = format!("token {} of user {user} made", token.id);
        self.write((note, &what), |to| put(to, TOKENS, &digest, &token))?;
        let mut roll = self.roll_to_change();
        roll.add_token(digest, token);
        let token = roll.tokens.get(&digest).cloned();
        Ok((token.ok_or(AccountFault::Store)?, text))
    }

    /// Revokes a token of a user. What the user has open ends: nobody knows which token has opened it.
    pub(crate) fn revoke_token(&self, user: &str, id: &str, note: &Note) -> Done<Arc<Token>> {
        let _alone = self.alone();
        let owner = self.user(user)?;
        let own = self.roll().tokens_of(user);
        let found = own.into_iter().find(|(_, token)| token.id == id);
        let (digest, token) = found.ok_or(AccountFault::Absent("token"))?;
        let what = format!("token {id} of user {user} revoked");
        self.write((note, &what), |to| {
            Ok(to.remove(TOKENS, &digest).map(drop)?)
        })?;
        self.roll_to_change().remove_token(&digest);
        self.gone().push(owner.subject());
        Ok(token)
    }

    /// The text of a new token, and its digest.
    pub(super) fn fresh(&self) -> Done<(String, Digest)> {
        let bytes = self.random::<32>()?;
        let hex = blake3::Hash::from_bytes(*bytes).to_hex();
        let text = format!("{TOKEN_PREFIX}{hex}");
        let digest = self.digest(&text);
        Ok((text, digest))
    }
}
