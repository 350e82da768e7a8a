//! What has been allowed for a while. A grant fits exactly what was approved: the same caller, tool and
//! definition, all that was shown of the request, leading to the same places, in a session with the same
//! labels, under the same policy.

use std::collections::HashMap;

use crate::facts::{Fact, FactId, Facts};
use crate::journal::Digest;

use serde::Serialize;

use super::display;
use crate::channel::Channel;
use crate::effects::NEVER_REMEMBERED;

/// Most grants that are kept; beyond, the one that ends first goes.
const GRANTS_MAX: usize = 10_000;

/// What a grant is bound to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Binding([u8; 32]);

impl Binding {
    /// `shown` is all that a person is shown of the request, `arguments` the digest of its arguments. `None` where
    /// the paths are not known: nothing could be compared.
    pub fn of(
        facts: &Facts,
        (shown, arguments): (Option<&str>, Option<Digest>),
        policy_digest: &str,
        rule: &str,
    ) -> Option<Self> {
        let paths = facts.paths.known()?;
        let mut hasher = blake3::Hasher::new();
        let mut put = |part: &str| {
            hasher.update(&(part.len() as u64).to_le_bytes());
            hasher.update(part.as_bytes());
        };
        put("durward grant 1");
        put(policy_digest);
        put(rule);
        put(&facts.subject_id);
        put(&facts.backend_id);
        put(facts.direction.label());
        put(&facts.method);
        for fact in [&facts.tool_name, &facts.uri] {
            put(match fact {
                Fact::Known(_) => "known",
                Fact::Unknown => "unknown",
                Fact::Absent => "absent",
            });
            put(fact.known().map_or("", String::as_str));
        }
        put(facts.definition.known().map_or("", |digest| digest));
        for argument in paths {
            put(argument.role.label());
            for place in &argument.meaning.places {
                put(place);
            }
        }
        for (row, value) in facts.kept_beside() {
            // Which call gave a label does not matter, as long as the labels are the same.
            if row.id != FactId::LabelledBy {
                put(row.name);
                put(&format!("{value:?}"));
            }
        }
        put(&arguments.map_or_else(String::new, |digest| digest.to_string()));
        put(shown.unwrap_or_default());
        Some(Self(*hasher.finalize().as_bytes()))
    }

    /// The same in one session alone.
    pub fn in_session(&self, session_id: &str) -> Self {
        let mut hasher = blake3::Hasher::new();
        hasher.update(b"durward grant in session 1");
        hasher.update(&self.0);
        hasher.update(session_id.as_bytes());
        Self(*hasher.finalize().as_bytes())
    }
}

/// Most characters that are kept of a text of a granted call.
const GRANT_CHARS_MAX: usize = 200;

/// A yes that still holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Grant {
    pub expires_ns: u64,
    pub channel: Channel,
    pub approver: String,
    /// The call that was approved.
    pub call: GrantedCall,
}

/// A call that was allowed for a while. Long texts are cut.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct GrantedCall {
    /// Id of the question that was answered.
    pub id: String,
    /// Caller.
    pub subject_id: String,
    /// Server.
    pub backend_id: String,
    /// Method of the protocol.
    pub mcp_method: String,
    /// Tool.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_name: Option<String>,
    /// URI of the resource.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uri: Option<String>,
    /// First path.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Arguments on one line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arguments: Option<String>,
    /// Rule that asked.
    pub rule: String,
    /// Session to which the grant is limited; absent if it is not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// Who allowed it.
    pub approver: String,
    /// Where it was allowed; absent only before an answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub channel: Option<Channel>,
    /// When it was allowed, UTC.
    pub granted_at: String,
    /// How long the grant still holds, in milliseconds, as of the moment when it was listed.
    pub remaining_ms: u64,
}

impl GrantedCall {
    /// Describes a call; who allowed it, and for how long, is added with the grant.
    pub(crate) fn new(id: &str, facts: &Facts, arguments: Option<&str>, rule: &str) -> Self {
        let cut = |text: &str| display::text(text, GRANT_CHARS_MAX);
        let mut paths = facts.paths.known().into_iter().flatten();
        let first = paths.find(|argument| !argument.content);
        let path = first.map(|own| own.meaning.places.first().unwrap_or(&own.text));
        Self {
            id: id.to_owned(),
            subject_id: cut(&facts.subject_id),
            backend_id: cut(&facts.backend_id),
            mcp_method: cut(&facts.method),
            tool_name: facts.tool_name.known().map(|text| cut(text)),
            uri: facts.uri.known().map(|text| cut(text)),
            path: path.map(|text| cut(text)),
            arguments: arguments.map(cut),
            rule: cut(rule),
            ..Self::default()
        }
    }
}

#[derive(Debug, Default)]
pub(super) struct Grants {
    by_binding: HashMap<Binding, Grant>,
}

impl Grants {
    pub fn add(&mut self, binding: Binding, grant: Grant, now_ns: u64) {
        if self.by_binding.len() >= GRANTS_MAX {
            self.expire(now_ns);
        }
        if self.by_binding.len() >= GRANTS_MAX {
            let first = self
                .by_binding
                .iter()
                .min_by_key(|(_, grant)| grant.expires_ns)
                .map(|(binding, _)| *binding);
            if let Some(first) = first {
                self.by_binding.remove(&first);
            }
        }
        self.by_binding.insert(binding, grant);
    }

    pub fn get(&mut self, binding: &Binding, now_ns: u64) -> Option<Grant> {
        let grant = self.by_binding.get(binding)?;
        if now_ns < grant.expires_ns {
            return Some(grant.clone());
        }
        self.by_binding.remove(binding);
        None
    }

    pub fn expire(&mut self, now_ns: u64) {
        self.by_binding.retain(|_, grant| now_ns < grant.expires_ns);
    }

    /// Returns the granted calls, the one that ends first first.
    pub fn list(&self, now_ns: u64) -> Vec<GrantedCall> {
        let mut grants: Vec<&Grant> = self.by_binding.values().collect();
        grants.retain(|grant| now_ns < grant.expires_ns);
        grants.sort_by(|a, b| (a.expires_ns, &a.call.id).cmp(&(b.expires_ns, &b.call.id)));
        let call = |grant: &Grant| GrantedCall {
            remaining_ms: grant.expires_ns.saturating_sub(now_ns) / 1_000_000,
            ..grant.call.clone()
        };
        grants.into_iter().map(call).collect()
    }

    /// Ends the grants of this id; returns how many there were.
    pub fn forget(&mut self, id: &str) -> usize {
        let before = self.by_binding.len();
        self.by_binding.retain(|_, grant| grant.call.id != id);
        before - self.by_binding.len()
    }

    pub fn clear(&mut self) {
        self.by_binding.clear();
    }

    pub fn len(&self) -> usize {
        self.by_binding.len()
    }
}

/// Whether a yes to a tool with these side effects may be remembered: they are known, none of them
/// runs code, and every hitl rule that asks bears them.
pub(crate) fn may_be_remembered<'r>(
    side_effects: Option<&[&str]>,
    mut rules: impl Iterator<Item = &'r [String]>,
) -> bool {
    let Some(effects) = side_effects else {
        return false;
    };
    !effects.iter().any(|e| NEVER_REMEMBERED.contains(e))
        && rules.all(|borne| effects.iter().all(|e| borne.iter().any(|b| b == e)))
}

#[cfg(test)]
mod tests;
