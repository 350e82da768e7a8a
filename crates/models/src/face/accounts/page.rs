//! The page for accounts: one document without anything from elsewhere, which may run its own script and nothing else.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY};
use http::header::{X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS};
use http::{HeaderMap, HeaderValue};
use net::http::server::{Response, ResponseBody};
use ring::digest::{SHA256, digest};

/// The document.
const PAGE: &str = include_str!("page.html");

/// The page, with the headers that go with it.
#[derive(Debug)]
pub(super) struct Page {
    headers: HeaderMap,
}

impl Page {
    pub fn new() -> Self {
        let rules = format!(
            "default-src 'none'; script-src {}; style-src {}; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
            hash("<script>", "</script>"),
            hash("<style>", "</style>")
        );
        let mut headers = HeaderMap::new();
        let fixed = HeaderValue::from_static;
        headers.insert(CONTENT_TYPE, fixed("text/html; charset=utf-8"));
        headers.insert(CACHE_CONTROL, fixed("no-store"));
        headers.insert(REFERRER_POLICY, fixed("no-referrer"));
        headers.insert(X_CONTENT_TYPE_OPTIONS, fixed("nosniff"));
        headers.insert(X_FRAME_OPTIONS, fixed("DENY"));
        let rules = HeaderValue::try_from(rules).unwrap_or(fixed("default-src 'none'"));
        headers.insert(CONTENT_SECURITY_POLICY, rules);
        Self { headers }
    }

    pub fn answer(&self) -> Response {
        let mut response = http::Response::new(ResponseBody::from(PAGE));
        *response.headers_mut() = self.headers.clone();
        response
    }
}

/// What a browser holds an element of the page against before it uses it.
fn hash(open: &str, close: &str) -> String {
    let behind = PAGE.split_once(open).map_or("", |(_, rest)| rest);
    let inner = behind.split_once(close).map_or("", |(inner, _)| inner);
    let digest = digest(&SHA256, inner.as_bytes());
    format!("'sha256-{}'", STANDARD.encode(digest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_names_nothing_elsewhere_and_writes_no_markup() {
        for word in [
            "http://",
            "https://",
            "src=",
            "href=",
            "@import",
            "innerHTML",
            "localStorage",
        ] {
            assert!(!PAGE.contains(word), "{word}");
        }
        for once in ["<script>", "</script>", "<style>", "</style>"] {
            assert_eq!(PAGE.matches(once).count(), 1, "{once}");
        }
        assert!(!PAGE.contains(" style=") && !PAGE.contains(" onclick="));
        let page = Page::new();
        let rules = page.headers[CONTENT_SECURITY_POLICY].to_str().unwrap();
        assert_eq!(rules.matches("'sha256-").count(), 2, "{rules}");
        assert!(!rules.contains("unsafe"), "{rules}");
    }
}
