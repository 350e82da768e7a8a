//! What is counted of each provider, for metrics.

use std::sync::atomic::{AtomicU64, Ordering};

use dialects::Tokens;

use crate::provider::Trouble;

/// The label of an attempt that was served.
const SERVED: &str = "served";
/// The labels of what a model reads and writes.
const TOKENS: [&str; 4] = ["input", "output", "cached", "reasoning"];

/// What was counted of one provider.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Counted {
    /// The provider.
    pub provider: String,
    /// Attempts by how they ended; those that never did are left out.
    pub attempts: Vec<(&'static str, u64)>,
    /// Tokens by kind.
    pub tokens: Vec<(&'static str, u64)>,
}

/// Counters of all providers, which are known from the start.
#[derive(Debug)]
pub(crate) struct Tally(Vec<Counts>);

#[derive(Debug)]
struct Counts {
    provider: String,
    served: AtomicU64,
    troubles: [AtomicU64; Trouble::ALL.len()],
    tokens: [AtomicU64; TOKENS.len()],
}

impl Tally {
    pub fn of<'p>(providers: impl Iterator<Item = &'p str>) -> Self {
        let counts = |provider: &str| Counts {
            provider: provider.to_owned(),
            served: AtomicU64::default(),
            troubles: Default::default(),
            tokens: Default::default(),
        };
        Self(providers.map(counts).collect())
    }

    fn find(&self, provider: &str) -> Option<&Counts> {
        self.0.iter().find(|counts| counts.provider == provider)
    }

    /// An attempt has ended.
    pub fn attempt(&self, provider: &str, trouble: Option<Trouble>) {
        let Some(counts) = self.find(provider) else {
            return;
        };
        let count = match trouble {
            None => Some(&counts.served),
            Some(trouble) => {
                let at = Trouble::ALL.iter().position(|known| *known == trouble);
                at.and_then(|at| counts.troubles.get(at))
            }
        };
        if let Some(count) = count {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Tokens were used.
    pub fn used(&self, provider: &str, tokens: Tokens) {
        let Some(counts) = self.find(provider) else {
            return;
        };
        let used = [tokens.input, tokens.output, tokens.cached, tokens.reasoning];
        for (count, used) in counts.tokens.iter().zip(used) {
            count.fetch_add(used.unwrap_or(0), Ordering::Relaxed);
        }
    }

    /// What was counted so far.
    pub fn read(&self) -> Vec<Counted> {
        let read = |counts: &Counts| {
            let load = |count: &AtomicU64| count.load(Ordering::Relaxed);
            let labels = Trouble::ALL.iter().map(|trouble| trouble.label());
            let attempts = std::iter::once((SERVED, load(&counts.served)));
            let attempts = attempts.chain(labels.zip(counts.troubles.iter().map(load)));
            Counted {
                provider: counts.provider.clone(),
                attempts: attempts.filter(|(_, count)| *count > 0).collect(),
                tokens: TOKENS
                    .into_iter()
                    .zip(counts.tokens.iter().map(load))
                    .collect(),
            }
        };
        self.0.iter().map(read).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_provider_is_counted_for_itself() {
        let tally = Tally::of(["a", "b"].into_iter());
        tally.attempt("a", None);
        tally.attempt("a", Some(Trouble::Cut));
        tally.attempt("a", Some(Trouble::Cut));
        tally.attempt("nobody", None);
        tally.used(
            "b",
            Tokens {
                input: Some(3),
                output: Some(4),
                ..Tokens::default()
            },
        );
        let read = tally.read();
        assert_eq!(read[0].attempts, [("served", 1), ("provider_cut", 2)]);
        assert_eq!(read[1].attempts, []);
        let expect = [("input", 3), ("output", 4), ("cached", 0), ("reasoning", 0)];
        assert_eq!(read[1].tokens, expect);
    }
}
