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

/// Fills bytes with the system's randomness.
pub(crate) fn fill(bytes: &mut [u8]) {
    if SystemRandom::new().fill(bytes).is_err() {
        tracing::error!("the system gives no random numbers");
    }
}
