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
    /// Calls begin with each target as often as its weight says.
    Weighted,
    /// Each call begins with the target that has begun to answer fastest of late.
    LeastLatency,
    /// Each call begins with the target at which it costs least.
    Cheapest,
    /// Each call begins with the target that answers the fewest calls at the moment.
    LeastBusy,
}

/// Every so many calls, one looks at the target that would not be asked otherwise: it may have become faster.
const LOOK_EVERY: u64 = 32;

/// What is known of a target when a call comes.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Standing {
    /// Its share; 0 where it is only to be asked where the others fail.
    pub weight: u64,
    /// How long it takes to begin to answer, in microseconds; 0 where nobody knows.
    pub latency_us: u64,
    /// The calls that it is answering.
    pub busy: u64,
    /// What the call can cost there; `None` where nobody knows.
    pub price: Option<u64>,
}

/// A tier's own counter.
#[derive(Debug, Default)]
pub(super) struct Wheel(AtomicU64);

impl Wheel {
    /// The order in which the targets of a tier are tried, by their numbers. Where the rotation sees no
    /// difference between them, they take turns.
    pub fn order(&self, rotation: Rotation, targets: &[Standing]) -> Vec<usize> {
        let count = targets.len();
        let turn = match rotation {
            Rotation::None => 0,
            _ => self.0.fetch_add(1, Ordering::Relaxed),
        };
        let first = match rotation {
            Rotation::Weighted => heavy(turn, targets),
            _ => remainder(turn, count),
        };
        let mut order: Vec<usize> = (0..count).map(|at| (first + at) % count.max(1)).collect();
        let standing = |at: &usize| targets.get(*at).copied().unwrap_or_default();
        match rotation {
            Rotation::None | Rotation::RoundRobin | Rotation::Weighted => {}
            Rotation::LeastLatency if turn % LOOK_EVERY == LOOK_EVERY - 1 => {}
            Rotation::LeastLatency => order.sort_by_key(|at| standing(at).latency_us),
            Rotation::Cheapest => {
                order.sort_by_key(|at| standing(at).price.unwrap_or(u64::MAX));
            }
            Rotation::LeastBusy => order.sort_by_key(|at| standing(at).busy),
        }
        order
    }
}

/// The target whose turn it is. Within as many turns as all weights together, each has its share exactly, and
/// the turns of one target are spread among those of the others.
fn heavy(turn: u64, targets: &[Standing]) -> usize {
    let total: u64 = targets.iter().map(|target| target.weight).sum();
    if total == 0 {
        return 0;
    }
    let stride = stride(total);
    // Below the total, whose square fits: a weight is small.
    let mut left = (turn % total) * stride % total;
    for (at, target) in targets.iter().enumerate() {
        match left.checked_sub(target.weight) {
            None => return at,
            Some(rest) => left = rest,
        }
    }
    0
}

/// A step that meets every number below `total` once, and neighbours late: near the golden section, and without
/// a common divisor.
fn stride(total: u64) -> u64 {
    let divisor = |mut a: u64, mut b: u64| {
        while b > 0 {
            (a, b) = (b, a % b);
        }
        a
    };
    let golden = total * 618 / 1_000;
    (golden.max(1)..=total)
        .find(|step| divisor(*step, total) == 1)
        .unwrap_or(1)
}

fn remainder(turn: u64, count: usize) -> usize {
    let count = u64::try_from(count.max(1)).unwrap_or(u64::MAX);
    usize::try_from(turn % count).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn standings(of: impl Fn(u64) -> Standing) -> Vec<Standing> {
        (0..3).map(of).collect()
    }

    #[test]
    fn round_robin_begins_one_further_each_time() {
        let wheel = Wheel::default();
        let three = standings(|_| Standing::default());
        let order = |rotation| wheel.order(rotation, &three);
        assert_eq!(order(Rotation::RoundRobin), [0, 1, 2]);
        assert_eq!(order(Rotation::RoundRobin), [1, 2, 0]);
        assert_eq!(order(Rotation::None), [0, 1, 2]);
        assert_eq!(order(Rotation::RoundRobin), [2, 0, 1]);
        assert_eq!(order(Rotation::RoundRobin), [0, 1, 2]);
        assert!(wheel.order(Rotation::RoundRobin, &[]).is_empty());
    }

    #[test]
    fn weights_are_kept_exactly_and_spread() {
        let wheel = Wheel::default();
        let targets = [3, 1, 0, 6].map(|weight| Standing {
            weight,
            ..Standing::default()
        });
        let firsts: Vec<usize> = (0..20)
            .map(|_| wheel.order(Rotation::Weighted, &targets)[0])
            .collect();
        for round in firsts.chunks(10) {
            let count = |at| round.iter().filter(|first| **first == at).count();
            assert_eq!([count(0), count(1), count(2), count(3)], [3, 1, 0, 6]);
        }
        let in_a_row = firsts.windows(4).any(|four| four == [3, 3, 3, 3]);
        assert!(!in_a_row, "{firsts:?}");
        let order = wheel.order(Rotation::Weighted, &targets);
        assert_eq!(order.len(), 4, "what has no weight is tried last or later");
        let none = standings(|_| Standing::default());
        assert_eq!(wheel.order(Rotation::Weighted, &none), [0, 1, 2]);
        for total in 1..200 {
            assert!((1..=total).contains(&stride(total)));
        }
    }

    #[test]
    fn the_fastest_the_cheapest_and_the_idlest_come_first_and_equals_take_turns() {
        let wheel = Wheel::default();
        let targets = standings(|at| Standing {
            weight: 1,
            latency_us: 30 - at * 10,
            busy: [5, 0, 2][usize::try_from(at).unwrap()],
            price: [None, Some(7), Some(3)][usize::try_from(at).unwrap()],
        });
        assert_eq!(wheel.order(Rotation::LeastLatency, &targets), [2, 1, 0]);
        assert_eq!(wheel.order(Rotation::Cheapest, &targets), [2, 1, 0]);
        assert_eq!(wheel.order(Rotation::LeastBusy, &targets), [1, 2, 0]);
        let equal = standings(|_| Standing::default());
        let firsts = (0..6).map(|_| wheel.order(Rotation::LeastBusy, &equal)[0]);
        let firsts: Vec<usize> = firsts.collect();
        for at in 0..3 {
            assert_eq!(firsts.iter().filter(|first| **first == at).count(), 2);
        }
        let looks = (0..LOOK_EVERY).map(|_| wheel.order(Rotation::LeastLatency, &targets)[0]);
        assert!(looks.filter(|first| *first != 2).count() <= 1);
    }
}
