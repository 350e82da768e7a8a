use std::future::Future;
use std::pin::pin;

use super::*;

/// Numbers of a fixed seed (xorshift).
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % bound as u64).unwrap()
    }
}

fn poll(growth: &mut Growth<'_>) -> Poll<Result<(), Shortage>> {
    pin!(growth).poll(&mut Context::from_waker(Waker::noop()))
}

#[test]
fn two_callers_that_take_all_they_may_leave_a_first_part_for_a_third() {
    for all in [4, 5, 8, 32] {
        let pool = SharePool::new(ShareLimits::half_each(all));
        let [one, other, third] = ["one", "other", "third"].map(Arc::<str>::from);
        let mut held = Vec::new();
        for caller in [&one, &other] {
            held.extend((0..2 * all).filter_map(|_| pool.try_acquire(Some(caller), 1).ok()));
        }
        assert!(pool.held() < all, "{all}");
        assert!(pool.held_by("one") == all / 2, "{all}");
        let first = pool.try_acquire(Some(&third), 1);
        assert!(first.is_ok(), "{all}");
        assert!(pool.try_acquire(Some(&third), 1).is_err(), "{all}");
        drop((held, first));
        assert_eq!((pool.held(), pool.callers()), (0, 0));
        let held: Vec<_> = (0..2 * all)
            .filter_map(|_| pool.try_acquire(None, 1).ok())
            .collect();
        assert_eq!(held.len(), all, "a caller without a share has the pool");
    }
}

#[test]
fn a_pool_without_a_reserve_has_a_bound_for_each_caller_and_one_for_all() {
    let pool = SharePool::new(ShareLimits::of_caller(3, 5));
    let take = |caller: Option<&Arc<str>>| -> Vec<SharePermit> {
        (0..10)
            .filter_map(|_| pool.try_acquire(caller, 1).ok())
            .collect()
    };
    let [one, other] = ["one", "other"].map(Arc::<str>::from);
    let held = take(Some(&one));
    assert_eq!(held.len(), 3);
    let others = take(Some(&other));
    assert_eq!(others.len(), 2, "five in all");
    drop(held);
    assert_eq!(take(Some(&one)).len(), 3);
    drop(others);
    assert_eq!(take(None).len(), 5);
    assert_eq!((pool.held(), pool.callers()), (0, 0));
}

#[test]
fn a_heavy_waiter_is_not_overtaken_and_its_end_lets_the_others_go_on() {
    let limits = ShareLimits::of_caller(10, 10).with_queue(8, 8);
    let pool = SharePool::new(limits);
    let [one, other, third] = ["one", "other", "third"].map(Arc::<str>::from);
    let held = pool.try_acquire(Some(&one), 5).unwrap();
    let mut heavy = pool.permit(Some(&other));
    let mut heavy = heavy.grow(8);
    assert!(poll(&mut heavy).is_pending());
    assert_eq!(
        pool.try_acquire(Some(&third), 1).unwrap_err(),
        Shortage::Pool
    );
    let mut third_permit = pool.permit(Some(&third));
    let mut light = third_permit.grow(1);
    assert!(poll(&mut light).is_pending());
    drop(heavy);
    assert_eq!(poll(&mut light), Poll::Ready(Ok(())));
    drop(light);
    drop((third_permit, held));
    assert_eq!((pool.held(), pool.waiting(), pool.callers()), (0, 0, 0));
}

#[test]
fn a_grant_that_is_not_collected_is_given_back() {
    let pool = SharePool::new(ShareLimits::of_caller(1, 1).with_queue(2, 2));
    let caller: Arc<str> = "one".into();
    let held = pool.try_acquire(Some(&caller), 1).unwrap();
    let mut waiting = pool.permit(Some(&caller));
    let mut growth = waiting.grow(1);
    assert!(poll(&mut growth).is_pending());
    drop(held);
    assert_eq!(pool.held(), 1, "granted at once");
    drop(growth);
    assert_eq!((pool.held(), waiting.weight(), pool.callers()), (0, 0, 0));
    assert!(
        pool.poll_empty(&mut Context::from_waker(Waker::noop()))
            .is_ready()
    );
}

