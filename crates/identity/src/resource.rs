//! This server as a protected resource (RFC 9728): its metadata, and challenges that lead to it.

use gate::identity::IdentityFault;
use serde_json::json;
use toolkit::face::Challenge;

use crate::options::IdentityOptions;

/// Path of the metadata; the path of a resource follows it.
pub const WELL_KNOWN: &str = "/.well-known/oauth-protected-resource";
/// Longest path of a resource, in bytes.
const PATH_BYTES_MAX: usize = 128;

/// Metadata and challenges of the protected resources.
#[derive(Debug, Clone)]
pub struct ResourceServer {
    public_url: Option<String>,
    issuers: Vec<String>,
    scopes: Vec<String>,
}

impl ResourceServer {
    /// Returns the resources of a configuration.
    #[must_use]
    pub fn of(options: &IdentityOptions) -> Self {
        let public_url = options.public_url.as_deref();
        Self {
            public_url: public_url.map(|url| url.trim_end_matches('/').to_owned()),
            issuers: options
                .issuers
                .iter()
                .map(|own| own.issuer.clone())
                .collect(),
            scopes: options.scopes.clone(),
        }
    }

    /// Returns the URL that this server is reached at: the configured one, else the one of the request.
    #[must_use]
    pub fn base(&self, requested: &str) -> String {
        let public_url = self.public_url.as_deref();
        public_url.unwrap_or(requested).to_owned()
    }

    /// Returns the canonical URL of the resource at this path, if the public URL is configured. Tokens are compared with it, so
    /// that no `Host` of a request decides.
    #[must_use]
    pub fn canonical(&self, path: &str) -> Option<String> {
        let public_url = self.public_url.as_deref()?;
        Some(format!("{public_url}{}", resource_path(path)))
    }

    /// Returns the metadata document of a resource; its path follows [`WELL_KNOWN`]. `None` if no resource has this path.
    #[must_use]
    pub fn metadata(&self, path: &str, base: &str) -> Option<String> {
        let below = path.strip_prefix(WELL_KNOWN)?;
        let below = below.strip_suffix('/').unwrap_or(below);
        if below.len() > PATH_BYTES_MAX || resource_path(below) != below {
            return None;
        }
        let mut document = json!({
            "resource": format!("{base}{below}"),
            "authorization_servers": self.issuers,
            "bearer_methods_supported": ["header"],
            "resource_name": "Durward",
        });
        if let (false, Some(members)) = (self.scopes.is_empty(), document.as_object_mut()) {
            members.insert("scopes_supported".into(), json!(self.scopes));
        }
        Some(document.to_string())
    }

    /// Returns the value of `WWW-Authenticate` for a request to this path.
    #[must_use]
    pub fn challenge(&self, fault: IdentityFault, base: &str, path: &str) -> String {
        use std::fmt::Write as _;

        let mut value = "Bearer realm=\"durward\"".to_owned();
        // Writing to a string does not fail.
        if let Some(error) = Challenge::of(fault).error {
            let _ = write!(value, ", error=\"{error}\"");
            let sentence = fault.sentence().replace(['"', '\\'], "'");
            let _ = write!(value, ", error_description=\"{sentence}\"");
        }
        let below = resource_path(path);
        let _ = write!(value, ", resource_metadata=\"{base}{WELL_KNOWN}{below}\"");
        if !self.scopes.is_empty() {
            let _ = write!(value, ", scope=\"{}\"", self.scopes.join(" "));
        }
        value
    }
}

/// Returns the path of the resource that a request is for: a server, all servers, the model APIs, else the root.
fn resource_path(path: &str) -> &str {
    let path = path.strip_suffix('/').unwrap_or(path);
    let is_server = path.strip_prefix("/mcp/").is_some_and(|name| {
        !name.is_empty()
            && name
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b))
    });
    if path == "/mcp" || is_server {
        path
    } else if path == "/v1" || path.starts_with("/v1/") {
        "/v1"
    } else {
        ""
    }
}

#[cfg(test)]
mod tests {
    use gate::identity::TokenFault;

    use super::*;

    fn server(public_url: Option<&str>) -> ResourceServer {
        ResourceServer::of(&IdentityOptions {
            public_url: public_url.map(str::to_owned),
            scopes: vec!["mcp:read".into(), "mcp:write".into()],
            ..IdentityOptions::default()
        })
    }

    #[test]
    fn each_resource_has_its_own_metadata_and_other_paths_have_none() {
        let server = server(Some("https://gate.example/"));
        let base = server.base("http://127.0.0.1:1");
        for (path, resource) in [
            ("", "https://gate.example"),
            ("/", "https://gate.example"),
            ("/mcp", "https://gate.example/mcp"),
            ("/mcp/files", "https://gate.example/mcp/files"),
            ("/v1", "https://gate.example/v1"),
        ] {
            let document = server
                .metadata(&format!("{WELL_KNOWN}{path}"), &base)
                .unwrap();
            let document: serde_json::Value = serde_json::from_str(&document).unwrap();
            assert_eq!(document["resource"], resource, "{path}");
            assert_eq!(
                document["scopes_supported"],
                json!(["mcp:read", "mcp:write"])
            );
        }
        for path in [
            "/v1/models",
            "/metrics",
            "x",
            "/mcp/a/b",
            "/mcp/%2e",
            "/mcp//",
        ] {
            let path = format!("{WELL_KNOWN}{path}");
            assert_eq!(server.metadata(&path, &base), None, "{path}");
        }
        assert_eq!(
            server.canonical("/v1/chat/completions").as_deref(),
            Some("https://gate.example/v1")
        );
        assert_eq!(super::tests::server(None).canonical("/mcp"), None);
    }

    #[test]
    fn a_challenge_leads_to_the_metadata_and_names_the_fault() {
        let server = server(None);
        let base = server.base("http://127.0.0.1:8765");
        assert_eq!(
            server.challenge(IdentityFault::Missing, &base, "/mcp/files"),
            "Bearer realm=\"durward\", resource_metadata=\"http://127.0.0.1:8765/.well-known/oauth-protected-resource/mcp/files\", scope=\"mcp:read mcp:write\""
        );
        let expired = IdentityFault::Token(TokenFault::Expired);
        let challenge = server.challenge(expired, &base, "/v1/models");
        assert!(challenge.contains(
            "error=\"invalid_token\", error_description=\"the access token has expired;"
        ));
        assert!(challenge.contains("/.well-known/oauth-protected-resource/v1\""));
        for fault in TokenFault::ALL {
            let challenge = server.challenge(IdentityFault::Token(*fault), &base, "/mcp");
            assert_eq!(challenge.matches('"').count() % 2, 0, "{challenge}");
        }
    }
}
