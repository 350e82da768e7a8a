//! The paths of the PBPK bridge, where a `builtin: simulation` is served: `/load_simulation` and its like.

use std::sync::Arc;

use ::mcp::http::Beside;
use serde_json::{Value, json};
use simulation::{RestFace, SentContent, ToolCaller};
use toolkit::door::CallContext;
use toolkit::face::Behalf;
use toolkit::server::BoxFuture;

use super::super::router::HttpFace;
use super::Site;

struct ThroughTheGate(Arc<::mcp::http::Face>);

impl ToolCaller for ThroughTheGate {
    fn ask<'a>(
        &'a self,
        server: &'a str,
        behalf: Behalf<'a>,
        method: &'a str,
        params: Value,
    ) -> BoxFuture<'a, Option<Value>> {
        let context = CallContext {
            trace: behalf.trace.clone(),
            ..CallContext::of(behalf.caller.clone())
        };
        Box::pin(async move {
            let params = params.as_object().cloned().unwrap_or_default();
            let answered = self.0.request(&context, server, method, &params).await;
            let answer = answered.map_or_else(|outcome| outcome.answer, Some)?;
            let member = if answer.is_error { "error" } else { "result" };
            Some(json!({ member: answer.value() }))
        })
    }

    fn inspects(&self, server: &str) -> bool {
        self.0.inspects_results(server)
    }

    fn inspect<'a>(
        &'a self,
        server: &'a str,
        caller: &'a Arc<str>,
        sent: SentContent,
    ) -> BoxFuture<'a, Result<String, Value>> {
        let sent = match sent {
            SentContent::Json(text) => Beside::Json(text),
            SentContent::Text(text) => Beside::Text(text),
        };
        Box::pin(self.0.beside(server, caller, sent))
    }
}

pub(super) fn face(site: &Site) -> Option<Arc<HttpFace>> {
    let server = site.simulation.as_deref()?;
    let calls = Arc::new(ThroughTheGate(Arc::clone(&site.mcp)));
    Some(Arc::new(RestFace::new(server, calls)))
}
