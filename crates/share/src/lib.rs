//! Fair shares of something bounded: permits of a pool, counted by weight and by caller.
//!
//! A waiter is woken by its standard waker, so the crate has no runtime, no clock, no thread and no dependency. A time limit of a wait
//! belongs to its caller. Rules that hold whatever callers do:
//!
//! - No caller holds more than [`ShareLimits::caller`], except one permit alone that is heavier.
//! - Waiters are served in order. A waiter that its own share holds back does not hold back other callers.
//! - Each permit returns its weight when it is dropped, and the next waiters have it before anyone else.
//! - A caller is remembered while it holds or waits for something, so the memory is bounded by permits and waiters.

#[cfg(any(test, feature = "contract"))]
pub mod contract;
mod growth;
#[cfg(test)]
mod tests;

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

pub use growth::Growth;

/// Bounds of a pool, in units of weight, and of its queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ShareLimits {
    /// Most that all permits weigh.
    pub all: usize,
    /// Most that all permits weigh when a caller that has its first part takes more; the rest is reserved for first parts.
    pub common: usize,
    /// Weight of a caller's first part.
    pub first: usize,
    /// Most of one caller. A heavier permit is granted if it is the only one of its caller.
    pub caller: usize,
    /// Most waiters.
    pub waiting: usize,
    /// Most waiters of one caller.
    pub waiting_of_caller: usize,
}

impl ShareLimits {
    /// Limits of a pool without a queue: half of it for a caller, and a quarter reserved for callers that hold nothing.
    #[must_use]
    pub fn half_each(all: usize) -> Self {
        Self {
            all,
            common: all - all.div_ceil(4),
            first: 1,
            caller: (all / 2).max(1),
            waiting: 0,
            waiting_of_caller: 0,
        }
    }

    /// Limits of a pool without a queue and without a reserve.
    #[must_use]
    pub fn of_caller(caller: usize, all: usize) -> Self {
        Self {
            common: all,
            first: 0,
            caller,
            ..Self::half_each(all)
        }
    }

    /// The same limits with a queue.
    #[must_use]
    pub fn with_queue(self, waiting: usize, waiting_of_caller: usize) -> Self {
        Self {
            waiting,
            waiting_of_caller,
            ..self
        }
    }
}

/// Why a permit is not granted now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shortage {
    /// The caller holds as much as one caller may.
    Caller,
    /// The rest is reserved for callers that hold less.
    Reserve,
    /// All of the pool is held, or promised to earlier waiters.
    Pool,
    /// As many wait as may, or as many of the caller.
    Queue,
    /// More than the whole pool was requested.
    TooMuch,
}

/// A bounded pool that callers share. Clones are the same pool.
#[derive(Debug, Clone)]
pub struct SharePool(Arc<Mutex<PoolState>>);

/// A part of a pool, returned when it is dropped.
#[derive(Debug)]
pub struct SharePermit {
    pool: SharePool,
    /// The caller that has to leave room for others; `None` is bound by the pool alone.
    caller: Option<Arc<str>>,
    weight: usize,
}

#[derive(Debug)]
struct PoolState {
    limits: ShareLimits,
    held: usize,
    callers: HashMap<Arc<str>, CallerShare>,
    /// In ascending order of tickets.
    queue: VecDeque<Waiter>,
    /// Waiters of the queue without a grant.
    waiting: usize,
    next_ticket: u64,
    scans: u64,
    emptied: Vec<Waker>,
}

#[derive(Debug, Default)]
struct CallerShare {
    held: usize,
    waiting: usize,
    /// The last scan of the queue in which a waiter of the caller was held back.
    held_back_in: u64,
}

#[derive(Debug)]
struct Waiter {
    ticket: u64,
    request: Request,
    waker: Waker,
    is_granted: bool,
}

/// A permit of weight `from` is to weigh `to`.
#[derive(Debug, Clone)]
struct Request {
    caller: Option<Arc<str>>,
    from: usize,
    to: usize,
}

