//! A sliding window of calls.

use std::collections::VecDeque;

/// Calls that a window remembers one by one. Beyond it, calls that come within a thousandth of the
/// window are remembered as one mark that leaves when its last call does: always on the strict side.
pub const EXACT_MAX: usize = 1_024;

/// When calls were made, as long as they count.
#[derive(Debug, Default)]
pub(super) struct Window {
    marks: VecDeque<Mark>,
    calls: u32,
}

#[derive(Debug)]
struct Mark {
    last_ns: u64,
    calls: u32,
}

/// How a window changed: marks added and dropped, for whoever counts them over all windows.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct Change {
    pub added: usize,
    pub dropped: usize,
}

impl Window {
    /// Takes one call in, or says in how many nanoseconds there is room for one. A call counts for
    /// `window_ns` from its time on. `now_ns` never decreases.
    pub fn take(
        &mut self,
        now_ns: u64,
        calls_max: u32,
        window_ns: u64,
    ) -> (Result<(), u64>, Change) {
        let dropped = self.forget(now_ns, window_ns);
        if self.calls >= calls_max {
            let wait = self.wait(now_ns, calls_max, window_ns);
            return (Err(wait), Change { added: 0, dropped });
        }
        self.calls += 1;
        let grain_ns = window_ns / EXACT_MAX as u64;
        let crowded = self.marks.len() >= EXACT_MAX;
        match self.marks.back_mut() {
            Some(mark) if crowded && same_grain(mark.last_ns, now_ns, grain_ns) => {
                mark.last_ns = now_ns;
                mark.calls += 1;
                (Ok(()), Change { added: 0, dropped })
            }
            _ => {
                self.marks.push_back(Mark {
                    last_ns: now_ns,
                    calls: 1,
                });
                (Ok(()), Change { added: 1, dropped })
            }
        }
    }

    /// Drops what no longer counts; says how many marks that were.
    pub fn forget(&mut self, now_ns: u64, window_ns: u64) -> usize {
        let mut dropped = 0;
        while let Some(mark) = self.marks.front() {
            if now_ns.saturating_sub(mark.last_ns) < window_ns {
                break;
            }
            self.calls = self.calls.saturating_sub(mark.calls);
            self.marks.pop_front();
            dropped += 1;
        }
        dropped
    }

    /// How long until fewer than `calls_max` count.
    fn wait(&self, now_ns: u64, calls_max: u32, window_ns: u64) -> u64 {
        let mut left = self.calls;
        for mark in &self.marks {
            left = left.saturating_sub(mark.calls);
            if left < calls_max {
                return mark
                    .last_ns
                    .saturating_add(window_ns)
                    .saturating_sub(now_ns);
            }
        }
        window_ns
    }

    /// How many marks it holds.
    pub fn marks(&self) -> usize {
        self.marks.len()
    }

    /// When the last call was made.
    pub fn last_ns(&self) -> u64 {
        self.marks.back().map_or(0, |mark| mark.last_ns)
    }
}

fn same_grain(a_ns: u64, b_ns: u64, grain_ns: u64) -> bool {
    let grain = grain_ns.max(1);
    a_ns / grain == b_ns / grain
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SECOND: u64 = 1_000_000_000;

    #[test]
    fn thirty_in_a_minute_and_each_leaves_on_time() {
        let mut window = Window::default();
        for call in 0..30 {
            let (taken, _) = window.take(call * SECOND, 30, 60 * SECOND);
            assert_eq!(taken, Ok(()));
        }
        assert_eq!(
            window.take(30 * SECOND, 30, 60 * SECOND).0,
            Err(30 * SECOND)
        );
        assert_eq!(window.take(60 * SECOND - 1, 30, 60 * SECOND).0, Err(1));
        assert_eq!(window.take(60 * SECOND, 30, 60 * SECOND).0, Ok(()));
        assert!(window.take(60 * SECOND, 30, 60 * SECOND).0.is_err());
        // A smaller number after a reload: so many have to leave first.
        assert_eq!(
            window.take(60 * SECOND, 10, 60 * SECOND).0,
            Err(21 * SECOND)
        );
    }

    #[test]
    fn memory_is_bounded_however_many_calls_come() {
        let mut window = Window::default();
        let mut marks = 0;
        for call in 0..1_000_000_u64 {
            let (taken, change) = window.take(call * 50_000, u32::MAX, 60 * SECOND);
            assert_eq!(taken, Ok(()));
            marks = marks + change.added - change.dropped;
            assert_eq!(marks, window.marks());
            assert!(window.marks() <= 2 * EXACT_MAX + 1, "{}", window.marks());
        }
    }

    proptest! {
        #[test]
        fn exactly_as_many_as_the_definition_says(
            calls_max in 1_u32..40,
            window in 1_u64..1_000,
            steps in prop::collection::vec(0_u64..100, 1..300),
        ) {
            let (mut tested, mut taken, mut now) = (Window::default(), Vec::<u64>::new(), 0);
            for step in steps {
                now += step;
                let within = taken.iter().filter(|at| now - **at < window).count();
                let (may, _) = tested.take(now, calls_max, window);
                prop_assert_eq!(may.is_ok(), within < calls_max as usize);
                match may {
                    Ok(()) => taken.push(now),
                    Err(wait) => {
                        let then = now + wait;
                        let left = |at: u64| taken.iter().filter(|t| at - **t < window).count();
                        prop_assert!(left(then) < calls_max as usize);
                        prop_assert!(left(then - 1) >= calls_max as usize);
                    }
                }
            }
        }

        #[test]
        fn grouped_calls_are_never_too_many(
            calls_max in 1_100_u32..3_000,
            steps in prop::collection::vec(0_u64..2_000, 4_000..6_000),
        ) {
            let window = 1_024 * 1_000;
            let (mut tested, mut taken, mut now) = (Window::default(), VecDeque::<u64>::new(), 0);
            for step in steps {
                now += step / 3;
                while taken.front().is_some_and(|at| now - at >= window) {
                    taken.pop_front();
                }
                if tested.take(now, calls_max, window).0.is_ok() {
                    taken.push_back(now);
                }
                prop_assert!(taken.len() <= calls_max as usize);
            }
        }
    }
}
