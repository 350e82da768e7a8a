//! Several servers as one: how their names are spelled, where names stand in messages, how lists and
//! handshakes become one. No I/O and no state; `http::federated` has the sessions.
//!
//! Invariant: a name is taken apart before a call is judged, so that it is judged, recorded and sent under the
//! name that its own server gave it.

mod cursor;
mod handshake;
mod lists;
mod places;
mod spelling;

pub(crate) use cursor::Cursor;
pub(crate) use handshake::{Abilities, merged, without_session};
pub(crate) use lists::{Merged, Missing, Part, result_of};
pub(crate) use places::{Aim, aim, edited, id_of_server, inner_call, listened_for};
pub use spelling::{Prefix, scheme};
pub(crate) use spelling::{Spelling, split_name, split_uri};
