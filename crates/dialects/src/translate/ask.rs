//! A conversation in no dialect: requests and replies.

use std::borrow::Cow;

use super::super::usage::Tokens;
use super::fields::LeftOut;

/// A text.
pub(crate) type Text<'a> = Cow<'a, str>;

/// A request. Values that are numbers or schemas are JSON as it came.
#[derive(Debug, Default)]
pub(crate) struct ModelRequest<'a> {
    pub names: MemberNames,
    pub system: Vec<Text<'a>>,
    /// The texts of the system that a cache is asked to end behind: their number, and the wish in JSON.
    pub system_marks: Vec<(usize, &'a str)>,
    pub turns: Vec<ChatTurn<'a>>,
    pub tools: Vec<OfferedTool<'a>>,
    pub choice: Option<ToolChoice<'a>>,
    /// Whether several tools may be called at once.
    pub parallel: Option<bool>,
    pub max_tokens: Option<&'a str>,
    pub temperature: Option<&'a str>,
    pub top_p: Option<&'a str>,
    pub top_k: Option<&'a str>,
    pub seed: Option<&'a str>,
    pub presence_penalty: Option<&'a str>,
    pub frequency_penalty: Option<&'a str>,
    pub stop: Vec<Text<'a>>,
    pub shape: Option<ReplyShape<'a>>,
    pub effort: Option<ThinkingEffort>,
    /// Who asks, as the caller names its own user.
    pub user: Option<Text<'a>>,
    pub streams: bool,
}

impl ModelRequest<'_> {
    /// Leaves out where caches are asked to end: only messages know that.
    pub fn drop_cache_marks(&mut self, left_out: &mut LeftOut) {
        let is_mark = |part: &ContentPart<'_>| matches!(part, ContentPart::CacheMark(_));
        let mut any = !self.system_marks.is_empty();
        self.system_marks.clear();
        for tool in &mut self.tools {
            any |= tool.cache_mark.take().is_some();
        }
        for turn in &mut self.turns {
            any |= turn.parts.iter().any(is_mark);
            turn.parts.retain(|part| !is_mark(part));
            for part in &mut turn.parts {
                if let ContentPart::Result { parts, .. } = part {
                    any |= parts.iter().any(is_mark);
                    parts.retain(|part| !is_mark(part));
                }
            }
        }
        if any {
            left_out.insert("cache_control");
        }
    }
}

/// Names in a caller's dialect of the members that are refused or left out when the request is written.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MemberNames {
    pub user: &'static str,
    pub parallel: &'static str,
    /// The form of the reply.
    pub shape: &'static str,
    /// The name of its schema.
    pub schema: &'static str,
    /// That of a document.
    pub document: &'static str,
    /// The signature of thoughts.
    pub signature: &'static str,
    /// Thoughts that have none.
    pub thoughts: &'static str,
}

impl Default for MemberNames {
    /// Those of chat completions.
    fn default() -> Self {
        Self {
            user: "user",
            parallel: "parallel_tool_calls",
            shape: "response_format.type",
            schema: "json_schema.name",
            document: "filename",
            signature: "signature",
            thoughts: "reasoning_content",
        }
    }
}

/// Who speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SpeakerRole {
    System,
    User,
    Assistant,
}

/// Turn of one side.
#[derive(Debug)]
pub(crate) struct ChatTurn<'a> {
    pub role: SpeakerRole,
    pub parts: Vec<ContentPart<'a>>,
    /// Its place in the request, for refusals.
    pub at: String,
}

