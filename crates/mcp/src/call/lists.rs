//! What the client has been shown, so that it can be told which lists a reload has made untrue.
//!
//! A client is told only of kinds whose changes the server's capabilities announce, only once it has
//! said that it is initialized, and only where an entry that it has seen or missed is judged otherwise
//! now. It learns the rest by listing again: calls are judged in any case.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use gate::World;

use crate::describe::Context;
use crate::descriptions::listing;
use crate::message::announced::Announced;
use crate::message::method::List;

/// Most entries of one list that are remembered for a client that is alone. Of a longer list any
/// reload may change something.
pub(crate) const ENTRIES_MAX: usize = 10_000;

/// All lists.
const ALL_LISTS: [List; 4] = [List::Tools, List::Resources, List::Templates, List::Prompts];

/// What the client has been shown.
#[derive(Debug)]
pub(crate) struct Lists {
    /// What the lists below were last held against.
    world: Arc<World>,
    /// Most entries of one list that are remembered.
    entries_max: usize,
    /// Kinds whose changes the server has said it announces.
    announced: Announced,
    seen: HashMap<List, Seen>,
    /// Pages that were taken.
    taken: u64,
}

/// One list, over all its pages.
#[derive(Debug)]
struct Seen {
    /// What it was judged by.
    world: Arc<World>,
    /// Each entry's name or URI, shown or not.
    labels: HashSet<String>,
    /// There were more than are remembered.
    more: bool,
    /// The number of the page that was taken last.
    last: u64,
}

impl Lists {
    pub fn new(world: Arc<World>, entries_max: usize) -> Self {
        Self {
            world,
            entries_max,
            announced: Announced::default(),
            seen: HashMap::new(),
            taken: 0,
        }
    }

    /// Learns from the result of `initialize` which changes the server announces.
    pub fn learn_capabilities(&mut self, result: &str) {
        self.announced = Announced::of(result);
    }

    /// What a client is told of a server that was started again: each list that it announces may be another.
    pub fn anew(&self) -> Vec<Vec<u8>> {
        let announced = self.announced.kinds();
        announced
            .map(|(_, method, _)| changed_frame(method))
            .collect()
    }

    /// Takes a page of a list, judged by `world`; the first one begins it anew. Gives the page's number.
    pub fn take(
        &mut self,
        list: List,
        first: bool,
        labels: impl Iterator<Item = String>,
        world: Arc<World>,
    ) -> u64 {
        self.taken += 1;
        let last = self.taken;
        let fresh = || Seen {
            world: Arc::clone(&world),
            labels: HashSet::new(),
            more: false,
            last,
        };
        let seen = self.seen.entry(list).or_insert_with(fresh);
        if first {
            *seen = fresh();
        }
        seen.last = last;
        for label in labels {
            if seen.labels.len() < self.entries_max || seen.labels.contains(&label) {
                seen.labels.insert(label);
            } else {
                seen.more = true;
            }
        }
        last
    }

    /// Whether the page of this number was the last one of its list.
    pub fn is_noted(&self, list: List, number: u64) -> bool {
        self.seen.get(&list).is_some_and(|seen| seen.last == number)
    }
}

impl Lists {
    /// Whether all of it was judged by this world.
    pub fn are_of(&self, world: &Arc<World>) -> bool {
        Arc::ptr_eq(world, &self.world)
    }

    /// After a reload: what to tell the client, so that it asks again for the lists that have changed.
    pub fn changed(&mut self, world: &Arc<World>, context: &Context<'_>) -> Vec<Vec<u8>> {
        let differs: Vec<List> = ALL_LISTS
            .into_iter()
            .filter(|list| self.differs(*list, world, context))
            .collect();
        // Told once; the client's next list says by what it was judged.
        for seen in self.seen.values_mut() {
            seen.world = Arc::clone(world);
        }
        self.world = Arc::clone(world);
        let announced = self.announced.kinds();
        let told = announced.filter(|(.., lists)| lists.iter().any(|list| differs.contains(list)));
        told.map(|(_, method, _)| changed_frame(method)).collect()
    }

    /// Whether an entry of a list that the client has asked for is judged otherwise now.
    fn differs(&self, list: List, now: &Arc<World>, context: &Context<'_>) -> bool {
        let Some(seen) = self.seen.get(&list) else {
            return false;
        };
        if Arc::ptr_eq(&seen.world, now) {
            return false;
        }
        seen.more
            || seen.labels.iter().any(|label| {
                let facts = listing::facts_of(list, label, context);
                let shown = |world: &World| world.policy.judge(&facts).may_be_listed();
                shown(&seen.world) != shown(now)
            })
    }
}

fn changed_frame(method: &str) -> Vec<u8> {
    format!("{{\"jsonrpc\":\"2.0\",\"method\":\"{method}\"}}").into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn world() -> Arc<World> {
        let policy = gate::policy::Policy::load("{}", None, &[]).unwrap();
        Arc::new(World {
            policy,
            version: "v1".into(),
            limits: gate::limits::Limits::default(),
            approval: gate::approval::Options::default(),
            inspect: Arc::default(),
            flow: Arc::default(),
        })
    }

    fn lists() -> Lists {
        Lists::new(world(), ENTRIES_MAX)
    }

    #[test]
    fn pages_make_one_list_and_a_first_page_begins_it_anew() {
        let mut lists = lists();
        let mut take = |first, names: &[&str]| {
            let names = names.iter().map(|name| (*name).to_owned());
            lists.take(List::Tools, first, names, world());
            lists.seen[&List::Tools].labels.len()
        };
        assert_eq!(take(true, &["a", "b"]), 2);
        assert_eq!(take(false, &["b", "c"]), 3);
        assert_eq!(take(true, &["d"]), 1);
    }

    #[test]
    fn a_list_is_noted_until_the_next_page_of_its_kind() {
        let mut lists = lists();
        let mut take = |list, first| {
            let labels = ["a".to_owned()].into_iter();
            lists.take(list, first, labels, world())
        };
        let (tools, prompts) = (take(List::Tools, true), take(List::Prompts, true));
        let next = take(List::Tools, false);
        assert!(lists.is_noted(List::Tools, next) && !lists.is_noted(List::Tools, tools));
        assert!(lists.is_noted(List::Prompts, prompts));
        assert!(!lists.is_noted(List::Resources, 0));
    }

    #[test]
    fn a_list_longer_than_the_bound_is_kept_in_part() {
        let mut lists = lists();
        for (count, more) in [(ENTRIES_MAX, false), (ENTRIES_MAX + 1, true)] {
            let labels = (0..count).map(|n| n.to_string());
            lists.take(List::Resources, true, labels, world());
            let seen = &lists.seen[&List::Resources];
            assert_eq!((seen.labels.len(), seen.more), (ENTRIES_MAX, more));
        }
    }
}
