//! Which address answers what, and to whom.

use std::sync::Arc;

use gate::Gate;
use gate::identity::IdentityFault;
use http::header::{ALLOW, CONTENT_TYPE, WWW_AUTHENTICATE};
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use mcp::http::Face;
use net::http::server::{Handler, Request, Response, ResponseBody, plain};

use super::guests::Guests;
use super::metrics;
use super::origin::Origin;

/// The one handler of `durward serve`.
pub struct Door {
    face: Arc<Face>,
    gates: Vec<Arc<Gate>>,
    guests: Guests,
}

impl Door {
    /// A door to these.
    pub fn new(face: Arc<Face>, gates: Vec<Arc<Gate>>, guests: Guests) -> Self {
        Self {
            face,
            gates,
            guests,
        }
    }

    /// Gives the keys their time; what a key had opened ends with it.
    pub fn tick(&self) {
        if let Some(gate) = self.gates.first() {
            for caller in self.guests.tick(gate) {
                self.face.expel(&caller);
            }
        }
    }

    fn health(&self) -> Response {
        if self.gates.iter().any(|gate| gate.has_failed()) {
            return plain(
                StatusCode::SERVICE_UNAVAILABLE,
                "the journal has failed; nothing is forwarded\n",
            );
        }
        plain(StatusCode::OK, "ok\n")
    }

    fn metrics(&self, headers: &HeaderMap) -> Response {
        if let Err(fault) = self.guests.caller(headers, None) {
            return refused(fault);
        }
        let mut response = match metrics::text(&self.face, &self.gates) {
            Ok(text) => http::Response::new(ResponseBody::from(text.into_bytes())),
            Err(_) => plain(StatusCode::INTERNAL_SERVER_ERROR, "no metrics\n"),
        };
        let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
        response
            .headers_mut()
            .insert(CONTENT_TYPE, HeaderValue::from_static(kind));
        response
    }
}

/// The answer to a caller whose key is not good.
fn refused(fault: IdentityFault) -> Response {
    let (status, challenge) = match fault {
        IdentityFault::Missing => (StatusCode::UNAUTHORIZED, "Bearer realm=\"durward\""),
        IdentityFault::Unknown | IdentityFault::Expired | IdentityFault::Revoked => (
            StatusCode::UNAUTHORIZED,
            "Bearer realm=\"durward\", error=\"invalid_token\"",
        ),
        IdentityFault::OutOfScope => (
            StatusCode::FORBIDDEN,
            "Bearer realm=\"durward\", error=\"insufficient_scope\"",
        ),
    };
    let mut response = plain(status, fault.sentence());
    response
        .headers_mut()
        .insert(WWW_AUTHENTICATE, HeaderValue::from_static(challenge));
    response
}

impl Handler for Door {
    fn over(&self) {
        tracing::warn!(target: "serve", "calls that were still under way are cancelled");
        self.face.cancel_all();
    }

    async fn handle(&self, request: Request) -> Response {
        let origin = Origin::of(&request.head);
        let mut response = match &origin {
            Some(origin) if origin.asks_first => plain(StatusCode::NO_CONTENT, ""),
            _ => self.route(request).await,
        };
        if let Some(origin) = origin {
            origin.answer(response.headers_mut());
        }
        response
    }
}

impl Door {
    async fn route(&self, request: Request) -> Response {
        let path = request.head.uri.path();
        if let Some(name) = path.strip_prefix("/mcp/") {
            let name = name.strip_suffix('/').unwrap_or(name);
            return match self.guests.caller(&request.head.headers, Some(name)) {
                Ok(caller) => {
                    let name = name.to_owned();
                    self.face.handle(&name, &caller, request).await
                }
                Err(fault) => refused(fault),
            };
        }
        let headers = &request.head.headers;
        match (path, &request.head.method) {
            ("/mcp" | "/mcp/", _) => match self.guests.caller(headers, None) {
                Ok(_) => self.face.unknown_server(),
                Err(fault) => refused(fault),
            },
            // The server leaves the body out of an answer to HEAD.
            ("/health", &Method::GET | &Method::HEAD) => self.health(),
            ("/metrics", &Method::GET | &Method::HEAD) => self.metrics(headers),
            ("/health" | "/metrics", _) => {
                let text = "only GET and HEAD are known here\n";
                let mut response = plain(StatusCode::METHOD_NOT_ALLOWED, text);
                let allowed = HeaderValue::from_static("GET, HEAD");
                response.headers_mut().insert(ALLOW, allowed);
                response
            }
            _ => plain(
                StatusCode::NOT_FOUND,
                "nothing is here; servers are at /mcp/NAME\n",
            ),
        }
    }
}
