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
mod tests;
