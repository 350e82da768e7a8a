//! Sparing a target that fails: a breaker that only listens.
//!
//! It asks the target nothing by itself. After enough failures in a row it lets nothing through for a while;
//! then one call goes ahead as the probe, and its outcome decides for all others. What a caller cancelled or
//! did wrong says nothing about the target and never counts. Time is passed in.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The metric family of all breakers; its labels are the target and one of [`BreakerEvent`].
pub const METRIC: &str = "durward_breaker_events";

const MS: u64 = 1_000_000;

/// When a breaker opens, and for how long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// Failures in a row that open it.
    pub failures_max: u32,
    /// How long they must have gone on, in milliseconds: the many calls that end with one restart of the target
    /// don't open it.
    pub lasting_ms_min: u64,
    /// How long it stays open the first time, in milliseconds; doubled with each probe that fails.
    pub open_ms_min: u64,
    /// How long it stays open at most, in milliseconds, also where the target asks for more.
    pub open_ms_max: u64,
    /// How long a probe may take before another call is the probe, in milliseconds.
    pub probe_ms_max: u64,
}

/// For a target that is there or not: one that fails now and then, or has one tool that hangs, never fails
/// so often in a row.
impl Default for Settings {
    fn default() -> Self {
        Self {
            failures_max: 20,
            lasting_ms_min: 1_000,
            open_ms_min: 1_000,
            open_ms_max: 10_000,
            probe_ms_max: 5_000,
        }
    }
}

/// How a call ended, as far as it tells about its target. A closed set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The target did its part.
    Success,
    /// The target did not. With a time, it asked for a pause, and gets it at once.
    Failure {
        /// How long it wants to be left alone, in milliseconds.
        retry_after_ms: Option<u64>,
    },
    /// The caller gave the call up.
    Cancelled,
    /// The caller asked for something that cannot be.
    ClientFault,
}

/// Where a breaker is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BreakerState {
    /// Everything passes.
    Closed,
    /// Nothing passes.
    Open,
    /// One call is the probe, all others wait for its outcome elsewhere.
    HalfOpen,
}

impl BreakerState {
    /// The word in records and metrics.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::Closed => "closed",
            Self::Open => "open",
            Self::HalfOpen => "half_open",
        }
    }
}

/// What is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BreakerEvent {
    /// A call ended well.
    Success,
    /// A call failed.
    Failure,
    /// A call was given up.
    Cancelled,
    /// A call was the caller's mistake.
    ClientFault,
    /// A call was not let through.
    Rejected,
    /// A call was the probe.
    Probe,
    /// The breaker opened, again included.
    Opened,
    /// The breaker closed.
    Closed,
}

impl BreakerEvent {
    /// All, in the order in which they are counted.
    pub const ALL: [Self; 8] = [
        Self::Success,
        Self::Failure,
        Self::Cancelled,
        Self::ClientFault,
        Self::Rejected,
        Self::Probe,
        Self::Opened,
        Self::Closed,
    ];

    /// The label of the metric.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::Failure => "failure",
            Self::Cancelled => "cancelled",
            Self::ClientFault => "client_fault",
            Self::Rejected => "rejected",
            Self::Probe => "probe",
            Self::Opened => "opened",
            Self::Closed => "closed",
        }
    }
}

/// Nothing passes at present.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rejected {
    /// When it is worth trying again, in milliseconds from now; at least 1.
    pub retry_after_ms: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Closed { failures: u32, since_ns: u64 },
    Open { until_ns: u64 },
    HalfOpen { probe: u64, since_ns: u64 },
}

impl Phase {
    const WELL: Self = Self::Closed {
        failures: 0,
        since_ns: 0,
    };
}

#[derive(Debug)]
struct Inner {
    phase: Phase,
    /// How often it has opened since it last closed.
    opened: u32,
    /// Grows whenever it opens or closes: calls from before say nothing any more.
    generation: u64,
    /// The number of the last probe.
    probes: u64,
}

/// A breaker for one target.
#[derive(Debug)]
pub struct Breaker {
    settings: Settings,
    inner: Mutex<Inner>,
    counts: [AtomicU64; BreakerEvent::ALL.len()],
}

/// Leave to try the target once. Dropped without a verdict, the call counts as given up.
#[must_use = "a pass that is dropped counts as cancelled"]
#[derive(Debug)]
pub struct BreakerPass {
    breaker: Option<Arc<Breaker>>,
    generation: u64,
    probe: Option<u64>,
}

impl Breaker {
    /// A closed breaker.
    #[must_use]
    pub fn new(settings: Settings) -> Arc<Self> {
        Arc::new(Self {
            settings,
            inner: Mutex::new(Inner {
                phase: Phase::WELL,
                opened: 0,
                generation: 0,
                probes: 0,
            }),
            counts: Default::default(),
        })
    }

