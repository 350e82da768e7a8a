//! `/oidc/backchannel-logout`: issuers report here that a session has ended. The signature of the logout token is the credential.

use std::borrow::Cow;
use std::sync::Arc;

use ::identity::{Issuers, TOKEN_BYTES_MAX};
use gate::Caller;
use gate::identity::{IdentityFault, TokenFault};
use http::header::{ALLOW, CACHE_CONTROL};
use http::{HeaderValue, Method, StatusCode};
use net::http::server::{Request, Response, plain};
use toolkit::face::{Challenge, Face, Route, Scope};
use toolkit::server::BoxFuture;

use super::super::router::HttpFace;
use super::Site;
use crate::local;

/// Path of the face.
pub const PATH: &str = "/oidc/backchannel-logout";
/// Longest body, in bytes: a token and the name of its field.
const BODY_BYTES_MAX: usize = TOKEN_BYTES_MAX + 64;

/// Receives logout tokens.
struct BackchannelLogout {
    routes: [Route; 1],
    issuers: Arc<Issuers>,
}

pub(super) fn face(site: &Site) -> Option<Arc<HttpFace>> {
    let issuers = site.issuers.as_ref()?;
    Some(Arc::new(BackchannelLogout {
        routes: [Route::Exact(Cow::Borrowed(PATH))],
        issuers: Arc::clone(issuers),
    }))
}

impl BackchannelLogout {
    async fn answer(&self, mut request: Request) -> Response {
        if request.head.method != Method::POST {
            let mut response = plain(
                StatusCode::METHOD_NOT_ALLOWED,
                "only POST is supported here\n",
            );
            let allowed = HeaderValue::from_static("POST");
            response.headers_mut().insert(ALLOW, allowed);
            return response;
        }
        request.take_at_most(BODY_BYTES_MAX);
        let body = match request.read_body().await {
            Ok(body) => body,
            Err(fault) => return plain(fault.status(), fault.sentence()),
        };
        let ended = match token_in(&body) {
            Some(token) => self.issuers.end_session_by(token, local::now_ms()).await,
            None => Err(TokenFault::Malformed),
        };
        let mut response = match ended {
            Ok(()) => plain(StatusCode::OK, ""),
            Err(fault) => {
                tracing::warn!(reason = fault.label(), "a logout token was refused");
                // The standard has 400 for all but what may pass.
                let status = match Challenge::of(IdentityFault::Token(fault)).status {
                    503 => StatusCode::SERVICE_UNAVAILABLE,
                    _ => StatusCode::BAD_REQUEST,
                };
                plain(status, fault.sentence())
            }
        };
        let never = HeaderValue::from_static("no-store");
        response.headers_mut().insert(CACHE_CONTROL, never);
        response
    }
}

/// Returns the logout token of a form. A token has no character that a form escapes.
fn token_in(body: &[u8]) -> Option<&str> {
    let body = std::str::from_utf8(body).ok()?;
    let mut tokens = body
        .split('&')
        .filter_map(|pair| pair.strip_prefix("logout_token="));
    let token = tokens.next()?;
    tokens.next().is_none().then_some(token)
}

impl Face<Request, Response> for BackchannelLogout {
    fn name(&self) -> &'static str {
        "back-channel logout"
    }

    fn routes(&self) -> &[Route] {
        &self.routes
    }

    fn scope<'p>(&'p self, _path: &'p str) -> Scope<'p> {
        Scope::Open
    }

    fn handle(
        &self,
        _who: Result<Caller, IdentityFault>,
        request: Request,
    ) -> BoxFuture<'_, Response> {
        Box::pin(self.answer(request))
    }
}
