//! Parts of a run: model, tools, instructions, limits.

use std::fmt;

/// How a model is shown tools, and how it writes calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CallEncoding {
    /// The provider's own tool calls.
    #[default]
    Native,
    /// ReAct tags in text.
    React,
}

/// What happens if a limit is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LimitPolicy {
    /// The model is asked once more, without tools, for an answer. Its finish reason is `length`.
    #[default]
    Answer,
    /// The run ends with an error.
    Error,
}

/// How much of a run its caller sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum StepDisplay {
    /// The answer alone.
    None,
    /// Thoughts and calls as well.
    #[default]
    Steps,
}

/// Limits of one run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunLimits {
    /// Most calls of the model, without the last one that `on_limit: answer` makes.
    pub iterations: u64,
    /// Most calls of tools.
    pub tool_calls: u64,
    /// Longest time, in milliseconds.
    pub time_ms: u64,
    /// Most tokens, read and written.
    pub tokens: u64,
    /// Most cost, in millionths of a dollar.
    pub cost_micros: Option<u64>,
    /// Most tool calls at once.
    pub parallel: usize,
    /// Most bytes of a result that the model reads.
    pub tool_result_bytes: usize,
}

impl Default for RunLimits {
    fn default() -> Self {
        Self {
            iterations: 10,
            tool_calls: 20,
            time_ms: 120_000,
            tokens: 200_000,
            cost_micros: None,
            parallel: 4,
            tool_result_bytes: 64 * 1024,
        }
    }
}

/// Part of tokens, cost and time that is kept for the answer of `on_limit: answer`: an eighth.
pub(crate) const RESERVE_DIVISOR: u64 = 8;

/// A limit that a run has reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LimitKind {
    /// Calls of the model.
    Iterations,
    /// Calls of tools.
    ToolCalls,
    /// Time.
    Time,
    /// Tokens.
    Tokens,
    /// Cost.
    Cost,
}

impl LimitKind {
    /// Returns the word of the limit, as the configuration has it.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Iterations => "max_iterations",
            Self::ToolCalls => "limits.tool_calls",
            Self::Time => "limits.time",
            Self::Tokens => "limits.tokens",
            Self::Cost => "limits.cost",
        }
    }
}

impl fmt::Display for LimitKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// A tool that the model may call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolSpec {
    /// Name that the model sees; see [`tool_names`].
    pub name: String,
    /// Server, as the configuration names it.
    pub server: String,
    /// Name at the server.
    pub tool: String,
    /// Description for the model.
    pub description: String,
    /// JSON Schema of the arguments.
    pub schema: String,
}

/// Longest name of a tool that providers take, in bytes.
const TOOL_NAME_BYTES_MAX: usize = 64;

/// Returns a name for each pair of server and tool: `SERVER__TOOL` in the letters that providers take, each once.
#[must_use]
pub fn tool_names<'t>(tools: impl Iterator<Item = (&'t str, &'t str)>) -> Vec<String> {
    let mut seen = std::collections::HashSet::new();
    tools
        .map(|(server, tool)| {
            let fits = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
            let whole = format!("{server}__{tool}");
            let plain: String = whole
                .chars()
                .map(|c| if fits(c) { c } else { '_' })
                .take(TOOL_NAME_BYTES_MAX)
                .collect();
            let mut name = plain.clone();
            let mut number = 1_u32;
            while !seen.insert(name.clone()) {
                number += 1;
                let end = format!("_{number}");
                let head: String = plain
                    .chars()
                    .take(TOOL_NAME_BYTES_MAX - end.len())
                    .collect();
                name = head + &end;
            }
            name
        })
        .collect()
}

/// Everything that a run begins with.
#[derive(Debug, Clone, Default)]
pub struct RunPlan {
    /// Model that is called: an alias, or `PROVIDER/MODEL`.
    pub model: String,
    /// How calls are written.
    pub encoding: CallEncoding,
    /// System text: pattern, instructions, and the caller's own.
    pub system: String,
    /// Tools of the agent.
    pub tools: Vec<ToolSpec>,
    /// Tools of the caller, which are handed back: each the JSON of one element of `tools`, with its name.
    pub caller_tools: Vec<(String, String)>,
    /// Messages of the caller without those of the system, each as JSON.
    pub messages: Vec<String>,
    /// Further members of each request, as JSON: `temperature` and its like.
    pub parameters: Vec<(String, String)>,
    /// Limits.
    pub limits: RunLimits,
    /// What happens at a limit.
    pub on_limit: LimitPolicy,
    /// Display for the caller.
    pub display: StepDisplay,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_in_the_letters_of_providers() {
        let long = "x".repeat(80);
        let tools = [
            ("docs", "read.file"),
            ("docs", "read_file"),
            ("a", long.as_str()),
            ("a", long.as_str()),
        ];
        let names = tool_names(tools.into_iter());
        assert_eq!(names[0], "docs__read_file");
        assert_eq!(names[1], "docs__read_file_2");
        assert_eq!((names[2].len(), names[3].len()), (64, 64));
        assert!(names[3].ends_with("_2") && names[2] != names[3]);
    }
}
