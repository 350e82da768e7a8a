//! Who calls: the local user, or keys that a program shows instead of a person.

mod credential;
mod error;
mod holders;
mod revocation_table;
mod ring;

pub use crate::caller::{Caller, Proof};
pub use credential::{Authenticate, Credential, LocalUser};
pub use error::{IdentityFault, RingError};
pub use holders::{KeyChanges, KeyHolders, RefusedCredential};
pub use revocation_table::RevocationTable;
pub use ring::{Entry, KEY_RING_FILE, KEYS_MAX, KeyRing, NewKey, Rotation};
