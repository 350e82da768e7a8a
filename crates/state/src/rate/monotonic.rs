//! Time that never goes back, even if the clock is set back.

/// Maximum difference between the readings of two threads that arrive out of order; the later reading counts. Above
/// it, the clock was set back.
const SKEW_NS_MAX: u64 = 1_000_000_000;

/// Converts readings of a clock to times that never decrease. After the clock was set back, time goes on from its
/// latest value: spent calls stay spent, and no caller waits for the clock to catch up.
#[derive(Debug, Default)]
pub(super) struct MonotonicTime {
    latest_ns: u64,
    behind_ns: u64,
}

impl MonotonicTime {
    /// Returns the time of a reading.
    pub fn at(&mut self, reading_ns: u64) -> u64 {
        let now = reading_ns.saturating_add(self.behind_ns);
        match self.latest_ns.checked_sub(now) {
            None | Some(0) => self.latest_ns = now,
            Some(skew) if skew <= SKEW_NS_MAX => {}
            Some(set_back) => self.behind_ns = self.behind_ns.saturating_add(set_back),
        }
        self.latest_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_goes_on_from_its_latest_value() {
        let hour = 3_600_000_000_000;
        let mut steady = MonotonicTime::default();
        let readings = [
            (hour, hour),
            // Another thread's earlier reading.
            (hour - 5, hour),
            (hour + 10, hour + 10),
            // Set back by an hour, then running on.
            (10, hour + 10),
            (40, hour + 40),
            (SKEW_NS_MAX, hour + SKEW_NS_MAX),
            // Set back once more.
            (0, hour + SKEW_NS_MAX),
            (7, hour + SKEW_NS_MAX),
        ];
        for (reading, expected) in readings {
            assert_eq!(steady.at(reading), expected, "{reading}");
        }
    }
}
