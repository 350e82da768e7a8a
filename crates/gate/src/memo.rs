//! What was read out of a name, kept: names of tools and arguments come again with every call. A leaf: it
//! imports nothing of ours.

use ahash::AHashMap as HashMap;
use std::cell::RefCell;

/// Most names that are kept; then all are forgotten.
const NAMES_MAX: usize = 1_024;
/// Longest name that is kept, in bytes.
const NAME_BYTES_MAX: usize = 256;

/// Values by name. One per thread, so that no call waits for another.
pub(crate) struct Memo<V>(RefCell<HashMap<Box<str>, V>>);

impl<V> Default for Memo<V> {
    fn default() -> Self {
        Self(RefCell::default())
    }
}

impl<V: Clone> Memo<V> {
    /// The value of a name, which `read` depends on and nothing else.
    pub fn of(&self, name: &str, read: impl FnOnce(&str) -> V) -> V {
        if name.len() > NAME_BYTES_MAX {
            return read(name);
        }
        if let Some(value) = self.0.borrow().get(name) {
            return value.clone();
        }
        let value = read(name);
        let mut kept = self.0.borrow_mut();
        if kept.len() >= NAMES_MAX {
            kept.clear();
        }
        kept.insert(name.into(), value.clone());
        value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_read_once_and_no_more_names_are_kept_than_fit() {
        let memo = Memo::default();
        let mut reads = 0;
        for name in ["a", "b", "a", "a", "b"] {
            let value = memo.of(name, |name| {
                reads += 1;
                name.len()
            });
            assert_eq!(value, 1);
        }
        assert_eq!(reads, 2);
        for number in 0..3 * NAMES_MAX {
            assert_eq!(
                memo.of(&number.to_string(), str::len),
                number.to_string().len()
            );
            assert!(memo.0.borrow().len() <= NAMES_MAX);
        }
        let long = "x".repeat(NAME_BYTES_MAX + 1);
        let kept = memo.0.borrow().len();
        assert_eq!(memo.of(&long, str::len), NAME_BYTES_MAX + 1);
        assert_eq!(memo.0.borrow().len(), kept);
    }
}
