//! `/mcp/NAME`: the MCP servers.

use std::sync::Arc;

use ::mcp::http;
use gate::Caller;
use gate::identity::IdentityFault;
use net::http::server::{Request, Response};
use toolkit::face::{Face, Route, Scope};
use toolkit::server::BoxFuture;

use super::super::router::HttpFace;
use super::{Site, refused};

struct Mcp {
    routes: [Route; 1],
    servers: Arc<http::Face>,
}

#[expect(clippy::unnecessary_wraps, reason = "one shape for all faces")]
pub(super) fn face(site: &Site) -> Option<Arc<HttpFace>> {
    Some(Arc::new(Mcp {
        routes: [Route::Prefix("/mcp".into())],
        servers: Arc::clone(&site.mcp),
    }))
}

/// The server that a path names.
fn name_in(path: &str) -> Option<&str> {
    let name = path.strip_prefix("/mcp/")?;
    let name = name.strip_suffix('/').unwrap_or(name);
    (!name.is_empty()).then_some(name)
}

impl Face<Request, Response> for Mcp {
    fn name(&self) -> &'static str {
        "mcp"
    }

    fn routes(&self) -> &[Route] {
        &self.routes
    }

    fn scope<'p>(&'p self, path: &'p str) -> Scope<'p> {
        name_in(path).map_or(Scope::Keyed, Scope::Server)
    }

    fn handle(
        &self,
        who: Result<Caller, IdentityFault>,
        request: Request,
    ) -> BoxFuture<'_, Response> {
        Box::pin(async move {
            let caller = match who {
                Ok(caller) => caller,
                Err(fault) => return refused(fault),
            };
            let name = name_in(request.head.uri.path()).map(str::to_owned);
            match name {
                Some(name) => self.servers.handle(&name, &caller, request).await,
                None => self.servers.unknown_server(),
            }
        })
    }

    fn expel(&self, caller: &Arc<str>) {
        self.servers.expel(caller);
    }

    fn quiet(&self) {
        self.servers.quiet();
    }

    fn cancel_all(&self) {
        self.servers.cancel_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_what_follows_the_prefix() {
        let cases = [
            ("/mcp", None),
            ("/mcp/", None),
            ("/mcp//", None),
            ("/mcp/a", Some("a")),
            ("/mcp/a/", Some("a")),
            ("/mcp/a/b", Some("a/b")),
        ];
        for (path, name) in cases {
            assert_eq!(name_in(path), name, "{path}");
        }
    }
}
