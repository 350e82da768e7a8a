//! Who calls: the local user, keys that a program shows instead of a person, or people who have signed in at an issuer.

mod credential;
mod error;
mod holders;
mod ring;
mod token_fault;

pub use crate::caller::{Caller, Proof, SignIn};
pub use credential::{Authenticate, Credential, LocalUser};
pub use error::{IdentityFault, RingError};
pub use holders::{KeyHolders, Looked, Turned};
pub use ring::{Entry, KEY_RING_FILE, KEYS_MAX, KeyRing, NewKey, Rotation};
pub use token_fault::TokenFault;
