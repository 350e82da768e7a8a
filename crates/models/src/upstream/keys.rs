//! The keys of a provider: which one is used, and which ones rest.
//!
//! A key never dies: it rests, is probed by one call, and comes back with the first call that it serves. One that the provider
//! does not take, or whose account has nothing left, rests for all models, longer each time. One that was used too often for a
//! model, or may not use it, rests for that model alone. The last key that is left is spared no call until it has failed
//! [`LAST_TRIES`] times in a row; only a wait that the provider asks for is kept at once.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::key::Key;
use crate::provider::{Fault, FaultScope, Remedy, RestingKey, Trouble};

/// Most keys of one provider.
pub const KEYS_MAX: usize = 256;
/// How long a key rests for a model where the provider does not say, in milliseconds.
const REST_MS: u64 = 300_000;
/// Longest time that a provider can have a key rest, in milliseconds.
const REST_MS_MAX: u64 = 3_600_000;
/// Most keys, each for one model, that rest at once.
const RESTING_MAX: usize = 4_096;
/// First rest of a key that is not taken while another one is, in milliseconds; each further one is twice as long.
const REFUSED_MS: u64 = 30_000;
/// The same for the last key that is left.
const LAST_MS: u64 = 1_000;
/// Longest rest of the last key that is left, in milliseconds.
const LAST_MS_MAX: u64 = 300_000;
/// How often in a row the last key that is left may fail before it rests.
const LAST_TRIES: u32 = 4;
/// How long one call probes a key before another may, in milliseconds.
const PROBE_MS: u64 = 30_000;

/// A key for a model: providers count each model for itself.
type KeyUse = (usize, String);

/// Rest of a key for all models. It lasts until the key has served a call, and is interrupted by probes.
#[derive(Debug, Clone, Copy)]
struct KeyRest {
    why: Trouble,
    until: Instant,
    /// How often in a row it was refused.
    failures: u32,
}

impl KeyRest {
    fn is_over(&self, now: Instant) -> bool {
        self.until <= now
    }
}

#[derive(Debug)]
struct KeyTurn {
    next: usize,
    /// The rest of each key, where it was refused.
    refused: Vec<Option<KeyRest>>,
    /// Until when, and why, each use rests.
    resting: HashMap<KeyUse, (Instant, Trouble)>,
}

/// All keys of a provider. One key serves many calls at once; calls go round among those that are good.
/// A provider that wants none has one that is empty, so that it can rest as well.
#[derive(Debug)]
pub(super) struct Keys {
    keys: Vec<Option<Key>>,
    turn: Mutex<KeyTurn>,
    /// Some key was refused and has not served a call since.
    any_refused: AtomicBool,
}

impl Keys {
    pub fn new(keys: Vec<Key>) -> Self {
        let keys: Vec<Option<Key>> = if keys.is_empty() {
            vec![None]
        } else {
            keys.into_iter().map(Some).collect()
        };
        Self {
            turn: Mutex::new(KeyTurn {
                next: 0,
                refused: vec![None; keys.len()],
                resting: HashMap::new(),
            }),
            keys,
            any_refused: AtomicBool::new(false),
        }
    }

    /// Returns the key for the next call of a model, where the provider wants one, with its number.
    pub fn take(&self, model: &str, now: Instant) -> Result<(usize, Option<&Key>), Fault> {
        let mut turn = self.turn();
        turn.wake(now);
        let count = self.keys.len();
        let mut numbers = (0..count).map(|step| (turn.next + step) % count);
        let good = numbers.find(|number| turn.is_good(*number, model, now));
        match good.and_then(|number| Some((number, self.keys.get(number)?))) {
            Some((number, key)) => {
                turn.next = (number + 1) % count;
                turn.lend(number, now);
                Ok((number, key.as_ref()))
            }
            None => Err(turn.nothing(model, now)),
        }
    }

