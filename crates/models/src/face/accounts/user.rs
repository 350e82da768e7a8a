//! A user's own account.

use std::collections::BTreeMap;

use http::Method;
use serde_json::{Value, json};
use zeroize::Zeroizing;

use super::path::Place;
use super::{Asked, Done, documents};
use crate::accounts::AccountFault;
use crate::accounts::Accounts;
use crate::accounts::change::NewToken;
use crate::accounts::record::User;

impl Accounts {
    /// What a user asks of the own account.
    pub(super) fn own(&self, asked: &Asked, user: &User) -> Done {
        match &asked.place {
            Place::Keys(None) if asked.method == Method::POST => self.keep_keys(asked, user),
            Place::Keys(None) => {
                let keys: Vec<&String> = user.provider_keys.keys().collect();
                Ok(json!({ "user_id": user.id, "providers": keys }))
            }
            Place::Keys(Some(provider)) => {
                let user = self.remove_provider_key(&user.name, provider, &asked.note)?;
                let gone =
                    json!({ "status": "removed", "removed": [provider], "user_id": user.id });
                Ok(gone)
            }
            Place::Tokens(id) => self.tokens(asked, user, id.as_deref()),
            _ => {
                let mut value = documents::of_user(user);
                if let Some(members) = value.as_object_mut() {
                    members.insert("budgets".to_owned(), self.used_by(user, asked.now_ms));
                }
                Ok(value)
            }
        }
    }

    fn keep_keys(&self, asked: &Asked, user: &User) -> Done {
        let texts: Vec<(String, String)> = asked.read::<Pairs>()?.0;
        let mut keys = BTreeMap::new();
        for (provider, key) in texts {
            if keys.insert(provider.clone(), Zeroizing::new(key)).is_some() {
                return Err(AccountFault::Unfit(format!("{provider} is given twice")));
            }
        }
        let updated: Vec<String> = keys.keys().cloned().collect();
        let user = self.set_provider_keys(&user.name, keys, &asked.note)?;
        Ok(json!({ "status": "updated", "updated": updated, "user_id": user.id }))
    }

    /// Lists, makes or revokes tokens of a user.
    pub(super) fn tokens(&self, asked: &Asked, user: &User, id: Option<&str>) -> Done {
        if let Some(id) = id {
            let token = self.revoke_token(&user.name, id, &asked.note)?;
            return Ok(json!({ "status": "revoked", "id": token.id }));
        }
        if asked.method == Method::POST {
            let new: NewToken = asked.read()?;
            let (token, text) = self.add_token(&user.name, new, asked.now_ms, &asked.note)?;
            let mut value = documents::of_token(&token, self.used_with(&token, asked.now_ms));
            if let Some(members) = value.as_object_mut() {
                members.insert("token".to_owned(), text.into());
            }
            return Ok(value);
        }
        let own = self.roll().tokens_of(&user.name);
        let tokens: Vec<Value> = own
            .iter()
            .map(|(_, token)| documents::of_token(token, self.used_with(token, asked.now_ms)))
            .collect();
        Ok(json!({ "data": tokens }))
    }
}

/// The members of an object of texts, in their order, doubled ones included.
struct Pairs(Vec<(String, String)>);

impl<'de> serde::Deserialize<'de> for Pairs {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl<'de> serde::de::Visitor<'de> for Visitor {
            type Value = Pairs;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object {\"PROVIDER\": \"KEY\"}")
            }

            fn visit_map<M: serde::de::MapAccess<'de>>(
                self,
                mut map: M,
            ) -> Result<Pairs, M::Error> {
                let mut pairs = Vec::new();
                while let Some(pair) = map.next_entry()? {
                    pairs.push(pair);
                }
                Ok(Pairs(pairs))
            }
        }
        from.deserialize_map(Visitor)
    }
}
