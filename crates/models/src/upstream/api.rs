//! Whose API a provider speaks: where a request goes, how a key is shown, what has to be translated.

use dialects::Endpoint;
use dialects::translate::{
    CallerForm, ProviderForm, ReasoningField, RequestOptions, UnsupportedMembers,
};
use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderName, HeaderValue};

use super::publisher::{Asked, Publisher};
use crate::key::Key;
use crate::provider::Offer;
use crate::request::Elsewhere;

/// The version of Anthropic's API that is named where the caller names none.
const ANTHROPIC_VERSION: HeaderValue = HeaderValue::from_static("2023-06-01");

/// Where in a cloud a provider is: what stands in its URLs and is the same for all its models.
#[derive(Debug, Clone, Default)]
pub struct Site {
    /// The version of Azure's API.
    pub api_version: String,
    /// The region of Bedrock that requests are signed for, the location of Vertex.
    pub region: String,
    /// The project of Vertex.
    pub project: String,
}

/// How near an API comes to OpenAI's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OpenAiVariant {
    /// It is not known: it is asked as OpenAI is.
    Any,
    /// Groq's: thoughts stand in `reasoning`.
    Groq,
    /// One that has chat completions and no responses.
    Chat,
    /// Cerebras': the same, and thoughts stand in `reasoning`.
    Cerebras,
    /// Mistral's: the same, thoughts are parts of the content, and members that it does not know are refused, `stream_options`
    /// among them.
    Mistral,
}

/// Whose API a provider speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Api {
    /// OpenAI's own.
    OpenAi,
    /// One like OpenAI's, of somebody else.
    Compatible(OpenAiVariant),
    /// Anthropic's.
    Anthropic,
    /// Google's Gemini.
    Gemini,
    /// OpenAI's models as Azure serves them: the model is the name of a deployment.
    Azure,
    /// Anthropic's models as Amazon Bedrock serves them.
    Bedrock,
    /// Models as Google Vertex serves them; whose they are says the name of each ([`Api::of`]).
    Vertex(Publisher),
}

impl Api {
    /// The API of one model of a provider.
    pub(super) fn of(self, model: &str) -> Self {
        match self {
            Self::Vertex(_) => Self::Vertex(Publisher::of(model).0),
            one => one,
        }
    }

    /// Whether it has the endpoint itself.
    pub(super) fn has(self, endpoint: Endpoint) -> bool {
        match self {
            // OpenAI itself ranks nothing.
            Self::OpenAi if endpoint == Endpoint::Rerank => false,
            Self::Compatible(
                OpenAiVariant::Chat | OpenAiVariant::Cerebras | OpenAiVariant::Mistral,
            ) if endpoint == Endpoint::Responses => false,
            Self::OpenAi | Self::Compatible(_) => {
                !matches!(endpoint, Endpoint::Messages | Endpoint::CountTokens)
            }
            Self::Anthropic | Self::Vertex(Publisher::Anthropic) => {
                matches!(endpoint, Endpoint::Messages | Endpoint::CountTokens)
            }
            Self::Bedrock => endpoint == Endpoint::Messages,
            Self::Gemini | Self::Vertex(Publisher::Google | Publisher::Embedder) => false,
            Self::Azure => {
                let is_passed = endpoint.is_passed_through() && endpoint != Endpoint::Rerank;
                is_passed || matches!(endpoint, Endpoint::Chat | Endpoint::Embeddings)
            }
        }
    }

    /// The form in which it is asked what it has no endpoint for.
    pub(super) fn format(self) -> ProviderForm {
        match self {
            Self::OpenAi | Self::Compatible(_) | Self::Azure => ProviderForm::Chat,
            Self::Anthropic | Self::Bedrock | Self::Vertex(Publisher::Anthropic) => {
                ProviderForm::Messages
            }
            Self::Gemini | Self::Vertex(Publisher::Google | Publisher::Embedder) => {
                ProviderForm::Gemini
            }
        }
    }

    /// Whether it serves an endpoint, itself or translated.
    pub(super) fn serves(self, endpoint: Endpoint) -> bool {
        match self {
            Self::Vertex(Publisher::Embedder) => endpoint == Endpoint::Embeddings,
            _ => self.has(endpoint) || CallerForm::of(endpoint).is_some(),
        }
    }

    /// The endpoints that it serves.
    pub(super) fn endpoints(self) -> Vec<Endpoint> {
        let all = Endpoint::ALL.into_iter();
        all.filter(|endpoint| self.serves(*endpoint)).collect()
    }

    /// What it has to offer for each of its models.
    pub(super) fn offer(self) -> Offer {
        let endpoints = self.endpoints();
        let translated = endpoints.iter().copied();
        Offer {
            translated: translated.filter(|own| !self.has(*own)).collect(),
            endpoints,
            ..Offer::default()
        }
    }

    /// A model's own name, where it says more than that.
    pub(super) fn name(self, model: &str) -> &str {
        match self {
            Self::Vertex(_) => Publisher::of(model).1,
            _ => model,
        }
    }

    /// What else a model can be called at this provider.
    pub(super) fn other_names(self, model: &str) -> Vec<String> {
        match self {
            Self::Vertex(_) => Publisher::other_names(model),
            _ => Vec::new(),
        }
    }

