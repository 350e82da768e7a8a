//! Paths and who claims them.

use std::borrow::Cow;
use std::fmt;

/// Most routes of a process.
pub const ROUTES_MAX: usize = 1_024;

/// A claim on paths. Paths are compared as they stand in the request, byte by byte: a spelling with percent
/// signs, doubled slashes or dots is another path, and nobody's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Route {
    /// This path only.
    Exact(Cow<'static, str>),
    /// This path and everything below it: `/mcp` claims `/mcp` and `/mcp/x`, not `/mcpx`. `/` claims all.
    Prefix(Cow<'static, str>),
}

impl Route {
    fn path(&self) -> &str {
        match self {
            Self::Exact(path) | Self::Prefix(path) => path,
        }
    }
}

impl fmt::Display for Route {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exact(path) => f.write_str(path),
            Self::Prefix(path) => write!(f, "{}/**", path.trim_end_matches('/')),
        }
    }
}

/// A claim that cannot stand.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Clash {
    /// Two claims on one path.
    Twice {
        /// The route.
        route: Route,
        /// Who claims it.
        claimant: String,
        /// Who had claimed it before.
        holder: String,
    },
    /// The path is not one that a request can have.
    Unfit {
        /// The route.
        route: Route,
        /// Who claims it.
        claimant: String,
    },
    /// There are [`ROUTES_MAX`] routes already.
    TooMany,
}

impl fmt::Display for Clash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Twice {
                route,
                claimant,
                holder,
            } => write!(
                f,
                "\"{claimant}\" and \"{holder}\" both claim the path {route}; give one of them another"
            ),
            Self::Unfit { route, claimant } => write!(
                f,
                "\"{claimant}\" claims the path {route}, which no request has; it must begin with '/' and have no '.' or '..' parts, doubled slashes, '?', '#' or blanks"
            ),
            Self::TooMany => write!(f, "there are more than {ROUTES_MAX} routes"),
        }
    }
}

impl std::error::Error for Clash {}

/// Who has claimed which paths.
#[derive(Debug, Clone)]
pub struct Routes<T> {
    /// Sorted by path; under one path the exact claim comes first.
    claims: Vec<(Route, String, T)>,
}

impl<T> Default for Routes<T> {
    fn default() -> Self {
        Self { claims: Vec::new() }
    }
}

/// Path, and whether what is below is claimed too.
fn key(route: &Route) -> (&str, bool) {
    (route.path(), matches!(route, Route::Prefix(_)))
}

impl<T> Routes<T> {
    /// Claims paths for somebody. A narrower claim inside a wider one is fine, whoever has either.
    ///
    /// # Errors
    /// [`Clash`]; nothing is claimed then.
    pub fn claim(&mut self, claimant: &str, route: Route, target: T) -> Result<(), Clash> {
        if !is_fit(&route) {
            return Err(Clash::Unfit {
                route,
                claimant: claimant.to_owned(),
            });
        }
        if self.claims.len() >= ROUTES_MAX {
            return Err(Clash::TooMany);
        }
        match self.position(key(&route)) {
            Ok(at) => Err(Clash::Twice {
                claimant: claimant.to_owned(),
                holder: self
                    .claims
                    .get(at)
                    .map(|(_, holder, _)| holder.clone())
                    .unwrap_or_default(),
                route,
            }),
            Err(at) => {
                self.claims.insert(at, (route, claimant.to_owned(), target));
                Ok(())
            }
        }
    }

    /// Whose this path is: the exact claim, else the longest of the prefixes.
    #[must_use]
    pub fn find(&self, path: &str) -> Option<&T> {
        if let Ok(at) = self.position((path, false)) {
            return self.target(at);
        }
        let mut end = path.len();
        loop {
            let prefix = path.get(..end)?;
            let above = if prefix.is_empty() { "/" } else { prefix };
            if let Ok(at) = self.position((above, true)) {
                return self.target(at);
            }
            if above == "/" {
                return None;
            }
            end = prefix.rfind('/')?;
        }
    }

    /// All claims, by path, with who has them.
    pub fn claims(&self) -> impl Iterator<Item = (&Route, &str, &T)> {
        self.claims
            .iter()
            .map(|(route, claimant, target)| (route, claimant.as_str(), target))
    }

    fn position(&self, wanted: (&str, bool)) -> Result<usize, usize> {
        self.claims
            .binary_search_by(|(claimed, _, _)| key(claimed).cmp(&wanted))
    }

    fn target(&self, at: usize) -> Option<&T> {
        self.claims.get(at).map(|(_, _, target)| target)
    }
}