/// A part of what is said.
#[derive(Debug)]
pub(crate) enum ContentPart<'a> {
    Text(Text<'a>),
    Image(FileSource<'a>),
    /// A PDF.
    Document {
        name: Option<Text<'a>>,
        source: FileSource<'a>,
    },
    /// The model calls a tool.
    Call(ToolCall<'a>),
    /// Result of a tool.
    Result {
        id: Text<'a>,
        failed: bool,
        parts: Vec<ContentPart<'a>>,
    },
    /// Thoughts of the model, with the signature of the provider that wrote them.
    Thinking {
        text: Text<'a>,
        signature: Option<Text<'a>>,
    },
    /// Thoughts that only the provider can read.
    Redacted(Text<'a>),
    /// It says that it will not.
    Refusal(Text<'a>),
    /// A cache is asked to end behind the part before: the wish in JSON.
    CacheMark(&'a str),
}

/// A call of a tool.
#[derive(Debug)]
pub(crate) struct ToolCall<'a> {
    pub id: Text<'a>,
    pub name: Text<'a>,
    /// Its arguments: an object in JSON.
    pub input: Text<'a>,
    /// That of the thoughts behind it, for the provider that had them.
    pub signature: Option<Text<'a>>,
}

/// Source of a file's bytes.
#[derive(Debug)]
pub(crate) enum FileSource<'a> {
    Url(Text<'a>),
    /// In base64.
    Data {
        media: Text<'a>,
        data: Text<'a>,
    },
}

impl<'a> FileSource<'a> {
    /// Reads a URL, which may hold the bytes itself.
    pub fn of_url(url: Text<'a>) -> Self {
        let parted = url.strip_prefix("data:").and_then(|rest| {
            let (media, data) = rest.split_once(";base64,")?;
            Some((media.to_owned(), data.to_owned()))
        });
        match parted {
            Some((media, data)) => Self::Data {
                media: media.into(),
                data: data.into(),
            },
            None => Self::Url(url),
        }
    }

    /// Returns the URL, which may hold the bytes itself.
    pub fn url(&self) -> Text<'_> {
        match self {
            Self::Url(url) => Cow::Borrowed(url),
            Self::Data { media, data } => format!("data:{media};base64,{data}").into(),
        }
    }
}

/// A tool that the model may call.
#[derive(Debug)]
pub(crate) struct OfferedTool<'a> {
    pub name: Text<'a>,
    pub description: Option<Text<'a>>,
    pub schema: Option<&'a str>,
    pub strict: Option<bool>,
    /// A cache is asked to end behind it: the wish in JSON.
    pub cache_mark: Option<&'a str>,
}

/// Which tool is to be called.
#[derive(Debug)]
pub(crate) enum ToolChoice<'a> {
    Auto,
    Any,
    None,
    Tool(Text<'a>),
}

/// The form that the reply has to have.
#[derive(Debug)]
pub(crate) enum ReplyShape<'a> {
    Json,
    Schema {
        name: Option<Text<'a>>,
        schema: &'a str,
        strict: Option<bool>,
    },
}

/// How much the model thinks first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ThinkingEffort {
    None,
    Minimal,
    Low,
    Medium,
    High,
    XHigh,
    Max,
}

impl ThinkingEffort {
    pub const ALL: [(Self, &'static str); 7] = [
        (Self::None, "none"),
        (Self::Minimal, "minimal"),
        (Self::Low, "low"),
        (Self::Medium, "medium"),
        (Self::High, "high"),
        (Self::XHigh, "xhigh"),
        (Self::Max, "max"),
    ];

    pub fn of(word: &str) -> Option<Self> {
        let found = Self::ALL.into_iter().find(|(_, own)| *own == word);
        found.map(|(effort, _)| effort)
    }

    pub fn word(self) -> &'static str {
        let found = Self::ALL.into_iter().find(|(own, _)| *own == self);
        found.map_or("medium", |(_, word)| word)
    }

    /// Returns the effort nearest to a budget of tokens.
    pub fn of_budget(tokens: u64) -> Self {
        match tokens {
            0..4_096 => Self::Low,
            4_096..16_384 => Self::Medium,
            _ => Self::High,
        }
    }
}

/// Why a model stopped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum StopReason {
    /// It was done.
    End,
    /// It may write no more.
    Length,
    /// It waits for tools.
    Calls,
    /// It wrote what it was to stop at.
    Sequence(String),
    /// It, or a filter, will not.
    Refusal,
}

/// A reply.
#[derive(Debug)]
pub(crate) struct ModelReply<'a> {
    pub id: Text<'a>,
    pub model: Text<'a>,
    pub parts: Vec<ContentPart<'a>>,
    pub stop: StopReason,
    pub tokens: Tokens,
    pub left_out: LeftOut,
}

/// A piece of a stream.
#[derive(Debug)]
pub(crate) enum StreamPiece<'a> {
    Start {
        id: Text<'a>,
        model: Text<'a>,
    },
    Text(Text<'a>),
    Refusal(Text<'a>),
    Thinking(Text<'a>),
    Signature(Text<'a>),
    Redacted(Text<'a>),
    /// A call begins, without its arguments; `at` counts the calls of the reply.
    Call {
        at: usize,
        call: ToolCall<'a>,
    },
    /// More of its arguments.
    Arguments {
        at: usize,
        json: Text<'a>,
    },
    /// All of its arguments have come.
    CallEnds(usize),
    Usage(Tokens),
    /// Something that no other dialect can say, by its name.
    LeftOut(Cow<'static, str>),
    Stop(StopReason),
    End,
    /// The provider gives up, for this reason.
    Failed(Option<String>),
}
