//! One dialect in the words of another: requests on their way to a provider, replies on their way back.
//!
//! A body is read into a neutral form ([`ask`]), every member of it, and written again. Nothing is dropped in silence:
//! a member without a counterpart is refused with its place ([`Inexpressible`]), and hints that change no meaning are
//! named in the result ([`TranslatedRequest`]). A provider's reply is an open world: an unknown reason counts as the
//! nearest one, an unknown part is left out, and both are named. Only a body that is not a reply at all is unreadable.

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

use ask::{FileSource, SpeakerRole};

use super::dialect::Dialect;
use super::endpoint::Endpoint;
use super::json;
use super::usage::Tokens;
pub use fields::Inexpressible;
use fields::{LeftOut, wrong};
pub use stream::Translator;

/// The form in which callers ask what can be translated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallerForm {
    /// OpenAI's chat completions.
    Chat,
    /// Anthropic's messages.
    Messages,
    /// OpenAI's responses.
    Responses,
}

impl CallerForm {
    /// Returns the form of an endpoint, if its requests can be translated.
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
pub enum ProviderForm {
    /// OpenAI's chat completions.
    Chat,
    /// Anthropic's messages.
    Messages,
    /// Gemini's `generateContent`.
    Gemini,
}

/// Treatment of optional members without a counterpart in a provider's dialect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum UnsupportedMembers {
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
    /// The most tokens of a reply if the caller names none and the dialect wants a number.
    pub max_tokens: u64,
    /// Chat completions: the most tokens are `max_completion_tokens`.
    pub names_completion: bool,
    /// Chat completions: the member with the model's thoughts.
    pub thoughts: ReasoningField,
    /// Chat completions: `user` and `stream_options` are refused. The usage is reported without a request.
    pub is_strict: bool,
    /// Treatment of members without a counterpart.
    pub unsupported: UnsupportedMembers,
    /// Messages: lookup of the signatures of thoughts that come back without them.
    pub signatures: Option<&'a dyn SignatureLookup>,
}

/// A thought with the signature of the provider that had it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignedThought {
    /// Text of the thought.
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
pub struct TranslatedRequest {
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
    from: CallerForm,
    to: ProviderForm,
    body: &str,
    options: &RequestOptions<'_>,
) -> Result<TranslatedRequest, Inexpressible> {
    let mut left_out = LeftOut::of(options.unsupported);
    let mut ask = match from {
        CallerForm::Chat => chat::read_ask(body, &mut left_out)?,
        CallerForm::Messages => messages::read_ask(body, &mut left_out)?,
        CallerForm::Responses => responses::read_ask(body, &mut left_out)?,
    };
    match ask.turns.last() {
        None if from == CallerForm::Responses => return wrong("input", "has to have an item"),
        None => return wrong("messages", "has to have a message"),
        Some(last) if last.role == SpeakerRole::Assistant => {
            return wrong(
                &last.at,
                "is the assistant's and the last, which one dialect goes on with and the other answers",
            );
        }
        Some(_) => {}
    }
    if to != ProviderForm::Messages {
        ask.drop_cache_marks(&mut left_out);
    }
    let body = match to {
        ProviderForm::Chat => chat::write_ask(&ask, options, &mut left_out)?,
        ProviderForm::Messages => messages::write_ask(&ask, options, &mut left_out)?,
        ProviderForm::Gemini => gemini::write_ask(&ask, &mut left_out)?,
    };
    Ok(TranslatedRequest {
        body,
        left_out: left_out.into_iter().collect(),
    })
}

/// Members that a reply gets if its provider did not set them.
#[derive(Debug, Clone, Copy)]
pub struct ReplyStamp<'a> {
    /// When, in seconds since 1970.
    pub created: u64,
    /// The id of a reply that has none of its own.
    pub id: &'a str,
    /// The request's body: a response repeats some of it.
    pub asked: &'a str,
}

/// A whole reply in another dialect.
#[derive(Debug)]
pub struct TranslatedReply {
    /// The body.
    pub body: Vec<u8>,
    /// Usage of tokens.
    pub tokens: Tokens,
    /// What of it the other dialect has no word for.
    pub left_out: Vec<Cow<'static, str>>,
    /// Its thoughts with their signatures.
    pub signed: Vec<SignedThought>,
}

/// Returns the usage in a whole reply of this form, even if other parts are faulty.
#[must_use]
pub fn usage_of(from: ProviderForm, text: &str) -> Tokens {
    let own = json::members(text);
    let read = |name: &str| json::member(&own, name);
    match from {
        ProviderForm::Chat => read("usage").map(|raw| Tokens::read(Dialect::OpenAi, raw)),
        ProviderForm::Messages => read("usage").map(|raw| Tokens::read(Dialect::Anthropic, raw)),
        ProviderForm::Gemini => read("usageMetadata").map(gemini::usage),
    }
    .unwrap_or_default()
}

/// Translates a whole reply to another dialect; `None` if it is not a reply, or cannot be translated.
#[must_use]
pub fn reply(
    from: ProviderForm,
    to: CallerForm,
    text: &str,
    stamp: ReplyStamp<'_>,
) -> Option<TranslatedReply> {
    let mut reply = match from {
        ProviderForm::Chat => chat::read_reply(text, (stamp.id, stamp.created))?,
        ProviderForm::Messages => messages::read_reply(text)?,
        ProviderForm::Gemini => gemini::read_reply(text, stamp.id)?,
    };
    if reply.id.is_empty() {
        reply.id = stamp.id.to_owned().into();
    }
    let signed = reply.parts.iter().filter_map(|part| match part {
        ask::ContentPart::Thinking {
            text,
            signature: Some(signature),
        } if from == ProviderForm::Messages && !signature.is_empty() => Some(SignedThought {
            text: text.to_string(),
            signature: signature.to_string(),
        }),
        _ => None,
    });
    let signed = signed.collect();
    let body = match to {
        CallerForm::Chat => chat::write_reply(&reply, stamp.created)?,
        CallerForm::Messages => messages::write_reply(&reply)?,
        CallerForm::Responses => responses::write_reply(&reply, stamp)?,
    };
    Some(TranslatedReply {
        body,
        tokens: reply.tokens,
        left_out: reply.left_out.into_iter().collect(),
        signed,
    })
}