    /// Learns what a fault says about a key, and says in the fault whether another one may help.
    pub fn learn(&self, number: usize, model: &str, fault: &mut Fault, now: Instant) {
        let mut turn = self.turn();
        turn.wake(now);
        let count = self.keys.len();
        let others = (0..count).any(|other| other != number && turn.is_good(other, model, now));
        let is_refused = match fault.scope {
            FaultScope::Account => true,
            FaultScope::Key => fault.trouble != Trouble::RateLimited,
            FaultScope::Request | FaultScope::Model | FaultScope::Server => false,
        };
        if is_refused {
            turn.refuse(number, fault, others, now);
            self.any_refused.store(true, Ordering::Relaxed);
        }
        let rest_ms = match (fault.trouble, fault.retry_after_ms) {
            _ if is_refused => None,
            (Trouble::RateLimited, Some(ms)) => Some(ms),
            (Trouble::Failed, Some(ms)) if others => Some(ms),
            (Trouble::RateLimited | Trouble::Failed, None) if others => Some(REST_MS),
            (Trouble::NoModel, _) if others && fault.remedy == Remedy::OtherKey => Some(REST_MS),
            _ => {
                if fault.remedy == Remedy::OtherKey {
                    fault.remedy = Remedy::NextTarget;
                }
                return;
            }
        };
        if let Some(ms) = rest_ms
            && turn.resting.len() < RESTING_MAX
        {
            let until = now + Duration::from_millis(ms.min(REST_MS_MAX));
            let rest = (until, fault.trouble);
            turn.resting.insert((number, model.to_owned()), rest);
        }
        fault.remedy = match fault.remedy {
            _ if others => Remedy::OtherKey,
            Remedy::OtherKey => Remedy::NextTarget,
            other => other,
        };
    }

    /// A key has served a call: it is good.
    pub fn served(&self, number: usize) {
        if !self.any_refused.load(Ordering::Relaxed) {
            return;
        }
        let mut turn = self.turn();
        if let Some(own) = turn.refused.get_mut(number) {
            *own = None;
        }
        let any = turn.refused.iter().any(Option::is_some);
        self.any_refused.store(any, Ordering::Relaxed);
    }

    /// Returns the keys that rest.
    pub fn resting(&self, now: Instant) -> Vec<RestingKey> {
        let mut turn = self.turn();
        turn.wake(now);
        let left = |until: Instant| {
            let left = until.saturating_duration_since(now).as_millis();
            u64::try_from(left).unwrap_or(u64::MAX)
        };
        let refused = turn.refused.iter().enumerate();
        let refused = refused.filter_map(|(number, rest)| {
            let rest = rest.as_ref().filter(|rest| !rest.is_over(now))?;
            Some(RestingKey {
                number: number + 1,
                model: None,
                why: rest.why,
                left_ms: left(rest.until),
            })
        });
        let uses = turn.resting.iter();
        let uses = uses.map(|((number, model), (until, why))| RestingKey {
            number: number + 1,
            model: Some(model.clone()),
            why: *why,
            left_ms: left(*until),
        });
        let mut all: Vec<RestingKey> = refused.chain(uses).collect();
        all.sort_by(|a, b| (a.number, &a.model).cmp(&(b.number, &b.model)));
        all
    }

