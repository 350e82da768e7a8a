//! `/health`: whether calls can be forwarded. Everybody may ask.

use std::sync::Arc;

use gate::identity::IdentityFault;
use gate::{Caller, Gate};
use http::StatusCode;
use net::http::server::{Request, Response, plain};
use toolkit::face::{Face, Route, Scope};
use toolkit::server::BoxFuture;

use super::super::router::HttpFace;
use super::{Site, only_looking};

struct Health {
    routes: [Route; 1],
    gates: Vec<Arc<Gate>>,
}

#[expect(clippy::unnecessary_wraps, reason = "one shape for all faces")]
pub(super) fn face(site: &Site) -> Option<Arc<HttpFace>> {
    Some(of(site.gates.clone()))
}

pub(super) fn of(gates: Vec<Arc<Gate>>) -> Arc<HttpFace> {
    Arc::new(Health {
        routes: [Route::Exact("/health".into())],
        gates,
    })
}

impl Health {
    fn answer(&self, request: &Request) -> Response {
        if let Some(refused) = only_looking(&request.head) {
            return refused;
        }
        if self.gates.iter().any(|gate| gate.has_failed()) {
            return plain(
                StatusCode::SERVICE_UNAVAILABLE,
                "the journal has failed; nothing is forwarded\n",
            );
        }
        plain(StatusCode::OK, "ok\n")
    }
}

impl Face<Request, Response> for Health {
    fn name(&self) -> &'static str {
        "health"
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
