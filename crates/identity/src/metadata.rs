//! Metadata of an issuer (OpenID Connect Discovery 1.0, RFC 8414).

use std::fmt;
use std::net::IpAddr;

use serde_json::{Map, Value};

use crate::options::check_url;

/// Endpoints of an issuer, as its metadata states them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IssuerMetadata {
    /// URL of its keys.
    pub jwks_uri: String,
    /// URL that issues and refreshes tokens.
    pub token: Option<String>,
    /// URL that begins the device flow (RFC 8628).
    pub device_authorization: Option<String>,
    /// URL that revokes tokens (RFC 7009).
    pub revocation: Option<String>,
    /// Page that ends the session of a person.
    pub end_session: Option<String>,
}

/// Why the metadata of an issuer is not used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MetadataFault {
    /// Not a JSON object with each member once.
    Malformed,
    /// It is another issuer's.
    OtherIssuer(String),
    /// A member is missing or not a text.
    Missing(&'static str),
    /// A URL is without TLS, or leads into a network that the issuer is not in.
    Address(&'static str),
}

impl fmt::Display for MetadataFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Malformed => {
                f.write_str("its metadata is not a JSON object with each member once")
            }
            Self::OtherIssuer(other) => write!(
                f,
                "its metadata is that of another issuer, \"{}\"; write the issuer exactly as it names itself",
                other.escape_debug()
            ),
            Self::Missing(member) => write!(f, "its metadata has no {member}"),
            Self::Address(member) => write!(
                f,
                "{member} of its metadata is not an https:// URL of a public host or of its own host"
            ),
        }
    }
}

impl IssuerMetadata {
    /// Reads the document of this issuer.
    ///
    /// # Errors
    /// [`MetadataFault`].
    pub fn read(document: &[u8], issuer: &str) -> Result<Self, MetadataFault> {
        let members = toolkit::face::object(document).map_err(|_| MetadataFault::Malformed)?;
        let own = text(&members, "issuer")?;
        // Byte by byte: a mixed-up issuer differs in as little as a slash.
        if own != issuer {
            let shown: String = own.chars().take(256).collect();
            return Err(MetadataFault::OtherIssuer(shown));
        }
        let optional = |name| match members.contains_key(name) {
            true => url(&members, name, issuer).map(Some),
            false => Ok(None),
        };
        Ok(Self {
            jwks_uri: url(&members, "jwks_uri", issuer)?,
            token: optional("token_endpoint")?,
            device_authorization: optional("device_authorization_endpoint")?,
            revocation: optional("revocation_endpoint")?,
            end_session: optional("end_session_endpoint")?,
        })
    }
}

fn text<'m>(members: &'m Map<String, Value>, name: &'static str) -> Result<&'m str, MetadataFault> {
    let text = members.get(name).and_then(Value::as_str);
    text.ok_or(MetadataFault::Missing(name))
}

/// Returns a URL of the document that requests may be sent to.
fn url(
    members: &Map<String, Value>,
    name: &'static str,
    issuer: &str,
) -> Result<String, MetadataFault> {
    let url = text(members, name)?;
    check_url(url).map_err(|_| MetadataFault::Address(name))?;
    let (own, other) = (host_of(issuer), host_of(url));
    let may_reach = own == other || (url.starts_with("https://") && !is_inside(other));
    match may_reach {
        true => Ok(url.to_owned()),
        false => Err(MetadataFault::Address(name)),
    }
}

/// Returns the host of a checked URL, without its port.
fn host_of(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = rest.split('/').next().unwrap_or_default();
    match authority.strip_prefix('[') {
        Some(address) => address.split(']').next().unwrap_or_default(),
        None => authority.split(':').next().unwrap_or_default(),
    }
}

/// Returns whether a host is an address inside a network, or a name of this machine.
fn is_inside(host: &str) -> bool {
    let name = host.trim_end_matches('.').to_ascii_lowercase();
    let Ok(address) = name.parse::<IpAddr>() else {
        // Names of one label and numbers that some resolvers read as addresses.
        return name == "localhost"
            || name.ends_with(".localhost")
            || name.ends_with(".internal")
            || !name.contains('.')
            || name
                .bytes()
                .all(|b| b.is_ascii_hexdigit() || b == b'.' || b == b'x');
    };
    match address.to_canonical() {
        IpAddr::V4(address) => {
            let [first, second, ..] = address.octets();
            address.is_loopback()
                || address.is_private()
                || address.is_link_local()
                || address.is_unspecified()
                || address.is_broadcast()
                || address.is_multicast()
                || first == 0
                || (first == 100 && (64..128).contains(&second))
        }
        IpAddr::V6(address) => {
            address.is_loopback()
                || address.is_unspecified()
                || address.is_unique_local()
                || address.is_unicast_link_local()
                || address.is_multicast()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metadata_is_used_only_if_it_is_the_issuers_own_and_leads_nowhere_inside() {
        let issuer = "https://id.example/realms/t";
        let read = |own: &str, jwks: &str| {
            let text = format!(r#"{{"issuer":"{own}","jwks_uri":"{jwks}"}}"#);
            IssuerMetadata::read(text.as_bytes(), issuer)
        };
        for jwks in [
            "https://id.example/keys",
            "https://keys.example/keys",
            "https://id.example:8443/keys",
        ] {
            assert_eq!(read(issuer, jwks).unwrap().jwks_uri, jwks);
        }
        for own in [
            "https://id.example/realms/t/",
            "https://id.example/realms/T",
            "https://evil.example/realms/t",
            "",
        ] {
            let other = MetadataFault::OtherIssuer(own.to_owned());
            assert_eq!(read(own, "https://id.example/keys"), Err(other), "{own}");
        }
        for jwks in [
            "http://id.example/keys",
            "https://127.0.0.1/keys",
            "https://localhost/keys",
            "https://LOCALHOST./keys",
            "https://a.localhost/keys",
            "https://10.1.2.3/keys",
            "https://192.168.0.1/keys",
            "https://172.16.0.1/keys",
            "https://169.254.169.254/latest/meta-data",
            "https://100.64.0.1/keys",
            "https://0.0.0.0/keys",
            "https://[::1]/keys",
            "https://[fd00::1]/keys",
            "https://[fe80::1]/keys",
            "https://[::ffff:10.0.0.1]/keys",
            "https://metadata.google.internal/keys",
            "https://2130706433/keys",
            "https://0x7f000001/keys",
            "https://127.1/keys",
            "https://intranet/keys",
            "https://id.example@10.0.0.1/keys",
            "file:///etc/passwd",
            "ftp://id.example/keys",
            "",
        ] {
            let address = Err(MetadataFault::Address("jwks_uri"));
            assert_eq!(read(issuer, jwks), address, "{jwks}");
        }
        let none = IssuerMetadata::read(br#"{"issuer":"https://id.example/realms/t"}"#, issuer);
        assert_eq!(none, Err(MetadataFault::Missing("jwks_uri")));
        for text in ["", "[]", "{", r#"{"issuer":"a","issuer":"b"}"#] {
            let read = IssuerMetadata::read(text.as_bytes(), issuer);
            assert_eq!(read, Err(MetadataFault::Malformed), "{text}");
        }
    }
}
