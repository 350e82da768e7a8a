//! What has been counted, for all callers of one gate.

use std::collections::HashMap;
use std::collections::hash_map::{Entry, RandomState};
use std::hash::{BuildHasher as _, BuildHasherDefault, Hasher};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::bucket::Bucket;
use super::steady::Steady;
use super::window::{Change, Window};
use super::{Limits, Then};

/// Most callers whose buckets are kept. Beyond it, those that owe nothing go, then the quarter that
/// was used longest ago.
pub const CALLERS_MAX: usize = 4_096;
/// Most windows (caller and tool) that are kept. Beyond it, idle ones go, then the quarter
/// that was used longest ago.
pub const WINDOWS_MAX: usize = 16_384;
/// Most marks that all windows hold together.
pub const MARKS_MAX: usize = 1 << 20;

/// Three buckets of each caller, with the same settings: none can empty another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lane {
    /// Calls and lists of clients.
    Calls,
    /// Their signs of life: a caller that calls too often does not look dead.
    Liveness,
    /// Requests of servers to their clients.
    ToClient,
}

/// Whose call it is, and of which tool.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Who<'a> {
    pub subject_id: &'a str,
    pub backend_id: &'a str,
    /// Only where a tool is called.
    pub tool: Option<&'a str>,
}

/// The same as the counters know it: by keyed hashes, which are made once a call. A name's length costs no memory,
/// and nobody can make two names meet.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Counted {
    caller: u64,
    tool: Option<u64>,
}

/// A call that is not beyond its limits, or only beyond one that a person may lift.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Standing {
    Within,
    /// The tool's window is full: somebody has to say yes.
    Breach,
}

/// Why a call may not go on, and in how many nanoseconds it could.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stop {
    Requests { wait_ns: u64 },
    Tool { wait_ns: u64 },
    UnderWay,
}

/// The counters. One short critical section a look; nothing waits in it.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    keys: RandomState,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    time: Steady,
    /// By the caller's keyed hash.
    buckets: Map<Buckets>,
    /// By the keyed hash of a caller's tool.
    windows: Map<Window>,
    marks: usize,
    /// Calls under way by caller, and by caller and tool, over all sessions. None is 0.
    under_way: Map<u32>,
}

/// What one caller has taken.
#[derive(Debug, Default)]
struct Buckets {
    calls: Bucket,
    liveness: Bucket,
    to_client: Bucket,
}

impl Buckets {
    fn all(&self) -> [&Bucket; 3] {
        [&self.calls, &self.liveness, &self.to_client]
    }

    fn at_ns(&self) -> u64 {
        self.all().map(Bucket::at_ns).into_iter().max().unwrap_or(0)
    }
}

type Map<V> = HashMap<u64, V, BuildHasherDefault<AsItIs>>;

/// A call under way. Dropping it makes room for the next.
#[derive(Debug)]
pub(crate) struct Slot {
    counters: Arc<Counters>,
    who: Counted,
}

impl Counters {
    /// A call or list arrives: counted, or stopped and not counted.
    pub fn arrive(
        &self,
        limits: &Limits,
        lane: Lane,
        Counted { caller, tool }: Counted,
        now_ns: u64,
    ) -> Result<Standing, Stop> {
        let mut state = self.lock();
        let now_ns = state.time.at(now_ns);
        state
            .bucket(caller, lane, limits, now_ns)
            .take(now_ns, limits.requests, limits.requests_burst)
            .map_err(|wait_ns| Stop::Requests { wait_ns })?;
        let Some(tool) = tool.filter(|_| lane == Lane::Calls) else {
            return Ok(Standing::Within);
        };
        match (state.take(tool, limits, now_ns), limits.tool_then) {
            (Ok(()), _) => Ok(Standing::Within),
            (Err(_), Then::Hitl) => Ok(Standing::Breach),
            (Err(wait_ns), Then::Refuse) => Err(Stop::Tool { wait_ns }),
        }
    }

