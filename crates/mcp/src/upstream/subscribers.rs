//! Who of those who share a server has subscribed to which of its resources: who has not hears nothing of a change, and nobody
//! ends the subscription of another.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Most resources that one session subscribes to.
pub const RESOURCES_MAX: usize = 256;

/// The sessions by resource.
#[derive(Debug, Default)]
pub struct Subscribers(Mutex<BTreeMap<String, BTreeSet<Arc<str>>>>);

impl Subscribers {
    fn all(&self) -> MutexGuard<'_, BTreeMap<String, BTreeSet<Arc<str>>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that a session subscribes; `false` where it has subscribed to too many others.
    pub fn add(&self, session: &Arc<str>, uri: &str) -> bool {
        let mut all = self.all();
        let own = all.iter().filter(|(_, of)| of.contains(session));
        if own.filter(|(known, _)| *known != uri).count() >= RESOURCES_MAX {
            return false;
        }
        let of = all.entry(uri.to_owned()).or_default();
        of.insert(Arc::clone(session));
        true
    }

    /// Notes that a session no longer subscribes; whether others do.
    pub fn remove(&self, session: &Arc<str>, uri: &str) -> bool {
        let mut all = self.all();
        let Some(of) = all.get_mut(uri) else {
            return false;
        };
        of.remove(session);
        let have_others = !of.is_empty();
        if !have_others {
            all.remove(uri);
        }
        have_others
    }

    /// Forgets a session; gives the resources that nobody subscribes to any more.
    pub fn leave(&self, session: &Arc<str>) -> Vec<String> {
        let left = |_: &String, of: &mut BTreeSet<Arc<str>>| of.remove(session) && of.is_empty();
        let mut all = self.all();
        all.extract_if(.., left).map(|(uri, _)| uri).collect()
    }

    /// Whether a session has subscribed to a resource, or to one that it is a part of.
    pub fn has(&self, session: &Arc<str>, uri: &str) -> bool {
        let is_part = |of: &str| {
            let rest = uri.strip_prefix(of);
            rest.is_some_and(|rest| rest.is_empty() || of.ends_with('/') || rest.starts_with('/'))
        };
        let all = self.all();
        all.iter()
            .any(|(known, of)| of.contains(session) && is_part(known))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_session_has_subscriptions_of_its_own() {
        let (subscribers, one, two) = (Subscribers::default(), "one".into(), "two".into());
        assert!(subscribers.add(&one, "note://a") && subscribers.add(&one, "note://a"));
        assert!(subscribers.add(&two, "note://a") && subscribers.add(&two, "note://b/"));
        for (session, uri, has) in [
            (&one, "note://a", true),
            (&one, "note://a/part", true),
            (&one, "note://ab", false),
            (&one, "note://b/part", false),
            (&two, "note://b/part", true),
        ] {
            assert_eq!(subscribers.has(session, uri), has, "{session} {uri}");
        }
        assert!(subscribers.remove(&one, "note://a") && subscribers.remove(&one, "note://a"));
        assert!(!subscribers.remove(&one, "note://c"));
        assert!(!subscribers.has(&one, "note://a") && subscribers.has(&two, "note://a"));
        assert_eq!(subscribers.leave(&two), ["note://a", "note://b/"]);
        assert!(subscribers.all().is_empty());
        for number in 0..RESOURCES_MAX {
            assert!(subscribers.add(&one, &number.to_string()));
        }
        assert!(subscribers.add(&one, "0") && !subscribers.add(&one, "more"));
    }
}
