//! Whose models Google Vertex serves: which part of its API a model has, and how its name stands in the URL.

use dialects::translate::embeddings::EmbeddingMethod;
use dialects::{Body, Endpoint};

use super::api::{Site, escape};

/// What of a request stands in its URL.
#[derive(Debug, Clone, Copy)]
pub(super) struct Asked {
    pub streams: bool,
    /// How numbers are made of texts, where such are asked for.
    pub method: EmbeddingMethod,
}

/// Who has made a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Publisher {
    /// Google: Gemini.
    Google,
    /// Anthropic: Claude.
    Anthropic,
    /// Google: models that make numbers of texts. They have another part of the API than Gemini.
    Embedder,
}

impl Publisher {
    const ALL: [Self; 2] = [Self::Google, Self::Anthropic];

    fn word(self) -> &'static str {
        match self {
            Self::Google | Self::Embedder => "google",
            Self::Anthropic => "anthropic",
        }
    }

    /// Google's model of this name. Those that embed images as well are asked in a way of their own.
    fn google(name: &str) -> Self {
        let embeds = name.contains("embedding") && !name.starts_with("multimodal");
        match embeds {
            true => Self::Embedder,
            false => Self::Google,
        }
    }

    /// Whose a model is, and its own name: `anthropic/NAME` and `publishers/anthropic/models/NAME` say it, and so does `claude`
    /// in front of a name alone.
    pub(super) fn of(model: &str) -> (Self, &str) {
        for own in Self::ALL {
            let short = model
                .strip_prefix(own.word())
                .and_then(|rest| rest.strip_prefix('/'));
            let long = model
                .strip_prefix("publishers/")
                .and_then(|rest| rest.strip_prefix(own.word()))
                .and_then(|rest| rest.strip_prefix("/models/"));
            if let Some(name) = short.or(long) {
                return match own {
                    Self::Anthropic => (own, name),
                    Self::Google | Self::Embedder => (Self::google(name), name),
                };
            }
        }
        if model.starts_with("claude") {
            return (Self::Anthropic, model);
        }
        (Self::google(model), model)
    }

    /// What else a model can be called: each of these names is asked for as this one is.
    pub(super) fn other_names(model: &str) -> Vec<String> {
        let (publisher, name) = Self::of(model);
        let whose = publisher.word();
        let all = [
            name.to_owned(),
            format!("{whose}/{name}"),
            format!("publishers/{whose}/models/{name}"),
        ];
        let is_other = |other: &String| other != model && Self::of(other) == (publisher, name);
        all.into_iter().filter(is_other).collect()
    }

    /// The method by which a model makes numbers of the texts of a request, as Google's own library chooses it.
    pub(super) fn method_of(model: &str, body: &Body) -> EmbeddingMethod {
        EmbeddingMethod::of(body, Self::of(model).1.contains("gemini"))
    }

    /// Where a request goes, behind the host. The versions are those that Google's and Anthropic's own libraries ask for: Gemini's
    /// calls of tools have an id in `v1beta1` alone.
    pub(super) fn path_of(
        self,
        endpoint: Endpoint,
        model: &str,
        asked: Asked,
        site: &Site,
    ) -> String {
        // Versions of Claude stand behind an @, which a path may hold as it is.
        let model = escape(Self::of(model).1).replace("%40", "@");
        let (project, location) = (escape(&site.project), escape(&site.region));
        let (version, asked) = match self {
            Self::Embedder => ("v1beta1", format!("{model}:{}", asked.method.word())),
            Self::Google if asked.streams => {
                ("v1beta1", format!("{model}:streamGenerateContent?alt=sse"))
            }
            Self::Google => ("v1beta1", format!("{model}:generateContent")),
            Self::Anthropic if endpoint == Endpoint::CountTokens => {
                ("v1", "count-tokens:rawPredict".to_owned())
            }
            Self::Anthropic if asked.streams => ("v1", format!("{model}:streamRawPredict")),
            Self::Anthropic => ("v1", format!("{model}:rawPredict")),
        };
        let whose = self.word();
        format!(
            "/{version}/projects/{project}/locations/{location}/publishers/{whose}/models/{asked}"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_says_whose_model_it_is() {
        for (model, publisher, name) in [
            ("gemini-2.5-pro", Publisher::Google, "gemini-2.5-pro"),
            ("google/gemini-2.5-pro", Publisher::Google, "gemini-2.5-pro"),
            ("claude-a@1", Publisher::Anthropic, "claude-a@1"),
            ("anthropic/x", Publisher::Anthropic, "x"),
            ("publishers/anthropic/models/x", Publisher::Anthropic, "x"),
            (
                "publishers/google/models/claude",
                Publisher::Google,
                "claude",
            ),
            ("googles/x", Publisher::Google, "googles/x"),
            (
                "google/text-embedding-005",
                Publisher::Embedder,
                "text-embedding-005",
            ),
            (
                "gemini-embedding-001",
                Publisher::Embedder,
                "gemini-embedding-001",
            ),
            (
                "multimodalembedding@001",
                Publisher::Google,
                "multimodalembedding@001",
            ),
        ] {
            assert_eq!(Publisher::of(model), (publisher, name), "{model}");
        }
    }

    #[test]
    fn a_model_has_more_names_than_one() {
        for (model, others) in [
            (
                "gemini-x",
                ["google/gemini-x", "publishers/google/models/gemini-x"].as_slice(),
            ),
            (
                "google/gemini-x",
                &["gemini-x", "publishers/google/models/gemini-x"],
            ),
            (
                "publishers/google/models/gemini-x",
                &["gemini-x", "google/gemini-x"],
            ),
            (
                "claude-a@1",
                &[
                    "anthropic/claude-a@1",
                    "publishers/anthropic/models/claude-a@1",
                ],
            ),
            // Alone it would be another one.
            ("anthropic/x", &["publishers/anthropic/models/x"]),
            ("google/claude", &["publishers/google/models/claude"]),
        ] {
            assert_eq!(Publisher::other_names(model), others, "{model}");
        }
    }

    #[test]
    fn a_name_leads_nowhere_else() {
        let site = Site {
            project: "p-1".to_owned(),
            region: "eu".to_owned(),
            ..Site::default()
        };
        let path = |endpoint, model, streams| {
            let asked = Asked {
                streams,
                method: EmbeddingMethod::EmbedAll,
            };
            Publisher::of(model)
                .0
                .path_of(endpoint, model, asked, &site)
        };
        let base = |version| format!("/{version}/projects/p-1/locations/eu/publishers");
        assert_eq!(
            path(Endpoint::Messages, "claude-a@1", true),
            format!(
                "{}/anthropic/models/claude-a@1:streamRawPredict",
                base("v1")
            )
        );
        assert_eq!(
            path(Endpoint::CountTokens, "claude-a@1", false),
            format!("{}/anthropic/models/count-tokens:rawPredict", base("v1"))
        );
        assert_eq!(
            path(Endpoint::Chat, "../x?a#b", true),
            format!(
                "{}/google/models/..%2Fx%3Fa%23b:streamGenerateContent?alt=sse",
                base("v1beta1")
            )
        );
        assert_eq!(
            path(Endpoint::Embeddings, "gemini-embedding-001", false),
            format!(
                "{}/google/models/gemini-embedding-001:batchEmbedContents",
                base("v1beta1")
            )
        );
        assert_eq!(
            path(Endpoint::Chat, "google/..", false),
            format!("{}/google/models/%2E%2E:generateContent", base("v1beta1"))
        );
    }
}
