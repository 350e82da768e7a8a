//! Property test of a user of a pool, for the tests of other crates.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use super::{ShareLimits, SharePool};

const CALLERS: usize = 5;
const ROUNDS: u64 = 30;
const STEPS: usize = 400;

/// An acquisition of a user: a permit, or `None` if the user refuses.
pub type Acquisition<P> = Pin<Box<dyn Future<Output = Option<P>>>>;

/// Acquires, drops and gives up permits of `weight` for several callers at random. All permits of `pool` have to be made by
/// `acquire`, and a permit that is dropped has to be free at once.
///
/// # Errors
/// The first rule that is broken: no caller holds more than its share, no caller is refused or waits while its part is free, every
/// permit comes back.
pub fn check_user<P>(
    pool: &SharePool,
    weight: usize,
    acquire: impl Fn(&Arc<str>) -> Acquisition<P>,
) -> Result<(), String> {
    for seed in 1..=ROUNDS {
        let mut round = RandomRound {
            pool,
            weight,
            random: seed.wrapping_mul(0x9E37_79B9_7F4A_7C15),
            held: Vec::new(),
            waiting: Vec::new(),
        };
        for step in 0..STEPS {
            let checked = round.step(&acquire).and_then(|()| round.check());
            checked.map_err(|broken| format!("seed {seed}, step {step}: {broken}"))?;
        }
        drop(round);
        let left = (pool.held(), pool.waiting(), pool.callers());
        if left != (0, 0, 0) {
            return Err(format!(
                "seed {seed}: held, waiting, callers {left:?} at the end"
            ));
        }
    }
    Ok(())
}

struct RandomRound<'p, P> {
    pool: &'p SharePool,
    weight: usize,
    /// State of an xorshift generator.
    random: u64,
    held: Vec<P>,
    waiting: Vec<(Arc<str>, Acquisition<P>)>,
}

impl<P> RandomRound<'_, P> {
    fn below(&mut self, bound: usize) -> usize {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        let below = self.random % u64::try_from(bound.max(1)).unwrap_or(1);
        usize::try_from(below).unwrap_or(0)
    }

    fn step(&mut self, acquire: &impl Fn(&Arc<str>) -> Acquisition<P>) -> Result<(), String> {
        match self.below(8) {
            0..5 => {
                // The first caller asks as often as all others.
                let caller = self.below(2) * self.below(CALLERS);
                let caller: Arc<str> = caller.to_string().into();
                let is_free = self.is_free(&caller);
                let mut acquisition = acquire(&caller);
                match poll(&mut acquisition) {
                    Poll::Ready(Some(permit)) => self.held.push(permit),
                    Poll::Ready(None) if is_free => {
                        return Err(format!("caller {caller} is refused what is free"));
                    }
                    Poll::Ready(None) => {}
                    Poll::Pending => self.waiting.push((caller, acquisition)),
                }
            }
            5..7 if !self.held.is_empty() => {
                let at = self.below(self.held.len());
                drop(self.held.swap_remove(at));
            }
            _ if !self.waiting.is_empty() => {
                let at = self.below(self.waiting.len());
                drop(self.waiting.remove(at));
            }
            _ => {}
        }
        for (caller, mut acquisition) in std::mem::take(&mut self.waiting) {
            match poll(&mut acquisition) {
                Poll::Ready(Some(permit)) => self.held.push(permit),
                Poll::Ready(None) => {}
                Poll::Pending => self.waiting.push((caller, acquisition)),
            }
        }
        Ok(())
    }

    fn check(&self) -> Result<(), String> {
        let limits = self.pool.limits();
        let held = self.pool.held();
        let made = self.held.len() * self.weight;
        if held != made || held > limits.all {
            return Err(format!(
                "{held} is held of {}, by permits of {made}",
                limits.all
            ));
        }
        for caller in (0..CALLERS).map(|caller| caller.to_string()) {
            let own = self.pool.held_by(&caller);
            if own > limits.caller.max(self.weight) {
                return Err(format!("caller {caller} holds {own} of {}", limits.caller));
            }
        }
        match self.waiting.iter().find(|(caller, _)| self.is_free(caller)) {
            Some((caller, _)) => Err(format!("caller {caller} waits for what is free")),
            None => Ok(()),
        }
    }

    /// Returns whether a permit for this caller is free, if all permits have one weight.
    fn is_free(&self, caller: &str) -> bool {
        let ShareLimits {
            all,
            common,
            first,
            caller: most,
            ..
        } = self.pool.limits();
        let held = self.pool.held() + self.weight;
        let own = self.pool.held_by(caller) + self.weight;
        let fits = match own <= first {
            true => held <= all,
            false => held <= common.min(all),
        };
        fits && (own <= most || own == self.weight)
    }
}

fn poll<P>(acquisition: &mut Acquisition<P>) -> Poll<Option<P>> {
    acquisition
        .as_mut()
        .poll(&mut Context::from_waker(Waker::noop()))
}
