//! Where the next page begins, in a text that its caller can neither read nor make.

use std::fmt;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use crate::store::Store;

/// Longest position in a cursor, in bytes.
pub const POSITION_BYTES_MAX: usize = 256;
/// Longest cursor, in characters.
pub const CURSOR_CHARS_MAX: usize = 512;

const MAC_BYTES: usize = 16;
const PURPOSE: &str = "cursor";

/// Makes and reads cursors.
///
/// A cursor belongs to what it was made for (the caller, the handle, the query): under anything else it is as
/// good as made up.
#[derive(Debug, Clone)]
pub struct Cursors {
    store: Arc<Store>,
}

/// A cursor that was not issued here for this.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CursorFault;

impl fmt::Display for CursorFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the cursor was not issued for this request; begin again without one")
    }
}

impl std::error::Error for CursorFault {}

impl Cursors {
    /// Cursors of this store.
    #[must_use]
    pub fn new(store: &Arc<Store>) -> Self {
        Self {
            store: Arc::clone(store),
        }
    }

    /// A cursor to this position, for what `parts` name together.
    ///
    /// # Errors
    /// [`CursorFault`] where the position is longer than [`POSITION_BYTES_MAX`].
    pub fn issue(&self, parts: &[&[u8]], position: &[u8]) -> Result<String, CursorFault> {
        if position.len() > POSITION_BYTES_MAX {
            return Err(CursorFault);
        }
        let mac = self.mac(parts, position);
        Ok(URL_SAFE_NO_PAD.encode([mac.as_slice(), position].concat()))
    }

    /// The position in a cursor that was issued for the same.
    ///
    /// # Errors
    /// [`CursorFault`] for any other text.
    pub fn read(&self, parts: &[&[u8]], cursor: &str) -> Result<Vec<u8>, CursorFault> {
        if cursor.len() > CURSOR_CHARS_MAX {
            return Err(CursorFault);
        }
        let bytes = URL_SAFE_NO_PAD.decode(cursor).map_err(|_| CursorFault)?;
        let (mac, position) = bytes.split_first_chunk::<MAC_BYTES>().ok_or(CursorFault)?;
        // Hashes compare in constant time.
        let (mut shown, mut own) = ([0; 32], [0; 32]);
        own.iter_mut()
            .zip(self.mac(parts, position))
            .for_each(|(to, from)| *to = from);
        shown.iter_mut().zip(*mac).for_each(|(to, from)| *to = from);
        if blake3::Hash::from_bytes(shown) == blake3::Hash::from_bytes(own) {
            Ok(position.to_vec())
        } else {
            Err(CursorFault)
        }
    }

    fn mac(&self, parts: &[&[u8]], position: &[u8]) -> [u8; MAC_BYTES] {
        let mut all = parts.to_vec();
        all.push(position);
        let signed = self.store.sign(PURPOSE, &all);
        let mut mac = [0; MAC_BYTES];
        mac.iter_mut()
            .zip(signed.as_bytes())
            .for_each(|(to, from)| *to = *from);
        mac
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::tests::Place;
    use proptest::prelude::*;

    #[test]
    fn a_cursor_is_good_for_what_it_was_made_for() {
        let place = Place::new();
        let cursors = Cursors::new(&place.open());
        let parts: [&[u8]; 2] = [b"ada", b"out_1"];
        let cursor = cursors.issue(&parts, &7_u64.to_be_bytes()).unwrap();
        assert_eq!(cursors.read(&parts, &cursor).unwrap(), 7_u64.to_be_bytes());
        for other in [
            [b"bob".as_slice(), b"out_1"],
            [b"ada", b"out_2"],
            [b"adao", b"ut_1"],
        ] {
            assert_eq!(cursors.read(&other, &cursor), Err(CursorFault));
        }
        assert_eq!(
            cursors.issue(&parts, &[0; POSITION_BYTES_MAX + 1]),
            Err(CursorFault)
        );
        let longest = cursors.issue(&parts, &[0; POSITION_BYTES_MAX]).unwrap();
        assert!(longest.len() <= CURSOR_CHARS_MAX);
        drop(cursors);
        let cursors = Cursors::new(&place.open());
        assert!(
            cursors.read(&parts, &cursor).is_ok(),
            "also after a restart"
        );
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn what_was_not_issued_is_refused(text in "\\PC{0,60}", at in 0..32_usize, to in any::<char>()) {
            let place = Place::new();
            let cursors = Cursors::new(&place.open());
            prop_assert!(cursors.read(&[], &text).is_err());
            let cursor = cursors.issue(&[b"x"], &at.to_be_bytes()).unwrap();
            let damaged: String = cursor.chars().enumerate().map(|(i, c)| if i == at { to } else { c }).collect();
            prop_assert_eq!(cursors.read(&[b"x"], &damaged).is_ok(), damaged == cursor);
        }
    }
}
