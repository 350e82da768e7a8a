//! RSA signatures of SHA-2, made with `ring`.
//!
//! The library that SSH keys are read with signs in a time that depends on the key (RUSTSEC-2023-0071), so it reads keys and
//! verifies signatures and never makes one.

use crypto_bigint::{BoxedUint, NonZero};
use ring::rand::SystemRandom;
use ring::rsa::{KeyPairComponents, PublicKeyComponents};
use ring::signature::{RSA_PKCS1_SHA256, RSA_PKCS1_SHA512, RsaKeyPair};
use russh::Signer;
use russh::keys::agent::AgentIdentity;
use russh::keys::ssh_key::Mpint;
use russh::keys::ssh_key::private::{KeypairData, RsaKeypair};
use russh::keys::{HashAlg, PrivateKey};
use zeroize::Zeroizing;

use super::sign::SignFault;

/// Signs with one RSA key.
pub(super) struct RsaSigner(RsaKeyPair);

impl RsaSigner {
    /// Returns `None` for a key of another kind.
    ///
    /// # Errors
    /// Why the key cannot be used: its size or exponent, or numbers that do not belong together.
    pub fn new(key: &PrivateKey) -> Option<Result<Self, String>> {
        match key.key_data() {
            KeypairData::Rsa(pair) => Some(Self::from_pair(pair)),
            _ => None,
        }
    }

    fn from_pair(pair: &RsaKeypair) -> Result<Self, String> {
        let broken = || "its RSA numbers cannot be read".to_owned();
        let bytes = |number: &Mpint| -> Result<Zeroizing<Vec<u8>>, String> {
            let bytes = number.as_positive_bytes().ok_or_else(broken)?;
            Ok(Zeroizing::new(bytes.to_vec()))
        };
        let private = pair.private();
        let (d, p, q) = (
            bytes(private.d())?,
            bytes(private.p())?,
            bytes(private.q())?,
        );
        let components = KeyPairComponents {
            public_key: PublicKeyComponents {
                n: bytes(pair.public().n())?,
                e: bytes(pair.public().e())?,
            },
            dP: exponent(&d, &p).ok_or_else(broken)?,
            dQ: exponent(&d, &q).ok_or_else(broken)?,
            qInv: bytes(private.iqmp())?,
            d,
            p,
            q,
        };
        let pair = RsaKeyPair::from_components(&components).map_err(|error| {
            format!("this RSA key is not used ({error}); it has to have 2048 to 4096 bits")
        })?;
        Ok(Self(pair))
    }

    fn sign(&self, hash: Option<HashAlg>, mut data: Vec<u8>) -> Result<Vec<u8>, SignFault> {
        let (name, padding): (&str, &dyn ring::signature::RsaEncoding) = match hash {
            Some(HashAlg::Sha256) => ("rsa-sha2-256", &RSA_PKCS1_SHA256),
            Some(HashAlg::Sha512) => ("rsa-sha2-512", &RSA_PKCS1_SHA512),
            _ => {
                return Err(SignFault::new(
                    "the server takes RSA signatures of SHA-1 alone",
                ));
            }
        };
        let mut signature = vec![0; self.0.public().modulus_len()];
        self.0
            .sign(padding, &SystemRandom::new(), &data, &mut signature)
            .map_err(|_| SignFault::new("the RSA key gave no signature"))?;
        // The signature of RFC 8332, as one string behind what is signed.
        let size = |bytes: usize| {
            let size =
                u32::try_from(bytes).map_err(|_| SignFault::new("the signature is too long"))?;
            Ok::<_, SignFault>(size.to_be_bytes())
        };
        data.extend(size(name.len() + signature.len() + 8)?);
        data.extend(size(name.len())?);
        data.extend(name.as_bytes());
        data.extend(size(signature.len())?);
        data.extend(signature);
        Ok(data)
    }
}

impl Signer for RsaSigner {
    type Error = SignFault;

    async fn auth_sign(
        &mut self,
        _key: &AgentIdentity,
        hash: Option<HashAlg>,
        data: Vec<u8>,
    ) -> Result<Vec<u8>, SignFault> {
        self.sign(hash, data)
    }
}

/// Returns `d mod (prime - 1)`, in constant time for numbers of one size.
fn exponent(d: &[u8], prime: &[u8]) -> Option<Zeroizing<Vec<u8>>> {
    let number = |bytes: &[u8]| {
        let bits = u32::try_from(bytes.len().checked_mul(8)?).ok()?;
        BoxedUint::from_be_slice(bytes, bits).ok()
    };
    let mut less = prime.to_vec();
    // A prime is odd: without its last bit it is one less.
    *less.last_mut()? &= 0xfe;
    let divisor = Option::<NonZero<BoxedUint>>::from(NonZero::new(number(&less)?))?;
    let rest = Zeroizing::new(number(d)?.rem(&divisor).to_be_bytes().to_vec());
    let zeros = rest.iter().take_while(|byte| **byte == 0).count();
    Some(Zeroizing::new(rest.get(zeros..)?.to_vec()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_exponent_of_a_prime_is_the_rest() {
        // 1,000 mod (251 - 1) and 65,537 mod (65,521 - 1).
        assert_eq!(exponent(&[3, 232], &[251]).unwrap().as_slice(), [0u8; 0]);
        assert_eq!(exponent(&[3, 233], &[251]).unwrap().as_slice(), [1]);
        assert_eq!(
            exponent(&[1, 0, 1], &[0xff, 0xf1]).unwrap().as_slice(),
            [17]
        );
        assert!(exponent(&[1], &[]).is_none() && exponent(&[1], &[1]).is_none());
    }
}
