//! Who calls: keys that a program shows instead of a person.

mod error;
mod ring;

pub use error::{KeyFault, RingError};
pub use ring::{Entry, KEY_RING_FILE, KEYS_MAX, KeyRing, NewKey, Rotation};