    /// A person said yes to a call beyond its tool's window: the window begins anew with it.
    pub fn begin_anew(&self, limits: &Limits, who: Counted, now_ns: u64) {
        let Some(tool) = who.tool else {
            return;
        };
        let mut state = self.lock();
        let now_ns = state.time.at(now_ns);
        if let Some(window) = state.windows.remove(&tool) {
            state.marks = state.marks.saturating_sub(window.marks());
        }
        // An empty window takes its first call.
        let _ = state.take(tool, limits, now_ns);
    }

    /// A call is about to be sent: it is under way until its slot is dropped.
    pub fn enter(self: &Arc<Self>, limits: &Limits, who: Counted) -> Result<Slot, Stop> {
        let Counted { caller, tool } = who;
        let mut state = self.lock();
        let full = |key: &u64, most: u32| state.under_way.get(key).is_some_and(|n| *n >= most);
        let tool_full = match (&tool, limits.tool_under_way_max) {
            (Some(tool), Some(most)) => full(tool, most),
            (Some(_) | None, Some(_) | None) => false,
        };
        if tool_full || full(&caller, limits.under_way_max) {
            return Err(Stop::UnderWay);
        }
        for key in std::iter::once(caller).chain(tool) {
            *state.under_way.entry(key).or_default() += 1;
        }
        drop(state);
        Ok(Slot {
            counters: Arc::clone(self),
            who,
        })
    }

