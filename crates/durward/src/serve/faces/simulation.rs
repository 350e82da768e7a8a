//! The paths of the PBPK bridge, where a `builtin: simulation` is served: `/load_simulation` and its like.

use std::sync::Arc;

use serde_json::Value;
use simulation::{Calls, Rest};
use toolkit::face::Behalf;
use toolkit::server::BoxFuture;

use super::super::router::HttpFace;
use super::Site;

struct ThroughTheGate(Arc<::mcp::http::Face>);

impl Calls for ThroughTheGate {
    fn ask<'a>(
        &'a self,
        server: &'a str,
        behalf: Behalf<'a>,
        method: &'a str,
        params: Value,
    ) -> BoxFuture<'a, Option<Value>> {
        Box::pin(self.0.ask(server, behalf, method, params))
    }
}

pub(super) fn face(site: &Site) -> Option<Arc<HttpFace>> {
    let server = site.simulation.as_deref()?;
    let calls = Arc::new(ThroughTheGate(Arc::clone(&site.mcp)));
    Some(Arc::new(Rest::new(server, calls)))
}