    /// Where requests to an endpoint go, behind the base; `None` where that depends on the request.
    pub(super) fn path(self, endpoint: Endpoint) -> Option<String> {
        let asked = match (self, self.format()) {
            (Self::Azure | Self::Bedrock | Self::Vertex(_), _) | (_, ProviderForm::Gemini) => {
                return None;
            }
            _ if self.has(endpoint) => endpoint,
            (_, ProviderForm::Chat) => Endpoint::Chat,
            (_, ProviderForm::Messages) => Endpoint::Messages,
        };
        Some(format!("/{}", asked.path()))
    }

    /// Where a request goes, behind the base, where that depends on it.
    pub(super) fn path_of(
        self,
        endpoint: Endpoint,
        model: &str,
        asked: Asked,
        site: &Site,
    ) -> String {
        let (streams, escaped) = (asked.streams, escape(model));
        match self {
            Self::Gemini if streams => format!("/models/{escaped}:streamGenerateContent?alt=sse"),
            Self::Gemini => format!("/models/{escaped}:generateContent"),
            Self::Bedrock if streams => format!("/model/{escaped}/invoke-with-response-stream"),
            Self::Bedrock => format!("/model/{escaped}/invoke"),
            Self::Vertex(publisher) => publisher.path_of(endpoint, model, asked, site),
            Self::OpenAi | Self::Compatible(_) | Self::Anthropic | Self::Azure => {
                let asked = if self.has(endpoint) {
                    endpoint
                } else {
                    Endpoint::Chat
                };
                format!(
                    "/openai/deployments/{escaped}/{}?api-version={}",
                    asked.path(),
                    escape(&site.api_version)
                )
            }
        }
    }

    /// How it wants to be asked.
    pub(super) fn request_options(
        self,
        model: &str,
        (max_tokens, unsupported): (u64, UnsupportedMembers),
    ) -> RequestOptions<'_> {
        RequestOptions {
            model,
            max_tokens,
            unsupported,
            signatures: None,
            names_completion: matches!(self, Self::OpenAi | Self::Azure),
            thoughts: match self {
                Self::Compatible(OpenAiVariant::Groq | OpenAiVariant::Cerebras) => {
                    ReasoningField::Reasoning
                }
                Self::Compatible(OpenAiVariant::Mistral) => ReasoningField::Parts,
                _ => ReasoningField::ReasoningContent,
            },
            is_strict: self == Self::Compatible(OpenAiVariant::Mistral),
        }
    }

    /// Whether a stream of chat completions has to be asked for what was used, and may be.
    pub(super) fn is_asked_for_usage(self) -> bool {
        self != Self::Compatible(OpenAiVariant::Mistral)
    }

    /// How Anthropic's messages are asked for in a cloud, where it is one.
    pub(super) fn elsewhere(self, endpoint: Endpoint, headers: &HeaderMap) -> Option<Elsewhere> {
        match self {
            Self::Bedrock => Some(Elsewhere {
                version: "bedrock-2023-05-31".to_owned(),
                model_in_url: true,
                stream_in_url: true,
                betas_in_body: true,
            }),
            Self::Vertex(Publisher::Anthropic) => Some(Elsewhere {
                version: vertex_version(headers),
                model_in_url: endpoint != Endpoint::CountTokens,
                stream_in_url: false,
                betas_in_body: false,
            }),
            _ => None,
        }
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
            Self::OpenAi | Self::Compatible(_) | Self::Bedrock | Self::Vertex(_) => {
                (AUTHORIZATION, key.bearer())
            }
            Self::Anthropic => (HeaderName::from_static("x-api-key"), key.plain()),
            Self::Gemini => (HeaderName::from_static("x-goog-api-key"), key.plain()),
            Self::Azure => (HeaderName::from_static("api-key"), key.plain()),
        };
        if let Some(value) = value {
            headers.insert(name, value);
        }
    }
}

/// The version for Vertex: the caller's own where that is newer than what Vertex calls its first one, as Anthropic's library
/// does it.
fn vertex_version(headers: &HeaderMap) -> String {
    let asked = headers.get("anthropic-version");
    let asked = asked.and_then(|value| value.to_str().ok());
    let newer = asked.filter(|asked| *asked != ANTHROPIC_VERSION);
    newer.unwrap_or("vertex-2023-10-16").to_owned()
}

/// A name as one part of a path: what could end the part is escaped.
pub(super) fn escape(name: &str) -> String {
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
    use dialects::translate::embeddings::EmbeddingMethod;

    #[test]
    fn a_model_is_one_part_of_a_path_whatever_it_is_called() {
        let asked = |streams| Asked {
            streams,
            method: EmbeddingMethod::Predict,
        };
        let gemini =
            |model| Api::Gemini.path_of(Endpoint::Chat, model, asked(false), &Site::default());
        assert_eq!(gemini("g-2.5"), "/models/g-2.5:generateContent");
        assert_eq!(
            gemini("../x?key=1#y"),
            "/models/..%2Fx%3Fkey%3D1%23y:generateContent"
        );
        assert_eq!(gemini(".."), "/models/%2E%2E:generateContent");
        let azure = |endpoint, model, version: &str| {
            let site = Site {
                api_version: version.to_owned(),
                ..Site::default()
            };
            Api::Azure.path_of(endpoint, model, asked(true), &site)
        };
        assert_eq!(
            azure(Endpoint::Messages, "my gpt", "2024-10-21"),
            "/openai/deployments/my%20gpt/chat/completions?api-version=2024-10-21"
        );
        assert_eq!(
            azure(Endpoint::Embeddings, "e", "preview"),
            "/openai/deployments/e/embeddings?api-version=preview"
        );
        let bedrock = |streams| {
            Api::Bedrock.path_of(Endpoint::Chat, "a.c-v1:0", asked(streams), &Site::default())
        };
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
