//! Asking a person: a bounded queue of questions, answers from several channels, and what has been
//! allowed for a while.
//!
//! Nothing here waits, sleeps or knows a runtime: a question's asker registers a standard waker and is
//! woken when there is an answer, when time is over (seen at the next [`Approvals::expire`]), or when
//! the rules change. No lock is held longer than a look or a change.

pub mod answer;
pub mod change;
pub mod display;
mod grants;
mod options;
pub mod question;
mod slot;

use std::collections::{HashMap, VecDeque};
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use share::{ShareLimits, SharePermit, SharePool, Shortage};

use crate::clock::Clock;
use crate::journal::format_utc;
use crate::reason::Reason;

pub use crate::channel::Channel;
pub use crate::effects::NEVER_REMEMBERED;
pub use answer::{Answer, Choice, Declined, Outcome, REASON_CHARS_MAX};
pub use options::{Options, PENDING_LIMIT, REMEMBER_S_MAX, TIMEOUT_S_MAX, TIMEOUT_S_MIN};
pub use question::{Id, Question, Shown};

pub use grants::GrantedCall;

pub(crate) use grants::{Binding, Grant, may_be_remembered};
pub(crate) use question::Asking;
pub(crate) use slot::Slot;

use grants::Grants;
use question::ID_BITS;

/// Most questions that have ended and are remembered, so that a late answer is told what became of it.
const ENDED_MAX: usize = 1_000;
/// Fewest letters of a question's name that stand for it.
pub const ID_LETTERS_MIN: usize = 3;
/// How long a yes for a session holds at most, in milliseconds.
const SESSION_MS_MAX: u64 = 12 * 60 * 60 * 1_000;
/// Most callers of which it is known when they asked.
const ASK_TIMES_MAX: usize = 10_000;
/// Most tasks that wait for news of the queue; beyond, all of them look again.
const WATCHERS_MAX: usize = 64;
/// Most bytes that the waiting calls of one caller take, where there is more than one.
pub const WAITING_BYTES_OF_CALLER_MAX: usize = 32 << 20;
/// The same of all callers.
pub const WAITING_BYTES_MAX: usize = 256 << 20;
/// The time over which a caller's questions are counted, in nanoseconds.
const RATE_WINDOW_NS: u64 = 60_000_000_000;

/// Why a question was not taken into the queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Full {
    /// As many wait as may.
    Queue,
    /// As many of this caller wait as may.
    Caller,
    /// This caller has asked often enough for a minute.
    Rate,
}

impl From<Full> for Reason {
    fn from(full: Full) -> Self {
        match full {
            Full::Queue => Self::ApprovalQueueFull,
            Full::Caller => Self::ApprovalTooManyWaiting,
            Full::Rate => Self::ApprovalTooManyAsked,
        }
    }
}

/// The queue.
pub struct Approvals {
    clock: Arc<dyn Clock>,
    salt: u64,
    inner: Mutex<Inner>,
}

struct Inner {
    options: Options,
    waiting: HashMap<Id, Entry>,
    limits: QuestionLimits,
    ended: VecDeque<(Id, Outcome)>,
    /// When callers asked, within the last minute.
    asked_ns: HashMap<Arc<str>, VecDeque<u64>>,
    grants: Grants,
    asked: u64,
    version: u64,
    watchers: Vec<Waker>,
}

struct Entry {
    number: u64,
    question: Question,
    approvers: Vec<Channel>,
    deadline_ns: u64,
    slot: Arc<Slot>,
    _permits: [SharePermit; 2],
}

/// Limits of waiting questions and of their bytes: a share of both for each caller.
struct QuestionLimits {
    questions: SharePool,
    bytes: SharePool,
}

impl QuestionLimits {
    fn new(options: &Options) -> Self {
        let of_bytes = ShareLimits::of_caller(WAITING_BYTES_OF_CALLER_MAX, WAITING_BYTES_MAX);
        Self {
            questions: SharePool::new(of_questions(options)),
            bytes: SharePool::new(of_bytes),
        }
    }

