//! Where each call begins within a tier.

use std::sync::atomic::{AtomicU64, Ordering};

/// How calls are spread over the targets of a tier.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Rotation {
    /// Each call begins with the first target.
    #[default]
    None,
    /// Each call begins one target further.
    RoundRobin,
}

/// A tier's own counter.
#[derive(Debug, Default)]
pub(super) struct Wheel(AtomicU64);

impl Wheel {
    /// The order in which the targets of a tier with so many are tried, by their numbers.
    pub fn order(&self, rotation: Rotation, count: usize) -> impl Iterator<Item = usize> + use<> {
        let first = match rotation {
            Rotation::None => 0,
            Rotation::RoundRobin => {
                let turn = self.0.fetch_add(1, Ordering::Relaxed);
                let count = u64::try_from(count.max(1)).unwrap_or(u64::MAX);
                usize::try_from(turn % count).unwrap_or(0)
            }
        };
        (0..count).map(move |at| (first + at) % count.max(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn round_robin_begins_one_further_each_time() {
        let wheel = Wheel::default();
        let order = |rotation| wheel.order(rotation, 3).collect::<Vec<_>>();
        assert_eq!(order(Rotation::RoundRobin), [0, 1, 2]);
        assert_eq!(order(Rotation::RoundRobin), [1, 2, 0]);
        assert_eq!(order(Rotation::None), [0, 1, 2]);
        assert_eq!(order(Rotation::RoundRobin), [2, 0, 1]);
        assert_eq!(order(Rotation::RoundRobin), [0, 1, 2]);
        assert_eq!(wheel.order(Rotation::RoundRobin, 0).count(), 0);
    }
}
