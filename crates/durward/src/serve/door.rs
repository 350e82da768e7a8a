//! Which address answers what.

use std::sync::Arc;

use gate::Gate;
use http::{Method, StatusCode};
use mcp::serve::{Caller, Face};
use net::http::server::{Handler, Request, Response, plain};

/// The one handler of `durward serve`.
pub struct Door {
    face: Arc<Face>,
    gates: Vec<Arc<Gate>>,
    /// Who calls from this machine without credentials.
    local: Caller,
}

impl Door {
    /// A door to these.
    pub fn new(face: Arc<Face>, gates: Vec<Arc<Gate>>, user: String) -> Self {
        Self {
            face,
            gates,
            local: Caller {
                subject_id: user.into(),
            },
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
}

impl Handler for Door {
    async fn handle(&self, request: Request) -> Response {
        let path = request.head.uri.path();
        if let Some(name) = path.strip_prefix("/mcp/") {
            let name = name.to_owned();
            return self.face.handle(&name, &self.local, request).await;
        }
        match (path, &request.head.method) {
            ("/mcp", _) => self.face.unknown_server(),
            ("/health", &Method::GET) => self.health(),
            _ => plain(
                StatusCode::NOT_FOUND,
                "nothing is here; servers are at /mcp/NAME\n",
            ),
        }
    }
}
