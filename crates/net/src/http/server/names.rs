//! The names under which a server may be spoken to.
//!
//! A browser sends whatever host name its page was loaded from: a page whose name is made to lead
//! here (DNS rebinding) shows itself in `Host` and `Origin`. A page of another port is another origin:
//! what serves it may be anybody's, and a browser of our user speaks for our user.

use http::header::{HOST, ORIGIN};
use http::uri::Authority;
use http::{HeaderMap, HeaderName};

use super::single;

/// Most names in a list.
pub const NAMES_MAX: usize = 256;

/// How a page stands to us whose browser sends no `Origin`, as it does for pictures and scripts.
const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
/// What the browser does with the answer.
const FETCH_MODE: HeaderName = HeaderName::from_static("sec-fetch-mode");
/// How an origin ends that stands for all ports of its host.
const ANY_PORT: &str = ":*";

/// Names that `Host` and `Origin` may have.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Names {
    /// `host` (any port) or `host:port`, lower case.
    hosts: Vec<String>,
    /// `scheme://host[:port]` or `scheme://host:*`, lower case; the origin that a request is sent to may speak to us as well.
    origins: Vec<String>,
}

/// Why a request is not for us.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NameFault {
    /// `Host` is missing, doubled or unreadable.
    HostUnusable,
    /// `Host` is none of our names.
    HostForeign,
    /// `Origin` is doubled or unreadable, or none that may speak to us; or a page of another one sends no `Origin`.
    OriginForeign,
}

impl NameFault {
    /// All, in the order of the reference page.
    pub const ALL: [Self; 3] = [Self::HostUnusable, Self::HostForeign, Self::OriginForeign];

    /// The closed label.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::HostUnusable => "host_unusable",
            Self::HostForeign => "host_foreign",
            Self::OriginForeign => "origin_foreign",
        }
    }

    /// One sentence for whoever asked.
    #[must_use]
    pub fn sentence(self) -> &'static str {
        match self {
            Self::HostUnusable => "the Host header is missing, doubled or not a host name",
            Self::HostForeign => {
                "the Host header is not one of this server's names; allow it with --allow-host if it should be"
            }
            Self::OriginForeign => {
                "the request comes from a web page whose origin is not allowed; allow it with --allow-origin if it should be"
            }
        }
    }

    /// The status of the answer.
    #[must_use]
    pub fn status(self) -> http::StatusCode {
        match self {
            Self::HostUnusable => http::StatusCode::BAD_REQUEST,
            Self::HostForeign | Self::OriginForeign => http::StatusCode::FORBIDDEN,
        }
    }
}

impl Names {
    /// The names of this machine's loopback, with any port.
    #[must_use]
    pub fn loopback() -> Self {
        Self {
            hosts: ["localhost", "127.0.0.1", "[::1]"]
                .map(str::to_owned)
                .to_vec(),
            origins: Vec::new(),
        }
    }

