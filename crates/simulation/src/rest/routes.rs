//! Paths and methods as the counts of requests name them: words of this program, however many paths are asked for.

use http::Method;

use super::{audit, facade, openapi, paths, streams};

/// Label of other paths and unusual methods.
const OTHER: &str = "other";

/// Paths without a tool, as in the document.
const MORE: [&str; 12] = [
    facade::CAPABILITIES,
    facade::LIST_TOOLS,
    facade::CALL_TOOL,
    openapi::OPENAPI,
    audit::EVENTS,
    "/mcp/resources/simulations",
    "/mcp/resources/parameters",
    "/mcp/resources/models",
    "/mcp/resources/schemas",
    "/mcp/resources/capability-matrix",
    "/mcp/resources/contract-manifest",
    "/mcp/resources/release-bundle-manifest",
];

/// Returns the path of the document that a path is.
pub(super) fn of(path: &str) -> &'static str {
    let tools = paths::ALL.iter().map(|known| known.path);
    let exact = tools.chain(MORE).find(|known| *known == path);
    let below = |place: &str| path.strip_prefix(place).is_some_and(|rest| rest.len() > 1);
    let varying = [
        (streams::JOBS, "/jobs/{jobId}/events"),
        (
            streams::CHUNKS,
            "/population_results/{resultsId}/chunks/{chunkId}",
        ),
        ("/mcp/resources/schemas", "/mcp/resources/schemas/{id}"),
    ];
    let varying = || varying.into_iter().find(|(place, _)| below(place));
    exact
        .or_else(|| varying().map(|(_, known)| known))
        .unwrap_or(OTHER)
}

/// Returns the name of a method.
pub(super) fn method(method: &Method) -> &'static str {
    let known = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];
    let mut known = known.into_iter();
    known
        .find(|known| *known == method.as_str())
        .unwrap_or(OTHER)
}
