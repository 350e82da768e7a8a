//! Counts of all callers of one gate: rates in a [`RateStore`], calls under way here.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use state::rate::{
    BucketLimit, MemoryRates, RateDecision, RateKey, RateRequest, RateStore, WindowLimit,
};

use super::byte_bucket::JournalBytes;
use super::{Limits, Then};
use crate::facts::Direction;

/// Time after which a caller may try again while the store of rates is unavailable, in nanoseconds.
const UNAVAILABLE_WAIT_NS: u64 = 1_000_000_000;

/// Buckets of each caller, with the same settings: none can empty another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lane {
    /// Calls and lists of clients.
    Calls,
    /// Liveness checks of clients: a caller that calls too often does not look dead.
    Liveness,
    /// Requests of servers to their clients.
    ToClient,
}

impl Lane {
    fn number(self) -> u8 {
        match self {
            Self::Calls => 0,
            Self::Liveness => 1,
            Self::ToClient => 2,
        }
    }
}

/// Caller of a call, and its tool.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Who<'a> {
    pub subject_id: &'a str,
    pub backend_id: &'a str,
    /// `None` unless a tool is called.
    pub tool: Option<&'a str>,
}

/// Keys of a call, computed once per call.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Counted {
    caller: RateKey,
    tool: Option<RateKey>,
}

/// Result of counting a call that may go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Standing {
    Within,
    /// The window of the tool is full: a person has to approve the call.
    Breach,
}

/// Reason why a call may not go on, and the nanoseconds until it could.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stop {
    Requests { wait_ns: u64 },
    Tool { wait_ns: u64 },
    JournalBytes { wait_ns: u64 },
    UnderWay,
}

/// Counts of one gate.
pub(crate) struct Counters {
    rates: Arc<dyn RateStore>,
    /// Calls under way by caller, and by caller and tool, over all sessions. None is 0.
    under_way: Mutex<CallCounts>,
    journal: Mutex<JournalBytes>,
}

impl fmt::Debug for Counters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Counters").finish_non_exhaustive()
    }
}

impl Default for Counters {
    fn default() -> Self {
        Self::new(Arc::new(MemoryRates::default()))
    }
}

/// Number of calls by key.
type CallCounts = HashMap<RateKey, u32, ahash::RandomState>;

/// A call under way. Dropping it lets the next one begin.
#[derive(Debug)]
pub(crate) struct Slot {
    counters: Arc<Counters>,
    who: Counted,
}

impl Counters {
    /// Creates the counts over a store of rates.
    pub fn new(rates: Arc<dyn RateStore>) -> Self {
        Self {
            rates,
            under_way: Mutex::default(),
            journal: Mutex::default(),
        }
    }

    /// Counts a call or list without waiting. While the store has no local answer, the call is rejected.
    pub fn arrive_now(
        &self,
        limits: &Limits,
        lane: Lane,
        counted: Counted,
        now_ns: u64,
    ) -> Result<Standing, Stop> {
        let request = rate_request(limits, lane, counted, now_ns);
        standing(self.rates.try_local(&request), limits)
    }

    /// Counts a call, and waits only if the store has no local answer.
    pub async fn arrive(
        &self,
        limits: &Limits,
        lane: Lane,
        counted: Counted,
        now_ns: u64,
    ) -> Result<Standing, Stop> {
        let request = rate_request(limits, lane, counted, now_ns);
        standing(self.rates.acquire(request).await.ok(), limits)
    }

    /// Adds the bytes of a record to those that a caller has caused.
    pub fn charge(&self, subject_id: &str, direction: Direction, bytes: u64) {
        let caller = self.rates.key(&[subject_id]);
        self.journal_bytes().charge(caller, direction, bytes);
    }

    /// Rejects a call of a caller whose records have as many bytes as they may.
    pub fn check_journal_bytes(
        &self,
        limits: &Limits,
        direction: Direction,
        Counted { caller, .. }: Counted,
        now_ns: u64,
    ) -> Result<(), Stop> {
        let per_window = limits.journal_bytes();
        let wait = self
            .journal_bytes()
            .wait_ns(caller, direction, now_ns, per_window);
        wait.map_or(Ok(()), |wait_ns| Err(Stop::JournalBytes { wait_ns }))
    }

    fn journal_bytes(&self) -> MutexGuard<'_, JournalBytes> {
        self.journal.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Restarts the window of a tool with a call that a person has approved beyond it.
    pub fn restart_window(&self, limits: &Limits, who: Counted, now_ns: u64) {
        if let Some(tool) = who.tool {
            self.rates.restart_window(tool, tool_window(limits), now_ns);
        }
    }