    /// Returns the permits of a question of so many bytes. A longer one than all may have waits alone.
    fn acquire(&self, caller: &Arc<str>, bytes: usize) -> Result<[SharePermit; 2], Full> {
        let full = |shortage| match shortage {
            Shortage::Caller => Full::Caller,
            _ => Full::Queue,
        };
        let question = self.questions.try_acquire(Some(caller), 1).map_err(full)?;
        let bytes = bytes.min(WAITING_BYTES_MAX);
        let bytes = self.bytes.try_acquire(Some(caller), bytes).map_err(full)?;
        Ok([question, bytes])
    }
}

fn of_questions(options: &Options) -> ShareLimits {
    ShareLimits::of_caller(options.waiting_per_caller_max, options.pending_max)
}

impl Approvals {
    pub(crate) fn new(options: Options, clock: Arc<dyn Clock>, salt: u64) -> Self {
        Self {
            clock,
            salt,
            inner: Mutex::new(Inner::new(options)),
        }
    }

    /// The bounds.
    #[must_use]
    pub fn options(&self) -> Options {
        self.lock().options
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a question into the queue.
    pub(crate) fn ask(&self, asking: &Asking<'_>) -> Result<(Id, u64, Arc<Slot>), Full> {
        let now_ns = self.clock.mono_ns();
        let mut inner = self.lock();
        let options = inner.options;
        let permits = inner.admit_caller(&options, asking, now_ns)?;
        let id = self.fresh_id(&mut inner);
        let (timeout_ms, deadline_ns) = match asking.deadline_ns {
            Some(deadline_ns) => (deadline_ns.saturating_sub(now_ns) / 1_000_000, deadline_ns),
            None => {
                let timeout_ns = options.timeout_ms.saturating_mul(1_000_000);
                (options.timeout_ms, now_ns.saturating_add(timeout_ns))
            }
        };
        let slot = Arc::new(Slot::default());
        let number = inner.asked;
        inner.waiting.insert(
            id,
            Entry {
                number,
                question: Question::new(id, asking, timeout_ms, options.remember_ms),
                approvers: asking.approvers.to_vec(),
                deadline_ns,
                slot: Arc::clone(&slot),
                _permits: permits,
            },
        );
        let woken = inner.changed();
        drop(inner);
        woken.into_iter().for_each(Waker::wake);
        Ok((id, deadline_ns, slot))
    }

    /// A name that no waiting question has: the count, scattered (SplitMix64's finisher).
    fn fresh_id(&self, inner: &mut Inner) -> Id {
        loop {
            inner.asked = inner.asked.wrapping_add(1);
            let mut z = self
                .salt
                .wrapping_add(inner.asked.wrapping_mul(0x9e37_79b9_7f4a_7c15));
            z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            let id = Id((z ^ (z >> 31)) >> (64 - ID_BITS));
            if !inner.waiting.contains_key(&id) {
                return id;
            }
        }
    }

    /// All that wait, oldest first.
    #[must_use]
    pub fn list(&self) -> Vec<Question> {
        let now_ns = self.clock.mono_ns();
        let inner = self.lock();
        let mut entries: Vec<&Entry> = inner
            .waiting
            .values()
            .filter(|entry| now_ns < entry.deadline_ns)
            .collect();
        entries.sort_by_key(|entry| entry.number);
        entries
            .into_iter()
            .map(|entry| Question {
                remaining_ms: entry.deadline_ns.saturating_sub(now_ns) / 1_000_000,
                ..entry.question.clone()
            })
            .collect()
    }

    /// A question that waits.
    #[must_use]
    pub fn question(&self, id: Id) -> Option<Question> {
        self.lock()
            .waiting
            .get(&id)
            .map(|entry| entry.question.clone())
    }

    /// How many wait.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.lock().waiting.len()
    }

    /// How many grants hold.
    #[must_use]
    pub fn grants(&self) -> usize {
        let now_ns = self.clock.mono_ns();
        let mut inner = self.lock();
        inner.grants.expire(now_ns);
        inner.grants.len()
    }

