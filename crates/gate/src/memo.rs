//! What was read out of a name, kept: names of tools and arguments come again with every call. A leaf: it
//! imports nothing of ours.

use ahash::AHashMap as HashMap;
use std::cell::RefCell;
use std::rc::Rc;

/// Most names that are kept; then all are forgotten.
const NAMES_MAX: usize = 1_024;
/// Longest name that is kept, in bytes.
const NAME_BYTES_MAX: usize = 256;

/// Values by name. One per thread, so that no call waits for another.
pub(crate) struct Memo<V>(RefCell<Kept<V>>);

struct Kept<V> {
    read: Vec<(Rc<str>, V)>,
    /// Where in `read` a name stands.
    at: HashMap<Rc<str>, usize>,
    /// The one that was asked for last: one call asks for the same name several times.
    latest: usize,
}

impl<V> Default for Memo<V> {
    fn default() -> Self {
        Self(RefCell::new(Kept {
            read: Vec::new(),
            at: HashMap::default(),
            latest: 0,
        }))
    }
}

impl<V> Kept<V> {
    fn find(&mut self, name: &str) -> Option<&V> {
        let is_latest = |(kept, _): &(Rc<str>, V)| **kept == *name;
        if !self.read.get(self.latest).is_some_and(is_latest) {
            self.latest = *self.at.get(name)?;
        }
        self.read.get(self.latest).map(|(_, value)| value)
    }

    fn keep(&mut self, name: &str, value: V) {
        if self.read.len() >= NAMES_MAX {
            self.read.clear();
            self.at.clear();
        }
        self.latest = self.read.len();
        let name: Rc<str> = name.into();
        self.at.insert(Rc::clone(&name), self.latest);
        self.read.push((name, value));
    }
}

impl<V: Clone> Memo<V> {
    /// The value of a name, which `read` depends on and nothing else.
    pub fn of(&self, name: &str, read: impl FnOnce(&str) -> V) -> V {
        if name.len() > NAME_BYTES_MAX {
            return read(name);
        }
        if let Some(value) = self.0.borrow_mut().find(name) {
            return value.clone();
        }
        let value = read(name);
        self.0.borrow_mut().keep(name, value.clone());
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
            assert!(memo.0.borrow().read.len() <= NAMES_MAX);
        }
        let long = "x".repeat(NAME_BYTES_MAX + 1);
        let kept = memo.0.borrow().read.len();
        assert_eq!(memo.of(&long, str::len), NAME_BYTES_MAX + 1);
        assert_eq!(memo.0.borrow().read.len(), kept);
    }
}
