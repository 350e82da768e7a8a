//! How often, how large, how long.

use state::SyncPolicy;

/// When a checkpoint is due: after so many records, or so many milliseconds after the first record that none covers yet.
/// Writer and verifier share this rule, so a checkpoint that was taken out is missed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cadence {
    /// Records between two checkpoints, at most.
    pub records_max: u64,
    /// Milliseconds that a record may wait for a following record's checkpoint.
    pub wait_ms_max: u64,
    /// The same for a decision that did not let its call through by a rule: a refusal, or a person's answer. `None`: as long
    /// as any other record, as in journals of older versions.
    pub refusal_wait_ms_max: Option<u64>,
}

impl Default for Cadence {
    fn default() -> Self {
        Cadence {
            records_max: 1_000,
            wait_ms_max: 60_000,
            refusal_wait_ms_max: Some(1_000),
        }
    }
}

impl Cadence {
    /// When a tick writes a checkpoint without a record that brings it along: early enough that the next tick would be late.
    pub(super) fn on_tick(self) -> Cadence {
        Cadence {
            refusal_wait_ms_max: self.refusal_wait_ms_max.map(|wait_ms| wait_ms / 2),
            ..self
        }
    }
}

/// A clock that is behind a moment by more than this was set back; less is the order in which threads have read it.
const BEHIND_MS_MAX: i64 = 1_000;

/// How long ago a moment was, in milliseconds. Where the clock was set back since, nobody knows: then it was long enough
/// for everything that waits, else that would wait until the clock is there again.
pub(super) fn waited_ms(since_ms: i64, now_ms: i64) -> u64 {
    let waited_ms = now_ms.saturating_sub(since_ms);
    match waited_ms < -BEHIND_MS_MAX {
        true => u64::MAX,
        false => u64::try_from(waited_ms).unwrap_or(0),
    }
}

/// Records since the last checkpoint.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Uncovered {
    pub(super) records: u64,
    first_ms: i64,
    /// Time of the first of them that must not wait long.
    refusal_ms: Option<i64>,
}

impl Uncovered {
    /// Counts a record; `refusal`: a decision that must not wait long.
    pub(super) fn add(&mut self, now_ms: i64, refusal: bool) {
        if self.records == 0 {
            self.first_ms = now_ms;
        }
        if refusal {
            self.refusal_ms.get_or_insert(now_ms);
        }
        self.records = self.records.saturating_add(1);
    }

    /// The same for whoever writes: earlier, where the clock was set back. Journals of older versions have none there, so
    /// nobody misses it.
    pub(super) fn wanted(&self, cadence: Cadence, now_ms: i64) -> bool {
        let is_set_back = self.records > 0 && waited_ms(self.first_ms, now_ms) == u64::MAX;
        is_set_back || self.due(cadence, now_ms)
    }

    /// Whether a checkpoint must stand before the next record, written at `now_ms`.
    pub(super) fn due(&self, cadence: Cadence, now_ms: i64) -> bool {
        let waited_ms = |since_ms| u64::try_from(now_ms.saturating_sub(since_ms)).unwrap_or(0);
        let refusal = self.refusal_ms.zip(cadence.refusal_wait_ms_max);
        self.records >= cadence.records_max.max(1)
            || (self.records > 0 && waited_ms(self.first_ms) >= cadence.wait_ms_max)
            || refusal.is_some_and(|(since_ms, wait_ms_max)| waited_ms(since_ms) >= wait_ms_max)
    }
}

/// Options of a journal; the defaults are those of the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JournalOptions {
    /// When records are forced to the disk.
    pub sync: SyncPolicy,
    /// Largest segment, in bytes; at least a few records fit whatever is given.
    pub segment_bytes_max: u64,
    /// When checkpoints are written.
    pub checkpoints: Cadence,
    /// How many bytes of segments to keep: beyond it the oldest are deleted, with a signed record of each. `None` keeps all, and
    /// a full disk then ends the journal.
    pub retain_bytes_max: Option<u64>,
}

/// How many segments a journal of bounded size has, at least: each that goes takes no more than this part of the records.
const RETAINED_SEGMENTS: u64 = 8;

impl JournalOptions {
    /// The default, with at most `bytes` of segments in all, the one that is being written included. Each other writer
    /// of the directory may take one segment more.
    #[must_use]
    pub fn retaining(bytes: Option<u64>) -> Self {
        let usual = Self::default();
        let Some(bytes) = bytes else {
            return usual;
        };
        let segment_bytes_max = usual.segment_bytes_max.min(bytes / RETAINED_SEGMENTS);
        Self {
            segment_bytes_max,
            retain_bytes_max: Some(bytes.saturating_sub(segment_bytes_max)),
            ..usual
        }
    }
}

impl Default for JournalOptions {
    fn default() -> Self {
        JournalOptions {
            sync: SyncPolicy::default(),
            segment_bytes_max: 64 << 20,
            checkpoints: Cadence::default(),
            retain_bytes_max: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_checkpoint_is_due_by_count_and_by_time_and_never_when_nothing_waits() {
        let cadence = Cadence {
            records_max: 3,
            wait_ms_max: 100,
            refusal_wait_ms_max: Some(20),
        };
        let mut uncovered = Uncovered::default();
        assert!(!uncovered.due(cadence, i64::MAX));
        uncovered.add(1_000, false);
        uncovered.add(1_050, false);
        for (now_ms, due) in [
            (1_051, false),
            (1_099, false),
            (1_100, true),
            (0, false),
            (i64::MIN, false),
        ] {
            assert_eq!(uncovered.due(cadence, now_ms), due, "{now_ms}");
        }
        uncovered.add(1_051, false);
        assert!(uncovered.due(cadence, 1_051));
        let mut uncovered = Uncovered::default();
        assert!(!uncovered.wanted(cadence, i64::MIN));
        uncovered.add(10_000, false);
        for (now_ms, wanted) in [
            (10_099, false),
            (10_100, true),
            (9_000, false),
            (8_999, true),
            (i64::MIN, true),
        ] {
            assert_eq!(uncovered.wanted(cadence, now_ms), wanted, "{now_ms}");
        }
        let mut refused = Uncovered::default();
        refused.add(1_000, true);
        refused.add(1_015, true);
        for (now_ms, due, on_tick) in [
            (1_009, false, false),
            (1_010, false, true),
            (1_019, false, true),
            (1_020, true, true),
        ] {
            assert_eq!(refused.due(cadence, now_ms), due, "{now_ms}");
            assert_eq!(refused.due(cadence.on_tick(), now_ms), on_tick, "{now_ms}");
        }
    }
}
