//! Who calls: the local user, keys that a program shows instead of a person, or people who have signed in at an issuer.

mod credential;
mod error;
mod holders;
mod revocation_table;
mod ring;
mod token_fault;

pub use crate::caller::{Caller, Proof, SignIn};
pub use credential::{Authenticate, Credential, LocalUser};
pub use error::{IdentityFault, RingError};
pub use holders::{KeyChanges, KeyHolders, RefusedCredential};
pub use revocation_table::RevocationTable;
pub use ring::{Entry, KEY_RING_FILE, KEYS_MAX, KeyRing, NewKey, Rotation};
pub use token_fault::TokenFault;