    /// How a call is counted.
    pub fn of(&self, who: &Who<'_>) -> Counted {
        let caller = self.keys.hash_one(who.subject_id);
        let of_tool = |tool| self.keys.hash_one((who.subject_id, who.backend_id, tool));
        Counted {
            caller,
            tool: who.tool.map(of_tool),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn bucket(&mut self, caller: u64, lane: Lane, limits: &Limits, now_ns: u64) -> &mut Bucket {
        if self.buckets.len() >= CALLERS_MAX && !self.buckets.contains_key(&caller) {
            self.forget_callers(limits, now_ns);
        }
        let buckets = self.buckets.entry(caller).or_default();
        match lane {
            Lane::Calls => &mut buckets.calls,
            Lane::Liveness => &mut buckets.liveness,
            Lane::ToClient => &mut buckets.to_client,
        }
    }

    /// Callers are known by their keys, so that nobody can make up thousands of them.
    fn forget_callers(&mut self, limits: &Limits, now_ns: u64) {
        self.buckets.retain(|_, buckets| {
            let settled = |bucket: &Bucket| bucket.is_settled(now_ns, limits.requests);
            !buckets.all().into_iter().all(settled)
        });
        let mut by_age: Vec<(u64, u64)> = self
            .buckets
            .iter()
            .map(|(key, buckets)| (buckets.at_ns(), *key))
            .collect();
        by_age.sort_unstable();
        let too_many = by_age.len().saturating_sub(CALLERS_MAX / 4 * 3);
        for (_, key) in by_age.into_iter().take(too_many) {
            self.buckets.remove(&key);
        }
    }

    fn take(&mut self, tool: u64, limits: &Limits, now_ns: u64) -> Result<(), u64> {
        let window_ns = limits.tool_window_ms.saturating_mul(1_000_000);
        if self.marks >= MARKS_MAX
            || (self.windows.len() >= WINDOWS_MAX && !self.windows.contains_key(&tool))
        {
            self.make_room(now_ns, window_ns);
        }
        let window = self.windows.entry(tool).or_default();
        let (taken, Change { added, dropped }) =
            window.take(now_ns, limits.tool_calls_max, window_ns);
        self.marks = (self.marks + added).saturating_sub(dropped);
        taken
    }

    /// Forgets idle windows; if that is not enough, those used longest ago, until a quarter is free.
    /// To make Durward forget a window that counts, a caller has to make thousands of calls within
    /// it, which is what the limit over all calls is there for.
    fn make_room(&mut self, now_ns: u64, window_ns: u64) {
        self.windows.retain(|_, window| {
            window.forget(now_ns, window_ns);
            window.marks() > 0
        });
        self.marks = self.windows.values().map(Window::marks).sum();
        let (windows_left, marks_left) = (WINDOWS_MAX / 4 * 3, MARKS_MAX / 4 * 3);
        let mut by_age: Vec<(u64, u64)> = self
            .windows
            .iter()
            .map(|(key, window)| (window.last_ns(), *key))
            .collect();
        by_age.sort_unstable();
        for (_, key) in by_age {
            if self.windows.len() <= windows_left && self.marks <= marks_left {
                return;
            }
            if let Some(window) = self.windows.remove(&key) {
                self.marks = self.marks.saturating_sub(window.marks());
            }
        }
    }

    fn leave(&mut self, key: u64) {
        if let Entry::Occupied(mut entry) = self.under_way.entry(key) {
            *entry.get_mut() = entry.get().saturating_sub(1);
            if *entry.get() == 0 {
                entry.remove();
            }
        }
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let mut state = self.counters.lock();
        for key in std::iter::once(self.who.caller).chain(self.who.tool) {
            state.leave(key);
        }
    }
}

/// The keys are hashes already.
#[derive(Debug, Default)]
struct AsItIs(u64);

impl Hasher for AsItIs {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        // Only `u64` keys are used; anything else still hashes to something.
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }

    fn write_u64(&mut self, key: u64) {
        self.0 = key;
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
        match counters.arrive(limits, Lane::Calls, counters.of(who), now) {
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
        counters.begin_anew(&limits, counters.of(&who("s", "read")), SECOND);
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
        assert!(counters.lock().under_way.is_empty());
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
                        match counters.arrive(&limits, Lane::Calls, who, now) {
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
    fn windows_and_marks_are_bounded_whatever_names_come() {
        let (counters, limits) = (Counters::default(), wide());
        for call in 0..3 * WINDOWS_MAX {
            let tool = format!("tool-{call}");
            arrive(&counters, &limits, &who("s", &tool), call as u64);
            assert!(counters.lock().windows.len() <= WINDOWS_MAX);
        }
        // The youngest are still known.
        let youngest = format!("tool-{}", 3 * WINDOWS_MAX - 1);
        for _ in 0..29 {
            let standing = arrive(&counters, &limits, &who("s", &youngest), 1_000_000);
            assert_eq!(standing, "Within");
        }
        let beyond = arrive(&counters, &limits, &who("s", &youngest), 1_000_000);
        assert_eq!(beyond, "Breach");
    }

    #[test]
    fn marks_of_all_windows_together_are_bounded() {
        let counters = Counters::default();
        let limits = Limits {
            tool_calls_max: super::super::CALLS_MAX,
            ..wide()
        };
        let mut state = counters.lock();
        for call in 0..2 * MARKS_MAX as u64 {
            state.take(call % 2_000, &limits, call * 1_000).unwrap();
            assert!(state.marks <= MARKS_MAX);
        }
        let counted: usize = state.windows.values().map(Window::marks).sum();
        assert_eq!(state.marks, counted);
        // What is idle goes first.
        state.make_room(u64::MAX, 60 * SECOND);
        assert_eq!((state.windows.len(), state.marks), (0, 0));
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
                        .arrive(&limits, Lane::Calls, counters.of(&who), 0)
                        .is_ok()
                })
                .count();
            assert_eq!(passed, 50, "{subject_id}");
        }
    }

    #[test]
    fn callers_are_bounded_and_those_that_owe_are_kept() {
        let (counters, limits) = (Counters::default(), narrow());
        let call = |name: &str, now: u64| {
            let who = Who {
                subject_id: name,
                tool: None,
                ..who("", "")
            };
            counters
                .arrive(&limits, Lane::Calls, counters.of(&who), now)
                .is_ok()
        };
        for caller in 0..3 * CALLERS_MAX {
            assert!(call(&caller.to_string(), 0));
            assert!(counters.lock().buckets.len() <= CALLERS_MAX);
        }
        // Those that owe nothing any more go first, and who is out of calls stays so.
        let spent = (0..60).filter(|_| call("flood", SECOND)).count();
        assert_eq!(spent, 50);
        for caller in 0..CALLERS_MAX - 2 {
            call(&format!("late-{caller}"), SECOND);
        }
        assert!(!call("flood", SECOND));
        assert!(counters.lock().buckets.len() <= CALLERS_MAX);
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
                .filter(|_| counters.arrive(&limits, lane, counters.of(&who), 0).is_ok())
                .count();
            assert_eq!(passed, 50, "{lane:?}");
        }
    }
}
