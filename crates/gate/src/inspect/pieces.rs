//! A text that comes in pieces: what is found across their borders.
//!
//! The last [`HELD_BYTES`] of it are held back, because a match may begin there and end in a piece that has not
//! come. What is before them is settled, unless a match has begun that still grows.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use super::finding::Finding;
use super::rule::Action;
use super::{Inspection, Way};

/// How much of a text is held back until more of it comes, in bytes: a match is found whole where this much of
/// it is enough to tell it.
pub const HELD_BYTES: usize = 1_024;
/// How much of what was settled is looked at again, for words that tell what follows them, in bytes.
const CONTEXT_BYTES: usize = 1_024;

/// One text. Places in it are counted in bytes from its beginning.
#[derive(Debug, Default)]
pub struct Pieces {
    /// What is kept of it.
    text: String,
    /// Where `text` begins.
    base: usize,
    /// Up to where it is settled.
    settled: usize,
    /// Up to where it was handed out.
    taken: usize,
    /// Settled matches that are masked, in order.
    masks: VecDeque<(Range<usize>, Arc<str>)>,
}

impl Pieces {
    /// Adds a piece, and gives its place.
    pub fn push(&mut self, piece: &str) -> Range<usize> {
        let start = self.end();
        self.text.push_str(piece);
        start..self.end()
    }

    fn end(&self) -> usize {
        self.base + self.text.len()
    }

    /// Up to where it is settled.
    #[must_use]
    pub fn settled(&self) -> usize {
        self.settled
    }

    /// How much of it is held back, in bytes.
    #[must_use]
    pub fn held(&self) -> usize {
        self.end().saturating_sub(self.settled)
    }

    /// What is kept of it: all of it, before anything was handed out.
    #[must_use]
    pub fn whole(&self) -> &str {
        &self.text
    }

    /// Settles what can be; all of it where no more comes. What is found there is added to `finding`.
    pub fn settle(
        &mut self,
        inspection: &Inspection,
        from: (Way, &str),
        is_last: bool,
        finding: &mut Option<Finding>,
    ) {
        let begin = self.boundary(self.settled.saturating_sub(CONTEXT_BYTES));
        let window = self.text.get(begin - self.base..).unwrap_or_default();
        let hits = inspection.hits(from, None, window);
        let place = |at: &Range<usize>| at.start + begin..at.end + begin;
        let mut cut = self.end();
        if !is_last {
            cut = self.boundary(cut.saturating_sub(HELD_BYTES));
            // Sorted by their beginning: a match that reaches beyond the cut is settled with its end.
            for hit in hits.iter().rev() {
                let at = place(&hit.at);
                if at.start < cut && cut < at.end {
                    cut = at.start;
                }
            }
        }
        let before = self.settled;
        for hit in &hits {
            let at = place(&hit.at);
            let is_new = before < at.end && at.end <= cut;
            let Some(rule) = inspection.rule(hit).filter(|_| is_new) else {
                continue;
            };
            finding.get_or_insert_default().add(rule, false);
            if rule.action == Action::Mask {
                let rest = at.start.max(before)..at.end;
                self.masks.push_back((rest, Arc::clone(&rule.name)));
            }
        }
        self.settled = self.settled.max(cut);
        self.forget();
    }

    /// What goes on of a settled place: each is asked for once, in order.
    pub fn take(&mut self, place: &Range<usize>) -> String {
        let mut out = String::with_capacity(place.len());
        let mut at = place.start;
        for (mask, name) in &self.masks {
            if mask.end <= at || place.end <= mask.start {
                continue;
            }
            if mask.start >= at {
                out.push_str(self.slice(at..mask.start));
                out.push_str(&format!("[masked: {name}]"));
            }
            at = mask.end;
        }
        if at < place.end {
            out.push_str(self.slice(at..place.end));
        }
        self.taken = self.taken.max(place.end);
        while self
            .masks
            .front()
            .is_some_and(|(mask, _)| mask.end <= self.taken)
        {
            self.masks.pop_front();
        }
        self.forget();
        out
    }

    fn slice(&self, place: Range<usize>) -> &str {
        let start = place.start.saturating_sub(self.base);
        let end = place.end.saturating_sub(self.base);
        self.text.get(start..end).unwrap_or_default()
    }

    /// The next place at or before `at` where a character begins.
    fn boundary(&self, at: usize) -> usize {
        let mut inside = at.saturating_sub(self.base).min(self.text.len());
        while !self.text.is_char_boundary(inside) {
            inside -= 1;
        }
        self.base + inside
    }

