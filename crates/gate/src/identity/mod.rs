//! Who calls: the local user, or keys that a program shows instead of a person.

mod caller;
mod error;
mod holders;
mod ring;

pub use caller::{Authenticate, Caller, Credential, LocalUser, Proof};
pub use error::{IdentityFault, RingError};
pub use holders::{KeyHolders, Looked};
pub use ring::{Entry, KEY_RING_FILE, KEYS_MAX, KeyRing, NewKey, Rotation};