/// Whatever callers take, wait for, give up and give back: no caller exceeds its share, the pool is never exceeded, no waiter that could
/// be served is left waiting, and everything comes back.
#[test]
fn no_caller_exceeds_its_share_and_every_permit_comes_back() {
    for seed in 1..=200 {
        let mut random = Random(seed * 0x9E37_79B9);
        let all = 4 + random.below(40);
        let limits = match random.below(3) {
            0 => ShareLimits::half_each(all),
            1 => ShareLimits::of_caller(1 + random.below(all), all),
            _ => ShareLimits {
                first: 2,
                ..ShareLimits::half_each(all)
            },
        };
        let limits = limits.with_queue(6, 3);
        let pool = SharePool::new(limits);
        let callers: Vec<Arc<str>> = (0..5).map(|n| n.to_string().into()).collect();
        // A permit at its own address with the growth that borrows it would be self-referential: each waiter is a boxed future.
        type Pending = std::pin::Pin<Box<dyn Future<Output = Result<SharePermit, Shortage>>>>;
        let mut waiting: Vec<Pending> = Vec::new();
        let mut held: Vec<SharePermit> = Vec::new();
        let mut cx = Context::from_waker(Waker::noop());
        for _ in 0..300 {
            match random.below(4) {
                0 | 1 => {
                    let mut permit = pool.permit(Some(&callers[random.below(5)]));
                    let weight = 1 + random.below(3);
                    waiting.push(Box::pin(async move {
                        permit.grow(weight).await?;
                        Ok(permit)
                    }));
                }
                2 if !held.is_empty() => drop(held.swap_remove(random.below(held.len()))),
                _ if !waiting.is_empty() => drop(waiting.remove(random.below(waiting.len()))),
                _ => {}
            }
            let mut left = Vec::new();
            for mut one in std::mem::take(&mut waiting) {
                match one.as_mut().poll(&mut cx) {
                    Poll::Ready(Ok(permit)) => held.push(permit),
                    Poll::Ready(Err(shortage)) => {
                        assert!(matches!(shortage, Shortage::Queue | Shortage::TooMuch));
                    }
                    Poll::Pending => left.push(one),
                }
            }
            waiting = left;
            assert_eq!(waiting.len(), pool.waiting(), "seed {seed}");
            assert!(pool.held() <= limits.all && pool.waiting() <= limits.waiting);
            assert_eq!(
                pool.held(),
                held.iter().map(SharePermit::weight).sum::<usize>()
            );
            for caller in &callers {
                let mine = held.iter().filter(|p| p.caller.as_ref() == Some(caller));
                let is_alone = mine.count() <= 1;
                assert!(
                    is_alone || pool.held_by(caller) <= limits.caller,
                    "seed {seed}"
                );
            }
            let first = pool
                .lock()
                .queue
                .front()
                .map(|waiter| waiter.request.clone());
            if let Some(first) = first {
                let state = pool.lock();
                let short = shortage(&state.limits, state.held, &state.callers, &first);
                assert!(
                    short.is_some(),
                    "seed {seed}: the first waiter could be served"
                );
            }
        }
        drop((waiting, held));
        assert_eq!(
            (pool.held(), pool.waiting(), pool.callers()),
            (0, 0, 0),
            "seed {seed}"
        );
    }
}

#[test]
fn the_property_test_of_users_finds_a_permit_that_is_lost_and_a_share_that_is_exceeded() {
    let pool = SharePool::new(ShareLimits::half_each(8));
    let sound = |caller: &Arc<str>| {
        let permit = pool.try_acquire(Some(caller), 1).ok();
        Box::pin(std::future::ready(permit)) as contract::Acquisition<_>
    };
    assert_eq!(contract::check_user(&pool, 1, sound), Ok(()));
    let greedy = |caller: &Arc<str>| {
        let permit = pool.try_acquire(Some(caller), 2).ok();
        Box::pin(std::future::ready(permit)) as contract::Acquisition<_>
    };
    let broken = contract::check_user(&pool, 1, greedy).unwrap_err();
    assert!(broken.contains("2 is held"), "{broken}");
    let refusing = |_: &Arc<str>| Box::pin(std::future::ready(None::<SharePermit>)) as _;
    let broken = contract::check_user(&pool, 1, refusing).unwrap_err();
    assert!(broken.contains("refused what is free"), "{broken}");
    let lost = std::cell::RefCell::new(Vec::new());
    let losing = |caller: &Arc<str>| {
        lost.borrow_mut()
            .extend(pool.try_acquire(Some(caller), 1).ok());
        Box::pin(std::future::ready(None::<SharePermit>)) as _
    };
    let broken = contract::check_user(&pool, 1, losing).unwrap_err();
    assert!(broken.contains("refused what is free"), "{broken}");
}
