//! Names that cannot be guessed.

use ring::rand::{SecureRandom as _, SystemRandom};

/// 128 bits of the system's randomness in hexadecimal.
pub(crate) fn name(prefix: &str) -> Option<String> {
    let mut bytes = [0_u8; 16];
    SystemRandom::new().fill(&mut bytes).ok()?;
    Some(bytes.iter().fold(prefix.to_owned(), |name, byte| {
        name + &format!("{byte:02x}")
    }))
}

/// What a key is made of: 256 bits of the system's randomness.
pub(crate) fn seed() -> Option<zeroize::Zeroizing<[u8; 32]>> {
    let mut bytes = zeroize::Zeroizing::new([0_u8; 32]);
    SystemRandom::new().fill(bytes.as_mut()).ok()?;
    Some(bytes)
}

/// Fills bytes with the system's randomness.
pub(crate) fn fill(bytes: &mut [u8]) {
    if SystemRandom::new().fill(bytes).is_err() {
        tracing::error!("the system gives no random numbers");
    }
}
