//! Proving who logs in.

use std::path::Path;
use std::sync::Arc;

use russh::client::{AuthResult, Handle, KeyboardInteractiveAuthResponse as Reply};
use russh::keys::agent::client::AgentClient;
use russh::keys::{Algorithm, Certificate, HashAlg, PrivateKey, PrivateKeyWithHashAlg};

use super::fault::ConnectFault;
use super::issued::issue;
use super::verify::Verifier;
use crate::hosts::{Credential, Place, Proof, Secret};

/// Most keys of an agent that are tried.
const AGENT_KEYS_MAX: usize = 6;
/// Most rounds of questions that are answered.
const QUESTION_ROUNDS_MAX: usize = 4;

type To = Handle<Verifier>;

/// Logs in.
pub(super) async fn login(
    to: &mut To,
    credential: &Credential,
    environment: &crate::Environment,
    given: Option<&Secret>,
) -> Result<(), ConnectFault> {
    let user = credential.user.as_str();
    match &credential.proof {
        Proof::Key {
            key,
            certificate,
            passphrase,
        } => {
            let passphrase = optional(passphrase.as_ref(), environment)?;
            by_key(to, user, (key, certificate.as_deref()), passphrase.as_ref()).await
        }
        Proof::Issued {
            authority,
            passphrase,
            seconds,
        } => {
            let passphrase = optional(passphrase.as_ref(), environment)?;
            let key = private(authority, passphrase.as_ref())?;
            let issued = issue(&key, user, &credential.id, *seconds);
            let (own, certificate) = issued.map_err(|wrong| unreadable(authority, &wrong))?;
            let result = to.authenticate_openssh_cert(user, Arc::new(own), certificate);
            accepted(&result.await?, user, "certificate")
        }
        Proof::Password(place) => by_password(to, user, &secret(place, environment)?).await,
        Proof::Agent { socket } => by_agent(to, user, socket).await,
        Proof::Caller => match given {
            Some(password) => by_password(to, user, password).await,
            None => Err(ConnectFault::new(
                "password_wanted",
                "this host takes the caller's password; give it in the argument password",
            )),
        },
    }
}

fn secret(place: &Place, environment: &crate::Environment) -> Result<Secret, ConnectFault> {
    let read = place.read(environment);
    read.map_err(|wrong| ConnectFault::new("credential_unreadable", wrong))
}

fn optional(
    place: Option<&Place>,
    environment: &crate::Environment,
) -> Result<Option<Secret>, ConnectFault> {
    place.map(|place| secret(place, environment)).transpose()
}

fn unreadable(path: &Path, why: &dyn std::fmt::Display) -> ConnectFault {
    let wrong = format!("{}: {why}", path.display());
    ConnectFault::new("credential_unreadable", wrong)
}

/// Whether this build can neither sign nor check with such a key: RSA comes with the feature `rsa`.
pub(super) fn unusable(key: &Algorithm) -> bool {
    !cfg!(feature = "rsa") && matches!(key, Algorithm::Rsa { .. })
}

/// What an RSA key signs with at this server; other keys have one way alone.
async fn hash_for(to: &mut To, key: &Algorithm) -> Result<Option<HashAlg>, ConnectFault> {
    match key {
        Algorithm::Rsa { .. } => Ok(to.best_supported_rsa_hash().await?.flatten()),
        _ => Ok(None),
    }
}

/// A private key of a file.
fn private(path: &Path, passphrase: Option<&Secret>) -> Result<PrivateKey, ConnectFault> {
    let key = russh::keys::load_secret_key(path, passphrase.map(Secret::expose))
        .map_err(|error| unreadable(path, &error))?;
    if unusable(&key.algorithm()) {
        let wrong = "it is an RSA key, and this build has no RSA (RUSTSEC-2023-0071); use an Ed25519 or ECDSA key, let an agent hold it, or build with --features rsa";
        return Err(unreadable(path, &wrong));
    }
    Ok(key)
}

async fn by_key(
    to: &mut To,
    user: &str,
    (key, certificate): (&Path, Option<&Path>),
    passphrase: Option<&Secret>,
) -> Result<(), ConnectFault> {
    let private = Arc::new(private(key, passphrase)?);
    let result = match certificate {
        None => {
            let hash = hash_for(to, &private.algorithm()).await?;
            let key = PrivateKeyWithHashAlg::new(private, hash);
            to.authenticate_publickey(user, key).await?
        }
        Some(path) => {
            let text = std::fs::read_to_string(path).map_err(|error| unreadable(path, &error))?;
            let certificate =
                Certificate::from_openssh(&text).map_err(|error| unreadable(path, &error))?;
            to.authenticate_openssh_cert(user, private, certificate)
                .await?
        }
    };
    accepted(&result, user, "key")
}

async fn by_password(to: &mut To, user: &str, password: &Secret) -> Result<(), ConnectFault> {
    let result = to.authenticate_password(user, password.expose()).await?;
    let asks = match &result {
        AuthResult::Success => return Ok(()),
        AuthResult::Failure {
            remaining_methods, ..
        } => {
            remaining_methods.contains(&russh::MethodKind::KeyboardInteractive)
                && !remaining_methods.contains(&russh::MethodKind::Password)
        }
    };
    if !asks {
        return accepted(&result, user, "password");
    }
    let mut reply = to
        .authenticate_keyboard_interactive_start(user, None)
        .await?;
    for _ in 0..QUESTION_ROUNDS_MAX {
        match reply {
            Reply::Success => return Ok(()),
            Reply::Failure { .. } => break,
            Reply::InfoRequest { prompts, .. } => {
                // What is not echoed is the password; a question whose answer is seen is another one.
                if prompts.iter().any(|prompt| prompt.echo) {
                    return Err(ConnectFault::new(
                        "login_refused",
                        format!("the server asks {user} more than a password"),
                    ));
                }
                let answers = prompts
                    .iter()
                    .map(|_| password.expose().to_owned())
                    .collect();
                reply = to
                    .authenticate_keyboard_interactive_respond(answers)
                    .await?;
            }
        }
    }
    Err(refused(user, "password"))
}

async fn by_agent(to: &mut To, user: &str, socket: &Path) -> Result<(), ConnectFault> {
    let unreadable = |why: &dyn std::fmt::Display| {
        ConnectFault::new(
            "credential_unreadable",
            format!("the agent at {}: {why}", socket.display()),
        )
    };
    let mut agent = AgentClient::connect_uds(socket)
        .await
        .map_err(|error| unreadable(&error))?;
    let identities = agent
        .request_identities()
        .await
        .map_err(|error| unreadable(&error))?;
    for identity in identities.into_iter().take(AGENT_KEYS_MAX) {
        let key = identity.public_key().into_owned();
        let hash = hash_for(to, &key.algorithm()).await?;
        let result = to
            .authenticate_publickey_with(user, key, hash, &mut agent)
            .await
            .map_err(|error| unreadable(&error))?;
        if matches!(result, AuthResult::Success) {
            return Ok(());
        }
    }
    Err(refused(user, "key of the agent"))
}

fn accepted(result: &AuthResult, user: &str, what: &str) -> Result<(), ConnectFault> {
    match result {
        AuthResult::Success => Ok(()),
        AuthResult::Failure {
            partial_success: true,
            ..
        } => Err(ConnectFault::new(
            "login_refused",
            format!("the server took the {what} of {user} and wants another proof beside it"),
        )),
        AuthResult::Failure { .. } => Err(refused(user, what)),
    }
}

fn refused(user: &str, what: &str) -> ConnectFault {
    ConnectFault::new(
        "login_refused",
        format!("the server refused the {what} of {user}"),
    )
}
