//! Proofs of a login, in the order in which a server takes them.

use std::path::Path;
use std::sync::Arc;

use russh::client::{AuthResult, Handle, KeyboardInteractiveAuthResponse as Reply};
use russh::keys::agent::client::AgentClient;
use russh::keys::{Algorithm, HashAlg, PrivateKey, PrivateKeyWithHashAlg, PublicKey};
use russh::{MethodKind, MethodSet};
use tokio::net::UnixStream;

use super::fault::ConnectFault;
use super::identities::{Holder, Identities, Identity, Offer};
use super::issued::issue;
use super::rsa::RsaSigner;
use super::sign::{AgentSigner, SignFault};
use super::verify::Verifier;
use crate::hosts::{Credential, KeySources, Place, Proof, Secret, read_key_file};

/// Most rounds of questions that are answered.
const QUESTION_ROUNDS_MAX: usize = 4;
/// Most proofs that a server may want one after the other.
const PROOFS_MAX: usize = 4;

type To = Handle<Verifier>;

/// Logs in with the credential's proofs; each one that the server accepts as a part makes way for the others.
pub(super) async fn login(
    to: &mut To,
    credential: &Credential,
    environment: &crate::Environment,
    given: Option<&Secret>,
) -> Result<(), ConnectFault> {
    let mut login = LoginAttempt {
        to,
        user: &credential.user,
        id: &credential.id,
        environment,
        given,
        methods: None,
        refused: Vec::new(),
        accepted: Vec::new(),
        accepted_keys: Vec::new(),
        skipped: Vec::new(),
        wants_password: false,
    };
    let mut left: Vec<&Proof> = credential.proofs.iter().collect();
    for _ in 0..PROOFS_MAX {
        match login.round(&mut left).await? {
            Outcome::Accepted => return Ok(()),
            Outcome::Partial => {}
            Outcome::Refused => break,
        }
    }
    Err(login.fault())
}

/// How a server answers a proof.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Outcome {
    Accepted,
    /// It accepts the proof and wants another one.
    Partial,
    Refused,
}

/// One login under way.
struct LoginAttempt<'l> {
    to: &'l mut To,
    user: &'l str,
    /// The credential's name, which certificates carry.
    id: &'l str,
    environment: &'l crate::Environment,
    given: Option<&'l Secret>,
    /// What the server takes next; `None` before its first answer.
    methods: Option<MethodSet>,
    /// Kinds and names of the proofs that the server refused since its last yes.
    refused: Vec<(&'static str, String)>,
    /// Kinds of the proofs that it accepted as a part.
    accepted: Vec<&'static str>,
    /// The keys among them: none is accepted twice.
    accepted_keys: Vec<PublicKey>,
    /// Keys that were not offered, and why.
    skipped: Vec<String>,
    /// The caller's password would be next and was not given.
    wants_password: bool,
}

