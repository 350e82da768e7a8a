//! `/.well-known/oauth-protected-resource/**`: where clients find the issuers (RFC 9728). Open to everyone.

use std::borrow::Cow;
use std::sync::Arc;

use ::identity::{Issuers, WELL_KNOWN};
use gate::Caller;
use gate::identity::IdentityFault;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderValue, StatusCode};
use net::http::server::{Request, Response, ResponseBody, plain};
use toolkit::face::{Face, Route, Scope};
use toolkit::server::BoxFuture;

use super::super::router::{HttpFace, base_of};
use super::{Site, only_looking};

/// Metadata of the protected resources.
struct ProtectedResource {
    routes: [Route; 1],
    issuers: Arc<Issuers>,
    is_secure: bool,
}

pub(super) fn face(site: &Site) -> Option<Arc<HttpFace>> {
    let issuers = site.issuers.as_ref()?;
    Some(Arc::new(ProtectedResource {
        routes: [Route::Prefix(Cow::Borrowed(WELL_KNOWN))],
        issuers: Arc::clone(issuers),
        is_secure: site.is_secure,
    }))
}

impl ProtectedResource {
    fn answer(&self, request: &Request) -> Response {
        if let Some(refused) = only_looking(&request.head) {
            return refused;
        }
        let resource = self.issuers.resource();
        let base = resource.base(&base_of(&request.head, self.is_secure));
        let Some(document) = resource.metadata(request.head.uri.path(), &base) else {
            return plain(StatusCode::NOT_FOUND, "no resource has this path\n");
        };
        let mut response = http::Response::new(ResponseBody::from(document.into_bytes()));
        let headers = response.headers_mut();
        let json = HeaderValue::from_static("application/json");
        headers.insert(CONTENT_TYPE, json);
        let brief = HeaderValue::from_static("max-age=300");
        headers.insert(CACHE_CONTROL, brief);
        response
    }
}

impl Face<Request, Response> for ProtectedResource {
    fn name(&self) -> &'static str {
        "protected resource"
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
        Box::pin(std::future::ready(self.answer(&request)))
    }
}