    /// What became of a question that no longer waits, where that is still remembered.
    #[must_use]
    pub fn outcome(&self, id: &str) -> Option<Outcome> {
        let inner = self.lock();
        let mut ended = inner.ended.iter().rev();
        ended
            .find(|(ended, _)| ended.to_string() == id)
            .map(|(_, outcome)| outcome.clone())
    }

    /// Answers the question of this name, or of the only name that begins so (at least
    /// [`ID_LETTERS_MIN`] letters). The first answer stands.
    ///
    /// # Errors
    /// Where there is no such question, it has ended, the channel may not answer it, or a yes does not say
    /// that it knows that not all was shown.
    pub fn answer(&self, id: &str, mut answer: Answer) -> Result<Question, Declined> {
        if let Some(reason) = &mut answer.reason {
            *reason = display::text(reason, REASON_CHARS_MAX);
        }
        let now_ns = self.clock.mono_ns();
        let mut inner = self.lock();
        let id = inner.find(id)?;
        let Some(entry) = inner.waiting.get(&id) else {
            return Err(Declined::Unknown);
        };
        if !entry.approvers.contains(&answer.channel) {
            return Err(Declined::Channel(entry.approvers.clone()));
        }
        if entry.question.is_cut && answer.choice != Choice::Deny && !answer.unseen {
            return Err(Declined::NotAllShown);
        }
        // Exact, however long ago the last look at deadlines was.
        let outcome = if now_ns < entry.deadline_ns {
            Outcome::Answered(answer)
        } else {
            Outcome::TimedOut
        };
        let late = outcome == Outcome::TimedOut;
        let mut woken = inner.changed();
        let question = inner.end(id, outcome.clone(), &mut woken);
        drop(inner);
        woken.into_iter().for_each(Waker::wake);
        match question {
            Some(question) if !late => Ok(question),
            _ => Err(Declined::Ended {
                id: id.to_string(),
                outcome,
            }),
        }
    }

    /// Ends every question whose time is over.
    pub fn expire(&self) {
        let now_ns = self.clock.mono_ns();
        self.end_all(&Outcome::TimedOut, |entry| entry.deadline_ns <= now_ns);
    }

    /// Takes a question back; nothing happens where it has ended.
    pub(crate) fn withdraw(&self, id: Id) {
        let mut inner = self.lock();
        let mut woken = inner.changed();
        inner.end(id, Outcome::Withdrawn, &mut woken);
        drop(inner);
        woken.into_iter().for_each(Waker::wake);
    }

    /// Returns the calls that are allowed for a while, the one that ends first first.
    #[must_use]
    pub fn granted_calls(&self) -> Vec<GrantedCall> {
        let now_ns = self.clock.mono_ns();
        self.lock().grants.list(now_ns)
    }

    /// Ends the grants that an answer to the question of this id gave; returns how many there were.
    pub fn forget_grant(&self, id: &str) -> usize {
        self.lock().grants.forget(id)
    }

    /// Ends every grant; returns how many there were. The callers may be others now.
    pub fn forget(&self) -> usize {
        let now_ns = self.clock.mono_ns();
        let grants = &mut self.lock().grants;
        grants.expire(now_ns);
        let number = grants.len();
        grants.clear();
        number
    }

    /// From now on these bounds, and nothing of what has been allowed for a while. Who waits keeps the
    /// time that they were told of.
    pub(crate) fn begin_anew(&self, options: Options) {
        let mut inner = self.lock();
        inner.options = options;
        inner.limits.questions.set_limits(of_questions(&options));
        inner.grants.clear();
    }

    /// Every question is void, so that its call is judged again.
    pub(crate) fn void_all(&self) {
        self.end_all(&Outcome::Void, |_| true);
    }

