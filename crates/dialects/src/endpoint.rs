//! The endpoints of model APIs, and what can be known of a request to each.

use super::dialect::Dialect;
use super::{body::Body, json, request_members};

/// The members by which some server or other takes the most that a model may write. llama.cpp goes by `n_predict`
/// before all others, and LiteLLM passes on its provider's name.
pub(super) const MAXIMA: &[&str] = &[
    "max_tokens",
    "max_completion_tokens",
    "max_output_tokens",
    "max_new_tokens",
    "n_predict",
    "num_predict",
    "min_tokens",
    "max_gen_len",
    "max_length",
    "max_tokens_to_sample",
    "max_decode_tokens",
    "thinking_budget",
];

/// Kind of request to a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Endpoint {
    /// `/v1/chat/completions`.
    Chat,
    /// `/v1/responses`.
    Responses,
    /// `/v1/embeddings`.
    Embeddings,
    /// `/v1/messages`.
    Messages,
    /// `/v1/messages/count_tokens`.
    CountTokens,
    /// `/v1/rerank`.
    Rerank,
    /// `/v1/images/generations`.
    Images,
    /// `/v1/images/edits`.
    ImageEdits,
    /// `/v1/images/variations`.
    ImageVariations,
    /// `/v1/audio/speech`.
    Speech,
    /// `/v1/audio/transcriptions`.
    Transcriptions,
    /// `/v1/audio/translations`.
    AudioTranslations,
}

impl Endpoint {
    /// All.
    pub const ALL: [Self; 12] = [
        Self::Chat,
        Self::Responses,
        Self::Embeddings,
        Self::Messages,
        Self::CountTokens,
        Self::Rerank,
        Self::Images,
        Self::ImageEdits,
        Self::ImageVariations,
        Self::Speech,
        Self::Transcriptions,
        Self::AudioTranslations,
    ];

    /// Returns whether its replies are passed on unchanged, in any format.
    #[must_use]
    pub fn is_passed_through(self) -> bool {
        match self {
            Self::Rerank
            | Self::Images
            | Self::ImageEdits
            | Self::ImageVariations
            | Self::Speech
            | Self::Transcriptions
            | Self::AudioTranslations => true,
            Self::Chat
            | Self::Responses
            | Self::Embeddings
            | Self::Messages
            | Self::CountTokens => false,
        }
    }

    /// Returns whether its replies may be something else than JSON: sound, or a text with times.
    #[must_use]
    pub fn replies_in_any_kind(self) -> bool {
        matches!(
            self,
            Self::Speech | Self::Transcriptions | Self::AudioTranslations
        )
    }

    /// Returns whether its requests may be forms, with files in them.
    #[must_use]
    pub fn takes_form(self) -> bool {
        matches!(
            self,
            Self::ImageEdits
                | Self::ImageVariations
                | Self::Transcriptions
                | Self::AudioTranslations
        )
    }

