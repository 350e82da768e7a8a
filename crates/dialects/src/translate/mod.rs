//! One dialect in the words of another: requests on their way to a provider, replies on their way back.
//!
//! What is said is read into a form that no dialect words ([`ask`]), every member of it, and written anew.
//! Nothing is dropped in silence: what the other dialect has no word for is refused by the place where it
//! stands ([`Inexpressible`]), and hints that change no meaning are named to whoever asks ([`Said`]).
//! A provider's reply is an open world: an unknown reason counts as the nearest one, an unknown part is left out, and both are
//! named. Only what is no reply at all makes it unreadable.

mod arguments;
mod ask;
mod chat;
pub mod embeddings;
mod fields;
mod gemini;
mod messages;
mod openai;
mod parts;
mod responses;
mod stream;
#[cfg(test)]
mod tests;

use std::borrow::Cow;

use ask::{Role, Source};

use super::dialect::Dialect;
use super::endpoint::Endpoint;
use super::json;
use super::usage::Tokens;
pub use fields::Inexpressible;
use fields::{LeftOut, wrong};
pub use stream::Translator;

/// The form in which callers ask what can be translated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Front {
    /// OpenAI's chat completions.
    Chat,
    /// Anthropic's messages.
    Messages,
    /// OpenAI's responses.
    Responses,
}

impl Front {
    /// That of an endpoint, where its requests can be translated.
    #[must_use]
    pub fn of(endpoint: Endpoint) -> Option<Self> {
        match endpoint {
            Endpoint::Chat => Some(Self::Chat),
            Endpoint::Messages => Some(Self::Messages),
            Endpoint::Responses => Some(Self::Responses),
            _ => None,
        }
    }
}

/// The form in which a provider of another dialect is asked and answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// OpenAI's chat completions.
    Chat,
    /// Anthropic's messages.
    Messages,
    /// Gemini's `generateContent`.
    Gemini,
}

/// What becomes of members that a provider's dialect has no word for, and that are no more than a wish.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Unsupported {
    /// They are refused by name.
    Refuse,
    /// They are left out, and named to the caller.
    #[default]
    Drop,
}

/// How a provider wants to be asked.
#[derive(Debug, Clone, Copy)]
pub struct RequestOptions<'a> {
    /// The provider's name of the model.
    pub model: &'a str,
    /// The most tokens of a reply where the caller names none and the dialect wants a number.
    pub max_tokens: u64,
    /// Chat completions: the most tokens are `max_completion_tokens`.
    pub names_completion: bool,
    /// Chat completions: where the model's thoughts stand.
    pub thoughts: ReasoningField,
    /// Chat completions: `user` and `stream_options` are refused. What was used is told unasked.
    pub is_strict: bool,
    /// What becomes of members that the dialect has no word for.
    pub unsupported: Unsupported,
    /// Messages: where the signatures of thoughts are found that come back without them.
    pub signatures: Option<&'a dyn SignatureLookup>,
}

/// A thought with the signature of the provider that had it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignedThought {
    /// What was thought.
    pub text: String,
    /// The provider's proof that it was its own.
    pub signature: String,
}

/// Finds the signatures of thoughts that were given out.
pub trait SignatureLookup: std::fmt::Debug + Sync {
    /// Returns the blocks of which a thought was made, each with its signature.
    fn find(&self, thought: &str) -> Option<Vec<SignedThought>>;
}

/// Where chat completions have what a model thought. Each provider refuses the others' place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReasoningField {
    /// In `reasoning_content`.
    ReasoningContent,
    /// In `reasoning`.
    Reasoning,
    /// In parts of the content.
    Parts,
}

/// A request in another dialect.
#[derive(Debug)]
pub struct Said {
    /// The body.
    pub body: Vec<u8>,
    /// Hints of the request that the other dialect has no word for.
    pub left_out: Vec<Cow<'static, str>>,
}

