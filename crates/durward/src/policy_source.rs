//! Where rules come from: a file that someone chose, or a policy that is built in.

use std::borrow::Cow;
use std::fmt;
use std::path::{Path, PathBuf};

use gate::policy::starter::STARTER_POLICY;

/// A policy that is built in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ShippedPolicy {
    /// The starter policy.
    #[default]
    Starter,
    /// The rules for `builtin: ssh`, which read its commands.
    Ssh,
}

impl ShippedPolicy {
    /// Returns its name in messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::Starter => "starter policy",
            Self::Ssh => "shipped SSH rules",
        }
    }

    /// Returns its name in the journal.
    pub fn label(self) -> &'static str {
        match self {
            Self::Starter => "starter",
            Self::Ssh => "ssh",
        }
    }

    /// Returns what it does, in a sentence.
    pub fn summary(self) -> &'static str {
        match self {
            Self::Starter => "the starter policy applies: reads pass, all else needs approval",
            Self::Ssh => {
                "the shipped SSH rules apply (durward ssh rules): commands that look pass, changes need approval, secrets are refused"
            }
        }
    }

    /// Returns its rules.
    pub fn text(self) -> Cow<'static, str> {
        match self {
            Self::Starter => Cow::Borrowed(STARTER_POLICY),
            Self::Ssh => Cow::Owned(::ssh::rules::policy()),
        }
    }
}

/// Where the rules that apply to a server come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PolicySource {
    /// A file that someone chose.
    File(PathBuf),
    /// No file is named.
    Shipped(ShippedPolicy),
}

impl Default for PolicySource {
    fn default() -> Self {
        Self::Shipped(ShippedPolicy::Starter)
    }
}

impl fmt::Display for PolicySource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(file) => write!(f, "{}", file.display()),
            Self::Shipped(shipped) => f.write_str(shipped.name()),
        }
    }
}

impl PolicySource {
    /// Returns the file; `None` for a shipped policy.
    pub fn file(&self) -> Option<&Path> {
        match self {
            Self::File(file) => Some(file),
            Self::Shipped(_) => None,
        }
    }

    /// Returns the name that the journal records.
    pub fn label(&self) -> String {
        match self {
            Self::File(file) => file.display().to_string(),
            Self::Shipped(shipped) => shipped.label().to_owned(),
        }
    }
}
