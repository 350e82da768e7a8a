//! Numbers that a seed gives.

/// SplitMix64.
pub struct Random(pub u64);

impl Random {
    /// One of a seed that no run had before, and the seed.
    pub fn fresh() -> (u64, Self) {
        let since = std::time::SystemTime::now()
            .duration_since(std::time::UNIX_EPOCH)
            .unwrap();
        let seed = u64::try_from(since.as_nanos()).unwrap();
        (seed, Self(seed))
    }

    pub fn below(&mut self, most: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        usize::try_from((z ^ (z >> 31)) % most as u64).unwrap()
    }
}
