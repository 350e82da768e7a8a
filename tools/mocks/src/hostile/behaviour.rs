//! The behaviours by name.

use crate::server_args::ServerArgs;

/// Options of `hostile`.
#[derive(Debug, clap::Args)]
pub struct HostileArgs {
    /// How to misbehave.
    #[arg(long, value_enum)]
    pub behaviour: HostileBehaviour,
    /// At which tools/call (for rug-pull: from which tools/list, unless it is announced), counted from 1 [default: 1;
    /// rug-pull: 3]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub at: Option<u64>,
    /// How many bytes: the frame of oversized (default 17 MiB), the log of stderr-flood (default 8 MiB).
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u64).range(0..=1_073_741_824))]
    pub bytes: Option<u64>,
    /// How late the answer of slow is, in milliseconds.
    #[arg(long, value_name = "MILLISECONDS", default_value_t = 2000, value_parser = clap::value_parser!(u64).range(0..=600_000))]
    pub delay_ms: u64,
    /// How long ignore-term stays after the end of input, and grandchildren live, in seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 600, value_parser = clap::value_parser!(u64).range(0..=3600))]
    pub linger_s: u64,
    /// How many notifications notify-flood sends.
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(0..=1_000_000))]
    pub notifications: u64,
    /// Where duplicate-keys puts them.
    #[arg(long, value_enum, default_value_t = DuplicatePosition::Both)]
    pub place: DuplicatePosition,
    /// What rug-pull changes.
    #[arg(long, value_enum, default_value_t = RugPull::Description)]
    pub pull: RugPull,
    /// Which one text poisoned poisons, and how [default: all texts, with what cannot be seen].
    #[arg(long, value_enum)]
    pub field: Option<TextField>,
    /// What server-request asks of the client.
    #[arg(long, value_enum, default_value_t = ClientQuestion::Elicitation)]
    pub ask: ClientQuestion,
    /// What every mock server accepts.
    #[command(flatten)]
    pub server: ServerArgs,
}

/// One way to break the protocol, or the trust in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum HostileBehaviour {
    /// Answers the call twice.
    Twice,
    /// Never answers the call.
    Never,
    /// Keeps the answer until the next call, whose answer goes first.
    Reorder,
    /// Sends a line that is not JSON, then the answer.
    Garbage,
    /// Sends a line that is not JSON instead of the answer.
    GarbageOnly,
    /// Exits without an answer, with code 3.
    Die,
    /// Sends the first half of the answer without a newline and exits with code 3.
    DieHalf,
    /// Answers under another id.
    WrongId,
    /// Answers without an id.
    NoId,
    /// Answers with a frame of more than 16 MiB.
    Oversized,
    /// Answers with 10,000 nested arrays.
    Deep,
    /// Answers with bytes that are not UTF-8.
    NotUtf8,
    /// Answers with duplicate keys.
    DuplicateKeys,
    /// Wraps the answer in an array.
    Batch,
    /// Floods standard error before it answers.
    StderrFlood,
    /// Answers late.
    Slow,
    /// Ignores the termination signal and the end of input.
    IgnoreTerm,
    /// Starts processes that outlive it, some in sessions of their own; the answer lists their ids.
    SpawnGrandchildren,
    /// Changes its tool from the third list on.
    RugPull,
    /// Hides invisible, control, bidirectional and tag characters in everything a model may read.
    Poisoned,
    /// Sends a request to the client in the middle of the call; the client's answer is in the result.
    ServerRequest,
    /// Sends a flood of progress notifications before it answers.
    NotifyFlood,
}

/// Part of a tool that a rug-puller changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum RugPull {
    /// The description of its tool.
    Description,
    /// The description, and it announces it: `tools/list_changed` goes out behind the first call.
    Announced,
    /// The tool's name: the definition stays.
    Rename,
    /// A second tool appears.
    Addition,
    /// One invisible character in the description.
    Invisible,
    /// One more value in the schema.
    Schema,
}

/// One text that a model may read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum TextField {
    /// The tool's name.
    Name,
    /// The tool's title.
    Title,
    /// The tool's description.
    Description,
    /// The title in the tool's annotations.
    AnnotationTitle,
    /// The description of an argument.
    Argument,
    /// The name of an argument.
    ArgumentName,
    /// An argument's default.
    Default,
    /// A value that an argument may have.
    Enum,
    /// An example of an argument.
    Example,
    /// A comment in the schema.
    Comment,
    /// A description in the schema of the output.
    Output,
    /// The server's instructions.
    Instructions,
    /// The description of a prompt.
    Prompt,
    /// The description of a prompt's argument.
    PromptArgument,
    /// The description of a resource.
    Resource,
    /// The description of a resource template.
    Template,
    /// The tool's description, with a phrase that anyone can read.
    Phrase,
    /// A second tool whose name looks like the first one's.
    Twin,
}

/// Position of duplicate keys in a reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum DuplicatePosition {
    /// Two results in the envelope.
    Envelope,
    /// Inside the result.
    Deep,
    /// In both places.
    Both,
}

/// A request a server makes of its client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum ClientQuestion {
    /// `elicitation/create`
    Elicitation,
    /// `sampling/createMessage`
    Sampling,
    /// `roots/list`
    Roots,
}

impl ClientQuestion {
    /// Returns the request under this id, which is raw JSON.
    pub(super) fn frame(self, id: &str) -> Vec<u8> {
        let (method, params) = match self {
            Self::Elicitation => (
                "elicitation/create",
                r#"{"message":"What is your name?","requestedSchema":{"type":"object","properties":{"name":{"type":"string"}},"required":["name"]}}"#,
            ),
            Self::Sampling => (
                "sampling/createMessage",
                r#"{"messages":[{"role":"user","content":{"type":"text","text":"Say a word."}}],"maxTokens":16}"#,
            ),
            Self::Roots => ("roots/list", "{}"),
        };
        format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#)
            .into_bytes()
    }
}
