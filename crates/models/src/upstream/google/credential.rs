//! What tokens are got with, as Google's files have it.

use std::fmt;
use std::path::PathBuf;

use serde::Deserialize;
use zeroize::Zeroizing;

use super::assertion::Signer;

/// Largest file of a credential or a token, in bytes.
pub const CREDENTIAL_BYTES_MAX: u64 = 64 * 1024;
/// Where tokens come from where a file does not say.
const TOKEN_URI: &str = "https://oauth2.googleapis.com/token";

/// What tokens are got with. Nothing shows its secrets.
pub struct GoogleCredential {
    pub(super) way: Way,
    project: Option<String>,
    quota_project: Option<String>,
}

/// How a token is got.
#[derive(Debug)]
pub(super) enum Way {
    /// An account signs for itself.
    ServiceAccount {
        signer: Box<Signer>,
        email: String,
        key_id: Option<String>,
        token_uri: String,
    },
    /// A user has allowed it, and can take that back.
    User {
        client_id: String,
        client_secret: Hidden,
        refresh_token: Hidden,
        token_uri: String,
    },
    /// Something else puts it into a file.
    File(PathBuf),
    /// The machine's own account, told by the machine's host: `host` or `host:port`.
    Metadata(String),
}

/// A text that nothing shows.
#[derive(Clone)]
pub(super) struct Hidden(Zeroizing<String>);

impl Hidden {
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Hidden {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[secret]")
    }
}

impl fmt::Debug for GoogleCredential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("GoogleCredential(…)")
    }
}

/// Why a file is no credential.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CredentialFault {
    /// It is no JSON object with a type.
    Unreadable,
    /// Its type is another one.
    Type(String),
    /// A member is missing or empty.
    Lacks(&'static str),
    /// Its private key is none of RSA.
    PrivateKey,
}

impl fmt::Display for CredentialFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreadable => f.write_str("it is not a JSON file of a service account or of \"gcloud auth application-default login\""),
            Self::Type(kind) => write!(
                f,
                "credentials of type \"{}\" cannot be used; service_account and authorized_user can",
                kind.chars().take(64).collect::<String>().escape_debug()
            ),
            Self::Lacks(member) => write!(f, "it has no {member}"),
            Self::PrivateKey => f.write_str("its private_key is not an RSA key of 2048 to 4096 bits in PEM"),
        }
    }
}

impl std::error::Error for CredentialFault {}

/// A file, as Google writes it.
#[derive(Deserialize)]
struct File {
    #[serde(rename = "type")]
    kind: String,
    project_id: Option<String>,
    quota_project_id: Option<String>,
    token_uri: Option<String>,
    client_email: Option<String>,
    private_key_id: Option<String>,
    private_key: Option<Zeroizing<String>>,
    client_id: Option<String>,
    client_secret: Option<Zeroizing<String>>,
    refresh_token: Option<Zeroizing<String>>,
}

impl GoogleCredential {
    /// Reads a file's text.
    ///
    /// # Errors
    /// [`CredentialFault`]; it repeats nothing of the file but its type.
    pub fn read(text: &[u8]) -> Result<Self, CredentialFault> {
        let file: File = serde_json::from_slice(text).map_err(|_| CredentialFault::Unreadable)?;
        let token_uri = file.token_uri.filter(|uri| !uri.is_empty());
        let token_uri = token_uri.unwrap_or_else(|| TOKEN_URI.to_owned());
        let way = match file.kind.as_str() {
            "service_account" => {
                let key = hidden(file.private_key, "private_key")?;
                Way::ServiceAccount {
                    signer: Signer::read(key.reveal())
                        .map(Box::new)
                        .ok_or(CredentialFault::PrivateKey)?,
                    email: given(file.client_email, "client_email")?,
                    key_id: file.private_key_id,
                    token_uri,
                }
            }
            "authorized_user" => Way::User {
                client_id: given(file.client_id, "client_id")?,
                client_secret: hidden(file.client_secret, "client_secret")?,
                refresh_token: hidden(file.refresh_token, "refresh_token")?,
                token_uri,
            },
            other => return Err(CredentialFault::Type(other.to_owned())),
        };
        Ok(Self {
            way,
            project: file.project_id.filter(|own| !own.is_empty()),
            quota_project: file.quota_project_id.filter(|own| !own.is_empty()),
        })
    }

    /// A file that has an access token, and is read again while Durward runs.
    #[must_use]
    pub fn token_file(path: PathBuf) -> Self {
        Self::of(Way::File(path))
    }

    /// The server of a machine's metadata.
    #[must_use]
    pub fn metadata(host: String) -> Self {
        Self::of(Way::Metadata(host))
    }

    fn of(way: Way) -> Self {
        Self {
            way,
            project: None,
            quota_project: None,
        }
    }

    /// The project that it belongs to, where it says so.
    #[must_use]
    pub fn project(&self) -> Option<&str> {
        self.project.as_deref().or(self.quota_project.as_deref())
    }

    /// The project that calls are counted for, where that is another one.
    pub(super) fn quota_project(&self) -> Option<&str> {
        self.quota_project.as_deref()
    }
}

fn given(found: Option<String>, name: &'static str) -> Result<String, CredentialFault> {
    let found = found.filter(|text| !text.is_empty());
    found.ok_or(CredentialFault::Lacks(name))
}

fn hidden(found: Option<Zeroizing<String>>, name: &'static str) -> Result<Hidden, CredentialFault> {
    let found = found.filter(|text| !text.is_empty());
    found.map(Hidden).ok_or(CredentialFault::Lacks(name))
}