    /// Lets go of what was handed out and is no context any more.
    fn forget(&mut self) {
        let keep = self.taken.min(self.settled.saturating_sub(CONTEXT_BYTES));
        let keep = self.boundary(keep);
        if keep > self.base {
            self.text.drain(..keep - self.base);
            self.base = keep;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inspect::secrets::SECRETS;
    use crate::inspect::{Finds, Rule, pattern};
    use crate::labels::Labels;

    fn rules(finds: Finds) -> Inspection {
        Inspection::new(vec![Rule {
            name: "keys".into(),
            finds,
            requests: true,
            results: true,
            servers: Vec::new(),
            action: Action::Mask,
            labels: Labels::default(),
        }])
    }

    /// The text in pieces of this many bytes, as it goes on; and how often something was found.
    fn passed(inspection: &Inspection, text: &str, size: usize) -> (String, u64) {
        let (mut pieces, mut finding) = (Pieces::default(), None);
        let mut places = VecDeque::new();
        let mut out = String::new();
        let mut rest = text;
        while !rest.is_empty() {
            let mut at = size.min(rest.len());
            while !rest.is_char_boundary(at) {
                at += 1;
            }
            let (piece, behind) = rest.split_at(at);
            rest = behind;
            places.push_back(pieces.push(piece));
            let from = (Way::Result, "s");
            pieces.settle(inspection, from, rest.is_empty(), &mut finding);
            while places.front().is_some_and(|at| at.end <= pieces.settled()) {
                let place = places.pop_front().unwrap();
                out.push_str(&pieces.take(&place));
            }
            assert!(pieces.text.len() <= 4 * HELD_BYTES + 2 * size, "it grows");
        }
        assert!(places.is_empty());
        (out, finding.map_or(0, |finding| finding.masked()))
    }

    #[test]
    fn a_secret_is_masked_however_it_is_cut() {
        let secrets = rules(Finds::Secrets(SECRETS.iter().collect()));
        let key = format!("ghp_{}", "aB3dE6gH9k".repeat(4).get(..36).unwrap());
        for before in [0, 1, 1_023, 1_500] {
            let text = format!("{} {key} and {}", "é".repeat(before), "b ".repeat(20));
            let expect = text.replace(&key, "[masked: keys]");
            for size in [5, 64, 1_000, 100_000] {
                let (out, found) = passed(&secrets, &text, size);
                assert_eq!(
                    (out.as_str(), found),
                    (expect.as_str(), 1),
                    "{before} {size}"
                );
            }
        }
    }

    #[test]
    fn a_secret_is_masked_where_escapes_of_json_are_cut() {
        let rules = rules(Finds::Patterns(vec![pattern("CASE-[0-9]{6}").unwrap()]));
        let text = r#"{"a":"C\u0041SE\u002d12345\u0036","b":1}"#;
        for size in 1..text.len() {
            let (out, found) = passed(&rules, text, size);
            let expect = r#"{"a":"[masked: keys]","b":1}"#;
            assert_eq!((out.as_str(), found), (expect, 1), "{size}");
        }
    }

    #[test]
    fn what_tells_a_secret_may_be_long_settled_words_before_it() {
        let secrets = rules(Finds::Secrets(SECRETS.iter().collect()));
        let text = format!("{} password: hG7kQ2mX9vB4nT6w done", "x ".repeat(1_500));
        for size in [7, 50] {
            let (out, found) = passed(&secrets, &text, size);
            assert!(out.ends_with("password: [masked: keys] done"), "{size}");
            assert_eq!(found, 1);
        }
    }

    #[test]
    fn matches_that_overlap_become_one_and_others_stand_beside_each_other() {
        let both = rules(Finds::Patterns(vec![
            pattern("one two").unwrap(),
            pattern("two three").unwrap(),
            pattern("four").unwrap(),
        ]));
        let (out, found) = passed(&both, "a one two three fourfour b", 2);
        assert_eq!(out, "a [masked: keys] [masked: keys][masked: keys] b");
        assert_eq!(found, 4);
    }

    #[test]
    fn a_match_that_does_not_end_is_held_back_from_its_beginning() {
        let endless = rules(Finds::Patterns(vec![pattern("BEGIN[^!]*").unwrap()]));
        let (mut pieces, mut finding) = (Pieces::default(), None);
        for _ in 0..100 {
            pieces.push("..BEGIN....");
            pieces.settle(&endless, (Way::Result, "s"), false, &mut finding);
        }
        assert_eq!((pieces.settled(), pieces.held()), (2, 1_098));
        pieces.push(&"x".repeat(3_000));
        pieces.settle(&endless, (Way::Result, "s"), false, &mut finding);
        assert_eq!(pieces.settled(), 2);
        assert!(finding.is_none());
        pieces.settle(&endless, (Way::Result, "s"), true, &mut finding);
        let all = 0..pieces.settled();
        assert_eq!(pieces.take(&all), "..[masked: keys]");
    }
}