    /// Allows a host name, with a port or for any.
    ///
    /// # Errors
    /// A sentence, where it is no `host` or `host:port`, or there are too many.
    pub fn allow_host(&mut self, name: &str) -> Result<(), &'static str> {
        let plain = name
            .parse::<Authority>()
            .is_ok_and(|a| !a.as_str().contains('@') && !a.host().is_empty());
        if !plain || name.contains('*') {
            return Err("a host is a name or address, with or without :port");
        }
        push(&mut self.hosts, name)
    }

    /// Allows an origin.
    ///
    /// # Errors
    /// A sentence, where it is no `scheme://host[:port]`, or there are too many.
    pub fn allow_origin(&mut self, origin: &str) -> Result<(), &'static str> {
        let one = origin.strip_suffix(ANY_PORT);
        let one = one.filter(|one| authority_of(one) == authority_of(one).map(without_port));
        if authority_of(one.unwrap_or(origin)).is_none() {
            return Err(
                "an origin is http:// or https:// with a host, with or without :port; :* stands for every port",
            );
        }
        push(&mut self.origins, origin)
    }

    /// Whether a request with these headers is for us. `target` is the host in the request line,
    /// where it has one.
    ///
    /// # Errors
    /// What is wrong with its names.
    pub fn check(&self, headers: &HeaderMap, target: Option<&str>) -> Result<(), NameFault> {
        let host = self.check_host(headers, target)?;
        match single(headers, &ORIGIN) {
            Ok(None) if is_of_another_page(headers) => Err(NameFault::OriginForeign),
            Ok(None) => Ok(()),
            Ok(Some(origin)) if self.has_origin(origin, host) => Ok(()),
            Ok(Some(_)) | Err(_) => Err(NameFault::OriginForeign),
        }
    }

    /// Checks only the host: for documents that pages of every origin may read. Returns it.
    ///
    /// # Errors
    /// [`NameFault::HostUnusable`], [`NameFault::HostForeign`].
    pub fn check_host<'h>(
        &self,
        headers: &'h HeaderMap,
        target: Option<&str>,
    ) -> Result<&'h str, NameFault> {
        let host = single(headers, &HOST)
            .map_err(|_| NameFault::HostUnusable)?
            .ok_or(NameFault::HostUnusable)?;
        let is_other = target.is_some_and(|t| !t.eq_ignore_ascii_case(host));
        match is_other || !self.has_host(host) {
            true => Err(NameFault::HostForeign),
            false => Ok(host),
        }
    }

    fn has_host(&self, host: &str) -> bool {
        let bare = without_port(host);
        self.hosts
            .iter()
            .any(|name| name.eq_ignore_ascii_case(host) || name.eq_ignore_ascii_case(bare))
    }

    fn has_origin(&self, origin: &str, host: &str) -> bool {
        let Some(authority) = authority_of(origin) else {
            return false;
        };
        let bare = origin
            .get(..origin.len() - authority.len() + without_port(authority).len())
            .unwrap_or(origin);
        let fits = |known: &String| match known.strip_suffix(ANY_PORT) {
            Some(known) => known.eq_ignore_ascii_case(bare),
            None => known.eq_ignore_ascii_case(origin),
        };
        authority.eq_ignore_ascii_case(host) || self.origins.iter().any(fits)
    }
}

/// Whether a browser says that another page has it send this. Where a person follows a link, no page gets the answer.
fn is_of_another_page(headers: &HeaderMap) -> bool {
    let said = |name: &HeaderName| single(headers, name).ok().flatten();
    let is_foreign = matches!(said(&FETCH_SITE), Some("cross-site" | "same-site"));
    is_foreign && said(&FETCH_MODE) != Some("navigate")
}

fn push(list: &mut Vec<String>, name: &str) -> Result<(), &'static str> {
    if list.len() >= NAMES_MAX {
        return Err("more than 256 names");
    }
    list.push(name.to_ascii_lowercase());
    Ok(())
}

/// The host and port of an origin; none where it is not one.
fn authority_of(origin: &str) -> Option<&str> {
    let (scheme, authority) = origin.split_once("://")?;
    let known = scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("https");
    let plain = !authority.contains(['@', '/', '?', '#', '*']);
    (known && plain && authority.parse::<Authority>().is_ok()).then_some(authority)
}

