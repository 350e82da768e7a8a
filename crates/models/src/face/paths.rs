//! Which endpoint a path names. Clients are given a base with or without `/v1`, and add their own.

use dialects::{Dialect, Endpoint};
use http::HeaderMap;
use toolkit::face::Route;

/// What a path is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place<'p> {
    /// Asking a model.
    Ask(Endpoint),
    /// The list of models.
    List,
    /// One model of the list.
    One(&'p str),
    /// Nothing that is served.
    Elsewhere,
}

impl Place<'_> {
    /// Whose words are spoken there.
    pub fn dialect(&self, headers: &HeaderMap) -> Dialect {
        match self {
            Self::Ask(endpoint) => endpoint.dialect(),
            Self::List | Self::One(_) | Self::Elsewhere => super::dialect_of_headers(headers),
        }
    }
}

/// The paths that are claimed: all below `/v1`, and the endpoints without it.
pub(super) fn routes() -> Vec<Route> {
    let bare = Endpoint::ALL.map(|endpoint| Route::Exact(format!("/{}", endpoint.path()).into()));
    let mut routes = bare.to_vec();
    routes.push(Route::Prefix("/models".into()));
    routes.push(Route::Prefix("/v1".into()));
    routes
}

/// What a path names: slashes may be doubled or stand at the end, and `v1` may stand in front more than once.
pub(super) fn place(path: &str) -> Place<'_> {
    let mut rest = path.trim_matches('/');
    while let Some(below) = rest.strip_prefix("v1/") {
        rest = below.trim_start_matches('/');
    }
    if rest == "models" {
        return Place::List;
    }
    if let Some(name) = rest.strip_prefix("models/") {
        return Place::One(name);
    }
    let found = Endpoint::ALL
        .into_iter()
        .find(|endpoint| endpoint.path() == rest);
    found.map_or(Place::Elsewhere, Place::Ask)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_name_endpoints_with_and_without_v1() {
        let cases = [
            ("/v1/chat/completions", Place::Ask(Endpoint::Chat)),
            ("/chat/completions", Place::Ask(Endpoint::Chat)),
            ("/v1//chat/completions", Place::Ask(Endpoint::Chat)),
            ("/v1/chat/completions/", Place::Ask(Endpoint::Chat)),
            ("/v1/v1/messages", Place::Ask(Endpoint::Messages)),
            (
                "/v1/messages/count_tokens",
                Place::Ask(Endpoint::CountTokens),
            ),
            ("/v1/models", Place::List),
            ("/models/", Place::List),
            ("/v1/models/a/b", Place::One("a/b")),
            ("/v1", Place::Elsewhere),
            ("/v1/", Place::Elsewhere),
            ("/v1/chat", Place::Elsewhere),
            ("/v1/images/generations", Place::Ask(Endpoint::Images)),
            ("/audio/speech", Place::Ask(Endpoint::Speech)),
            ("/v1/images", Place::Elsewhere),
            ("/v1/chat//completions", Place::Elsewhere),
        ];
        for (path, expect) in cases {
            assert_eq!(place(path), expect, "{path}");
        }
    }
}
