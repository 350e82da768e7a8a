//! Whether the machine at the other end is the one that is meant.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use russh::client::{ChannelOpenHandle, Handler, Msg, Session};
use russh::keys::ssh_key::HashAlg;
use russh::keys::{Certificate, PublicKey, PublicKeyOrCertificate};
use russh::{Channel, ChannelOpenFailure};

use tokio::sync::mpsc;

use super::fault::ConnectFault;
use crate::hosts::Trust;
use crate::trust::{FiledNames, KnownHosts, Verdict};

/// Holds the key of one host against what is known.
pub(super) struct Verifier {
    pub known: Arc<KnownHosts>,
    /// The names under which the host's keys are filed.
    pub filed_as: FiledNames,
    /// Its address, which a certificate has to name.
    pub address: String,
    pub trust: Trust,
    /// Where a first key is written down.
    pub write_to: Option<PathBuf>,
    /// Where connections of a port at the host go; without it there is none.
    pub incoming: Option<mpsc::Sender<Channel<Msg>>>,
}

impl Handler for Verifier {
    type Error = ConnectFault;

    async fn check_server_key(
        &mut self,
        shown: &PublicKeyOrCertificate,
    ) -> Result<bool, ConnectFault> {
        match shown {
            PublicKeyOrCertificate::PublicKey { key, .. } => self.key(key),
            PublicKeyOrCertificate::Certificate(certificate) => self.certificate(certificate),
        }
        .map(|()| true)
    }

    /// Channels that nobody asked for are turned away.
    async fn server_channel_open_forwarded_tcpip(
        &mut self,
        channel: Channel<Msg>,
        _connected_address: &str,
        _connected_port: u32,
        _originator_address: &str,
        _originator_port: u32,
        reply: ChannelOpenHandle,
        _session: &mut Session,
    ) -> Result<(), ConnectFault> {
        let place = self.incoming.as_ref().map(mpsc::Sender::try_reserve);
        match place {
            Some(Ok(place)) => {
                reply.accept().await;
                place.send(channel);
            }
            Some(Err(_)) => reply.reject(ChannelOpenFailure::ResourceShortage).await,
            None => {
                reply
                    .reject(ChannelOpenFailure::AdministrativelyProhibited)
                    .await;
            }
        }
        Ok(())
    }
}

impl Verifier {
    fn key(&self, key: &PublicKey) -> Result<(), ConnectFault> {
        let blob = key.to_bytes().map_err(|_| unreadable())?;
        let kind = key.algorithm();
        let print = key.fingerprint(HashAlg::Sha256);
        let name = &self.filed_as.full;
        let verdict = self.known.judge_host(&self.filed_as, kind.as_str(), &blob);
        match (verdict, self.trust) {
            (Verdict::Known, _) => Ok(()),
            (Verdict::Unknown, Trust::FirstUse) => match &self.write_to {
                Some(path) => {
                    KnownHosts::write_down(path, name, kind.as_str(), &blob).map_err(|error| {
                        ConnectFault::new(
                            "host_key_unknown",
                            format!(
                                "the first key of {name} cannot be written to {}: {error}",
                                path.display()
                            ),
                        )
                    })
                }
                None => Err(ConnectFault::new(
                    "host_key_unknown",
                    "there is no known_hosts file to write the first key of a host to; set known_hosts",
                )),
            },
            (Verdict::Unknown, Trust::Strict) => Err(ConnectFault::new(
                "host_key_unknown",
                format!(
                    "the key of {name} is not known ({} {print}); check it, and add it to known_hosts",
                    kind.as_str()
                ),
            )),
            (Verdict::Changed, _) => Err(ConnectFault::new(
                "host_key_changed",
                format!(
                    "{name} shows another key than the known one ({} {print}); the connection may be intercepted, or the machine was reinstalled: check it, and correct known_hosts",
                    kind.as_str()
                ),
            )),
            (Verdict::Revoked, _) => Err(revoked(name)),
        }
    }

    /// Checks a certificate. One that is of no use leaves its key to be checked as a plain one, as OpenSSH does.
    fn certificate(&self, shown: &Certificate) -> Result<(), ConnectFault> {
        let wrong = match self.certified(shown) {
            Err(wrong) if wrong.code != "host_key_revoked" => wrong,
            decided => return decided,
        };
        let own = PublicKey::from(shown.public_key().clone());
        let blob = own.to_bytes().map_err(|_| unreadable())?;
        let kind = own.algorithm();
        match self.known.judge_host(&self.filed_as, kind.as_str(), &blob) {
            Verdict::Known => Ok(()),
            _ => Err(wrong),
        }
    }

    fn certified(&self, shown: &Certificate) -> Result<(), ConnectFault> {
        let name = &self.filed_as.full;
        let signer = shown.signature_key();
        let blob = PublicKey::from(signer.clone())
            .to_bytes()
            .map_err(|_| unreadable())?;
        match self.known.host_authority(&self.filed_as, &blob) {
            Verdict::Known => {}
            Verdict::Revoked => return Err(revoked(name)),
            Verdict::Unknown | Verdict::Changed => {
                return Err(ConnectFault::new(
                    "host_key_unknown",
                    format!(
                        "{name} shows a certificate of an authority that known_hosts does not name with @cert-authority"
                    ),
                ));
            }
        }
        let own = PublicKey::from(shown.public_key().clone())
            .to_bytes()
            .map_err(|_| unreadable())?;
        if self.known.judge_host(&self.filed_as, "", &own) == Verdict::Revoked {
            return Err(revoked(name));
        }
        let wrong = |why: &str| {
            let wrong = format!("the certificate of {name} {why}");
            Err(ConnectFault::new("host_key_unknown", wrong))
        };
        if !shown.cert_type().is_host() {
            return wrong("is not one of a host");
        }
        let named = shown.valid_principals();
        if !named
            .iter()
            .any(|principal| principal.eq_ignore_ascii_case(&self.address))
        {
            return wrong("is for another name");
        }
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(0, |since| since.as_secs());
        let trusted = [signer.fingerprint(HashAlg::Sha256)];
        match shown.validate_at(now, &trusted) {
            Ok(()) => Ok(()),
            Err(_) => wrong("is not valid: out of its time, or its signature is wrong"),
        }
    }
}

fn unreadable() -> ConnectFault {
    ConnectFault::new("host_key_unknown", "the host's key cannot be read")
}

fn revoked(name: &str) -> ConnectFault {
    ConnectFault::new("host_key_revoked", format!("the key of {name} is revoked"))
}