    /// Its path behind the API's base, without a slash in front. Rules and records call it by this name.
    #[must_use]
    pub fn path(self) -> &'static str {
        match self {
            Self::Chat => "chat/completions",
            Self::Responses => "responses",
            Self::Embeddings => "embeddings",
            Self::Messages => "messages",
            Self::CountTokens => "messages/count_tokens",
            Self::Rerank => "rerank",
            Self::Images => "images/generations",
            Self::ImageEdits => "images/edits",
            Self::ImageVariations => "images/variations",
            Self::Speech => "audio/speech",
            Self::Transcriptions => "audio/transcriptions",
            Self::AudioTranslations => "audio/translations",
        }
    }

    /// Returns its dialect.
    #[must_use]
    pub fn dialect(self) -> Dialect {
        match self {
            Self::Messages | Self::CountTokens => Dialect::Anthropic,
            _ => Dialect::OpenAi,
        }
    }

    /// Returns whether its replies can be streamed.
    #[must_use]
    pub fn streams(self) -> bool {
        matches!(self, Self::Chat | Self::Responses | Self::Messages)
    }

    /// Returns the members of a request that the gate reads or writes.
    #[must_use]
    pub fn known_members(self) -> &'static [&'static str] {
        match self {
            Self::Chat => request_members::CHAT,
            Self::Responses => request_members::RESPONSES,
            Self::Embeddings => &["model", "input"],
            Self::Messages | Self::CountTokens => request_members::MESSAGES,
            _ => &["model", "stream", "stream_format", "prompt"],
        }
    }

    /// Returns the most tokens that a request lets the model write.
    #[must_use]
    pub fn max_tokens(self, body: &Body) -> Option<u64> {
        let names = self.maxima().iter();
        let named = names.filter_map(|name| body.number(name));
        let within = self.maxima_within().iter();
        let within = within.flat_map(|(member, name)| request_members::within(body, member, name));
        named.chain(within.filter_map(json::number)).max()
    }

    /// Returns the members within others that say so.
    fn maxima_within(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::Chat | Self::Responses | Self::Messages => &[
                ("options", "num_predict"),
                ("thinking", "budget_tokens"),
                ("reasoning", "max_tokens"),
            ],
            _ => &[],
        }
    }

    /// Returns the members that say so.
    fn maxima(self) -> &'static [&'static str] {
        match self {
            Self::Chat | Self::Responses | Self::Messages => MAXIMA,
            _ => &[],
        }
    }

    /// Returns whether a request names a most that cannot be read here: a provider may read it otherwise.
    #[must_use]
    pub fn has_unread_max(self, body: &Body) -> bool {
        // Some take a most of none for no bound.
        let is_read = |name: &str, number: Option<u64>| match number {
            Some(0) => !name.starts_with("max") && !name.ends_with("predict"),
            other => other.is_some(),
        };
        let is_unread = |name: &&str| body.get(name).is_some() && !is_read(name, body.number(name));
        let within = self.maxima_within().iter();
        let mut within = within.flat_map(|(member, name)| {
            let found = request_members::within(body, member, name).into_iter();
            found.map(move |raw| (*name, raw))
        });
        self.maxima().iter().any(is_unread)
            || within.any(|(name, raw)| raw != "null" && !is_read(name, json::number(raw)))
            || !self.maxima().is_empty() && request_members::has_unknown(body)
    }

    /// Returns how many replies a request asks for; `None` if a provider may read another number.
    #[must_use]
    pub fn replies(self, body: &Body) -> Option<u64> {
        let count = |name: &str| match body.get(name) {
            None => Some(1),
            Some(_) => body.number(name).map(|count| count.max(1)),
        };
        // Of so many the best are given back, and all are paid for.
        Some(count("n")?.max(count("best_of")?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_says_what_it_offers_and_shows() {
        let text = r#"{"max_tokens":5,"max_completion_tokens":9,"messages":[
            {"role":"user","content":"an image"},
            {"role":"tool","content":[{"type":"t\u006fol_result","content":[{"type":"im\u0061ge"}]}]}],
            "tools":[{"type":"function","function":{"name":"get_weather"}},{"name":"search","input_schema":{}},{"type":"web_search"}]}"#;
        let body = Body::read(text.as_bytes(), Endpoint::Chat.known_members()).unwrap();
        assert_eq!(Endpoint::Chat.max_tokens(&body), Some(9));
        assert_eq!(
            Endpoint::Chat.tools_offered(&body).unwrap(),
            ["get_weather", "search", "web_search"]
        );
        assert_eq!(Endpoint::Chat.has_images(&body), Some(true));
        let plain = r#"{"messages":[{"role":"user","content":[{"type":"text","text":"type: image"}]}],"tools":"no"}"#;
        let body = Body::read(plain.as_bytes(), Endpoint::Messages.known_members()).unwrap();
        assert_eq!(Endpoint::Messages.has_images(&body), Some(false));
        assert_eq!(Endpoint::Messages.tools_offered(&body), Some(Vec::new()));
        for (most, unread) in [
            ("7", false),
            ("null", false),
            ("\"7\"", true),
            ("-1", true),
            ("1e30", true),
        ] {
            let text = format!(r#"{{"max_completion_tokens":{most}}}"#);
            let body = Body::read(text.as_bytes(), Endpoint::Chat.known_members()).unwrap();
            assert_eq!(Endpoint::Chat.has_unread_max(&body), unread, "{most}");
        }
        for endpoint in [Endpoint::Chat, Endpoint::Responses, Endpoint::Messages] {
            let read = |text: &str| Body::read(text.as_bytes(), endpoint.known_members());
            for (text, most) in [
                (r#"{"max_tokens":1,"max_gen_len":900}"#, 900),
                (r#"{"max_tokens":1,"min_tokens":900}"#, 900),
                (r#"{"max_tokens":1,"options":{"num_predict":900}}"#, 900),
                (
                    r#"{"max_tokens":1,"thinking":{"type":"enabled","budget_tokens":900}}"#,
                    900,
                ),
            ] {
                let body = read(text).unwrap();
                assert_eq!(endpoint.max_tokens(&body), Some(most), "{text}");
                assert!(!endpoint.has_unread_max(&body), "{text}");
            }
            for text in [
                r#"{"max_tokens":0}"#,
                r#"{"max_tokens":1,"options":{"num_predict":-1}}"#,
                r#"{"max_tokens":1,"invented_tomorrow":9}"#,
            ] {
                assert!(endpoint.has_unread_max(&read(text).unwrap()), "{text}");
            }
            let best = read(r#"{"n":2,"best_of":9}"#).unwrap();
            assert_eq!(endpoint.replies(&best), Some(9));
            let both = read(r#"{"max_tokens":1,"n_predict":900}"#).unwrap();
            assert_eq!(endpoint.max_tokens(&both), Some(900));
            let endless = read(r#"{"max_tokens":1,"n_predict":-1}"#).unwrap();
            assert!(endpoint.has_unread_max(&endless));
            assert!(read(r#"{"maxOutputTokens":9}"#).is_err());
        }
    }
}