impl SharePool {
    /// Returns a pool of which nothing is held.
    #[must_use]
    pub fn new(limits: ShareLimits) -> Self {
        Self(Arc::new(Mutex::new(PoolState {
            limits,
            held: 0,
            callers: HashMap::new(),
            queue: VecDeque::new(),
            waiting: 0,
            next_ticket: 0,
            scans: 0,
            emptied: Vec::new(),
        })))
    }

    /// Returns a permit of weight 0, which is bound by the share of `caller`, or by the pool alone.
    #[must_use]
    pub fn permit(&self, caller: Option<&Arc<str>>) -> SharePermit {
        SharePermit {
            pool: self.clone(),
            caller: caller.cloned(),
            weight: 0,
        }
    }

    /// Returns a permit of this weight if it is free now.
    ///
    /// # Errors
    /// The [`Shortage`].
    pub fn try_acquire(
        &self,
        caller: Option<&Arc<str>>,
        weight: usize,
    ) -> Result<SharePermit, Shortage> {
        let mut permit = self.permit(caller);
        permit.try_grow(weight)?;
        Ok(permit)
    }

    /// Returns the weight of all permits.
    #[must_use]
    pub fn held(&self) -> usize {
        self.lock().held
    }

    /// Returns the weight of a caller's permits.
    #[must_use]
    pub fn held_by(&self, caller: &str) -> usize {
        self.lock().callers.get(caller).map_or(0, |own| own.held)
    }

    /// Returns how many wait.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.lock().waiting
    }

    /// Returns how many callers are remembered.
    #[must_use]
    pub fn callers(&self) -> usize {
        self.lock().callers.len()
    }

    /// Returns the limits.
    #[must_use]
    pub fn limits(&self) -> ShareLimits {
        self.lock().limits
    }

    /// Replaces the limits. Permits that exceed the new ones remain.
    pub fn set_limits(&self, limits: ShareLimits) {
        let mut state = self.lock();
        if state.limits != limits {
            state.limits = limits;
            wake(state.grant(), state);
        }
    }

    /// Resolves when nothing is held.
    pub fn poll_empty(&self, cx: &mut Context<'_>) -> Poll<()> {
        let mut state = self.lock();
        if state.held == 0 {
            return Poll::Ready(());
        }
        if !state
            .emptied
            .iter()
            .any(|waker| waker.will_wake(cx.waker()))
        {
            state.emptied.push(cx.waker().clone());
        }
        Poll::Pending
    }

    fn lock(&self) -> MutexGuard<'_, PoolState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SharePermit {
    /// Returns the weight.
    #[must_use]
    pub fn weight(&self) -> usize {
        self.weight
    }

    /// Raises the weight to `weight` if that is free now.
    ///
    /// # Errors
    /// The [`Shortage`].
    pub fn try_grow(&mut self, weight: usize) -> Result<(), Shortage> {
        if weight > self.weight {
            self.pool.lock().take_now(&self.request(weight))?;
            self.weight = weight;
        }
        Ok(())
    }

    /// Raises the weight to `weight`, waiting in the queue until that is free. Permits of one caller that wait for each other's weight
    /// go on waiting: set a time limit.
    pub fn grow(&mut self, weight: usize) -> Growth<'_> {
        Growth::new(self, weight)
    }

    fn request(&self, to: usize) -> Request {
        Request {
            caller: self.caller.clone(),
            from: self.weight,
            to,
        }
    }
}

impl Drop for SharePermit {
    fn drop(&mut self) {
        if self.weight > 0 {
            let mut state = self.pool.lock();
            state.give_back(self.caller.as_ref(), self.weight);
            wake(state.grant(), state);
        }
    }
}

