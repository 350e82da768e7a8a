//! The endpoints of model APIs, and what can be known of a request to each.

use super::{anthropic, body::Body, json, openai, responses};

/// Whose words are spoken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Dialect {
    /// OpenAI's, and of all who speak like it.
    OpenAi,
    /// Anthropic's.
    Anthropic,
}

/// What is asked of a model.
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

    /// Whether its replies are passed on as they are, whatever they are made of.
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

    /// Whether its replies may be something else than JSON: sound, or a text with times.
    #[must_use]
    pub fn replies_in_any_kind(self) -> bool {
        matches!(
            self,
            Self::Speech | Self::Transcriptions | Self::AudioTranslations
        )
    }

    /// Whether its requests may be forms, with files in them.
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

    /// Whose words it speaks.
    #[must_use]
    pub fn dialect(self) -> Dialect {
        match self {
            Self::Messages | Self::CountTokens => Dialect::Anthropic,
            _ => Dialect::OpenAi,
        }
    }

    /// Whether its replies can be streamed.
    #[must_use]
    pub fn streams(self) -> bool {
        matches!(self, Self::Chat | Self::Responses | Self::Messages)
    }

    /// The members of a request that the gate reads or writes.
    #[must_use]
    pub fn known(self) -> &'static [&'static str] {
        match self {
            Self::Chat => openai::CHAT,
            Self::Responses => responses::KNOWN,
            Self::Embeddings => &["model", "input"],
            Self::Messages | Self::CountTokens => anthropic::KNOWN,
            _ => &["model", "stream", "stream_format", "prompt"],
        }
    }

    /// The most tokens that a request lets the model write.
    #[must_use]
    pub fn max_tokens(self, body: &Body) -> Option<u64> {
        let names: &[&str] = match self {
            Self::Chat => &["max_tokens", "max_completion_tokens"],
            Self::Responses => &["max_output_tokens"],
            Self::Messages => &["max_tokens"],
            _ => &[],
        };
        names.iter().filter_map(|name| body.number(name)).max()
    }

    /// The names of the tools that a request offers the model; one that has no name counts by its type.
    #[must_use]
    pub fn tools_offered(self, body: &Body) -> Vec<String> {
        let mut out = Vec::new();
        for list in ["tools", "functions"] {
            for tool in json::elements(body.get(list).unwrap_or_default()) {
                let members = json::members(tool);
                let inner = json::members(json::member(&members, "function").unwrap_or_default());
                let name = json::member(&inner, "name")
                    .or_else(|| json::member(&members, "name"))
                    .or_else(|| json::member(&members, "type"));
                out.extend(name.and_then(json::text).map(std::borrow::Cow::into_owned));
            }
        }
        out
    }

    /// Whether a request shows the model an image.
    #[must_use]
    pub fn has_images(self, body: &Body) -> bool {
        if matches!(self, Self::ImageEdits | Self::ImageVariations) {
            return true;
        }
        let text = body.as_str();
        if !text.contains("image") && !text.contains("\\u") {
            return false;
        }
        let turns = match self {
            Self::Chat | Self::Messages | Self::CountTokens => "messages",
            Self::Responses => "input",
            _ => return false,
        };
        let turns = json::elements(body.get(turns).unwrap_or_default());
        turns
            .into_iter()
            .any(|turn| is_image(turn, PARTS_DEPTH_MAX))
    }
}

/// How deep parts of a message are looked for: a message, its parts, a tool's result, its parts.
const PARTS_DEPTH_MAX: usize = 4;

/// Whether a part of a message is an image, or has one among its own parts.
fn is_image(part: &str, depth: usize) -> bool {
    let members = json::members(part);
    let kind = json::member(&members, "type").and_then(json::text);
    if matches!(kind.as_deref(), Some("image" | "image_url" | "input_image")) {
        return true;
    }
    ["content", "output"].into_iter().any(|name| {
        let inner = json::elements(json::member(&members, name).unwrap_or_default());
        depth > 0 && inner.into_iter().any(|part| is_image(part, depth - 1))
    })
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
        let body = Body::read(text.as_bytes(), Endpoint::Chat.known()).unwrap();
        assert_eq!(Endpoint::Chat.max_tokens(&body), Some(9));
        assert_eq!(
            Endpoint::Chat.tools_offered(&body),
            ["get_weather", "search", "web_search"]
        );
        assert!(Endpoint::Chat.has_images(&body));
        let plain = r#"{"messages":[{"role":"user","content":[{"type":"text","text":"type: image"}]}],"tools":"no"}"#;
        let body = Body::read(plain.as_bytes(), Endpoint::Messages.known()).unwrap();
        assert!(!Endpoint::Messages.has_images(&body));
        assert!(Endpoint::Messages.tools_offered(&body).is_empty());
    }
}
