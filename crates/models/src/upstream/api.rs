//! Whose API a provider speaks: where a request goes, how a key is shown, what has to be translated.

use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderName, HeaderValue};
use wire::model::Endpoint;
use wire::model::translate::{Format, Front, Manner};

use crate::key::Key;

/// The version of Anthropic's API that is named where the caller names none.
const ANTHROPIC_VERSION: HeaderValue = HeaderValue::from_static("2023-06-01");

/// Whose API a provider speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Api {
    /// OpenAI's own.
    OpenAi,
    /// One like OpenAI's, of somebody else.
    Compatible,
    /// Anthropic's.
    Anthropic,
    /// Google's Gemini.
    Gemini,
    /// OpenAI's models as Azure serves them: the model is the name of a deployment.
    Azure,
    /// Anthropic's models as Amazon Bedrock serves them.
    Bedrock,
}

impl Api {
    /// Whether it has the endpoint itself.
    pub(super) fn has(self, endpoint: Endpoint) -> bool {
        match self {
            // OpenAI itself ranks nothing.
            Self::OpenAi if endpoint == Endpoint::Rerank => false,
            Self::OpenAi | Self::Compatible => {
                !matches!(endpoint, Endpoint::Messages | Endpoint::CountTokens)
            }
            Self::Anthropic => matches!(endpoint, Endpoint::Messages | Endpoint::CountTokens),
            Self::Bedrock => endpoint == Endpoint::Messages,
            Self::Gemini => false,
            Self::Azure => {
                let is_passed = endpoint.is_passed_through() && endpoint != Endpoint::Rerank;
                is_passed || matches!(endpoint, Endpoint::Chat | Endpoint::Embeddings)
            }
        }
    }

    /// The form in which it is asked what it has no endpoint for.
    pub(super) fn format(self) -> Format {
        match self {
            Self::OpenAi | Self::Compatible | Self::Azure => Format::Chat,
            Self::Anthropic | Self::Bedrock => Format::Messages,
            Self::Gemini => Format::Gemini,
        }
    }

    /// The endpoints that it serves, whether itself or translated.
    pub(super) fn endpoints(self) -> Vec<Endpoint> {
        let serves = |endpoint: &Endpoint| self.has(*endpoint) || Front::of(*endpoint).is_some();
        Endpoint::ALL.into_iter().filter(serves).collect()
    }

    /// Where requests to an endpoint go, behind the base; `None` where that depends on the request.
    pub(super) fn path(self, endpoint: Endpoint) -> Option<String> {
        let asked = match (self, self.format()) {
            (Self::Azure | Self::Bedrock, _) | (_, Format::Gemini) => return None,
            _ if self.has(endpoint) => endpoint,
            (_, Format::Chat) => Endpoint::Chat,
            (_, Format::Messages) => Endpoint::Messages,
        };
        Some(format!("/{}", asked.path()))
    }

    /// Where a request goes, behind the base, where that depends on it.
    pub(super) fn path_of(
        self,
        endpoint: Endpoint,
        model: &str,
        streams: bool,
        version: &str,
    ) -> String {
        let model = escape(model);
        let version = escape(version);
        match self {
            Self::Gemini if streams => format!("/models/{model}:streamGenerateContent?alt=sse"),
            Self::Gemini => format!("/models/{model}:generateContent"),
            Self::Bedrock if streams => format!("/model/{model}/invoke-with-response-stream"),
            Self::Bedrock => format!("/model/{model}/invoke"),
            Self::OpenAi | Self::Compatible | Self::Anthropic | Self::Azure => {
                let asked = if self.has(endpoint) {
                    endpoint
                } else {
                    Endpoint::Chat
                };
                format!(
                    "/openai/deployments/{model}/{}?api-version={version}",
                    asked.path()
                )
            }
        }
    }

    /// How it wants to be asked.
    pub(super) fn manner(self, model: &str, max_tokens: u64) -> Manner<'_> {
        Manner {
            model,
            max_tokens,
            names_completion: matches!(self, Self::OpenAi | Self::Azure),
        }
    }

    /// The version of Anthropic's API that stands in the body, where the model and whether it streams stand in the URL.
    pub(super) fn version_in_body(self) -> Option<&'static str> {
        (self == Self::Bedrock).then_some("bedrock-2023-05-31")
    }

    /// The service that signatures are for, where requests can be signed.
    pub(super) fn signed_service(self) -> Option<&'static str> {
        (self == Self::Bedrock).then_some("bedrock")
    }

    /// Shows it a key that stands in the head, and what else it wants to see in front of every request.
    pub(super) fn sign(self, headers: &mut HeaderMap, key: Option<&Key>) {
        if self == Self::Anthropic {
            let version = HeaderName::from_static("anthropic-version");
            headers.entry(version).or_insert(ANTHROPIC_VERSION);
        }
        let Some(key) = key else { return };
        let (name, value) = match self {
            Self::OpenAi | Self::Compatible | Self::Bedrock => (AUTHORIZATION, key.bearer()),
            Self::Anthropic => (HeaderName::from_static("x-api-key"), key.plain()),
            Self::Gemini => (HeaderName::from_static("x-goog-api-key"), key.plain()),
            Self::Azure => (HeaderName::from_static("api-key"), key.plain()),
        };
        if let Some(value) = value {
            headers.insert(name, value);
        }
    }
}

/// A name as one part of a path: what could end the part is escaped.
fn escape(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    for byte in name.bytes() {
        escape_byte(byte, &mut out);
    }
    // A part of dots alone would lead elsewhere.
    if out.bytes().all(|byte| byte == b'.') {
        out = out.replace('.', "%2E");
    }
    out
}

/// A byte of a path, escaped unless it can mean nothing else.
pub(super) fn escape_byte(byte: u8, out: &mut String) {
    if byte.is_ascii_alphanumeric() || b"._-~".contains(&byte) {
        out.push(char::from(byte));
    } else {
        out.push_str(&format!("%{byte:02X}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_is_one_part_of_a_path_whatever_it_is_called() {
        let gemini = |model| Api::Gemini.path_of(Endpoint::Chat, model, false, "");
        assert_eq!(gemini("g-2.5"), "/models/g-2.5:generateContent");
        assert_eq!(
            gemini("../x?key=1#y"),
            "/models/..%2Fx%3Fkey%3D1%23y:generateContent"
        );
        assert_eq!(gemini(".."), "/models/%2E%2E:generateContent");
        assert_eq!(
            Api::Azure.path_of(Endpoint::Messages, "my gpt", true, "2024-10-21"),
            "/openai/deployments/my%20gpt/chat/completions?api-version=2024-10-21"
        );
        assert_eq!(
            Api::Azure.path_of(Endpoint::Embeddings, "e", false, "preview"),
            "/openai/deployments/e/embeddings?api-version=preview"
        );
        let bedrock = |streams| Api::Bedrock.path_of(Endpoint::Chat, "a.c-v1:0", streams, "");
        assert_eq!(bedrock(false), "/model/a.c-v1%3A0/invoke");
        assert_eq!(
            bedrock(true),
            "/model/a.c-v1%3A0/invoke-with-response-stream"
        );
        assert_eq!(
            Api::OpenAi.path(Endpoint::Messages).as_deref(),
            Some("/chat/completions")
        );
        assert_eq!(
            Api::Anthropic.path(Endpoint::CountTokens).as_deref(),
            Some("/messages/count_tokens")
        );
        assert_eq!(Api::Gemini.path(Endpoint::Chat), None);
    }
}