/// Says a request in another dialect.
///
/// # Errors
/// Where some of it cannot be said there.
pub fn request(
    from: Front,
    to: Format,
    body: &str,
    options: &RequestOptions<'_>,
) -> Result<Said, Inexpressible> {
    let mut left_out = LeftOut::of(options.unsupported);
    let mut ask = match from {
        Front::Chat => chat::read_ask(body, &mut left_out)?,
        Front::Messages => messages::read_ask(body, &mut left_out)?,
        Front::Responses => responses::read_ask(body, &mut left_out)?,
    };
    match ask.turns.last() {
        None if from == Front::Responses => return wrong("input", "has to have an item"),
        None => return wrong("messages", "has to have a message"),
        Some(last) if last.role == Role::Assistant => {
            return wrong(
                &last.at,
                "is the assistant's and the last, which one dialect goes on with and the other answers",
            );
        }
        Some(_) => {}
    }
    if to != Format::Messages {
        ask.drop_cache_marks(&mut left_out);
    }
    let body = match to {
        Format::Chat => chat::write_ask(&ask, options, &mut left_out)?,
        Format::Messages => messages::write_ask(&ask, options, &mut left_out)?,
        Format::Gemini => gemini::write_ask(&ask, &mut left_out)?,
    };
    Ok(Said {
        body,
        left_out: left_out.into_iter().collect(),
    })
}

/// What a reply is given that its provider may not have given it.
#[derive(Debug, Clone, Copy)]
pub struct Stamp<'a> {
    /// When, in seconds since 1970.
    pub created: u64,
    /// The id of a reply that has none of its own.
    pub id: &'a str,
    /// The request's body: a response repeats some of it.
    pub asked: &'a str,
}

/// A whole reply in another dialect.
#[derive(Debug)]
pub struct Told {
    /// The body.
    pub body: Vec<u8>,
    /// What was used.
    pub tokens: Tokens,
    /// What of it the other dialect has no word for.
    pub left_out: Vec<Cow<'static, str>>,
    /// Its thoughts with their signatures.
    pub signed: Vec<SignedThought>,
}

/// Returns what a whole reply of this form says it used, whatever else is wrong with it.
#[must_use]
pub fn usage_of(from: Format, text: &str) -> Tokens {
    let own = json::members(text);
    let read = |name: &str| json::member(&own, name);
    match from {
        Format::Chat => read("usage").map(|raw| Tokens::read(Dialect::OpenAi, raw)),
        Format::Messages => read("usage").map(|raw| Tokens::read(Dialect::Anthropic, raw)),
        Format::Gemini => read("usageMetadata").map(gemini::usage),
    }
    .unwrap_or_default()
}

/// Says a whole reply in another dialect; `None` where it is no reply, or says what the
/// other dialect cannot say.
#[must_use]
pub fn reply(from: Format, to: Front, text: &str, stamp: Stamp<'_>) -> Option<Told> {
    let mut reply = match from {
        Format::Chat => chat::read_reply(text, (stamp.id, stamp.created))?,
        Format::Messages => messages::read_reply(text)?,
        Format::Gemini => gemini::read_reply(text, stamp.id)?,
    };
    if reply.id.is_empty() {
        reply.id = stamp.id.to_owned().into();
    }
    let signed = reply.parts.iter().filter_map(|part| match part {
        ask::Part::Thinking {
            text,
            signature: Some(signature),
        } if from == Format::Messages && !signature.is_empty() => Some(SignedThought {
            text: text.to_string(),
            signature: signature.to_string(),
        }),
        _ => None,
    });
    let signed = signed.collect();
    let body = match to {
        Front::Chat => chat::write_reply(&reply, stamp.created)?,
        Front::Messages => messages::write_reply(&reply)?,
        Front::Responses => responses::write_reply(&reply, stamp)?,
    };
    Some(Told {
        body,
        tokens: reply.tokens,
        left_out: reply.left_out.into_iter().collect(),
        signed,
    })
}
