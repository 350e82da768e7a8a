//! The keys that a login offers, in the order of OpenSSH's client.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use russh::keys::agent::AgentIdentity;
use russh::keys::agent::client::AgentClient;
use russh::keys::ssh_key::HashAlg;
use russh::keys::{Algorithm, Certificate, PrivateKey, PublicKey};
use tokio::net::UnixStream;

use super::fault::ConnectFault;
use super::login::{optional_secret, unreadable};
use crate::hosts::{KeyFile, KeySources, Secret, read_key_file};

/// Most keys that one login offers; a server ends the connection much earlier.
const IDENTITIES_MAX: usize = 64;

/// A key or certificate, as it is shown to a server.
#[derive(Clone)]
pub(super) enum Offer {
    Key(PublicKey),
    Certificate(Box<Certificate>),
}

/// Where an offered key's private half is.
#[derive(Clone)]
pub(super) enum Holder {
    /// The agent has it, listed so.
    Agent(Box<AgentIdentity>),
    /// A file has it.
    File(Arc<PrivateKey>),
}

/// One key to offer.
pub(super) struct Identity {
    pub offer: Offer,
    pub holder: Holder,
    /// Its name in messages.
    pub name: String,
}

/// All keys of one login.
#[derive(Default)]
pub(super) struct Identities {
    pub list: Vec<Identity>,
    pub agent: Option<AgentClient<UnixStream>>,
    /// Keys that cannot be offered, and why.
    pub skipped: Vec<String>,
}

/// A key file, read as far as it can be.
struct ReadKey<'s> {
    path: &'s Path,
    public: PublicKey,
    /// Why there is no private key, if there is none.
    private: Result<Arc<PrivateKey>, String>,
    /// The certificate beside it.
    certificate: Option<Certificate>,
}

impl Offer {
    pub fn public_key(&self) -> PublicKey {
        match self {
            Self::Key(key) => key.clone(),
            Self::Certificate(certificate) => PublicKey::from(certificate.public_key().clone()),
        }
    }

    fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Key(one), Self::Key(other)) => one.key_data() == other.key_data(),
            (Self::Certificate(one), Self::Certificate(other)) => {
                matches!((one.to_bytes(), other.to_bytes()), (Ok(one), Ok(other)) if one == other)
            }
            _ => false,
        }
    }
}

impl Identities {
    /// Collects what these sources have. Reads the files, and asks the agent on the stream.
    pub async fn collect(
        sources: &KeySources,
        environment: &crate::Environment,
        binding: Option<&russh::keys::agent::AgentSessionBinding>,
    ) -> Result<Self, ConnectFault> {
        let mut skipped = Vec::new();
        let mut keys = Vec::new();
        for file in &sources.files {
            let passphrase = optional_secret(file.passphrase.as_ref(), environment)?;
            match ReadKey::new(file, passphrase.as_ref(), sources.certificates.is_empty()) {
                Ok(key) => keys.push(key),
                Err(wrong) if sources.skips_unreadable => {
                    skipped.push(format!("{}: {wrong}", file.path.display()));
                }
                Err(wrong) => return Err(unreadable(&file.path, &wrong)),
            }
        }
        let (agent, listed) = match &sources.agent {
            None => (None, Vec::new()),
            Some(socket) => match listed(socket, binding).await {
                Ok((agent, listed)) => (Some(agent), listed),
                Err(wrong) if sources.skips_unreadable && !keys.is_empty() => {
                    skipped.push(wrong);
                    (None, Vec::new())
                }
                Err(wrong) => return Err(ConnectFault::new("credential_unreadable", wrong)),
            },
        };
        let mut all = Self {
            list: Vec::new(),
            agent,
            skipped,
        };
        for path in &sources.certificates {
            match certificate(path) {
                Ok(Some(certificate)) => {
                    let offer = Offer::Certificate(Box::new(certificate));
                    all.add(offer, path.display().to_string(), &keys, &listed);
                }
                Ok(None) => all.skip(path, "is not a certificate of a user"),
                Err(wrong) if sources.skips_unreadable => all.skip(path, &wrong),
                Err(wrong) => return Err(unreadable(path, &wrong)),
            }
        }
        let named: Vec<(Offer, String)> = keys.iter().flat_map(ReadKey::offers).collect();
        let is_named = |of: &Offer| named.iter().any(|(offer, _)| offer.is_same(of));
        let (first, others): (Vec<_>, Vec<_>) = listed
            .iter()
            .partition(|identity| is_named(&offer(identity)));
        let others = others.into_iter().filter(|_| !sources.identities_only);
        for identity in first.into_iter().chain(others) {
            let name = format!("{} of the agent", label(identity));
            all.add(offer(identity), name, &keys, &listed);
        }
        for (offer, name) in named {
            all.add(offer, name, &keys, &listed);
        }
        all.list.truncate(IDENTITIES_MAX);
        Ok(all)
    }