    fn turn(&self) -> MutexGuard<'_, KeyTurn> {
        self.turn.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl KeyTurn {
    fn wake(&mut self, now: Instant) {
        if !self.resting.is_empty() {
            self.resting.retain(|_, (until, _)| *until > now);
        }
    }

    fn is_good(&self, number: usize, model: &str, now: Instant) -> bool {
        let is_resting = || self.resting.contains_key(&(number, model.to_owned()));
        let refused = self.refused.get(number).copied().flatten();
        refused.is_none_or(|rest| rest.is_over(now)) && (self.resting.is_empty() || !is_resting())
    }

    /// A key whose rest is over goes to one call first, where others can serve the rest.
    fn lend(&mut self, number: usize, now: Instant) {
        let others = self.refused.iter().enumerate();
        let others = others.filter(|(other, rest)| *other != number && rest.is_none());
        if others.count() == 0 {
            return;
        }
        if let Some(Some(rest)) = self.refused.get_mut(number) {
            rest.until = now + Duration::from_millis(PROBE_MS);
        }
    }

    fn refuse(&mut self, number: usize, fault: &Fault, others: bool, now: Instant) {
        let Some(own) = self.refused.get_mut(number) else {
            return;
        };
        let failures = own.map_or(0, |rest| rest.failures).saturating_add(1);
        let doubled = |first: u64, times: u32| first.saturating_mul(1 << times.min(20));
        let ms = match (others, failures.checked_sub(LAST_TRIES)) {
            (true, _) => doubled(REFUSED_MS, failures - 1).min(REST_MS_MAX),
            (false, None) => 0,
            (false, Some(more)) => doubled(LAST_MS, more).min(LAST_MS_MAX),
        };
        let asked = fault.retry_after_ms.unwrap_or(0).min(REST_MS_MAX);
        *own = Some(KeyRest {
            why: fault.trouble,
            until: now + Duration::from_millis(ms.max(asked)),
            failures,
        });
    }

    /// Returns why there is no key to use, and when there may be one.
    fn nothing(&self, model: &str, now: Instant) -> Fault {
        let uses = self.resting.iter().filter(|((_, of), _)| of == model);
        let uses = uses.map(|(_, (until, why))| (*until, *why));
        let refused = self.refused.iter().flatten();
        let refused = refused.map(|rest| (rest.until, rest.why));
        let first = uses.chain(refused).min_by_key(|(until, _)| *until);
        let Some((until, why)) = first else {
            return Fault::of(Trouble::Credentials, Remedy::NextTarget);
        };
        let mut fault = Fault::of(why, Remedy::NextTarget);
        let ms = until.saturating_duration_since(now).as_millis();
        fault.retry_after_ms = u64::try_from(ms).ok();
        fault
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(count: usize) -> Keys {
        Keys::new(
            (0..count)
                .map(|n| Key::new(&format!("sk-{n}")).unwrap())
                .collect(),
        )
    }

    fn number(keys: &Keys, now: Instant) -> Result<usize, Trouble> {
        keys.take("m", now)
            .map(|(number, _)| number)
            .map_err(|fault| fault.trouble)
    }

    fn fault(trouble: Trouble, retry_after_ms: Option<u64>) -> Fault {
        Fault {
            retry_after_ms,
            ..Fault::of(trouble, Remedy::NextTarget)
        }
    }

    fn after(now: Instant, ms: u64) -> Instant {
        now + Duration::from_millis(ms)
    }

    #[test]
    fn a_refused_key_rests_is_probed_by_one_call_and_comes_back() {
        let (keys, now) = (keys(2), Instant::now());
        let mut refused = fault(Trouble::Credentials, None);
        keys.learn(0, "m", &mut refused, now);
        assert_eq!(refused.remedy, Remedy::OtherKey);
        assert_eq!([number(&keys, now), number(&keys, now)], [Ok(1), Ok(1)]);
        assert_eq!(keys.take("other", now).unwrap().0, 1, "for all models");
        let probe = after(now, REFUSED_MS);
        assert_eq!(number(&keys, probe), Ok(0), "one call probes it");
        assert_eq!([number(&keys, probe), number(&keys, probe)], [Ok(1), Ok(1)]);
        keys.learn(0, "m", &mut fault(Trouble::Credentials, None), probe);
        let half = after(probe, REFUSED_MS);
        assert_eq!(
            [number(&keys, half), number(&keys, half)],
            [Ok(1), Ok(1)],
            "twice as long"
        );
        let probe = after(probe, 2 * REFUSED_MS);
        assert_eq!(number(&keys, probe), Ok(0));
        keys.served(0);
        let taken = [
            number(&keys, probe),
            number(&keys, probe),
            number(&keys, probe),
        ];
        assert_eq!(taken, [Ok(1), Ok(0), Ok(1)]);
        assert!(keys.resting(probe).is_empty());
    }

    #[test]
    fn no_fault_takes_the_last_key_away() {
        for trouble in [
            Trouble::Credentials,
            Trouble::Quota,
            Trouble::NoModel,
            Trouble::Refused,
            Trouble::Failed,
        ] {
            for count in [1, 3] {
                let (keys, now) = (keys(count), Instant::now());
                for key in 0..count {
                    let mut own = fault(trouble, None);
                    own.remedy = Remedy::OtherKey;
                    keys.learn(key, "m", &mut own, now);
                    let more = key + 1 < count && trouble != Trouble::Refused;
                    assert_eq!(
                        own.remedy == Remedy::OtherKey,
                        more,
                        "{trouble:?} {key} of {count}"
                    );
                }
                assert!(number(&keys, now).is_ok(), "{trouble:?} {count}");
            }
        }
    }

    #[test]
    fn the_last_key_rests_a_second_after_its_fourth_failure_and_longer_after_each() {
        let (keys, mut now) = (keys(1), Instant::now());
        for _ in 1..LAST_TRIES {
            keys.learn(0, "m", &mut fault(Trouble::Quota, None), now);
            assert_eq!(number(&keys, now), Ok(0));
        }
        for ms in [1_000, 2_000, 4_000] {
            keys.learn(0, "m", &mut fault(Trouble::Quota, None), now);
            let none = keys.take("m", now).unwrap_err();
            assert_eq!(
                (none.trouble, none.retry_after_ms),
                (Trouble::Quota, Some(ms))
            );
            now = after(now, ms);
            assert_eq!(number(&keys, now), Ok(0));
        }
        keys.served(0);
        keys.learn(0, "m", &mut fault(Trouble::Quota, None), now);
        assert_eq!(number(&keys, now), Ok(0));
    }

    #[test]
    fn a_key_that_may_not_use_a_model_rests_for_it_alone() {
        let (keys, now) = (keys(2), Instant::now());
        let mut denied = fault(Trouble::NoModel, None);
        denied.remedy = Remedy::OtherKey;
        keys.learn(0, "m", &mut denied, now);
        assert_eq!(denied.remedy, Remedy::OtherKey);
        assert_eq!([number(&keys, now), number(&keys, now)], [Ok(1), Ok(1)]);
        assert_eq!(keys.take("other", now).unwrap().0, 0);
        let rest = &keys.resting(now)[0];
        assert_eq!(
            (rest.number, rest.model.as_deref(), rest.why),
            (1, Some("m"), Trouble::NoModel)
        );
        assert_eq!(rest.left_ms, REST_MS);
    }

    #[test]
    fn a_request_that_is_refused_says_nothing_of_its_key() {
        let (keys, now) = (keys(2), Instant::now());
        let mut refused = Fault::of(Trouble::Quota, Remedy::NextTarget);
        refused.scope = FaultScope::Request;
        keys.learn(0, "m", &mut refused, now);
        assert_eq!(refused.remedy, Remedy::NextTarget);
        assert!(keys.resting(now).is_empty());
    }

    #[test]
    fn the_last_key_rests_only_where_the_provider_says_so() {
        let (keys, now) = (keys(1), Instant::now());
        keys.learn(0, "m", &mut fault(Trouble::Failed, None), now);
        keys.learn(0, "m", &mut fault(Trouble::Failed, Some(9_000)), now);
        keys.learn(0, "m", &mut fault(Trouble::RateLimited, None), now);
        assert_eq!(number(&keys, now), Ok(0));
        keys.learn(
            0,
            "m",
            &mut fault(Trouble::RateLimited, Some(u64::MAX)),
            now,
        );
        assert_eq!(number(&keys, now), Err(Trouble::RateLimited));
        let later = after(now, REST_MS_MAX);
        assert_eq!(number(&keys, later), Ok(0));
        assert_eq!(keys.take("other", now).map(|taken| taken.0).ok(), Some(0));
    }

    #[test]
    fn with_another_key_a_failing_one_rests_for_five_minutes() {
        let (keys, now) = (keys(2), Instant::now());
        let mut failed = fault(Trouble::Failed, None);
        keys.learn(0, "m", &mut failed, now);
        assert_eq!(failed.remedy, Remedy::OtherKey);
        assert_eq!([number(&keys, now), number(&keys, now)], [Ok(1), Ok(1)]);
        let later = after(now, REST_MS);
        assert_eq!(number(&keys, later), Ok(0));
        let none = self::keys(0);
        assert!(none.take("m", now).unwrap().1.is_none());
        none.learn(0, "m", &mut fault(Trouble::RateLimited, Some(1)), now);
        assert_eq!(number(&none, now), Err(Trouble::RateLimited));
        assert!(Key::new("a b").is_none() && Key::new("").is_none());
        let shown = format!("{:?}", Key::new("sk-secret"));
        assert!(!shown.contains("secret"));
    }
}
