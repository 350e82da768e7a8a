//! `/mcp/NAME`: the MCP servers; `/mcp`: all of them as one, or the one that is configured to be there and at `/`.

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
    routes: Vec<Route>,
    servers: Arc<http::Face>,
    root: Option<String>,
}

#[expect(clippy::unnecessary_wraps, reason = "one shape for all faces")]
pub(super) fn face(site: &Site) -> Option<Arc<HttpFace>> {
    let mut routes = vec![Route::Prefix("/mcp".into())];
    if site.root.is_some() {
        routes.push(Route::Exact("/".into()));
    }
    Some(Arc::new(Mcp {
        routes,
        servers: Arc::clone(&site.mcp),
        root: site.root.clone(),
    }))
}

/// The server that a path names; `root` is the one that has no name there.
fn name_in<'p>(path: &'p str, root: Option<&'p str>) -> Option<&'p str> {
    let name = match path {
        "/" | "/mcp" => "",
        path => path.strip_prefix("/mcp/")?,
    };
    let name = name.strip_suffix('/').unwrap_or(name);
    if name.is_empty() { root } else { Some(name) }
}

impl Face<Request, Response> for Mcp {
    fn name(&self) -> &'static str {
        "mcp"
    }

    fn routes(&self) -> &[Route] {
        &self.routes
    }

    fn scope<'p>(&'p self, path: &'p str) -> Scope<'p> {
        name_in(path, self.root.as_deref()).map_or(Scope::Servers, Scope::Server)
    }

    fn handle(
        &self,
        who: Result<Caller, IdentityFault>,
        request: Request,
    ) -> BoxFuture<'_, Response> {
        Box::pin(async move {
            let name = name_in(request.head.uri.path(), self.root.as_deref()).map(str::to_owned);
            let caller = match who {
                Ok(caller) => caller,
                Err(fault) => return refused(fault),
            };
            match name {
                Some(name) => self.servers.handle(&name, &caller, request).await,
                None => self.servers.handle_all(&caller, request).await,
            }
        })
    }

    fn on_revoked(&self, caller: &Arc<str>) {
        self.servers.on_revoked(caller);
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
            assert_eq!(name_in(path, None), name, "{path}");
            assert_eq!(name_in(path, Some("r")), name.or(Some("r")), "{path}");
        }
        assert_eq!(name_in("/", Some("r")), Some("r"));
    }
}