/// A host without its port, where what follows the last colon is one.
fn without_port(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((bare, port))
            if !bare.is_empty()
                && !port.is_empty()
                && port.bytes().all(|b| b.is_ascii_digit())
                && (!bare.contains(':') || bare.ends_with(']')) =>
        {
            bare
        }
        _ => host,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    fn check(names: &Names, host: &[&str], origin: &[&str]) -> Result<(), NameFault> {
        let mut headers = HeaderMap::new();
        for value in host {
            headers.append(HOST, HeaderValue::from_bytes(value.as_bytes()).unwrap());
        }
        for value in origin {
            headers.append(ORIGIN, HeaderValue::from_bytes(value.as_bytes()).unwrap());
        }
        names.check(&headers, None)
    }

    #[test]
    fn only_our_names_are_answered() {
        let mut names = Names::loopback();
        names.allow_host("gate.example:8443").unwrap();
        names.allow_origin("https://console.example").unwrap();
        let hosts = [
            ("localhost", true),
            ("LOCALHOST:8765", true),
            ("127.0.0.1:1", true),
            ("[::1]:8765", true),
            ("[::1]", true),
            ("gate.example:8443", true),
            ("gate.example", false),
            ("gate.example:8444", false),
            ("evil.example", false),
            ("localhost.evil.example", false),
            ("localhost:80x", false),
            ("localhost@evil.example", false),
            ("127.0.0.1.evil.example:8765", false),
            ("", false),
            ("::1", false),
        ];
        for (host, good) in hosts {
            let expect = if good {
                Ok(())
            } else {
                Err(NameFault::HostForeign)
            };
            assert_eq!(check(&names, &[host], &[]), expect, "{host}");
        }
        names.allow_origin("http://App.example:*").unwrap();
        let origins = [
            ("http://localhost:8765", true),
            ("https://LOCALHOST:8765", true),
            ("http://localhost:3000", false),
            ("http://localhost", false),
            ("http://127.0.0.1:8765", false),
            ("http://[::1]:8765", false),
            ("https://gate.example:8443", false),
            ("http://app.example", true),
            ("http://app.example:3000", true),
            ("https://app.example", false),
            ("http://app.example:3000x", false),
            ("http://app.example:*", false),
            ("http://app.example.evil.example", false),
            ("https://console.example", true),
            ("http://console.example", false),
            ("https://console.example:8443", false),
            ("http://evil.example", false),
            ("http://localhost@evil.example", false),
            ("http://localhost/x", false),
            ("file://localhost", false),
            ("null", false),
            ("", false),
        ];
        for (origin, good) in origins {
            let expect = if good {
                Ok(())
            } else {
                Err(NameFault::OriginForeign)
            };
            let host = ["localhost:8765"];
            assert_eq!(check(&names, &host, &[origin]), expect, "{origin}");
        }
    }

    #[test]
    fn doubled_missing_and_unreadable_headers_are_no_names() {
        let names = Names::loopback();
        assert_eq!(check(&names, &[], &[]), Err(NameFault::HostUnusable));
        assert_eq!(
            check(&names, &["localhost", "localhost"], &[]),
            Err(NameFault::HostUnusable)
        );
        assert_eq!(
            check(&names, &["local\u{e9}"], &[]),
            Err(NameFault::HostUnusable)
        );
        let twice = ["http://localhost", "http://localhost"];
        assert_eq!(
            check(&names, &["localhost"], &twice),
            Err(NameFault::OriginForeign)
        );
    }

    #[test]
    fn what_another_page_has_sent_without_an_origin_is_refused() {
        let names = Names::loopback();
        for (site, mode, good) in [
            ("same-origin", "no-cors", true),
            ("none", "navigate", true),
            ("cross-site", "navigate", true),
            ("cross-site", "no-cors", false),
            ("same-site", "no-cors", false),
            ("same-site", "websocket", false),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(HOST, HeaderValue::from_static("localhost:8765"));
            headers.insert(FETCH_SITE, HeaderValue::from_static(site));
            headers.insert(FETCH_MODE, HeaderValue::from_static(mode));
            let expect = if good {
                Ok(())
            } else {
                Err(NameFault::OriginForeign)
            };
            assert_eq!(names.check(&headers, None), expect, "{site} {mode}");
        }
    }

    #[test]
    fn what_is_no_name_is_not_taken() {
        let mut names = Names::default();
        for bad in ["", "*", "*.example", "a b", "user@host", "http://host"] {
            assert!(names.allow_host(bad).is_err(), "{bad}");
        }
        for bad in [
            "",
            "*",
            "host",
            "ftp://host",
            "http://",
            "http://h/p",
            "http://*",
            "http://:*",
            "http://*:*",
            "http://h:1:*",
            "http://h:*:*",
        ] {
            assert!(names.allow_origin(bad).is_err(), "{bad}");
        }
        for number in 0..NAMES_MAX {
            names.allow_host(&format!("h{number}")).unwrap();
        }
        assert!(names.allow_host("one-more").is_err());
    }
}
