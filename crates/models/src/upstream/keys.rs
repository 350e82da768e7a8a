//! The keys of a provider: which one is used, and which ones rest.
//!
//! A key that is not taken any more (401, 402, 403, nothing left to spend) is retired until the next start.
//! One that was used too often for a model rests for that model as long as the provider says. Where the provider says nothing, or
//! has an error of its own, the key rests for [`REST_MS`] if there is another to use meanwhile.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::key::Key;
use crate::provider::{Fault, Remedy, Trouble};

/// Most keys of one provider.
pub const KEYS_MAX: usize = 256;
/// How long a key rests where the provider does not say, in milliseconds.
const REST_MS: u64 = 300_000;
/// Longest time that a provider can have a key rest, in milliseconds.
const REST_MS_MAX: u64 = 3_600_000;
/// Most keys, each for one model, that rest at once.
const RESTING_MAX: usize = 4_096;

/// A key for a model: providers count each model for itself.
type Use = (usize, String);

#[derive(Debug)]
struct Turn {
    next: usize,
    /// Why each key is retired, where it is.
    retired: Vec<Option<Trouble>>,
    /// Until when each use rests.
    resting: HashMap<Use, Instant>,
}

/// All keys of a provider. One key serves many calls at once; calls go round among those that are good.
/// A provider that wants none has one that is empty, so that it can rest as well.
#[derive(Debug)]
pub(super) struct Keys {
    keys: Vec<Option<Key>>,
    turn: Mutex<Turn>,
}

impl Keys {
    pub fn new(keys: Vec<Key>) -> Self {
        let keys: Vec<Option<Key>> = if keys.is_empty() {
            vec![None]
        } else {
            keys.into_iter().map(Some).collect()
        };
        Self {
            turn: Mutex::new(Turn {
                next: 0,
                retired: vec![None; keys.len()],
                resting: HashMap::new(),
            }),
            keys,
        }
    }

    /// The key for the next call of a model, where the provider wants one, with its number.
    pub fn take(&self, model: &str, now: Instant) -> Result<(usize, Option<&Key>), Fault> {
        let mut turn = self.turn();
        turn.wake(now);
        let count = self.keys.len();
        let mut numbers = (0..count).map(|step| (turn.next + step) % count);
        let good = numbers.find(|number| turn.is_good(*number, model));
        match good.and_then(|number| Some((number, self.keys.get(number)?))) {
            Some((number, key)) => {
                turn.next = (number + 1) % count;
                Ok((number, key.as_ref()))
            }
            None => Err(turn.nothing(model, now)),
        }
    }

    /// What a fault says about a key, and whether another one may help.
    pub fn learn(&self, number: usize, model: &str, fault: &mut Fault, now: Instant) {
        let mut turn = self.turn();
        turn.wake(now);
        let count = self.keys.len();
        let others = (0..count).any(|other| other != number && turn.is_good(other, model));
        let rest_ms = match (fault.trouble, fault.retry_after_ms) {
            (Trouble::Credentials | Trouble::Quota, _) => {
                if let Some(own) = turn.retired.get_mut(number) {
                    *own = Some(fault.trouble);
                }
                None
            }
            (Trouble::RateLimited, Some(ms)) => Some(ms),
            (Trouble::Failed, Some(ms)) if others => Some(ms),
            (Trouble::RateLimited | Trouble::Failed, None) if others => Some(REST_MS),
            _ => return,
        };
        if let Some(ms) = rest_ms
            && turn.resting.len() < RESTING_MAX
        {
            let until = now + Duration::from_millis(ms.min(REST_MS_MAX));
            turn.resting.insert((number, model.to_owned()), until);
        }
        if others {
            fault.remedy = Remedy::OtherKey;
        }
    }

    fn turn(&self) -> MutexGuard<'_, Turn> {
        self.turn.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Turn {
    fn wake(&mut self, now: Instant) {
        if !self.resting.is_empty() {
            self.resting.retain(|_, until| *until > now);
        }
    }

    fn is_good(&self, number: usize, model: &str) -> bool {
        let is_resting = || self.resting.contains_key(&(number, model.to_owned()));
        self.retired.get(number) == Some(&None) && (self.resting.is_empty() || !is_resting())
    }

    /// Why there is no key to use.
    fn nothing(&self, model: &str, now: Instant) -> Fault {
        let resting = self.resting.iter().filter(|((_, of), _)| of == model);
        if let Some(until) = resting.map(|(_, until)| *until).min() {
            let ms = until.saturating_duration_since(now).as_millis();
            let mut fault = Fault::of(Trouble::RateLimited, Remedy::NextTarget);
            fault.retry_after_ms = u64::try_from(ms).ok();
            return fault;
        }
        let retired = self.retired.iter().find_map(|why| *why);
        Fault::of(retired.unwrap_or(Trouble::Credentials), Remedy::NextTarget)
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

    #[test]
    fn a_key_that_is_not_taken_is_retired_and_one_used_too_often_rests() {
        let (keys, now) = (keys(3), Instant::now());
        assert_eq!([number(&keys, now), number(&keys, now)], [Ok(0), Ok(1)]);
        let mut dead = fault(Trouble::Credentials, None);
        keys.learn(0, "m", &mut dead, now);
        assert_eq!(dead.remedy, Remedy::OtherKey);
        let mut busy = fault(Trouble::RateLimited, Some(2_000));
        keys.learn(1, "m", &mut busy, now);
        assert_eq!([number(&keys, now), number(&keys, now)], [Ok(2), Ok(2)]);
        let mut quota = fault(Trouble::Quota, None);
        keys.learn(2, "m", &mut quota, now);
        assert_eq!(quota.remedy, Remedy::NextTarget);
        let none = keys.take("m", now).unwrap_err();
        assert_eq!(
            (none.trouble, none.retry_after_ms),
            (Trouble::RateLimited, Some(2_000))
        );
        let later = now + Duration::from_millis(2_000);
        assert_eq!(number(&keys, later), Ok(1));
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
        let later = now + Duration::from_millis(REST_MS_MAX);
        assert_eq!(number(&keys, later), Ok(0));
        assert_eq!(keys.take("other", now).map(|taken| taken.0).ok(), Some(0));
        keys.learn(0, "m", &mut fault(Trouble::Credentials, None), later);
        assert_eq!(number(&keys, later), Err(Trouble::Credentials));
    }

    #[test]
    fn with_another_key_a_failing_one_rests_for_five_minutes() {
        let (keys, now) = (keys(2), Instant::now());
        let mut failed = fault(Trouble::Failed, None);
        keys.learn(0, "m", &mut failed, now);
        assert_eq!(failed.remedy, Remedy::OtherKey);
        assert_eq!([number(&keys, now), number(&keys, now)], [Ok(1), Ok(1)]);
        let later = now + Duration::from_millis(REST_MS);
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