/// Whether a request can have this path. A prefix ends without a slash, `/` aside.
fn is_fit(route: &Route) -> bool {
    let path = route.path();
    let Some(rest) = path.strip_prefix('/') else {
        return false;
    };
    let prefix = matches!(route, Route::Prefix(_));
    let odd = |c: char| c.is_whitespace() || c.is_control() || c == '?' || c == '#';
    if path.contains(odd) || (prefix && path.len() > 1 && path.ends_with('/')) {
        return false;
    }
    let mut parts = rest.split('/').peekable();
    while let Some(part) = parts.next() {
        // The last part may be empty: "/" and "/a/" are paths.
        if part == "." || part == ".." || (part.is_empty() && parts.peek().is_some()) {
            return false;
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn exact(path: &'static str) -> Route {
        Route::Exact(path.into())
    }

    fn prefix(path: &'static str) -> Route {
        Route::Prefix(path.into())
    }

    #[test]
    fn the_narrowest_claim_has_the_path() {
        let mut routes = Routes::default();
        for (route, target) in [
            (prefix("/mcp"), 1),
            (exact("/mcp/call_tool"), 2),
            (prefix("/mcp/files"), 3),
            (exact("/health"), 4),
            (exact("/mcp"), 5),
        ] {
            routes.claim("x", route, target).unwrap();
        }
        let cases = [
            ("/mcp", Some(5)),
            ("/mcp/", Some(1)),
            ("/mcp/a", Some(1)),
            ("/mcp/call_tool", Some(2)),
            ("/mcp/call_tool/", Some(1)),
            ("/mcp/files", Some(3)),
            ("/mcp/files/a/b", Some(3)),
            ("/mcp/filesystem", Some(1)),
            ("/mcpx", None),
            ("/%6dcp", None),
            ("//mcp", None),
            ("/health", Some(4)),
            ("/health/", None),
            ("/", None),
            ("", None),
            ("*", None),
        ];
        for (path, expect) in cases {
            assert_eq!(routes.find(path).copied(), expect, "{path}");
        }
        routes.claim("all", prefix("/"), 9).unwrap();
        assert_eq!(routes.find("/mcpx"), Some(&9));
        assert_eq!(routes.find("/mcp/a"), Some(&1));
    }

    #[test]
    fn two_claims_on_one_path_are_told_with_both_names() {
        let mut routes = Routes::default();
        routes.claim("models", exact("/v1/models"), ()).unwrap();
        let clash = routes
            .claim("console", exact("/v1/models"), ())
            .unwrap_err();
        assert_eq!(
            clash.to_string(),
            "\"console\" and \"models\" both claim the path /v1/models; give one of them another"
        );
        routes.claim("console", prefix("/v1/models"), ()).unwrap();
        for path in ["", "v1", "/a//b", "/a/../b", "/a/.", "/a b", "/a?b", "/a#"] {
            let clash = routes.claim("x", Route::Exact(path.into()), ());
            assert!(matches!(clash, Err(Clash::Unfit { .. })), "{path}");
        }
        assert!(routes.claim("x", prefix("/a/"), ()).is_err());
        routes.claim("x", exact("/a/"), ()).unwrap();
        for number in routes.claims().count()..ROUTES_MAX {
            let route = Route::Exact(format!("/{number}").into());
            routes.claim("x", route, ()).unwrap();
        }
        assert_eq!(routes.claim("x", exact("/last"), ()), Err(Clash::TooMany));
    }

    fn path() -> impl Strategy<Value = String> {
        prop::collection::vec("[ab]{0,2}", 1..5).prop_map(|parts| format!("/{}", parts.join("/")))
    }

    fn route() -> impl Strategy<Value = Route> {
        (path(), any::<bool>()).prop_map(|(path, is_prefix)| match is_prefix {
            true => Route::Prefix(path.into()),
            false => Route::Exact(path.into()),
        })
    }

    /// What the documentation says, read out plainly.
    fn covers(route: &Route, path: &str) -> bool {
        match route {
            Route::Exact(exact) => exact == path,
            Route::Prefix(prefix) if prefix == "/" => path.starts_with('/'),
            Route::Prefix(prefix) => path
                .strip_prefix(prefix.as_ref())
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('/')),
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn finding_agrees_with_looking_at_every_claim(
            wanted in prop::collection::vec(route(), 0..24),
            paths in prop::collection::vec(path(), 1..24),
        ) {
            let mut routes = Routes::default();
            let mut kept: Vec<Route> = Vec::new();
            for route in wanted {
                let claimed = routes.claim("x", route.clone(), route.clone());
                prop_assert_eq!(claimed.is_ok(), is_fit(&route) && !kept.contains(&route));
                if claimed.is_ok() {
                    kept.push(route);
                }
            }
            for path in paths {
                let narrowest = kept
                    .iter()
                    .filter(|route| covers(route, &path))
                    .max_by_key(|route| (matches!(route, Route::Exact(_)), route.path().len()));
                prop_assert_eq!(routes.find(&path), narrowest, "{}", path);
            }
        }

        #[test]
        fn the_order_of_claims_does_not_matter(mut wanted in prop::collection::vec(route(), 0..12), path in path()) {
            let build = |wanted: &[Route]| {
                let mut routes = Routes::default();
                for route in wanted {
                    let _ = routes.claim("x", route.clone(), route.clone());
                }
                routes.find(&path).cloned()
            };
            let forwards = build(&wanted);
            wanted.reverse();
            prop_assert_eq!(forwards, build(&wanted));
        }
    }
}
