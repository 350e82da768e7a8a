//! `/metrics`: counts and times, for whoever has a key.

use std::sync::Arc;

use gate::identity::IdentityFault;
use gate::{Caller, Gate};
use http::header::CONTENT_TYPE;
use http::{HeaderValue, StatusCode};
use net::http::server::{Request, Response, ResponseBody, plain};
use toolkit::face::{Face, Route};
use toolkit::server::BoxFuture;

use super::super::metrics;
use super::super::router::HttpFace;
use super::{Site, only_looking, refused};

struct Metrics {
    routes: [Route; 1],
    mcp: Arc<mcp::http::Face>,
    models: Option<Arc<models::Face>>,
    gates: Vec<Arc<Gate>>,
}

#[expect(clippy::unnecessary_wraps, reason = "one shape for all faces")]
pub(super) fn face(site: &Site) -> Option<Arc<HttpFace>> {
    Some(Arc::new(Metrics {
        routes: [Route::Exact("/metrics".into())],
        mcp: Arc::clone(&site.mcp),
        models: site.models.clone(),
        gates: site.gates.clone(),
    }))
}

impl Metrics {
    fn answer(&self, who: Result<Caller, IdentityFault>, request: &Request) -> Response {
        if let Some(refused) = only_looking(&request.head) {
            return refused;
        }
        if let Err(fault) = who {
            return refused(fault);
        }
        let mut response = match metrics::text(&self.mcp, self.models.as_deref(), &self.gates) {
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
