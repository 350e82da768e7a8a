//! The faces of `durward serve`: one line each in [`ALL`].

mod accounts;
pub mod backchannel_logout;
mod health;
mod mcp;
mod metrics;
mod models;
mod protected_resource;
mod simulation;

use std::path::PathBuf;
use std::sync::Arc;

use ::mcp::http::Face;
use gate::Gate;
use gate::identity::IdentityFault;
use http::header::{ALLOW, WWW_AUTHENTICATE};
use http::request::Parts;
use http::{HeaderValue, Method, StatusCode};
use net::http::server::{Response, plain};
use toolkit::face::Challenge;

use super::metrics::Sources;
use super::router::HttpFace;
use crate::instance_state::InstanceState;
use crate::otel::Telemetry;

/// What the faces are made of.
pub struct Site {
    /// The MCP servers.
    pub mcp: Arc<Face>,
    /// The model APIs, where there are providers.
    pub models: Option<Arc<::models::Face>>,
    /// The accounts, where there are any.
    pub accounts: Option<Arc<::models::AccountsFace>>,
    /// Verifiers of access tokens, if people sign in here.
    pub issuers: Option<Arc<::identity::Issuers>>,
    /// Whether clients speak TLS to this server.
    pub is_secure: bool,
    /// The gates of all sets of rules.
    pub gates: Vec<Arc<Gate>>,
    /// The state of each set of rules.
    pub states: Vec<InstanceState>,
    /// The export, where there is one.
    pub telemetry: Option<Arc<Telemetry>>,
    /// The first server that runs simulations, where there is one.
    pub simulation: Option<String>,
    /// The server that answers at `/` and `/mcp` as well.
    pub root: Option<String>,
    /// The journal's directory.
    pub journal: PathBuf,
}

impl Site {
    /// What its metrics are read from.
    pub fn sources(&self) -> Sources {
        Sources {
            face: Some(Arc::clone(&self.mcp)),
            models: self.models.clone(),
            gates: self.gates.clone(),
            states: self.states.clone(),
            telemetry: self.telemetry.clone(),
            journal: self.journal.clone(),
        }
    }
}

/// Makes one of the faces, where there is something behind it.
type Make = fn(&Site) -> Option<Arc<HttpFace>>;

/// Every face, in the order in which they end.
pub const ALL: &[Make] = &[
    mcp::face,
    models::face,
    accounts::face,
    simulation::face,
    health::face,
    metrics::face,
    protected_resource::face,
    backchannel_logout::face,
];

/// All faces of a site.
pub fn of(site: &Site) -> Vec<Arc<HttpFace>> {
    ALL.iter().filter_map(|make| make(site)).collect()
}

/// The answer to a caller whose key is not good.
fn refused(fault: IdentityFault) -> Response {
    refused_with(fault, fault.sentence())
}

/// The same, in words of the face's own.
fn refused_with(fault: IdentityFault, text: &'static str) -> Response {
    let challenge = Challenge::of(fault);
    let status = StatusCode::from_u16(challenge.status).unwrap_or(StatusCode::UNAUTHORIZED);
    let mut response = plain(status, text);
    response.headers_mut().insert(
        WWW_AUTHENTICATE,
        HeaderValue::from_static(challenge.header()),
    );
    response
}

/// The answer to a request that does more than look; none where it looks. The server leaves the body out of
/// an answer to HEAD.
fn only_looking(head: &Parts) -> Option<Response> {
    if matches!(head.method, Method::GET | Method::HEAD) {
        return None;
    }
    let text = "only GET and HEAD are supported here\n";
    let mut response = plain(StatusCode::METHOD_NOT_ALLOWED, text);
    let allowed = HeaderValue::from_static("GET, HEAD");
    response.headers_mut().insert(ALLOW, allowed);
    Some(response)
}

#[cfg(test)]
mod tests {
    use toolkit::face::{Clash, Route};

    use super::super::router::table;
    use super::*;

    #[test]
    fn a_second_claim_on_a_path_names_both_claimants() {
        let health = health::of((Vec::new(), Vec::new()), None, health::Form::Word);
        let routes = table(std::slice::from_ref(&health)).unwrap();
        assert!(routes.find("/health").is_some() && routes.find("/health/x").is_none());
        let clash = table(&[Arc::clone(&health), health]).map(drop).unwrap_err();
        assert_eq!(
            clash.to_string(),
            "\"health\" and \"health\" both claim the path /health; give one of them another"
        );
        assert!(
            matches!(clash, Clash::Twice { route: Route::Exact(path), .. } if path == "/health")
        );
    }
}
