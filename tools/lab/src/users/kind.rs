//! The kinds of users: their models, their questions and their pauses.

use serde_json::{Value, json};

/// A kind of user, by its tag.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, clap::ValueEnum)]
#[value(rename_all = "snake_case")]
pub(super) enum UserKind {
    /// StressUser
    Stress,
    /// ReActUser
    AgentReasoning,
    /// SwitchoverUser
    Rotation,
    /// AuthenticatedUser
    Auth,
}

impl UserKind {
    pub fn name(self) -> &'static str {
        match self {
            Self::Stress => "StressUser",
            Self::AgentReasoning => "ReActUser",
            Self::Rotation => "SwitchoverUser",
            Self::Auth => "AuthenticatedUser",
        }
    }

    /// Returns a note on its times for readers.
    pub fn note(self) -> Option<&'static str> {
        match self {
            Self::AgentReasoning => Some(
                "not an agent yet: the user itself runs the tool that the model asks for; two requests a turn",
            ),
            Self::Stress | Self::Rotation | Self::Auth => None,
        }
    }

    /// Returns the model that it asks.
    pub fn model(self) -> &'static str {
        match self {
            Self::Stress | Self::Auth => "mock_agent",
            Self::AgentReasoning => "standard_agent",
            Self::Rotation => "coding_agent",
        }
    }

    /// Returns its message.
    pub fn message(self) -> String {
        match self {
            Self::Stress | Self::Auth => "Stress test payload ".repeat(5),
            Self::AgentReasoning => "Analyze this complexity.".to_owned(),
            Self::Rotation => "Simple rotation test.".to_owned(),
        }
    }

    /// Its pause, in milliseconds: the shortest, and the longest.
    pub fn pause_ms(self) -> (u64, u64) {
        match self {
            Self::Stress | Self::Auth => (500, 500),
            Self::AgentReasoning => (2_000, 5_000),
            Self::Rotation => (1_000, 3_000),
        }
    }

    /// Returns the request with which it begins.
    pub fn request(self, model: &str) -> Value {
        let mut body = json!({
            "model": model,
            "messages": [{ "role": "user", "content": self.message() }],
            "stream": true,
        });
        if self == Self::AgentReasoning
            && let Some(members) = body.as_object_mut()
        {
            members.insert("tools".to_owned(), tools());
        }
        body
    }
}

/// Returns the tool that ReActUser offers.
fn tools() -> Value {
    json!([{
        "type": "function",
        "function": {
            "name": "smart_search",
            "description": "Search for a text.",
            "parameters": {
                "type": "object",
                "properties": { "query": { "type": "string" } },
                "required": ["query"],
            },
        },
    }])
}
