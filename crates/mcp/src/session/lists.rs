//! What the client has been shown, so that it can be told which lists a reload has made untrue.
//!
//! A client is told only of kinds whose changes the server's capabilities announce, only once it has
//! said that it is initialized, and only where an entry that it has seen or missed is judged otherwise
//! now. It learns the rest by listing again: calls are judged in any case.

use std::collections::HashMap;
use std::sync::Arc;

use gate::World;

use crate::listing;
use crate::method::List;

use super::{Flow, Session};

/// Most entries of one list that are remembered. Of a longer list any reload may change something.
const ENTRIES_MAX: usize = 10_000;

/// The kinds of lists that a client can be told about: the capability, its notification, its lists.
const KINDS: [(&str, &str, &[List]); 3] = [
    ("tools", "notifications/tools/list_changed", &[List::Tools]),
    (
        "resources",
        "notifications/resources/list_changed",
        &[List::Resources, List::Templates],
    ),
    (
        "prompts",
        "notifications/prompts/list_changed",
        &[List::Prompts],
    ),
];

/// What the client has been shown.
#[derive(Debug)]
pub(super) struct Lists {
    /// By what the lists below were last held against.
    world: Arc<World>,
    /// Kinds whose changes the server has said it announces.
    announced: Vec<&'static str>,
    client_is_ready: bool,
    shown: HashMap<List, Shown>,
}

/// One list, over all its pages.
#[derive(Debug, Default)]
struct Shown {
    /// Each entry's name or URI, and whether the client was shown it.
    entries: HashMap<String, bool>,
    /// There were more than are remembered.
    more: bool,
}

impl Lists {
    pub(super) fn new(world: Arc<World>) -> Self {
        Self {
            world,
            announced: Vec::new(),
            client_is_ready: false,
            shown: HashMap::new(),
        }
    }

    /// Learns from the result of `initialize` which changes the server announces.
    pub(super) fn learn_capabilities(&mut self, result: &str) {
        let result: serde_json::Value = serde_json::from_str(result).unwrap_or_default();
        let announced = |kind: &&str| {
            let declared = result.get("capabilities").and_then(|all| all.get(kind));
            declared.and_then(|kind| kind.get("listChanged")) == Some(&true.into())
        };
        self.announced = KINDS
            .iter()
            .map(|(kind, ..)| *kind)
            .filter(announced)
            .collect();
    }

    pub(super) fn client_is_ready(&mut self) {
        self.client_is_ready = true;
    }

    /// Takes a page of a list; the first one begins it anew.
    pub(super) fn take(&mut self, list: List, first: bool, judged: Vec<(String, bool)>) {
        let shown = self.shown.entry(list).or_default();
        if first {
            *shown = Shown::default();
        }
        for (label, was_shown) in judged {
            if shown.entries.len() < ENTRIES_MAX || shown.entries.contains_key(&label) {
                shown.entries.insert(label, was_shown);
            } else {
                shown.more = true;
            }
        }
    }
}

impl Session {
    /// After a reload: tells the client which lists it had better ask for again.
    pub(super) fn tell_of_changed_lists(&mut self) -> Flow {
        let world = self.gate.world();
        if Arc::ptr_eq(&world, &self.lists.world) {
            return Flow::Go;
        }
        self.lists.world = world;
        let changed: Vec<&str> = KINDS
            .iter()
            .filter(|(kind, _, lists)| {
                self.lists.announced.contains(kind) && lists.iter().any(|list| self.differs(*list))
            })
            .map(|(_, notification, _)| *notification)
            .collect();
        let mut flow = Flow::Go;
        if self.lists.client_is_ready {
            for method in changed {
                let frame = format!("{{\"jsonrpc\":\"2.0\",\"method\":\"{method}\"}}");
                flow = flow.or(self.tell_client(frame.as_bytes()));
            }
        }
        flow
    }

    /// Whether an entry that the client was shown, or was not, is judged otherwise now.
    fn differs(&self, list: List) -> bool {
        let Some(shown) = self.lists.shown.get(&list) else {
            return false;
        };
        let context = self.context();
        shown.more
            || shown.entries.iter().any(|(label, was_shown)| {
                let facts = listing::facts_of(list, label, &context);
                self.gate.may_be_listed(&facts) != *was_shown
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lists() -> Lists {
        let policy = gate::policy::Policy::load("{}", None, &[]).unwrap();
        Lists::new(Arc::new(World {
            policy,
            version: "v1".into(),
        }))
    }

    #[test]
    fn only_announced_kinds_count() {
        for (result, expect) in [
            (
                r#"{"capabilities":{"tools":{"listChanged":true},"prompts":{}}}"#,
                &["tools"][..],
            ),
            (
                r#"{"capabilities":{"prompts":{"listChanged":true},"resources":{"listChanged":true},"tools":{"listChanged":false}}}"#,
                &["resources", "prompts"],
            ),
            (r#"{"capabilities":{"tools":{"listChanged":"yes"}}}"#, &[]),
            (r#"{"capabilities":[]}"#, &[]),
            ("nonsense", &[]),
        ] {
            let mut lists = lists();
            lists.learn_capabilities(result);
            assert_eq!(lists.announced, expect, "{result}");
        }
    }

    #[test]
    fn pages_make_one_list_and_a_first_page_begins_it_anew() {
        let mut lists = lists();
        let page = |names: &[&str]| names.iter().map(|n| ((*n).to_owned(), true)).collect();
        lists.take(List::Tools, true, page(&["a", "b"]));
        lists.take(List::Tools, false, page(&["c"]));
        assert_eq!(lists.shown[&List::Tools].entries.len(), 3);
        lists.take(List::Tools, true, page(&["d"]));
        assert_eq!(lists.shown[&List::Tools].entries.len(), 1);
    }

    #[test]
    fn a_list_longer_than_the_bound_is_kept_in_part() {
        let mut lists = lists();
        let page = |count: usize| (0..count).map(|n| (n.to_string(), false)).collect();
        lists.take(List::Resources, true, page(ENTRIES_MAX));
        assert!(!lists.shown[&List::Resources].more);
        lists.take(List::Resources, true, page(ENTRIES_MAX + 1));
        let shown = &lists.shown[&List::Resources];
        assert!(shown.more && shown.entries.len() == ENTRIES_MAX);
    }
}
