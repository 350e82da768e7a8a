//! `/metrics`: counts and times of all servers, for whoever has a key that is good for all of them.

use std::sync::Arc;

use gate::Caller;
use gate::identity::IdentityFault;
use http::header::CONTENT_TYPE;
use http::{HeaderValue, StatusCode};
use net::http::server::{Request, Response, ResponseBody, plain};
use toolkit::face::{Face, Route};
use toolkit::server::BoxFuture;

use super::super::metrics::Sources;
use super::super::router::HttpFace;
use super::{Site, only_looking, refused};

struct Metrics {
    routes: [Route; 1],
    sources: Sources,
}

#[expect(clippy::unnecessary_wraps, reason = "one shape for all faces")]
pub(super) fn face(site: &Site) -> Option<Arc<HttpFace>> {
    let sources = site.sources();
    sources.count();
    Some(Arc::new(Metrics {
        routes: [Route::Exact("/metrics".into())],
        sources,
    }))
}

impl Metrics {
    fn answer(&self, who: Result<Caller, IdentityFault>, request: &Request) -> Response {
        if let Some(refused) = only_looking(&request.head) {
            return refused;
        }
        match who {
            Err(fault) => return refused(fault),
            Ok(caller) if caller.servers.is_some() => return refused(IdentityFault::OutOfScope),
            Ok(_) => {}
        }
        let mut response = match self.sources.text() {
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

impl Face<Request, Response> for Metrics {
    fn name(&self) -> &'static str {
        "metrics"
    }

    fn routes(&self) -> &[Route] {
        &self.routes
    }

    fn handle(
        &self,
        who: Result<Caller, IdentityFault>,
        request: Request,
    ) -> BoxFuture<'_, Response> {
        Box::pin(std::future::ready(self.answer(who, &request)))
    }
}