impl LoginAttempt<'_> {
    /// Tries all proofs until one is accepted. One that is no key is used once.
    async fn round(&mut self, left: &mut Vec<&Proof>) -> Result<Outcome, ConnectFault> {
        for at in 0..left.len() {
            let Some(proof) = left.get(at).copied() else {
                break;
            };
            match self.prove(proof).await? {
                Outcome::Refused => {}
                Outcome::Accepted => return Ok(Outcome::Accepted),
                Outcome::Partial => {
                    if !matches!(proof, Proof::Keys(_)) {
                        left.remove(at);
                    }
                    self.refused.clear();
                    return Ok(Outcome::Partial);
                }
            }
        }
        Ok(Outcome::Refused)
    }

    async fn prove(&mut self, proof: &Proof) -> Result<Outcome, ConnectFault> {
        match proof {
            Proof::Keys(sources) if self.takes(MethodKind::PublicKey) => {
                self.by_keys(sources).await
            }
            Proof::Issued {
                authority,
                passphrase,
                seconds,
            } if self.takes(MethodKind::PublicKey) => {
                let passphrase = optional_secret(passphrase.as_ref(), self.environment)?;
                let key = authority_key(authority, passphrase.as_ref())?;
                let issued = issue(&key, self.user, self.id, *seconds);
                let (own, certificate) = issued.map_err(|wrong| unreadable(authority, &wrong))?;
                let result =
                    self.to
                        .authenticate_openssh_cert(self.user, Arc::new(own), certificate);
                let result = result.await?;
                Ok(self.outcome(&result, "certificate", authority.display().to_string()))
            }
            Proof::Keys(_) | Proof::Issued { .. } => Ok(Outcome::Refused),
            Proof::Password(place) => {
                let password = secret(place, self.environment)?;
                self.by_password(&password).await
            }
            Proof::Caller => match self.given {
                Some(password) => self.by_password(password).await,
                None => {
                    self.wants_password = true;
                    Ok(Outcome::Refused)
                }
            },
        }
    }

    /// Returns whether the server may take this method next.
    fn takes(&self, method: MethodKind) -> bool {
        let known = self.methods.as_ref();
        known.is_none_or(|methods| methods.contains(&method))
    }

    fn outcome(&mut self, result: &AuthResult, kind: &'static str, name: String) -> Outcome {
        let AuthResult::Failure {
            remaining_methods,
            partial_success,
        } = result
        else {
            return Outcome::Accepted;
        };
        self.failure(remaining_methods, *partial_success, kind, name)
    }

    fn failure(
        &mut self,
        remaining: &MethodSet,
        is_partial: bool,
        kind: &'static str,
        name: String,
    ) -> Outcome {
        self.methods = Some(remaining.clone());
        if is_partial {
            self.accepted.push(kind);
            Outcome::Partial
        } else {
            self.refused.push((kind, name));
            Outcome::Refused
        }
    }

    async fn by_keys(&mut self, sources: &KeySources) -> Result<Outcome, ConnectFault> {
        let binding = self.to.agent_session_binding().cloned();
        let collected = Identities::collect(sources, self.environment, binding.as_ref()).await?;
        let Identities {
            list,
            mut agent,
            skipped,
        } = collected;
        self.skipped = skipped;
        if list.is_empty() && sources.agent.is_some() && self.skipped.is_empty() {
            self.skipped.push("the agent has no key".into());
        }
        for identity in list {
            let public = identity.offer.public_key();
            if self.accepted_keys.contains(&public) {
                continue;
            }
            let result = match self.offer(&identity, agent.as_mut()).await {
                Ok(result) => result,
                Err(SignFault {
                    lost: Some(error), ..
                }) => return Err(error.into()),
                Err(fault) => {
                    self.skipped
                        .push(format!("{}: {}", identity.name, fault.wrong));
                    continue;
                }
            };
            let kind = match (&identity.offer, &identity.holder) {
                (Offer::Certificate(_), _) => "certificate",
                (Offer::Key(_), Holder::File(_)) => "key",
                (Offer::Key(_), Holder::Agent(_)) => "key of the agent",
            };
            match self.outcome(&result, kind, identity.name) {
                Outcome::Refused if self.takes(MethodKind::PublicKey) => {}
                Outcome::Refused => return Ok(Outcome::Refused),
                Outcome::Accepted => return Ok(Outcome::Accepted),
                Outcome::Partial => {
                    self.accepted_keys.push(public);
                    return Ok(Outcome::Partial);
                }
            }
        }
        Ok(Outcome::Refused)
    }

    /// Offers one key or certificate, and signs if the server would take it.
    async fn offer(
        &mut self,
        identity: &Identity,
        agent: Option<&mut AgentClient<UnixStream>>,
    ) -> Result<AuthResult, SignFault> {
        let hash = self
            .hash_for(&identity.offer.public_key().algorithm())
            .await?;
        match (&identity.holder, agent) {
            (Holder::Agent(identity_of_agent), Some(agent)) => {
                let mut signer = AgentSigner {
                    agent,
                    identity: identity_of_agent,
                };
                self.sign(&identity.offer, hash, &mut signer).await
            }
            (Holder::Agent(_), None) => Err(SignFault::new("the agent is gone")),
            (Holder::File(key), _) => match RsaSigner::new(key) {
                Some(signer) => {
                    let mut signer = signer.map_err(SignFault::new)?;
                    self.sign(&identity.offer, hash, &mut signer).await
                }
                None => {
                    let key = Arc::clone(key);
                    let result = match &identity.offer {
                        Offer::Key(_) => {
                            let key = PrivateKeyWithHashAlg::new(key, None);
                            self.to.authenticate_publickey(self.user, key).await
                        }
                        Offer::Certificate(certificate) => {
                            let certificate = certificate.as_ref().clone();
                            self.to
                                .authenticate_openssh_cert(self.user, key, certificate)
                                .await
                        }
                    };
                    result.map_err(SignFault::lost)
                }
            },
        }
    }

    async fn sign<S: russh::Signer<Error = SignFault>>(
        &mut self,
        offer: &Offer,
        hash: Option<HashAlg>,
        signer: &mut S,
    ) -> Result<AuthResult, SignFault> {
        match offer {
            Offer::Key(key) => {
                let offered =
                    self.to
                        .authenticate_publickey_with(self.user, key.clone(), hash, signer);
                offered.await
            }
            Offer::Certificate(certificate) => {
                let certificate = certificate.as_ref().clone();
                let offered =
                    self.to
                        .authenticate_certificate_with(self.user, certificate, hash, signer);
                offered.await
            }
        }
    }

    /// Returns what an RSA key signs with at this server; other keys have one way alone.
    async fn hash_for(&mut self, key: &Algorithm) -> Result<Option<HashAlg>, SignFault> {
        if !matches!(key, Algorithm::Rsa { .. }) {
            return Ok(None);
        }
        match self.to.best_supported_rsa_hash().await {
            Ok(Some(Some(hash))) => Ok(Some(hash)),
            Ok(Some(None)) => Err(SignFault::new(
                "the server takes RSA signatures of SHA-1 alone",
            )),
            // A server that does not say what it takes may still take it.
            Ok(None) => Ok(Some(HashAlg::Sha256)),
            Err(error) => Err(SignFault::lost(error)),
        }
    }

    async fn by_password(&mut self, password: &Secret) -> Result<Outcome, ConnectFault> {
        if self.takes(MethodKind::Password) {
            let result = self
                .to
                .authenticate_password(self.user, password.expose())
                .await?;
            // A server that takes no passwords as such may ask for one by questions.
            let asks = matches!(&result, AuthResult::Failure { partial_success: false, remaining_methods }
                if !remaining_methods.contains(&MethodKind::Password)
                    && remaining_methods.contains(&MethodKind::KeyboardInteractive));
            if !asks {
                return Ok(self.outcome(&result, "password", String::new()));
            }
        } else if !self.takes(MethodKind::KeyboardInteractive) {
            return Ok(Outcome::Refused);
        }
        let mut reply = self
            .to
            .authenticate_keyboard_interactive_start(self.user, None)
            .await?;
        for _ in 0..QUESTION_ROUNDS_MAX {
            match reply {
                Reply::Success => return Ok(Outcome::Accepted),
                Reply::Failure {
                    remaining_methods,
                    partial_success,
                } => {
                    let name = String::new();
                    return Ok(self.failure(&remaining_methods, partial_success, "password", name));
                }
                Reply::InfoRequest { prompts, .. } => {
                    // What is not echoed is the password; a question with a visible answer is another one.
                    if prompts.iter().any(|prompt| prompt.echo) {
                        return Err(ConnectFault::new(
                            "login_refused",
                            format!("the server asks {} more than a password", self.user),
                        ));
                    }
                    let answers = prompts
                        .iter()
                        .map(|_| password.expose().to_owned())
                        .collect();
                    reply = self
                        .to
                        .authenticate_keyboard_interactive_respond(answers)
                        .await?;
                }
            }
        }
        self.refused.push(("password", String::new()));
        Ok(Outcome::Refused)
    }

    /// Returns why the login failed: what the server accepted, what it refused, what was not offered.
    fn fault(self) -> ConnectFault {
        let user = self.user;
        if self.wants_password {
            return ConnectFault::new(
                "password_wanted",
                "this host takes the caller's password; give it in the argument password",
            );
        }
        let mut parts = Vec::new();
        if !self.accepted.is_empty() {
            parts.push(format!(
                "the server took the {} of {user} and wants another proof beside it",
                self.accepted.join(" and the ")
            ));
        }
        match self.refused.as_slice() {
            [] => {}
            [(kind, _)] => parts.push(format!("the server refused the {kind} of {user}")),
            several => {
                let names: Vec<String> = several
                    .iter()
                    .map(|(kind, name)| match name.as_str() {
                        "" => (*kind).to_owned(),
                        name => format!("{kind} {name}"),
                    })
                    .collect();
                parts.push(format!(
                    "the server refused {} proofs of {user}: {}",
                    names.len(),
                    names.join(", ")
                ));
            }
        }
        let is_cut = self
            .methods
            .as_ref()
            .is_some_and(|methods| methods.is_empty());
        if is_cut && self.to.is_closed() && !self.refused.is_empty() {
            parts.push(
                "it closed the connection then; if it takes fewer tries (MaxAuthTries), name the right key with IdentityFile and IdentitiesOnly"
                    .into(),
            );
        }
        let code = if parts.is_empty() {
            "credential_unreadable"
        } else {
            "login_refused"
        };
        if !self.skipped.is_empty() {
            parts.push(format!("not offered: {}", self.skipped.join("; ")));
        }
        if parts.is_empty() {
            parts.push(format!("there is nothing to prove {user} with"));
        }
        ConnectFault::new(code, parts.join("; "))
    }
}

