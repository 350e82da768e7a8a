//! The journal and the clock, as the gate and its flights share them.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use crate::clock::Clock;
use crate::effect::Effect;
use crate::facts::Direction;
use crate::journal::{Appending, Decision, Journal, JournalError, OpId, Record};
use crate::limits::Counters;
use crate::reason::Reason;

use super::by_tool::ByTool;
use super::control::ControlKind;
use super::observer::{Observed, Observer};
use super::tally::Tally;

/// Writes records and remembers whether that failed.
pub(super) struct Recorder {
    pub journal: Arc<Journal>,
    pub clock: Arc<dyn Clock>,
    /// Counts of callers; bytes of their records are added here.
    pub counters: Arc<Counters>,
    /// 48 random bits of this instance, so that names from two instances differ.
    instance: u64,
    last: Mutex<(i64, u32)>,
    failed: AtomicBool,
    control: [AtomicU64; ControlKind::ALL.len()],
    pub tally: Tally,
    /// Counts by tool, where somebody reads them.
    pub by_tool: OnceLock<ByTool>,
    pub observer: OnceLock<Arc<dyn Observer>>,
    /// Calls that were let pass and are not over.
    open: AtomicUsize,
}

/// A call that was let pass, until it is over.
pub(super) struct Open(Arc<Recorder>);

impl Open {
    pub fn of(recorder: &Arc<Recorder>) -> Self {
        recorder.open.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(recorder))
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Recorder {
    pub fn new(
        journal: Arc<Journal>,
        clock: Arc<dyn Clock>,
        counters: Arc<Counters>,
        random: u64,
    ) -> Self {
        Self {
            journal,
            clock,
            counters,
            instance: random & 0xffff_ffff_ffff,
            last: Mutex::new((0, 0)),
            failed: AtomicBool::new(false),
            control: Default::default(),
            tally: Tally::default(),
            by_tool: OnceLock::new(),
            observer: OnceLock::new(),
            open: AtomicUsize::new(0),
        }
    }

    /// A fresh name: 48 bits of milliseconds, 32 of a counter, 48 of the instance. Grows even where
    /// the wall clock, which says `now`, is set back.
    pub fn next_op(&self, now: i64) -> OpId {
        let mut last = self
            .last
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        *last = if now > last.0 {
            (now, 0)
        } else {
            (
                last.0 + i64::from(last.1 == u32::MAX),
                last.1.wrapping_add(1),
            )
        };
        let (ms, count) = *last;
        drop(last);
        let ms = u128::from(u64::try_from(ms).unwrap_or(0) & 0xffff_ffff_ffff);
        OpId((ms << 80) | (u128::from(count) << 48) | u128::from(self.instance))
    }

    /// Writes a record and returns the length of its line, in bytes.
    pub fn write(&self, record: &Record<'_>) -> Result<u64, JournalError> {
        self.journal
            .append(self.clock.wall_ms(), record)
            .inspect(|_| self.tally.count(record))
            .map(|appended| appended.bytes)
            .inspect_err(|error| self.remember(error))
    }

    /// Adds a record's bytes to what the caller of its call has caused.
    pub fn charge(&self, subject_id: &str, direction: Direction, bytes: u64) {
        self.counters.charge(subject_id, direction, bytes);
    }

    /// Begins to write a decision, made at `now` on the wall clock.
    pub fn begin(&self, now: i64, decision: &Decision<'_>) -> Result<Appending, JournalError> {
        self.journal
            .begin(now, &Record::Decision(decision))
            .inspect_err(|error| self.remember(error))
    }

    /// Returns once a decision with this effect and reason is written.
    pub fn finish(
        &self,
        begun: Appending,
        (effect, reason): (Effect, Option<Reason>),
    ) -> Result<(), JournalError> {
        begun
            .finish()
            .map(|_| self.tally.count_decision(effect, reason))
            .inspect_err(|error| self.remember(error))
    }

    /// A call is over, and its last record is written.
    pub fn observe(&self, call: &Observed<'_>) {
        if let Some(by_tool) = self.by_tool.get() {
            by_tool.count(call);
        }
        if let Some(observer) = self.observer.get() {
            observer.observe(call);
        }
    }

    pub fn tick(&self) -> Result<(), JournalError> {
        self.journal
            .tick(self.clock.wall_ms())
            .inspect_err(|error| self.remember(error))
    }

    fn remember(&self, error: &JournalError) {
        if error.is_fatal() {
            self.failed.store(true, Ordering::Release);
        }
    }

    /// Whether other calls are under way, so that more decisions are likely to come at this moment.
    pub fn is_busy(&self) -> bool {
        self.open.load(Ordering::Relaxed) > 0
    }

    pub fn failed(&self) -> bool {
        self.failed.load(Ordering::Acquire)
    }

    pub fn count(&self, kind: ControlKind) {
        if let Some((_, counter)) = ControlKind::ALL
            .iter()
            .zip(&self.control)
            .find(|(k, _)| **k == kind)
        {
            counter.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub fn counts(&self) -> Vec<(&'static str, u64)> {
        ControlKind::ALL
            .iter()
            .zip(&self.control)
            .map(|(k, c)| (k.label(), c.load(Ordering::Relaxed)))
            .collect()
    }
}
