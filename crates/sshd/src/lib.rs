//! SSH servers for the tour and for tests, without any rights: commands are run by `/bin/sh` as the user of the
//! process, for every login.
//!
//! Invariants, as absences: it knows no gate, no policy and no journal; it listens nowhere by itself (the caller gives
//! the listener); no process of a channel outlives its connection.

mod run;
mod serve;
mod variant;

pub use russh::keys::PrivateKey;
pub use serve::{ServerShared, run};
pub use variant::{
    AdmissionRule, LINES, LineQuality, SENT_AGAIN, ServerVariant, TWIN_PORTS, VARIANTS,
};

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

use russh::keys::ssh_key::LineEnding;
use russh::keys::ssh_key::private::Ed25519Keypair;

/// The source of a key's bytes.
pub const RANDOM: &str = "/dev/urandom";

/// Returns a new key.
///
/// # Errors
/// When [`RANDOM`] cannot be read.
pub fn fresh_key() -> io::Result<PrivateKey> {
    let mut seed = [0; 32];
    File::open(Path::new(RANDOM))?.read_exact(&mut seed)?;
    Ok(PrivateKey::from(Ed25519Keypair::from_seed(&seed)))
}

/// Returns the text of a key's file.
///
/// # Errors
/// When the key cannot be written as OpenSSH does.
pub fn key_file(key: &PrivateKey) -> io::Result<String> {
    let text = key.to_openssh(LineEnding::LF).map_err(io::Error::other)?;
    Ok(text.to_string())
}

/// Returns the line of `known_hosts` for a host key.
///
/// # Errors
/// When the key cannot be written as OpenSSH does.
pub fn known_hosts_line(
    address: std::net::SocketAddr,
    host_key: &PrivateKey,
) -> io::Result<String> {
    let public = host_key
        .public_key()
        .to_openssh()
        .map_err(io::Error::other)?;
    Ok(format!("[{}]:{} {public}\n", address.ip(), address.port()))
}