    fn end_all(&self, outcome: &Outcome, which: impl Fn(&Entry) -> bool) {
        let mut inner = self.lock();
        let ids: Vec<Id> = inner
            .waiting
            .iter()
            .filter(|(_, entry)| which(entry))
            .map(|(id, _)| *id)
            .collect();
        if ids.is_empty() {
            return;
        }
        let mut woken = inner.changed();
        for id in ids {
            inner.end(id, outcome.clone(), &mut woken);
        }
        drop(inner);
        woken.into_iter().for_each(Waker::wake);
    }

    /// Remembers a yes that says so: for a while, or in this session.
    pub(crate) fn grant(
        &self,
        binding: Binding,
        session_id: &str,
        answer: &Answer,
        call: GrantedCall,
    ) {
        let now_ns = self.clock.mono_ns();
        let mut inner = self.lock();
        let remember_ms = inner.options.remember_ms;
        let (binding, held_ms, session_id) = match answer.choice {
            _ if remember_ms == 0 => return,
            Choice::Session if !session_id.is_empty() => (
                binding.in_session(session_id),
                SESSION_MS_MAX,
                Some(session_id.to_owned()),
            ),
            // Without a session, none can end.
            Choice::Allow | Choice::Session => (binding, remember_ms, None),
            Choice::Once | Choice::Deny => return,
        };
        let held_ns = held_ms.saturating_mul(1_000_000);
        let grant = Grant {
            expires_ns: now_ns.saturating_add(held_ns),
            channel: answer.channel,
            approver: answer.approver.clone(),
            call: GrantedCall {
                session_id,
                approver: answer.approver.clone(),
                channel: Some(answer.channel),
                granted_at: format_utc(self.clock.wall_ms()),
                ..call
            },
        };
        inner.grants.add(binding, grant, now_ns);
    }

    /// A yes that was given before and still holds.
    pub(crate) fn granted(&self, binding: &Binding, session_id: &str) -> Option<Grant> {
        let now_ns = self.clock.mono_ns();
        let grants = &mut self.lock().grants;
        let in_session = binding.in_session(session_id);
        grants
            .get(binding, now_ns)
            .or_else(|| grants.get(&in_session, now_ns))
    }

    /// A number that grows with every change of the queue.
    #[must_use]
    pub fn version(&self) -> u64 {
        self.lock().version
    }

    /// Waits until the queue is no longer at `seen`; gives the new version.
    pub fn changed(&self, seen: u64) -> Changed<'_> {
        Changed {
            approvals: self,
            seen,
        }
    }
}

impl Inner {
    fn new(options: Options) -> Self {
        Self {
            limits: QuestionLimits::new(&options),
            options,
            waiting: HashMap::new(),
            ended: VecDeque::new(),
            asked_ns: HashMap::new(),
            grants: Grants::default(),
            asked: 0,
            version: 0,
            watchers: Vec::new(),
        }
    }

    /// Counts one more question of a caller, and returns its permits.
    fn admit_caller(
        &mut self,
        options: &Options,
        asking: &Asking<'_>,
        now_ns: u64,
    ) -> Result<[SharePermit; 2], Full> {
        let caller: Arc<str> = asking.facts.subject_id.as_str().into();
        let permits = self.limits.acquire(&caller, asking.weight)?;
        // A question that takes the place of a void one was counted when it was first asked.
        if asking.deadline_ns.is_none() {
            self.count_asked(caller, options.asked_per_minute_max, now_ns)?;
        }
        Ok(permits)
    }

    /// Counts one more question among those of the last minute.
    fn count_asked(&mut self, caller: Arc<str>, most: usize, now_ns: u64) -> Result<(), Full> {
        let recent = |asked: &u64| now_ns.saturating_sub(*asked) < RATE_WINDOW_NS;
        if self.asked_ns.len() >= ASK_TIMES_MAX && !self.asked_ns.contains_key(&caller) {
            self.asked_ns
                .retain(|_, asked| asked.back().is_some_and(recent));
            if self.asked_ns.len() >= ASK_TIMES_MAX {
                return Err(Full::Queue);
            }
        }
        let asked = self.asked_ns.entry(caller).or_default();
        while asked.front().is_some_and(|asked| !recent(asked)) {
            asked.pop_front();
        }
        if asked.len() >= most {
            return Err(Full::Rate);
        }
        asked.push_back(now_ns);
        Ok(())
    }

