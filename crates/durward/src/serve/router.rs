//! Routes requests to faces, with the caller that each request identifies.

use std::sync::Arc;

use gate::Gate;
use gate::identity::IdentityFault;
use http::header::{HOST, WWW_AUTHENTICATE};
use http::request::Parts;
use http::{HeaderValue, StatusCode};
use net::http::server::{BodyBudget, Handler, Request, Response, plain};
use toolkit::face::{Clash, Face, Routes, Scope};

use super::authentication::Authentication;
use super::faces::backchannel_logout;
use super::origin::Origin;
use super::polling::Rhythm;

/// A face as this server routes to it.
pub type HttpFace = dyn Face<Request, Response>;

/// Whose the paths are.
///
/// # Errors
/// [`Clash`] where two claim one path, or a path is none that a request can have.
pub fn table(faces: &[Arc<HttpFace>]) -> Result<Routes<Arc<HttpFace>>, Clash> {
    let mut routes = Routes::default();
    for face in faces {
        for route in face.routes() {
            routes.claim(face.name(), route.clone(), Arc::clone(face))?;
        }
    }
    Ok(routes)
}

/// The one handler of `durward serve`.
pub struct Router {
    routes: Routes<Arc<HttpFace>>,
    faces: Vec<Arc<HttpFace>>,
    authentication: Authentication,
    rhythm: Arc<Rhythm>,
    /// Byte budget of the bodies that all faces read.
    bodies: BodyBudget,
    /// The caller that bodies of unknown callers count for.
    unknown: Arc<str>,
    /// Whether clients speak TLS to this server.
    is_secure: bool,
}

impl Router {
    /// Has each of these faces answer the paths that it claims.
    ///
    /// # Errors
    /// As [`table`].
    pub fn new(
        faces: Vec<Arc<HttpFace>>,
        authentication: Authentication,
        rhythm: Arc<Rhythm>,
        is_secure: bool,
    ) -> Result<Self, Clash> {
        Ok(Self {
            routes: table(&faces)?,
            faces,
            authentication,
            rhythm,
            bodies: BodyBudget::default(),
            unknown: "".into(),
            is_secure,
        })
    }

    /// Reads changed keys again, ends what revoked keys have open, and lets faces housekeep. `gate` is for records that
    /// belong to no server.
    pub fn tick(&self, gate: &Gate) {
        self.end_revoked(&self.authentication.tick(gate));
        for face in &self.faces {
            face.tick();
        }
    }

    /// Ends what these revoked callers have open between requests. All else ends with their flags.
    fn end_revoked(&self, callers: &[Arc<str>]) {
        for caller in callers {
            for face in &self.faces {
                face.on_revoked(caller);
            }
        }
    }

    /// The end is near: nothing new is begun.
    pub fn quiet(&self) {
        for face in &self.faces {
            face.quiet();
        }
    }

    async fn route(&self, mut request: Request) -> Response {
        let path = request.head.uri.path();
        let Some(face) = self.routes.find(path) else {
            let text = "nothing is served at this path; servers are at /mcp and /mcp/NAME, models at /v1, the state at /health and /metrics\n";
            return plain(StatusCode::NOT_FOUND, text);
        };
        let scope = face.scope(path);
        let may_end_callers = matches!(scope, Scope::Account) || path == backchannel_logout::PATH;
        let who = match scope {
            Scope::Open => Err(IdentityFault::Missing),
            Scope::Keyed => {
                let who = self.authentication.caller(&request, None).await;
                // A token opens model APIs and its own account, and nothing of the operator's.
                who.and_then(|caller| match (&caller.token, &caller.sign_in) {
                    (None, None) => Ok(caller),
                    _ => Err(IdentityFault::OutOfScope),
                })
            }
            Scope::Account | Scope::Servers => self.authentication.caller(&request, None).await,
            Scope::Server(name) => self.authentication.caller(&request, Some(name)).await,
        };
        let challenge = match (&who, self.authentication.resource()) {
            (Err(fault), Some(resource)) if scope != Scope::Open => {
                let base = resource.base(&base_of(&request.head, self.is_secure));
                Some(resource.challenge(*fault, &base, path))
            }
            _ => None,
        };
        request.set_body_share(match &who {
            Ok(caller) => {
                let share = self.bodies.share_of(&caller.subject);
                share.until(caller.revocation.revoked())
            }
            Err(_) => self.bodies.share_of(&self.unknown),
        });
        let mut response = face.handle(who, request).await;
        if let Some(challenge) = challenge.and_then(|text| HeaderValue::try_from(text).ok())
            && let Some(own) = response.headers_mut().get_mut(WWW_AUTHENTICATE)
        {
            *own = challenge;
        }
        if may_end_callers {
            // Before the answer: a caller that is identified after it is not revoked.
            self.end_revoked(&self.authentication.take_revoked());
        }
        response
    }
}

/// Returns the URL that a request was sent to, without its path. The server has checked the host.
pub fn base_of(head: &Parts, is_secure: bool) -> String {
    let scheme = if is_secure { "https" } else { "http" };
    let host = head.headers.get(HOST).and_then(|host| host.to_str().ok());
    format!("{scheme}://{}", host.unwrap_or_default())
}

impl Handler for Router {
    fn over(&self) {
        tracing::warn!(target: "serve", "calls that were still under way are cancelled");
        for face in &self.faces {
            face.cancel_all();
        }
    }

    async fn handle(&self, request: Request) -> Response {
        self.rhythm.touch();
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
