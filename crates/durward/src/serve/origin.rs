//! What a browser must be told before it lets a page of another origin speak to this server. Origins that
//! are not allowed never get here: the server refuses them.

use http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_HEADERS,
    ACCESS_CONTROL_REQUEST_METHOD, ORIGIN, VARY,
};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method};

/// The origin of the page that sends a request.
pub struct Origin {
    value: HeaderValue,
    /// The browser asks whether it may send the request.
    pub asks_first: bool,
    /// The headers that it would send.
    headers: Option<HeaderValue>,
}

impl Origin {
    /// Reads it out of a request; none where no page sends it.
    pub fn of(head: &Parts) -> Option<Self> {
        let headers = &head.headers;
        let value = headers.get(ORIGIN)?.clone();
        let asks = headers.contains_key(ACCESS_CONTROL_REQUEST_METHOD);
        Some(Self {
            value,
            asks_first: head.method == Method::OPTIONS && asks,
            headers: headers.get(ACCESS_CONTROL_REQUEST_HEADERS).cloned(),
        })
    }

    /// Says in the headers of the answer that the page may read it.
    pub fn answer(self, answer: &mut HeaderMap) {
        let fixed = HeaderValue::from_static;
        answer.insert(ACCESS_CONTROL_ALLOW_ORIGIN, self.value);
        answer.append(VARY, fixed("Origin"));
        if self.asks_first {
            answer.insert(ACCESS_CONTROL_ALLOW_METHODS, fixed("GET, POST, DELETE"));
            if let Some(headers) = self.headers {
                answer.insert(ACCESS_CONTROL_ALLOW_HEADERS, headers);
            }
            answer.insert(ACCESS_CONTROL_MAX_AGE, fixed("600"));
        } else {
            let exposed =
                fixed("mcp-session-id, mcp-protocol-version, www-authenticate, retry-after");
            answer.insert(ACCESS_CONTROL_EXPOSE_HEADERS, exposed);
        }
    }
}
