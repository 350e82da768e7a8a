//! Where requests go: one URL, checked once.

use std::fmt;
use std::net::IpAddr;

use http::uri::PathAndQuery;
use http::{HeaderValue, Uri};
use rustls::pki_types::ServerName;

/// A checked URL.
#[derive(Clone)]
pub struct Target {
    pub(super) secure: bool,
    /// As needed to connect: without brackets.
    pub(super) host: String,
    pub(super) port: u16,
    pub(super) host_header: HeaderValue,
    pub(super) server_name: Option<ServerName<'static>>,
    /// Path and query, in origin form.
    pub(super) path: Uri,
}

/// What is wrong with a URL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TargetFault {
    /// Not a URL with a scheme and a host.
    NotAUrl,
    /// Neither `http` nor `https`.
    Scheme,
    /// It holds a name or password, which logs and process lists would show.
    UserInfo,
    /// Without TLS to another machine, and nobody said that this is meant.
    InTheClear,
}

impl fmt::Display for TargetFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotAUrl => "this is not a URL; write it as https://host:port/path",
            Self::Scheme => "the URL must begin with http:// or https://",
            Self::UserInfo => {
                "the URL has a user name or password, which logs would show; give the key with api_key in durward.yaml, or --api-key-env"
            }
            Self::InTheClear => {
                "http:// to another machine can be read and changed on the network; use https://, or say insecure_http: true in durward.yaml, or --insecure-http"
            }
        })
    }
}

impl std::error::Error for TargetFault {}

impl Target {
    /// Checks a URL. `insecure` allows `http` to other machines than this one.
    ///
    /// # Errors
    /// [`TargetFault`].
    pub fn parse(url: &str, insecure: bool) -> Result<Self, TargetFault> {
        let url = url.split('#').next().unwrap_or_default();
        let uri: Uri = url.parse().map_err(|_| TargetFault::NotAUrl)?;
        let (Some(scheme), Some(authority)) = (uri.scheme_str(), uri.authority()) else {
            return Err(TargetFault::NotAUrl);
        };
        let secure = match scheme {
            "https" => true,
            "http" => false,
            _ => return Err(TargetFault::Scheme),
        };
        if authority.as_str().contains('@') {
            return Err(TargetFault::UserInfo);
        }
        let bare = authority.host();
        let host = bare
            .strip_prefix('[')
            .and_then(|host| host.strip_suffix(']'))
            .unwrap_or(bare);
        if host.is_empty() {
            return Err(TargetFault::NotAUrl);
        }
        if !secure && !insecure && !is_this_machine(host) {
            return Err(TargetFault::InTheClear);
        }
        let port = match (uri.port_u16(), authority.as_str().strip_prefix(bare)) {
            (Some(port), _) => port,
            (None, Some("")) if secure => 443,
            (None, Some("")) => 80,
            (None, _) => return Err(TargetFault::NotAUrl),
        };
        let host_header =
            HeaderValue::try_from(authority.as_str()).map_err(|_| TargetFault::NotAUrl)?;
        let path = uri
            .path_and_query()
            .cloned()
            .unwrap_or_else(|| PathAndQuery::from_static("/"));
        Ok(Self {
            secure,
            port,
            host_header,
            server_name: ServerName::try_from(host.to_owned()).ok(),
            host: host.to_owned(),
            path: Uri::from(path),
        })
    }

    /// The host's name or address.
    #[must_use]
    pub fn host(&self) -> &str {
        &self.host
    }

    /// The host as the header `Host` names it, with the port where the URL has one.
    #[must_use]
    pub fn authority(&self) -> &str {
        self.host_header.to_str().unwrap_or_default()
    }

    /// Whether connections are encrypted.
    #[must_use]
    pub fn is_secure(&self) -> bool {
        self.secure
    }

    /// Whether connections stay on this machine.
    #[must_use]
    pub fn is_on_this_machine(&self) -> bool {
        is_this_machine(&self.host)
    }
}

/// Whether a connection to this host stays on this machine.
fn is_this_machine(host: &str) -> bool {
    match host.parse::<IpAddr>() {
        Ok(address) => address.to_canonical().is_loopback(),
        Err(_) => host.eq_ignore_ascii_case("localhost"),
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.secure { "https" } else { "http" };
        let host = self.host_header.to_str().unwrap_or_default();
        // Not the query: keys are often found there.
        write!(f, "{scheme}://{host}{}", self.path.path())
    }
}

impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

#[cfg(test)]
mod tests;
