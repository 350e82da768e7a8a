//! Signatures of an agent for a login.

use russh::keys::HashAlg;
use russh::keys::agent::AgentIdentity;
use russh::keys::agent::client::AgentClient;
use russh::{SendError, Signer};
use tokio::net::UnixStream;

/// Why a login was not signed.
#[derive(Debug)]
pub(super) struct SignFault {
    pub wrong: String,
    /// Why the connection to the server cannot be used any more, if it cannot.
    pub lost: Option<russh::Error>,
}

impl SignFault {
    pub fn new(wrong: impl Into<String>) -> Self {
        Self {
            wrong: wrong.into(),
            lost: None,
        }
    }

    pub fn lost(error: russh::Error) -> Self {
        Self {
            wrong: error.to_string(),
            lost: Some(error),
        }
    }
}

impl From<SendError> for SignFault {
    fn from(error: SendError) -> Self {
        Self {
            wrong: error.to_string(),
            lost: Some(russh::Error::HUP),
        }
    }
}

/// Has an agent sign with one of its keys, also for a certificate of that key which the agent does not have.
pub(super) struct AgentSigner<'a> {
    pub agent: &'a mut AgentClient<UnixStream>,
    /// The key or certificate as the agent lists it.
    pub identity: &'a AgentIdentity,
}

impl Signer for AgentSigner<'_> {
    type Error = SignFault;

    async fn auth_sign(
        &mut self,
        _offered: &AgentIdentity,
        hash: Option<HashAlg>,
        data: Vec<u8>,
    ) -> Result<Vec<u8>, SignFault> {
        let signed = self.agent.sign_request(self.identity, hash, data).await;
        signed.map_err(|error| SignFault::new(error.to_string()))
    }
}
