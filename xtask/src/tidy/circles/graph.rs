//! Names, the arrows between them, and the arrows that close circles.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// From a name to another.
pub(super) type Arrow = (String, String);

/// Where an arrow is written: file and line.
type Place = (String, usize);

/// What names what, and where.
#[derive(Debug, Default)]
pub(super) struct ModuleGraph {
    arrows: BTreeMap<Arrow, Vec<Place>>,
}

impl ModuleGraph {
    pub(super) fn add(&mut self, from: &str, to: &str, at: (&str, usize)) {
        let places = self
            .arrows
            .entry((from.to_owned(), to.to_owned()))
            .or_default();
        places.push((at.0.to_owned(), at.1));
    }

    /// Returns the first place at which an arrow is written.
    pub(super) fn place(&self, arrow: &Arrow) -> Place {
        let first = self.arrows.get(arrow).and_then(|places| places.first());
        first.cloned().unwrap_or_default()
    }

    /// Leaves out the allowed arrows. Returns those of them that were needed, and which arrows would have to go as well
    /// so that no circle is left. Of a circle the arrow that is written least often is taken.
    pub(super) fn without(&self, borne: &BTreeSet<Arrow>) -> (Vec<Arrow>, Vec<Arrow>) {
        let mut kept: BTreeSet<&Arrow> =
            self.arrows.keys().filter(|a| !borne.contains(*a)).collect();
        let mut left = Vec::new();
        loop {
            let closing = kept
                .iter()
                .filter(|arrow| reaches(&kept, &arrow.1, &arrow.0));
            let written = |arrow: &&&Arrow| self.arrows.get(**arrow).map_or(0, Vec::len);
            let Some(arrow) = closing.min_by_key(written).copied() else {
                break;
            };
            kept.remove(arrow);
            left.push(arrow);
        }
        // One that was taken early may be free of circles now that others are gone.
        let (mut needed, mut closing) = (Vec::new(), Vec::new());
        for arrow in left.into_iter().rev() {
            if reaches(&kept, &arrow.1, &arrow.0) {
                closing.push(arrow.clone());
            } else {
                kept.insert(arrow);
            }
        }
        for arrow in borne
            .iter()
            .filter(|arrow| self.arrows.contains_key(*arrow))
        {
            if reaches(&kept, &arrow.1, &arrow.0) {
                needed.push(arrow.clone());
            } else {
                kept.insert(arrow);
            }
        }
        closing.sort();
        (needed, closing)
    }

    /// Returns the shortest way along the arrows, both ends included; empty if there is none.
    pub(super) fn way<'a>(&'a self, from: &'a str, to: &str) -> Vec<&'a str> {
        let mut before: BTreeMap<&str, &str> = BTreeMap::new();
        let mut open = VecDeque::from([from]);
        while let Some(at) = open.pop_front() {
            if at == to {
                let mut way = vec![at];
                let mut step = at;
                while step != from
                    && let Some(earlier) = before.get(step)
                {
                    step = earlier;
                    way.push(step);
                }
                way.reverse();
                return way;
            }
            for (_, next) in self.arrows.keys().filter(|(start, _)| start == at) {
                if next != from && !before.contains_key(next.as_str()) {
                    before.insert(next, at);
                    open.push_back(next);
                }
            }
        }
        Vec::new()
    }
}

fn reaches(arrows: &BTreeSet<&Arrow>, from: &str, to: &str) -> bool {
    let mut seen = BTreeSet::from([from]);
    let mut open = vec![from];
    while let Some(at) = open.pop() {
        if at == to {
            return true;
        }
        let next = arrows
            .iter()
            .filter(|(start, _)| start == at)
            .map(|(_, end)| end.as_str());
        open.extend(next.filter(|end| seen.insert(end)));
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn graph(arrows: &[(&str, &str)]) -> ModuleGraph {
        let mut graph = ModuleGraph::default();
        for (line, (from, to)) in arrows.iter().enumerate() {
            graph.add(from, to, ("f", line + 1));
        }
        graph
    }

    fn arrow(from: &str, to: &str) -> Arrow {
        (from.to_owned(), to.to_owned())
    }

    #[test]
    fn the_arrow_that_is_written_least_closes_the_circle() {
        let graph = graph(&[("a", "b"), ("a", "b"), ("b", "c"), ("b", "c"), ("c", "a")]);
        assert_eq!(
            graph.without(&BTreeSet::new()),
            (vec![], vec![arrow("c", "a")])
        );
        assert_eq!(graph.way("a", "c"), ["a", "b", "c"]);
        assert_eq!(graph.place(&arrow("c", "a")), ("f".to_owned(), 5));
        let borne = BTreeSet::from([arrow("a", "b")]);
        assert_eq!(graph.without(&borne), (vec![arrow("a", "b")], vec![]));
    }

    #[test]
    fn no_more_arrows_are_taken_than_close_circles() {
        let graph = graph(&[("a", "b"), ("b", "a"), ("b", "c"), ("c", "b"), ("c", "d")]);
        let (_, closing) = graph.without(&BTreeSet::new());
        assert_eq!(closing.len(), 2, "{closing:?}");
    }

    #[test]
    fn borne_arrows_without_a_circle_are_not_needed() {
        let graph = graph(&[("a", "b"), ("b", "c")]);
        let borne = BTreeSet::from([arrow("a", "b"), arrow("x", "y")]);
        assert_eq!(graph.without(&borne), (vec![], vec![]));
    }
}