fn secret(place: &Place, environment: &crate::Environment) -> Result<Secret, ConnectFault> {
    let read = place.read(environment);
    read.map_err(|wrong| ConnectFault::new("credential_unreadable", wrong))
}

pub(super) fn optional_secret(
    place: Option<&Place>,
    environment: &crate::Environment,
) -> Result<Option<Secret>, ConnectFault> {
    place.map(|place| secret(place, environment)).transpose()
}

pub(super) fn unreadable(path: &Path, why: &dyn std::fmt::Display) -> ConnectFault {
    let wrong = format!("{}: {why}", path.display());
    ConnectFault::new("credential_unreadable", wrong)
}

/// Reads the key of a certificate authority. RSA is refused: its library signs in a time that depends on the key.
fn authority_key(path: &Path, passphrase: Option<&Secret>) -> Result<PrivateKey, ConnectFault> {
    let text = read_key_file(path).map_err(|fault| unreadable(path, &fault.into_reason()))?;
    let key = russh::keys::decode_secret_key(&text, passphrase.map(Secret::expose))
        .map_err(|error| unreadable(path, &error))?;
    if matches!(key.algorithm(), Algorithm::Rsa { .. }) {
        let wrong = "an authority's key may not be RSA here (RUSTSEC-2023-0071); use an Ed25519 or ECDSA key";
        return Err(unreadable(path, &wrong));
    }
    Ok(key)
}