impl PoolState {
    /// Takes what is requested, unless an earlier waiter has a claim to it.
    fn take_now(&mut self, request: &Request) -> Result<(), Shortage> {
        if self.waiting == 0 || request.from > 0 {
            return self.take(request);
        }
        // As if it came last in the queue.
        let mut order = ScanOrder::default();
        self.scans += 1;
        for waiter in self.queue.iter().filter(|waiter| !waiter.is_granted) {
            if order.holds_back(&waiter.request) {
                continue;
            }
            let shortage = shortage(&self.limits, self.held, &self.callers, &waiter.request);
            if let Some(shortage) = shortage {
                order.hold_back(shortage, self.scans, &mut self.callers, &waiter.request);
            }
        }
        match order.shortage(self.scans, &self.callers, &self.limits, request) {
            Some(shortage) => Err(shortage),
            None => self.take(request),
        }
    }

    fn take(&mut self, request: &Request) -> Result<(), Shortage> {
        if let Some(shortage) = shortage(&self.limits, self.held, &self.callers, request) {
            return Err(shortage);
        }
        let more = request.to - request.from;
        self.held += more;
        if let Some(caller) = &request.caller {
            self.callers.entry(Arc::clone(caller)).or_default().held += more;
        }
        Ok(())
    }

    fn give_back(&mut self, caller: Option<&Arc<str>>, weight: usize) {
        self.held = self.held.saturating_sub(weight);
        if let Some(caller) = caller
            && let Some(own) = self.callers.get_mut(caller)
        {
            own.held = own.held.saturating_sub(weight);
            self.forget_idle(caller);
        }
    }

    fn forget_idle(&mut self, caller: &Arc<str>) {
        if let Some(own) = self.callers.get(caller)
            && own.held == 0
            && own.waiting == 0
        {
            self.callers.remove(caller);
        }
    }

    /// Grants what is free to waiters in their order, and returns the wakers to wake without the lock.
    fn grant(&mut self) -> Vec<Waker> {
        let mut wakers = Vec::new();
        if self.waiting > 0 {
            let mut order = ScanOrder::default();
            self.scans += 1;
            let mut queue = std::mem::take(&mut self.queue);
            for waiter in queue.iter_mut().filter(|waiter| !waiter.is_granted) {
                let request = &waiter.request;
                if order.holds_back(request) {
                    continue;
                }
                let held_back = order.shortage(self.scans, &self.callers, &self.limits, request);
                let taken = held_back.map_or_else(|| self.take(request), Err);
                match taken {
                    Ok(()) => {
                        waiter.is_granted = true;
                        wakers.push(waiter.waker.clone());
                        self.count_waiter_out(waiter.request.caller.as_ref());
                    }
                    Err(shortage) => {
                        order.hold_back(shortage, self.scans, &mut self.callers, request);
                    }
                }
            }
            self.queue = queue;
        }
        if self.held == 0 {
            wakers.append(&mut self.emptied);
        }
        wakers
    }

    fn join_queue(&mut self, request: Request, waker: &Waker) -> Result<u64, Shortage> {
        let own = request.caller.as_ref();
        let own = own.and_then(|caller| self.callers.get(caller));
        let waiting_of_caller = own.map_or(0, |own| own.waiting);
        let is_full =
            request.caller.is_some() && waiting_of_caller >= self.limits.waiting_of_caller;
        if is_full || self.waiting >= self.limits.waiting {
            return Err(Shortage::Queue);
        }
        if let Some(caller) = &request.caller {
            self.callers.entry(Arc::clone(caller)).or_default().waiting += 1;
        }
        self.waiting += 1;
        let ticket = self.next_ticket;
        self.next_ticket += 1;
        self.queue.push_back(Waiter {
            ticket,
            request,
            waker: waker.clone(),
            is_granted: false,
        });
        Ok(ticket)
    }

    fn count_waiter_out(&mut self, caller: Option<&Arc<str>>) {
        self.waiting = self.waiting.saturating_sub(1);
        if let Some(own) = caller.and_then(|caller| self.callers.get_mut(caller)) {
            own.waiting = own.waiting.saturating_sub(1);
        }
    }