    /// Counts a call that is about to be sent, until its slot is dropped.
    pub fn enter(self: &Arc<Self>, limits: &Limits, who: Counted) -> Result<Slot, Stop> {
        let Counted { caller, tool } = who;
        let mut under_way = self.lock();
        let full = |key: &RateKey, most: u32| under_way.get(key).is_some_and(|n| *n >= most);
        let tool_full = match (&tool, limits.tool_under_way_max) {
            (Some(tool), Some(most)) => full(tool, most),
            (Some(_) | None, Some(_) | None) => false,
        };
        if tool_full || full(&caller, limits.under_way_max) {
            return Err(Stop::UnderWay);
        }
        for key in std::iter::once(caller).chain(tool) {
            *under_way.entry(key).or_default() += 1;
        }
        drop(under_way);
        Ok(Slot {
            counters: Arc::clone(self),
            who,
        })
    }

    /// Returns the keys of a call.
    pub fn of(&self, who: &Who<'_>) -> Counted {
        let of_tool = |tool| self.rates.key(&[who.subject_id, who.backend_id, tool]);
        Counted {
            caller: self.rates.key(&[who.subject_id]),
            tool: who.tool.map(of_tool),
        }
    }

    fn lock(&self) -> MutexGuard<'_, CallCounts> {
        self.under_way
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

fn tool_window(limits: &Limits) -> WindowLimit {
    WindowLimit {
        calls_max: limits.tool_calls_max,
        window_ms: limits.tool_window_ms,
    }
}

fn rate_request(
    limits: &Limits,
    lane: Lane,
    Counted { caller, tool }: Counted,
    now_ns: u64,
) -> RateRequest {
    let bucket = BucketLimit {
        rate: limits.requests,
        burst: limits.requests_burst,
    };
    let tool = tool.filter(|_| lane == Lane::Calls);
    RateRequest {
        bucket: (caller.lane(lane.number()), bucket),
        window: tool.map(|key| (key, tool_window(limits))),
        now_ns,
    }
}

/// Returns what a decision means for a call; without a decision it is rejected for now.
fn standing(decision: Option<RateDecision>, limits: &Limits) -> Result<Standing, Stop> {
    match (decision, limits.tool_then) {
        (Some(RateDecision::Allowed), _) => Ok(Standing::Within),
        (Some(RateDecision::WindowFull { .. }), Then::Hitl) => Ok(Standing::Breach),
        (Some(RateDecision::WindowFull { wait_ns }), Then::Refuse) => Err(Stop::Tool { wait_ns }),
        (Some(RateDecision::BucketEmpty { wait_ns }), _) => Err(Stop::Requests { wait_ns }),
        (None, _) => Err(Stop::Requests {
            wait_ns: UNAVAILABLE_WAIT_NS,
        }),
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let mut under_way = self.counters.lock();
        for key in std::iter::once(self.who.caller).chain(self.who.tool) {
            if let Entry::Occupied(mut entry) = under_way.entry(key) {
                *entry.get_mut() = entry.get().saturating_sub(1);
                if *entry.get() == 0 {
                    entry.remove();
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::super::Rate;
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn who<'a>(caller: &'a str, tool: &'a str) -> Who<'a> {
        Who {
            subject_id: caller,
            backend_id: "files",
            tool: Some(tool),
        }
    }

    fn narrow() -> Limits {
        Limits {
            requests: Rate::per_second(10),
            requests_burst: 50,
            tool_calls_max: 30,
            ..Limits::default()
        }
    }

    fn wide() -> Limits {
        Limits {
            requests: Rate::per_second(1_000_000),
            requests_burst: super::super::CALLS_MAX,
            ..narrow()
        }
    }

    fn arrive(counters: &Counters, limits: &Limits, who: &Who<'_>, now: u64) -> String {
        match counters.arrive_now(limits, Lane::Calls, counters.of(who), now) {
            Ok(standing) => format!("{standing:?}"),
            Err(stop) => format!("{stop:?}"),
        }
    }

    #[test]
    fn windows_belong_to_a_caller_and_a_tool() {
        let (counters, limits) = (Counters::default(), wide());
        for _ in 0..30 {
            assert_eq!(arrive(&counters, &limits, &who("s", "read"), 0), "Within");
        }
        assert_eq!(arrive(&counters, &limits, &who("s", "read"), 0), "Breach");
        assert_eq!(arrive(&counters, &limits, &who("s", "write"), 0), "Within");
        assert_eq!(arrive(&counters, &limits, &who("t", "read"), 0), "Within");
        let refuse = Limits {
            tool_then: Then::Refuse,
            ..limits
        };
        assert_eq!(
            arrive(&counters, &refuse, &who("s", "read"), SECOND),
            format!("Tool {{ wait_ns: {} }}", 59 * SECOND)
        );
        counters.restart_window(&limits, counters.of(&who("s", "read")), SECOND);
        for _ in 0..29 {
            let standing = arrive(&counters, &limits, &who("s", "read"), SECOND);
            assert_eq!(standing, "Within");
        }
        let beyond = arrive(&counters, &limits, &who("s", "read"), SECOND);
        assert_eq!(beyond, "Breach");
    }

    #[test]
    fn a_clock_set_back_neither_refunds_nor_blocks() {
        let hour = 3_600 * SECOND;
        let (counters, limits) = (Counters::default(), narrow());
        let within = |now: u64, calls: u32| {
            (0..calls)
                .filter(|_| arrive(&counters, &limits, &who("s", "read"), now) == "Within")
                .count()
        };
        assert_eq!(within(hour, 60), 30);
        // An hour back: nothing is given back.
        assert_eq!(within(0, 60), 0);
        assert_eq!(within(SECOND, 60), 0);
        // And from there a minute is a minute.
        assert_eq!(within(61 * SECOND, 60), 30);
    }

    #[test]
    fn calls_under_way_are_counted_by_caller_and_by_tool() {
        let counters = Arc::new(Counters::default());
        let limits = Limits {
            under_way_max: 3,
            tool_under_way_max: Some(2),
            ..narrow()
        };
        let enter = |who| counters.enter(&limits, counters.of(&who));
        let first = enter(who("s", "read")).unwrap();
        let second = enter(who("s", "read")).unwrap();
        assert_eq!(enter(who("s", "read")).unwrap_err(), Stop::UnderWay);
        let third = enter(who("s", "write")).unwrap();
        assert_eq!(enter(who("s", "list")).unwrap_err(), Stop::UnderWay);
        drop(first);
        let fourth = enter(who("s", "read")).unwrap();
        let other = enter(who("t", "read")).unwrap();
        drop((second, third, fourth, other));
        assert!(counters.lock().is_empty());
    }

    #[test]
    fn sixty_four_threads_get_exactly_what_there_is() {
        let counters = Arc::new(Counters::default());
        let limits = Limits {
            requests: Rate::per_minute(1),
            requests_burst: 1_000,
            tool_calls_max: 500,
            under_way_max: 100,
            ..narrow()
        };
        let (within, breach, stopped, entered) = Default::default();
        let count = |counter: &AtomicUsize| counter.fetch_add(1, Ordering::Relaxed);
        let (counters, slots) = (&counters, Mutex::new(Vec::new()));
        let counts: [&AtomicUsize; 4] = [&within, &breach, &stopped, &entered];
        std::thread::scope(|scope| {
            for thread in 0..64_u64 {
                let slots = &slots;
                scope.spawn(move || {
                    for call in 0..32 {
                        let who = counters.of(&who("s", "read"));
                        let now = 10 * SECOND + (call * 7_919 + thread) % 1_000;
                        match counters.arrive_now(&limits, Lane::Calls, who, now) {
                            Ok(Standing::Within) => {
                                count(counts[0]);
                                if let Ok(slot) = counters.enter(&limits, who) {
                                    count(counts[3]);
                                    slots.lock().unwrap().push(slot);
                                }
                            }
                            Ok(Standing::Breach) => _ = count(counts[1]),
                            Err(_) => _ = count(counts[2]),
                        }
                    }
                });
            }
        });
        let counts = counts.map(|counter| counter.load(Ordering::Relaxed));
        assert_eq!(counts, [500, 500, 64 * 32 - 1_000, 100]);
    }

    #[test]
    fn no_caller_empties_the_bucket_of_another() {
        let (counters, limits) = (Counters::default(), narrow());
        for subject_id in ["one", "other", "third"] {
            let who = Who {
                subject_id,
                tool: None,
                ..who("", "")
            };
            let passed = (0..60)
                .filter(|_| {
                    counters
                        .arrive_now(&limits, Lane::Calls, counters.of(&who), 0)
                        .is_ok()
                })
                .count();
            assert_eq!(passed, 50, "{subject_id}");
        }
    }

    #[test]
    fn no_lane_empties_another() {
        let (counters, limits) = (Counters::default(), narrow());
        for lane in [Lane::Calls, Lane::Liveness, Lane::ToClient] {
            let who = Who {
                tool: None,
                ..who("s", "")
            };
            let passed = (0..60)
                .filter(|_| {
                    counters
                        .arrive_now(&limits, lane, counters.of(&who), 0)
                        .is_ok()
                })
                .count();
            assert_eq!(passed, 50, "{lane:?}");
        }
    }
}
