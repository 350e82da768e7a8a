//! Sliding window of calls.

use std::collections::VecDeque;

/// Calls that a window keeps one by one. Above it, calls within a thousandth of the window share one mark, which
/// expires with its last call: never too many calls pass.
pub const EXACT_MAX: usize = 1_024;

/// Times of the calls that still count.
#[derive(Debug, Default)]
pub(super) struct CallWindow {
    marks: VecDeque<WindowMark>,
    calls: u32,
}

#[derive(Debug)]
struct WindowMark {
    last_ns: u64,
    calls: u32,
}

/// Marks that a call has added and removed, for the total over all windows.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct MarkChange {
    pub added: usize,
    pub dropped: usize,
}

impl CallWindow {
    /// Takes one call, or returns the nanoseconds until one is available. A call counts for `window_ns`. `now_ns`
    /// never decreases.
    pub fn take(
        &mut self,
        now_ns: u64,
        calls_max: u32,
        window_ns: u64,
    ) -> (Result<(), u64>, MarkChange) {
        let dropped = self.remove_expired(now_ns, window_ns);
        if self.calls >= calls_max {
            let wait = self.wait(now_ns, calls_max, window_ns);
            return (Err(wait), MarkChange { added: 0, dropped });
        }
        self.calls += 1;
        let grain_ns = window_ns / EXACT_MAX as u64;
        let crowded = self.marks.len() >= EXACT_MAX;
        match self.marks.back_mut() {
            Some(mark) if crowded && same_grain(mark.last_ns, now_ns, grain_ns) => {
                mark.last_ns = now_ns;
                mark.calls += 1;
                (Ok(()), MarkChange { added: 0, dropped })
            }
            _ => {
                self.marks.push_back(WindowMark {
                    last_ns: now_ns,
                    calls: 1,
                });
                (Ok(()), MarkChange { added: 1, dropped })
            }
        }
    }

    /// Removes marks that no longer count, and returns their number.
    pub fn remove_expired(&mut self, now_ns: u64, window_ns: u64) -> usize {
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

    /// Returns the nanoseconds until fewer than `calls_max` count.
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

    /// Returns the number of marks.
    pub fn marks(&self) -> usize {
        self.marks.len()
    }

    /// Returns the time of the last call.
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