    /// Whether a call may go to the target now; `now_ns` is a monotonic time.
    ///
    /// # Errors
    /// [`Rejected`] while the target is spared.
    pub fn admit(self: &Arc<Self>, now_ns: u64) -> Result<BreakerPass, Rejected> {
        let mut inner = self.inner();
        let probe = match self.wait_until(&inner) {
            None => None,
            Some(until) if now_ns < until => return Err(self.reject(until, now_ns)),
            Some(_) => {
                inner.probes += 1;
                inner.phase = Phase::HalfOpen {
                    probe: inner.probes,
                    since_ns: now_ns,
                };
                self.count(BreakerEvent::Probe);
                Some(inner.probes)
            }
        };
        Ok(BreakerPass {
            breaker: Some(Arc::clone(self)),
            generation: inner.generation,
            probe,
        })
    }

    /// Whether it is worth preparing a call that [`Breaker::admit`] is asked about later.
    ///
    /// # Errors
    /// [`Rejected`] while the target is spared.
    pub fn worth_trying(&self, now_ns: u64) -> Result<(), Rejected> {
        match self.wait_until(&self.inner()) {
            Some(until) if now_ns < until => Err(self.reject(until, now_ns)),
            Some(_) | None => Ok(()),
        }
    }

    /// Until when nothing passes; none where everything does.
    fn wait_until(&self, inner: &Inner) -> Option<u64> {
        let probe_ns = self.settings.probe_ms_max.saturating_mul(MS);
        match inner.phase {
            Phase::Closed { .. } => None,
            Phase::Open { until_ns } => Some(until_ns),
            Phase::HalfOpen { since_ns, .. } => Some(since_ns.saturating_add(probe_ns)),
        }
    }

    fn reject(&self, until_ns: u64, now_ns: u64) -> Rejected {
        self.count(BreakerEvent::Rejected);
        Rejected {
            retry_after_ms: until_ns.saturating_sub(now_ns).div_ceil(MS).max(1),
        }
    }

    /// Where it is. An open one whose time is up says so until the next call comes.
    #[must_use]
    pub fn state(&self) -> BreakerState {
        match self.inner().phase {
            Phase::Closed { .. } => BreakerState::Closed,
            Phase::Open { .. } => BreakerState::Open,
            Phase::HalfOpen { .. } => BreakerState::HalfOpen,
        }
    }