    fn skip(&mut self, path: &Path, wrong: &str) {
        self.skipped.push(format!("{}: {wrong}", path.display()));
    }

    /// Adds an offer that is not in the list yet, if something can sign for it.
    fn add(&mut self, offer: Offer, name: String, keys: &[ReadKey<'_>], listed: &[AgentIdentity]) {
        if self.list.iter().any(|known| known.offer.is_same(&offer)) {
            return;
        }
        match holder(&offer, keys, listed) {
            Ok(holder) => self.list.push(Identity {
                offer,
                holder,
                name,
            }),
            Err(wrong) => self.skipped.push(format!("{name}: {wrong}")),
        }
    }
}

/// Finds the private half of an offer: at the agent as it is, at the agent as a plain key, in a file.
fn holder(of: &Offer, keys: &[ReadKey<'_>], listed: &[AgentIdentity]) -> Result<Holder, String> {
    let public = of.public_key();
    let plain = Offer::Key(public.clone());
    let at_agent = |wanted: &Offer| {
        listed
            .iter()
            .find(|identity| offer(identity).is_same(wanted))
    };
    if let Some(identity) = at_agent(of).or_else(|| at_agent(&plain)) {
        return Ok(Holder::Agent(Box::new(identity.clone())));
    }
    let mut same = keys
        .iter()
        .filter(|key| key.public.key_data() == public.key_data())
        .map(|key| &key.private);
    let first = same
        .next()
        .ok_or("no file and no agent has its private key")?;
    let usable = std::iter::once(first).chain(same).find(|key| key.is_ok());
    match usable.unwrap_or(first) {
        Ok(key) => Ok(Holder::File(Arc::clone(key))),
        Err(wrong) => Err(wrong.clone()),
    }
}

fn offer(identity: &AgentIdentity) -> Offer {
    match identity {
        AgentIdentity::PublicKey { key, .. } => Offer::Key(key.clone()),
        AgentIdentity::Certificate { certificate, .. } => {
            Offer::Certificate(Box::new(certificate.clone()))
        }
    }
}

fn label(identity: &AgentIdentity) -> String {
    match identity {
        AgentIdentity::PublicKey { comment, .. } | AgentIdentity::Certificate { comment, .. }
            if !comment.is_empty() =>
        {
            comment.clone()
        }
        other => other.public_key().fingerprint(HashAlg::Sha256).to_string(),
    }
}

/// Connects to an agent and lists its keys.
async fn listed(
    socket: &Path,
    binding: Option<&russh::keys::agent::AgentSessionBinding>,
) -> Result<(AgentClient<UnixStream>, Vec<AgentIdentity>), String> {
    let wrong = |error: russh::keys::Error| format!("the agent at {}: {error}", socket.display());
    let mut agent = AgentClient::connect_uds(socket).await.map_err(wrong)?;
    if let Some(binding) = binding {
        // Keys with a destination constraint need it; agents that do not know it say no, which changes nothing.
        let _ = agent.bind_session(binding, false).await;
    }
    let listed = agent.request_identities().await.map_err(wrong)?;
    Ok((agent, listed))
}

/// Reads a certificate; `None` if it is not one of a user.
fn certificate(path: &Path) -> Result<Option<Certificate>, String> {
    let text = read_key_file(path).map_err(|fault| fault.into_reason())?;
    let certificate = Certificate::from_openssh(&text).map_err(|error| error.to_string())?;
    Ok(Some(certificate).filter(|certificate| certificate.cert_type().is_user()))
}

fn beside(path: &Path, end: &str) -> PathBuf {
    let mut beside = path.as_os_str().to_owned();
    beside.push(end);
    PathBuf::from(beside)
}

fn public(text: &str) -> Option<PublicKey> {
    PublicKey::from_openssh(text).ok()
}

impl<'s> ReadKey<'s> {
    /// Reads a private key, or a public one for which an agent may have the private half.
    ///
    /// # Errors
    /// Why neither half can be read.
    fn new(
        file: &'s KeyFile,
        passphrase: Option<&Secret>,
        with_certificate: bool,
    ) -> Result<Self, String> {
        let path = file.path.as_path();
        let text = read_key_file(path).map_err(|fault| fault.into_reason());
        let private = text.as_ref().map_err(Clone::clone).and_then(|text| {
            if public(text).is_some() {
                return Err("no agent has the private half of this public key".into());
            }
            let key = russh::keys::decode_secret_key(text, passphrase.map(Secret::expose));
            match key {
                Ok(key) if can_sign(&key) => Ok(Arc::new(key)),
                Ok(key) => Err(format!(
                    "a file of {} signs nothing by itself; let an agent hold the key",
                    key.algorithm()
                )),
                Err(_) if passphrase.is_none() && is_encrypted(text) => Err(
                    "it has a passphrase, which is not known here, and no agent holds it".into(),
                ),
                Err(error) => Err(error.to_string()),
            }
        });
        let known = match (&private, &text) {
            (Ok(key), _) => Some(key.public_key().clone()),
            // A private key of OpenSSH's has its public half in the clear.
            (Err(_), Ok(text)) => public(text).or_else(|| {
                let key = PrivateKey::from_openssh(text.as_bytes()).ok()?;
                Some(key.public_key().clone())
            }),
            (Err(_), Err(_)) => None,
        };
        let known = known.or_else(|| public(&read_key_file(&beside(path, ".pub")).ok()?));
        let public = match (known, &private) {
            (Some(public), _) => public,
            (None, Err(wrong)) => return Err(wrong.clone()),
            (None, Ok(_)) => return Err("it has no public half".into()),
        };
        let certificate = with_certificate
            .then(|| certificate(&beside(path, "-cert.pub")).ok().flatten())
            .flatten();
        Ok(Self {
            path,
            public,
            private,
            certificate,
        })
    }

    /// The key, and the certificate beside it.
    fn offers(&self) -> impl Iterator<Item = (Offer, String)> {
        let name = self.path.display().to_string();
        let certificate = self.certificate.clone().map(|certificate| {
            let name = format!("{name}-cert.pub");
            (Offer::Certificate(Box::new(certificate)), name)
        });
        [(Offer::Key(self.public.clone()), name)]
            .into_iter()
            .chain(certificate)
    }
}

/// Returns false for a security key's file, which has no private number in it, and for DSA.
fn can_sign(key: &PrivateKey) -> bool {
    matches!(
        key.algorithm(),
        Algorithm::Ed25519 | Algorithm::Ecdsa { .. } | Algorithm::Rsa { .. }
    )
}

fn is_encrypted(text: &str) -> bool {
    text.contains("ENCRYPTED")
        || PrivateKey::from_openssh(text.as_bytes()).is_ok_and(|key| key.is_encrypted())
}
