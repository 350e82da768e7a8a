//! A small generator (splitmix64): the frames of a seed must be the same on every machine.

/// A stream of numbers that depends on its seed alone.
#[derive(Debug)]
pub struct SeededRandom {
    state: u64,
}

impl SeededRandom {
    /// Returns the numbers of this seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Returns a number below `n`; 0 where `n` is 0.
    pub fn below(&mut self, n: usize) -> usize {
        let n = u64::try_from(n).unwrap_or(u64::MAX).max(1);
        usize::try_from(self.next() % n).unwrap_or_default()
    }

    /// One of several.
    pub fn of<'a>(&mut self, several: &[&'a str]) -> &'a str {
        several
            .get(self.below(several.len()))
            .copied()
            .unwrap_or_default()
    }

    /// Heads or tails.
    pub fn coin(&mut self) -> bool {
        self.below(2) == 0
    }
}