    /// What has happened so far, by label.
    #[must_use]
    pub fn counts(&self) -> [(BreakerEvent, u64); BreakerEvent::ALL.len()] {
        let mut counts = BreakerEvent::ALL.map(|event| (event, 0));
        for ((_, to), from) in counts.iter_mut().zip(&self.counts) {
            *to = from.load(Ordering::Relaxed);
        }
        counts
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn count(&self, event: BreakerEvent) {
        let mut counts = BreakerEvent::ALL.iter().zip(&self.counts);
        if let Some((_, count)) = counts.find(|(counted, _)| **counted == event) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn open(&self, inner: &mut Inner, asked_ms: Option<u64>, now_ns: u64) {
        let doubled = 1_u64.checked_shl(inner.opened.min(32)).unwrap_or(u64::MAX);
        let own_ms = self.settings.open_ms_min.saturating_mul(doubled);
        let open_ms = own_ms
            .max(asked_ms.unwrap_or(0))
            .min(self.settings.open_ms_max);
        inner.phase = Phase::Open {
            until_ns: now_ns.saturating_add(open_ms.saturating_mul(MS)),
        };
        inner.opened = inner.opened.saturating_add(1);
        inner.generation += 1;
        self.count(BreakerEvent::Opened);
    }

    fn settle(&self, generation: u64, probe: Option<u64>, verdict: Verdict, now_ns: u64) {
        self.count(match verdict {
            Verdict::Success => BreakerEvent::Success,
            Verdict::Failure { .. } => BreakerEvent::Failure,
            Verdict::Cancelled => BreakerEvent::Cancelled,
            Verdict::ClientFault => BreakerEvent::ClientFault,
        });
        let mut inner = self.inner();
        if inner.generation != generation {
            return;
        }
        match (inner.phase, verdict) {
            (Phase::HalfOpen { probe: current, .. }, verdict) if probe == Some(current) => {
                match verdict {
                    Verdict::Success => {
                        inner.phase = Phase::WELL;
                        inner.opened = 0;
                        inner.generation += 1;
                        self.count(BreakerEvent::Closed);
                    }
                    Verdict::Failure { retry_after_ms } => {
                        self.open(&mut inner, retry_after_ms, now_ns);
                    }
                    // It says nothing: the next call is the probe.
                    Verdict::Cancelled | Verdict::ClientFault => {
                        inner.phase = Phase::Open { until_ns: 0 };
                    }
                }
            }
            (Phase::Closed { .. }, Verdict::Success) => {
                inner.phase = Phase::WELL;
            }
            (Phase::Closed { failures, since_ns }, Verdict::Failure { retry_after_ms }) => {
                let since_ns = if failures == 0 { now_ns } else { since_ns };
                let failures = failures.saturating_add(1);
                inner.phase = Phase::Closed { failures, since_ns };
                let lasting_ns = self.settings.lasting_ms_min.saturating_mul(MS);
                let lasts = now_ns.saturating_sub(since_ns) >= lasting_ns;
                if (lasts && failures >= self.settings.failures_max) || retry_after_ms.is_some() {
                    self.open(&mut inner, retry_after_ms, now_ns);
                }
            }
            (Phase::Closed { .. } | Phase::Open { .. } | Phase::HalfOpen { .. }, _) => {}
        }
    }
}

impl BreakerPass {
    /// Tells how the call ended.
    pub fn settle(mut self, verdict: Verdict, now_ns: u64) {
        if let Some(breaker) = self.breaker.take() {
            breaker.settle(self.generation, self.probe, verdict, now_ns);
        }
    }

    /// Whether the target's fate hangs on this call.
    #[must_use]
    pub fn is_probe(&self) -> bool {
        self.probe.is_some()
    }
}

impl Drop for BreakerPass {
    fn drop(&mut self) {
        if let Some(breaker) = self.breaker.take() {
            breaker.settle(self.generation, self.probe, Verdict::Cancelled, 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SETTINGS: Settings = Settings {
        failures_max: 3,
        lasting_ms_min: 0,
        open_ms_min: 100,
        open_ms_max: 350,
        probe_ms_max: 1_000,
    };
    const FAILED: Verdict = Verdict::Failure {
        retry_after_ms: None,
    };

    fn end(breaker: &Arc<Breaker>, verdict: Verdict, now_ms: u64) {
        let pass = breaker.admit(now_ms * MS).unwrap();
        pass.settle(verdict, now_ms * MS);
    }

    fn counted(breaker: &Breaker, event: BreakerEvent) -> u64 {
        let counts = breaker.counts();
        counts.iter().find(|(of, _)| *of == event).unwrap().1
    }

    #[test]
    fn failures_in_a_row_open_it_and_one_probe_decides() {
        let breaker = Breaker::new(SETTINGS);
        for verdict in [FAILED, FAILED, Verdict::Success, FAILED, FAILED] {
            end(&breaker, verdict, 0);
        }
        assert_eq!(breaker.state(), BreakerState::Closed);
        end(&breaker, FAILED, 0);
        assert_eq!(breaker.state(), BreakerState::Open);
        let rejected = breaker.admit(1).unwrap_err();
        assert_eq!(rejected.retry_after_ms, 100);
        assert_eq!(breaker.worth_trying(1), Err(rejected));
        assert_eq!(breaker.worth_trying(100 * MS), Ok(()));
        for (from, wait) in [(100, 200), (300, 350), (650, 350)] {
            let probe = breaker.admit(from * MS).unwrap();
            assert!(probe.is_probe());
            assert!(breaker.admit(from * MS).is_err(), "one probe at a time");
            probe.settle(FAILED, from * MS);
            let rejected = breaker.admit(from * MS).unwrap_err();
            assert_eq!(
                rejected.retry_after_ms, wait,
                "twice as long, up to the bound"
            );
        }
        end(&breaker, Verdict::Success, 1_000);
        assert_eq!(breaker.state(), BreakerState::Closed);
        for _ in 0..3 {
            end(&breaker, FAILED, 2_000);
        }
        assert_eq!(
            breaker.admit(2_000 * MS).unwrap_err().retry_after_ms,
            100,
            "from the beginning"
        );
        assert_eq!(counted(&breaker, BreakerEvent::Opened), 5);
        assert_eq!(counted(&breaker, BreakerEvent::Probe), 4);
        assert_eq!(counted(&breaker, BreakerEvent::Closed), 1);
    }

    #[test]
    fn failures_that_come_together_do_not_open_it() {
        let breaker = Breaker::new(Settings {
            lasting_ms_min: 1_000,
            ..SETTINGS
        });
        for _ in 0..100 {
            end(&breaker, FAILED, 5_000);
        }
        end(&breaker, FAILED, 5_999);
        assert_eq!(breaker.state(), BreakerState::Closed);
        end(&breaker, Verdict::Success, 5_999);
        for at in [6_500, 6_900, 7_499] {
            end(&breaker, FAILED, at);
        }
        assert_eq!(
            breaker.state(),
            BreakerState::Closed,
            "anew after a success"
        );
        end(&breaker, FAILED, 7_500);
        assert_eq!(breaker.state(), BreakerState::Open);
    }

    #[test]
    fn a_target_that_asks_for_a_pause_gets_it_at_once() {
        let breaker = Breaker::new(SETTINGS);
        let asks = |ms| Verdict::Failure {
            retry_after_ms: Some(ms),
        };
        end(&breaker, asks(200), 0);
        assert_eq!(breaker.admit(0).unwrap_err().retry_after_ms, 200);
        let probe = breaker.admit(200 * MS).unwrap();
        probe.settle(asks(999_999), 200 * MS);
        assert_eq!(breaker.admit(200 * MS).unwrap_err().retry_after_ms, 350);
    }

    #[test]
    fn what_the_caller_did_never_counts() {
        let breaker = Breaker::new(SETTINGS);
        for _ in 0..100 {
            end(&breaker, Verdict::Cancelled, 0);
            end(&breaker, Verdict::ClientFault, 0);
            drop(breaker.admit(0).unwrap());
        }
        assert_eq!(breaker.state(), BreakerState::Closed);
        for _ in 0..3 {
            end(&breaker, FAILED, 0);
        }
        // A probe that was given up leaves the place to the next call.
        for _ in 0..3 {
            let probe = breaker.admit(100 * MS).unwrap();
            assert!(probe.is_probe());
            drop(probe);
        }
        assert_eq!(counted(&breaker, BreakerEvent::Opened), 1);
        assert_eq!(counted(&breaker, BreakerEvent::Cancelled), 203);
    }

    #[test]
    fn calls_from_before_it_opened_decide_nothing() {
        let breaker = Breaker::new(SETTINGS);
        let early: Vec<_> = (0..6).map(|_| breaker.admit(0).unwrap()).collect();
        for pass in early.into_iter().enumerate() {
            let verdict = if pass.0 < 3 { FAILED } else { Verdict::Success };
            pass.1.settle(verdict, 0);
        }
        assert_eq!(breaker.state(), BreakerState::Open);
        // A probe that takes too long is replaced, and says nothing any more.
        let slow = breaker.admit(100 * MS).unwrap();
        let second = breaker.admit(1_100 * MS).unwrap();
        slow.settle(FAILED, 1_100 * MS);
        assert_eq!(breaker.state(), BreakerState::HalfOpen);
        second.settle(Verdict::Success, 1_100 * MS);
        assert_eq!(breaker.state(), BreakerState::Closed);
    }

    #[derive(Debug, Clone)]
    enum Step {
        Admit,
        Settle(usize, u8),
        Pass(u64),
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            4 => Just(Step::Admit),
            4 => (any::<usize>(), 0..6_u8).prop_map(|(at, verdict)| Step::Settle(at, verdict)),
            2 => (0..400_u64).prop_map(Step::Pass),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn at_most_one_probe_and_every_rejection_ends(steps in prop::collection::vec(step(), 1..120)) {
            let breaker = Breaker::new(SETTINGS);
            let mut now = 0;
            let mut passes: Vec<(BreakerPass, u64)> = Vec::new();
            let mut failed = false;
            for step in steps {
                match step {
                    Step::Admit => {
                        let before = breaker.state();
                        match breaker.admit(now * MS) {
                            Ok(pass) => {
                                prop_assert_eq!(pass.is_probe(), before != BreakerState::Closed);
                                let young = passes.iter().filter(|(p, since)| p.is_probe() && p.generation == pass.generation && now - since < SETTINGS.probe_ms_max).count();
                                prop_assert!(!pass.is_probe() || young == 0, "a second probe");
                                passes.push((pass, now));
                            }
                            Err(rejected) => {
                                prop_assert!(failed, "only failures close the way");
                                prop_assert!((1..=SETTINGS.probe_ms_max).contains(&rejected.retry_after_ms));
                                now += rejected.retry_after_ms;
                                let pass = breaker.admit(now * MS);
                                prop_assert!(pass.is_ok(), "it says when");
                                passes.extend(pass.ok().map(|pass| (pass, now)));
                            }
                        }
                    }
                    Step::Settle(at, verdict) if !passes.is_empty() => {
                        let (pass, _) = passes.swap_remove(at % passes.len());
                        let verdict = match verdict {
                            0 | 1 => FAILED,
                            2 => Verdict::Failure { retry_after_ms: Some(5) },
                            3 => Verdict::Success,
                            4 => Verdict::Cancelled,
                            _ => Verdict::ClientFault,
                        };
                        failed |= matches!(verdict, Verdict::Failure { .. });
                        pass.settle(verdict, now * MS);
                    }
                    Step::Pass(ms) => now += ms,
                    Step::Settle(..) => {}
                }
            }
        }
    }
}