    /// The question of this name, or the only one that begins so, ended ones included: whoever means a
    /// call that has just ended must not answer another that happens to begin alike.
    fn find(&self, name: &str) -> Result<Id, Declined> {
        let name = name.to_ascii_lowercase();
        if name.len() < ID_LETTERS_MIN {
            return Err(Declined::TooShort);
        }
        let fits = |id: &Id| id.to_string().starts_with(&name);
        let waiting = self.waiting.keys().filter(|id| fits(id));
        let ended = self.ended.iter().rev().filter(|(id, _)| fits(id));
        let mut fitting: Vec<Id> = waiting.copied().collect();
        match (fitting.as_slice(), ended.clone().next()) {
            ([id], None) => Ok(*id),
            ([id], Some(_)) if id.to_string() == name => Ok(*id),
            ([], None) => Err(Declined::Unknown),
            ([], Some((id, outcome))) => Err(Declined::Ended {
                id: id.to_string(),
                outcome: outcome.clone(),
            }),
            (_, _) => {
                fitting.extend(ended.map(|(id, _)| *id));
                fitting.sort_unstable();
                fitting.dedup();
                Err(Declined::Ambiguous(
                    fitting.iter().map(ToString::to_string).collect(),
                ))
            }
        }
    }

    /// Ends a waiting question: whoever asked is to be woken, outside of the lock.
    fn end(&mut self, id: Id, outcome: Outcome, woken: &mut Vec<Waker>) -> Option<Question> {
        let entry = self.waiting.remove(&id)?;
        if self.ended.len() >= ENDED_MAX {
            self.ended.pop_front();
        }
        self.ended.push_back((id, outcome.clone()));
        woken.extend(entry.slot.settle(outcome));
        Some(entry.question)
    }

    /// The queue is another one: whoever watches it is to be woken, outside of the lock.
    fn changed(&mut self) -> Vec<Waker> {
        self.version = self.version.wrapping_add(1);
        std::mem::take(&mut self.watchers)
    }
}

impl std::fmt::Debug for Approvals {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Approvals")
            .field("options", &self.options())
            .finish_non_exhaustive()
    }
}

/// Waits for a change of the queue.
#[derive(Debug)]
pub struct Changed<'a> {
    approvals: &'a Approvals,
    seen: u64,
}

impl Future for Changed<'_> {
    type Output = u64;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<u64> {
        let mut inner = self.approvals.lock();
        if inner.version != self.seen {
            return Poll::Ready(inner.version);
        }
        let mut crowd = Vec::new();
        if !inner.watchers.iter().any(|w| w.will_wake(cx.waker())) {
            if inner.watchers.len() >= WATCHERS_MAX {
                crowd = std::mem::take(&mut inner.watchers);
            }
            inner.watchers.push(cx.waker().clone());
        }
        drop(inner);
        crowd.into_iter().for_each(Waker::wake);
        Poll::Pending
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_question_and_every_byte_is_shared_and_comes_back() {
        const BYTES: usize = WAITING_BYTES_OF_CALLER_MAX / 4;
        let limits = |pending_max, waiting_per_caller_max| {
            QuestionLimits::new(&Options {
                pending_max,
                waiting_per_caller_max,
                ..Options::default()
            })
        };
        // The other pool is never short.
        let (few, many) = (limits(12, 5), limits(1_000, 1_000));
        for (limits, pool, weight) in [(&few, &few.questions, 1), (&many, &many.bytes, BYTES)] {
            let acquire = |caller: &Arc<str>| {
                Box::pin(std::future::ready(limits.acquire(caller, weight).ok())) as _
            };
            assert_eq!(share::contract::check_user(pool, weight, acquire), Ok(()));
        }
    }
}
