//! A key and a certificate for one login, which a key of the operator's authority signs.

use std::time::{SystemTime, UNIX_EPOCH};

use russh::keys::ssh_key::certificate::{Builder, CertType};
use russh::keys::ssh_key::private::Ed25519Keypair;
use russh::keys::{Certificate, PrivateKey};

use crate::random;

/// The host's clock may be this far behind ours, in seconds.
const CLOCK_BEHIND: u64 = 60;
/// What the tools do at a host beside running programs: terminals and forwards.
const PERMITS: [&str; 2] = ["permit-pty", "permit-port-forwarding"];

/// A new key, and a certificate with which it is this user for so many seconds from now on. sshd's log names the
/// credential.
pub(super) fn issue(
    authority: &PrivateKey,
    user: &str,
    credential: &str,
    seconds: u64,
) -> Result<(PrivateKey, Certificate), String> {
    let seed = random::seed().ok_or("the system gives no random numbers")?;
    let own = PrivateKey::from(Ed25519Keypair::from_seed(&seed));
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_err(|_| "the clock of this machine is set to a time before 1970")?
        .as_secs();
    let nonce = random::seed().ok_or("the system gives no random numbers")?;
    let certificate = || {
        let (from, to) = (
            now.saturating_sub(CLOCK_BEHIND),
            now.saturating_add(seconds),
        );
        let mut builder = Builder::new(nonce.to_vec(), own.public_key(), from, to)?;
        builder
            .cert_type(CertType::User)?
            .key_id(format!("durward {credential}"))?
            .valid_principal(user)?;
        for permit in PERMITS {
            builder.extension(permit, "")?;
        }
        builder.sign(authority)
    };
    let certificate: Result<_, russh::keys::ssh_key::Error> = certificate();
    let certificate =
        certificate.map_err(|error| format!("no certificate could be made with it: {error}"))?;
    Ok((own, certificate))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_certificate_is_one_users_for_so_long_and_no_key_is_used_twice() {
        let seed = random::seed().unwrap();
        let authority = PrivateKey::from(Ed25519Keypair::from_seed(&seed));
        let now = || {
            let since = SystemTime::now().duration_since(UNIX_EPOCH);
            since.unwrap().as_secs()
        };
        let before = now();
        let (own, certificate) = issue(&authority, "ada", "deploy", 300).unwrap();
        let after = now();
        assert_eq!(certificate.valid_principals(), ["ada"]);
        assert_eq!(certificate.cert_type(), CertType::User);
        assert_eq!(certificate.key_id(), "durward deploy");
        let until = certificate.valid_before();
        assert!((before + 300..=after + 300).contains(&until), "{until}");
        let trusted = [authority.fingerprint(russh::keys::HashAlg::Sha256)];
        assert!(certificate.validate_at(after, &trusted).is_ok());
        assert!(certificate.validate_at(after + 301, &trusted).is_err());
        let (other, _) = issue(&authority, "ada", "deploy", 300).unwrap();
        assert_ne!(own.public_key(), other.public_key());
    }
}
