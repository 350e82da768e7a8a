//! `/health`: whether calls can be forwarded. Everybody may ask.

use std::sync::Arc;
use std::time::Instant;

use gate::identity::IdentityFault;
use gate::{Caller, Gate};
use http::header::{ACCEPT, CONTENT_TYPE};
use http::{HeaderValue, StatusCode};
use net::http::server::{Request, Response, ResponseBody, plain};
use serde_json::json;
use toolkit::face::{Face, Route, Scope};
use toolkit::measure::Measured;
use toolkit::server::BoxFuture;

use super::super::router::HttpFace;
use super::{Site, only_looking};
use crate::instance_state::InstanceState;
use crate::local;

struct Health {
    routes: [Route; 1],
    gates: Vec<Arc<Gate>>,
    states: Vec<InstanceState>,
    /// Where sessions are counted, once JSON is asked for.
    mcp: Option<Arc<mcp::http::Face>>,
    form: Form,
    since: Instant,
}

/// What is answered to whoever asks for no form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// A word.
    Word,
    /// Status and sessions, as the SSH bridge has them; JSON that is asked for has this form too.
    Sessions,
    /// Status, version and time since the start, as the bridge of simulations has them.
    Service,
}

#[expect(clippy::unnecessary_wraps, reason = "one shape for all faces")]
pub(super) fn face(site: &Site) -> Option<Arc<HttpFace>> {
    let mcp = Some(Arc::clone(&site.mcp));
    let form = match (&site.root, &site.simulation) {
        (Some(_), _) => Form::Sessions,
        (None, Some(_)) => Form::Service,
        (None, None) => Form::Word,
    };
    Some(of((site.gates.clone(), site.states.clone()), mcp, form))
}

pub(super) fn of(
    (gates, states): (Vec<Arc<Gate>>, Vec<InstanceState>),
    mcp: Option<Arc<mcp::http::Face>>,
    form: Form,
) -> Arc<HttpFace> {
    Arc::new(Health {
        routes: [Route::Exact("/health".into())],
        gates,
        states,
        mcp,
        form,
        since: Instant::now(),
    })
}

impl Health {
    fn answer(&self, request: &Request) -> Response {
        if let Some(refused) = only_looking(&request.head) {
            return refused;
        }
        let accepted = request.head.headers.get(ACCEPT);
        let accepted = accepted.and_then(|accepted| accepted.to_str().ok());
        if self.form != Form::Word
            || accepted.is_some_and(|kinds| kinds.contains("application/json"))
        {
            return self.json();
        }
        if self.has_failed() {
            let why = "the journal has failed; nothing is forwarded\n";
            return plain(StatusCode::SERVICE_UNAVAILABLE, why);
        }
        plain(StatusCode::OK, "ok\n")
    }

    fn has_failed(&self) -> bool {
        self.gates.iter().any(|gate| gate.has_failed())
    }

    fn json(&self) -> Response {
        let status = if self.has_failed() {
            "degraded"
        } else if self.gates.iter().any(|gate| gate.is_draining()) {
            "draining"
        } else if self.form == Form::Service {
            "ok"
        } else {
            "healthy"
        };
        let mut told = match self.form {
            Form::Service => json!({
                "status": status, "service": "durward", "version": env!("CARGO_PKG_VERSION"),
                "uptimeSeconds": self.since.elapsed().as_secs_f64(),
            }),
            Form::Word | Form::Sessions => self.sessions(status),
        };
        // Calls are still judged and forwarded.
        let detail = self.states.iter().find_map(InstanceState::detail);
        if let (Some(detail), Some(members)) = (detail, told.as_object_mut()) {
            members.insert("detail".into(), json!(detail));
        }
        let mut response = http::Response::new(ResponseBody::from(told.to_string().into_bytes()));
        if self.has_failed() {
            *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
        }
        let kind = HeaderValue::from_static("application/json");
        response.headers_mut().insert(CONTENT_TYPE, kind);
        response
    }

    fn sessions(&self, status: &str) -> serde_json::Value {
        let measures = self.mcp.as_ref().map(|mcp| mcp.measures());
        let open = measures.iter().flatten().filter_map(|m| match m.value {
            Measured::Level(level) if m.name == "mcp_ssh_sessions_active" => Some(level),
            _ => None,
        });
        json!({
            "status": status,
            "timestamp": local::now_ms(),
            "sessions": open.sum::<u64>(),
            "mcp_sessions": self.mcp.as_ref().map_or(0, |mcp| mcp.counts().sessions),
        })
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