    /// Removes a waiter from the queue, and returns whether it has its grant.
    fn leave_queue(&mut self, ticket: u64) -> bool {
        let at = self
            .queue
            .binary_search_by_key(&ticket, |waiter| waiter.ticket);
        let Some(waiter) = at.ok().and_then(|at| self.queue.remove(at)) else {
            return false;
        };
        if !waiter.is_granted {
            self.count_waiter_out(waiter.request.caller.as_ref());
            if let Some(caller) = &waiter.request.caller {
                self.forget_idle(caller);
            }
        }
        waiter.is_granted
    }

    fn waiter(&mut self, ticket: u64) -> Option<&mut Waiter> {
        let at = self
            .queue
            .binary_search_by_key(&ticket, |waiter| waiter.ticket);
        self.queue.get_mut(at.ok()?)
    }
}

/// What earlier waiters of one scan hold back.
#[derive(Debug, Default)]
struct ScanOrder {
    pool: bool,
    common: bool,
    /// The caller of the latest waiter that was held back.
    latest: Option<Arc<str>>,
}

impl ScanOrder {
    fn hold_back(
        &mut self,
        shortage: Shortage,
        scan: u64,
        callers: &mut HashMap<Arc<str>, CallerShare>,
        request: &Request,
    ) {
        match shortage {
            Shortage::Pool => self.pool = true,
            Shortage::Reserve => self.common = true,
            Shortage::Caller | Shortage::Queue | Shortage::TooMuch => {}
        }
        let own = request.caller.as_ref();
        if let Some(own) = own.and_then(|caller| callers.get_mut(caller)) {
            own.held_back_in = scan;
            self.latest.clone_from(&request.caller);
        }
    }

    /// Returns whether [`Self::shortage`] certainly has one. Without a look at the caller's share: thousands of waiters of one caller,
    /// or of a pool that is exhausted, are passed over.
    fn holds_back(&self, request: &Request) -> bool {
        request.from == 0 && (self.pool || self.latest.is_some() && self.latest == request.caller)
    }

    /// Returns what an earlier waiter holds back of this request. A permit that grows is never held back: an earlier waiter may wait
    /// for that permit.
    fn shortage(
        &self,
        scan: u64,
        callers: &HashMap<Arc<str>, CallerShare>,
        limits: &ShareLimits,
        request: &Request,
    ) -> Option<Shortage> {
        if request.from > 0 {
            return None;
        }
        let own = request.caller.as_ref();
        let own = own.and_then(|caller| callers.get(caller));
        if own.is_some_and(|own| own.held_back_in == scan) {
            return Some(Shortage::Caller);
        }
        let is_beyond_first = own.map_or(0, |own| own.held) + request.to > limits.first;
        if self.common && request.caller.is_some() && is_beyond_first {
            return Some(Shortage::Reserve);
        }
        self.pool.then_some(Shortage::Pool)
    }
}

/// Returns what a request lacks, whoever waits.
fn shortage(
    limits: &ShareLimits,
    held: usize,
    callers: &HashMap<Arc<str>, CallerShare>,
    request: &Request,
) -> Option<Shortage> {
    if request.to > limits.all {
        return Some(Shortage::TooMuch);
    }
    let held = held - request.from.min(held);
    if let Some(caller) = &request.caller {
        let own = callers.get(caller).map_or(0, |own| own.held);
        let others = own - request.from.min(own);
        if others > 0 && others.saturating_add(request.to) > limits.caller {
            return Some(Shortage::Caller);
        }
        let is_beyond_first = others.saturating_add(request.to) > limits.first;
        if is_beyond_first && held.saturating_add(request.to) > limits.common {
            // A permit that the whole pool has room for is short of the pool once the reserve is not the reason.
            let is_full = held.saturating_add(request.to) > limits.all;
            return Some(if is_full {
                Shortage::Pool
            } else {
                Shortage::Reserve
            });
        }
    }
    (held.saturating_add(request.to) > limits.all).then_some(Shortage::Pool)
}

/// Wakes without the lock: a waker may poll at once.
fn wake(wakers: Vec<Waker>, state: MutexGuard<'_, PoolState>) {
    drop(state);
    for waker in wakers {
        waker.wake();
    }
}
