//! What the configuration says of a server's arguments, where neither names nor schemas tell, and of its tools.

use std::collections::HashMap;

use gate::effects::OperationSet;
use gate::paths::Role;

/// What an argument is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Said {
    /// A path, of this part.
    Path(Role),
    /// What is written rather than where.
    Content,
}

impl Said {
    /// The words of a configuration.
    pub const WORDS: [&'static str; 4] = ["path", "source", "destination", "content"];

    /// What a word of a configuration says.
    #[must_use]
    pub fn of(word: &str) -> Option<Self> {
        match word {
            "path" => Some(Self::Path(Role::Path)),
            "source" => Some(Self::Path(Role::Source)),
            "destination" => Some(Self::Path(Role::Destination)),
            "content" => Some(Self::Content),
            _ => None,
        }
    }

    pub(super) fn role(self) -> Option<Role> {
        match self {
            Self::Path(role) => Some(role),
            Self::Content => None,
        }
    }
}

/// Roles by the argument's name, or by `tool.argument`, and what tools do.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ArgumentRoles {
    by_name: HashMap<String, Said>,
    /// By the tool's name.
    operations: HashMap<String, OperationSet>,
}

impl ArgumentRoles {
    /// States what one argument is.
    pub fn say(&mut self, name: &str, said: Said) {
        self.by_name.insert(name.to_owned(), said);
    }

    /// Declares what a tool does.
    pub fn declare(&mut self, tool: &str, operations: OperationSet) {
        self.operations.insert(tool.to_owned(), operations);
    }

    /// Returns what the operator declares of a tool.
    #[must_use]
    pub fn declared(&self, tool: &str) -> Option<OperationSet> {
        self.operations.get(tool).copied()
    }

    /// What is said of an argument; what is said of one tool alone wins.
    #[must_use]
    pub fn of(&self, tool: &str, argument: &str) -> Option<Said> {
        if self.by_name.is_empty() {
            return None;
        }
        let own = self.by_name.get(&format!("{tool}.{argument}"));
        own.or_else(|| self.by_name.get(argument)).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_of_one_tool_wins() {
        let mut roles = ArgumentRoles::default();
        roles.say("where", Said::Path(Role::Path));
        roles.say("note.where", Said::Content);
        assert_eq!(roles.of("note", "where"), Some(Said::Content));
        assert_eq!(roles.of("read", "where"), Some(Said::Path(Role::Path)));
        assert_eq!(roles.of("read", "what"), None);
        assert!(Said::WORDS.iter().all(|word| Said::of(word).is_some()));
    }
}
