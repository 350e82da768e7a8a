//! Policy: rules, compiled once, judged in one place for calling and for listing.
//!
//! Order of precedence: protected path, deny, a directory above a protected path (asks), hitl, allow, and where nothing
//! matches: deny.

mod compiled;
pub mod conditions;
pub mod document;
mod explain;
pub mod glob;
mod guarded;
mod index;
mod judge;
pub mod lint;
pub mod load;
pub mod matcher;
mod pattern;
pub mod rule;
pub mod secrets;
mod seen;
mod shell;
pub mod starter;
mod target;
pub mod tri;
pub mod when;

use sha2::{Digest as _, Sha256};

use crate::paths::PathView;

pub use compiled::OTHER_PATHS;
pub use conditions::{Asked, CONDITIONS, ConditionDef, Conditions};
pub use document::PolicyError;
pub use explain::Reading;
pub use judge::{
    ANCESTOR_RULE, DEFAULT_RULE, Judgement, NAMED_MAX, Named, PROTECTED_RULE, UNREAD_RULE, Verdict,
};
pub use pattern::NameGlob;
pub use rule::Rule;
pub use tri::Tri;

pub use crate::effect::Effect;
pub use crate::effects;
pub use crate::facts::Operation;

/// SHA-256 of a text, in hex: how policies and configurations are named in the journal.
#[must_use]
pub fn checksum(text: &str) -> String {
    Sha256::digest(text.as_bytes())
        .iter()
        .map(|b| format!("{b:02x}"))
        .collect()
}

/// A policy, ready to judge.
#[derive(Debug)]
pub struct Policy {
    rules: Vec<Rule>,
    compiled: Vec<compiled::Compiled>,
    index: index::Index,
    digest: String,
    text_digest: String,
    /// What no call may touch.
    protected: guarded::GuardedPaths,
    /// What no call may change; reading it is for the rules.
    read_only: guarded::GuardedPaths,
    /// Paths lead into this machine's file system.
    local: bool,
}

impl Policy {
    /// Reads and compiles a policy.
    ///
    /// `view` is the file system that the upstream sees, where that is this machine's; `protected`
    /// are the absolute paths (with all below them) that no call may touch.
    ///
    /// # Errors
    /// The first fault, with line, column and a hint.
    pub fn load(
        text: &str,
        view: Option<&dyn PathView>,
        protected: &[String],
    ) -> Result<Self, PolicyError> {
        let rules = load::parse(text)?;
        let compiled = rules
            .iter()
            .map(|rule| compiled::Compiled::new(rule, view))
            .collect::<Result<Vec<_>, _>>()
            .map_err(|message| PolicyError {
                line: 1,
                column: 1,
                message,
                hint: None,
            })?;
        let digest = checksum(text);
        let index = index::Index::of(rules.iter().zip(&compiled));
        Ok(Self {
            rules,
            compiled,
            index,
            text_digest: digest.clone(),
            digest,
            protected: guarded::GuardedPaths::new(protected, view),
            read_only: guarded::GuardedPaths::default(),
            local: view.is_some(),
        })
    }

    /// Returns the policy with further rules, which deny or ask: they narrow what it allows.
    ///
    /// # Errors
    /// The first fault of the rules, and a rule that allows.
    pub fn narrowed_by(mut self, text: &str) -> Result<Self, PolicyError> {
        let failed = |message: String| PolicyError {
            line: 1,
            column: 1,
            message,
            hint: None,
        };
        let rules = load::parse(text)?;
        if let Some(rule) = rules.iter().find(|rule| rule.effect == Effect::Allow) {
            return Err(failed(format!(
                "the rule \"{}\" allows, where rules only narrow",
                rule.id
            )));
        }
        for rule in rules {
            let compiled = compiled::Compiled::new(&rule, None).map_err(failed)?;
            self.compiled.push(compiled);
            self.rules.push(rule);
        }
        self.index = index::Index::of(self.rules.iter().zip(&self.compiled));
        self.digest = checksum(&format!("{}{text}", self.digest));
        Ok(self)
    }

    /// Refuses calls that may change these absolute paths, or anything below them. Calls that only read pass on to the
    /// rules; a call whose effect is unknown may change them.
    #[must_use]
    pub fn with_read_only(mut self, paths: &[String], view: Option<&dyn PathView>) -> Self {
        self.read_only = guarded::GuardedPaths::new(paths, view);
        self
    }

    /// The rules, as written.
    #[must_use]
    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }

    /// Returns the SHA-256, in hex, of the policy's text and of the rules that narrow it.
    #[must_use]
    pub fn digest(&self) -> &str {
        &self.digest
    }

    /// Returns the SHA-256 of the policy's text alone, in hex.
    #[must_use]
    pub fn text_digest(&self) -> &str {
        &self.text_digest
    }
}
