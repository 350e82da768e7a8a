//! The order in which a call is judged, in one place: identity → limits → policy → approval →
//! journal. Whoever wants to know what happens to a call reads this file.

mod answer;
mod beside;
mod by_tool;
mod call;
mod conclude;
mod control;
mod credentials;
mod decide;
mod early_refusals;
mod flight;
mod hidden;
mod labelled;
mod limited;
mod narrow;
mod observer;
mod pass;
mod path_facts;
mod recorder;
mod recovered;
mod refusal;
mod tally;
mod ticket;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arc_swap::ArcSwap;

use crate::approval::{self, Approvals, Shown};
use crate::clock::Clock;
use crate::effect::Effect;
use crate::facts::Facts;
use crate::flow::Flow;
use crate::inspect::{Finding, Inspected, Inspection};
use crate::journal::{Digest, Journal, JournalError, Record, Stages};
use crate::limits::{Counters, Limits};
use crate::peer::PeerId;
use crate::policy::Policy;
use crate::reason::Reason;
use state::rate::{MemoryRates, RateStore};

pub use answer::AnswerVerdict;
pub use by_tool::{OTHER_TOOL, SERVERS_MAX, TOOLS_MAX, ToolCount};
pub use call::{Call, Origin};
pub use control::ControlKind;
pub use credentials::is_secret;
pub use early_refusals::{TALLIES_MAX, TALLY_MS};
pub use flight::{ATTEMPTS_MAX, Attempt, Ended, InFlight, Outcome};
pub use observer::{End, Observed, Observer, REFUSED};
pub use pass::{Answer, Control, Pass, Permit, Spent};
pub use recovered::Unfinished;
pub use refusal::Refusal;
pub use tally::{TIME_CLASSES_US, Tallied};
pub use ticket::Ticket;

use decide::Decided;
use early_refusals::TurnedAway;
use limited::TurnAway;
use recorder::Recorder;
use ticket::ToAsk;

/// What becomes of a call.
#[must_use = "an admission that is dropped forgets its call"]
#[derive(Debug)]
pub enum Admission<R> {
    /// It may be sent, once.
    Permit(Permit<R>),
    /// A person has to say yes.
    Pending(Box<Ticket<R>>),
    /// It may not.
    Refused(Refusal),
}

/// Everything a call is judged by, captured at the edge.
#[derive(Debug)]
pub struct World {
    /// The rules.
    pub policy: Policy,
    /// Counts loads of the policy: `v1`, `v2`…
    pub version: String,
    /// How much a caller may. What was counted under other limits stays counted.
    pub limits: Limits,
    /// How long people are asked, and how many questions there may be.
    pub approval: approval::Options,
    /// What is looked for in what is sent and answered.
    pub inspect: Arc<Inspection>,
    /// Which results label the sessions of those who received them.
    pub flow: Arc<Flow>,
}

impl World {
    /// Whether a decision under the one is a decision under the other. The same text loaded again is not:
    /// links that its patterns lead through may lead elsewhere by now.
    fn judges_like(&self, other: &Self) -> bool {
        self.version == other.version && self.policy.digest() == other.policy.digest()
    }

    /// Whether a listing shows this to the caller: the same function that judges calls.
    #[must_use]
    pub fn may_be_listed(&self, facts: &Facts) -> bool {
        facts.quarantine.is_none() && self.policy.judge(facts).may_be_listed()
    }
}

/// The door.
pub struct Gate {
    world: ArcSwap<World>,
    recorder: Arc<Recorder>,
    approvals: Arc<Approvals>,
    draining: AtomicBool,
    turned_away: TurnedAway,
}

impl Gate {
    /// A gate that judges by `world` and writes to `journal`. `random` distinguishes this instance.
    #[must_use]
    pub fn new(world: World, journal: Arc<Journal>, clock: Arc<dyn Clock>, random: u64) -> Self {
        Self::with_rate_store(world, journal, clock, random, Arc::<MemoryRates>::default())
    }

    /// As [`Self::new`], with a store of rate limits that replicas can share.
    #[must_use]
    pub fn with_rate_store(
        world: World,
        journal: Arc<Journal>,
        clock: Arc<dyn Clock>,
        random: u64,
        rates: Arc<dyn RateStore>,
    ) -> Self {
        let approvals = Approvals::new(world.approval, Arc::clone(&clock), random);
        let counters = Arc::new(Counters::new(rates));
        Self {
            world: ArcSwap::from_pointee(world),
            recorder: Arc::new(Recorder::new(journal, clock, counters, random)),
            approvals: Arc::new(approvals),
            draining: AtomicBool::new(false),
            turned_away: TurnedAway::default(),
        }
    }

    /// The questions that wait for a person, and their answers.
    #[must_use]
    pub fn approvals(&self) -> &Approvals {
        &self.approvals
    }

    /// What calls are judged by from now on.
    #[must_use]
    pub fn world(&self) -> Arc<World> {
        self.world.load_full()
    }

    /// Judges by another world from now on. What was allowed for a while is forgotten, and where the
    /// policy is another version, who waits for approval is judged again.
    pub fn reload(&self, world: World) {
        let now = Arc::new(world);
        let before = self.world.swap(Arc::clone(&now));
        self.approvals.begin_anew(now.approval);
        if !now.judges_like(&before) {
            self.approvals.void_all();
        }
    }

    /// Judges a call. The decision is in the journal before this returns; a permit is the only way
    /// to send the call.
    pub async fn admit<R: Shown>(&self, mut call: Call<R>) -> Admission<R> {
        let clock = &self.recorder.clock;
        let arrived = clock.mono_ns();
        let world = self.world();
        let mut stages = Stages {
            edge_us: micros(arrived.saturating_sub(call.origin.received_ns)),
            identity_us: micros(call.caller.identity_ns),
            ..Stages::default()
        };
        // identity: an authenticator has found the caller; nobody else says whose call it is.
        call.facts.state_caller(&call.caller);
        if let Some(finding) = call.request.finding() {
            call.facts.state_finding(finding);
        }
        self.state_labels(&world, &mut call.facts, &call.caller);
        let counted = self.counted(&call.facts);
        let standing = match call.caller.is_revoked() {
            true => Err(TurnAway::revoked()),
            false => {
                self.within_limits(&world, &call.facts, counted, &call.origin, arrived)
                    .await
            }
        };
        let standing = match standing {
            Ok(standing) => standing,
            Err(stop) => {
                return Admission::Refused(self.turn_away(&world, &call.facts, &call.origin, stop));
            }
        };
        let measured = clock.mono_ns();
        stages.limits_us = micros(measured.saturating_sub(arrived));
        let decided = self.judge(&world, &call.facts, &call.origin);
        let mut decided = decided.joined_by(standing);
        let judged = clock.mono_ns();
        stages.policy_us = micros(judged.saturating_sub(measured));
        decided.policy_us = stages.policy_us;
        decided.counted = Some(counted);
        if decided.effect == Effect::Hitl {
            if self.is_draining() {
                // It came before, but nobody is asked any more.
                decided = Decided::refused(Reason::Draining);
                return self.conclude(call, decided, world, stages, judged);
            }
            call.request.message_mut().look().await;
            return self.ask(ToAsk {
                call,
                decided,
                world,
                stages,
                asked_ns: judged,
                deadline_ns: None,
            });
        }
        let concluding = self.begin_to_conclude(call, decided, world, stages, judged);
        if self.recorder.is_busy() {
            concluding.finish_later().await
        } else {
            concluding.finish()
        }
    }

    /// What the rules say, where nothing forbids asking them.
    fn judge(&self, world: &World, facts: &Facts, origin: &Origin) -> Decided {
        if self.is_draining() && !origin.waited {
            Decided::refused(Reason::Draining)
        } else if let Some(quarantine) = facts.quarantine {
            Decided::refused(quarantine.reason())
        } else {
            Decided::by_policy(world, facts).joined_by_finding(facts)
        }
    }

    /// As [`World::may_be_listed`], by what calls are judged by now.
    #[must_use]
    pub fn may_be_listed(&self, facts: &Facts) -> bool {
        self.world.load().may_be_listed(facts)
    }

    /// Whether calls are still judged by this world.
    #[must_use]
    pub fn is_judging_by(&self, world: &Arc<World>) -> bool {
        Arc::ptr_eq(&self.world.load(), world)
    }

    /// A pass for the protocol's own traffic, to this peer.
    pub fn control<R>(&self, kind: ControlKind, to: &PeerId, request: R) -> Control<R> {
        self.recorder.count(kind);
        Control {
            request,
            to: to.clone(),
        }
    }

    /// How often each kind of the protocol's own traffic has passed.
    #[must_use]
    pub fn control_counts(&self) -> Vec<(&'static str, u64)> {
        self.recorder.counts()
    }

    /// What was decided and how it ended so far, counted.
    #[must_use]
    pub fn tallied(&self) -> Tallied {
        self.recorder.tally.read()
    }

    /// From now on calls are counted by tool, for [`Gate::tool_counts`].
    pub fn count_tools(&self) {
        self.recorder.by_tool.get_or_init(Default::default);
    }

    /// How often each tool was called since [`Gate::count_tools`], by how that ended.
    #[must_use]
    pub fn tool_counts(&self) -> Vec<ToolCount> {
        let by_tool = self.recorder.by_tool.get();
        by_tool.map(by_tool::ByTool::read).unwrap_or_default()
    }

    /// From now on `observer` is told of each call that is over. There is one for good: whether this is it.
    pub fn set_observer(&self, observer: Arc<dyn Observer>) -> bool {
        self.recorder.observer.set(observer).is_ok()
    }

    /// Keyed digest of bytes that must be comparable but not readable.
    #[must_use]
    pub fn digest(&self, bytes: &[u8]) -> Digest {
        self.recorder.journal.digest(bytes)
    }

    /// Writes a record that belongs to no call.
    ///
    /// # Errors
    /// What the journal says; the gate then refuses every further call.
    pub fn record(&self, record: &Record<'_>) -> Result<(), JournalError> {
        self.recorder.write(record).map(drop)
    }

    /// Gives the journal its time (counts of refusals, checkpoints, and a look at whether its file is
    /// still there) and ends questions whose time is over. To be called a few times a second.
    ///
    /// # Errors
    /// What the journal says; the gate then refuses every further call.
    pub fn tick(&self) -> Result<(), JournalError> {
        self.approvals.expire();
        self.write_tallies(self.turned_away.over(self.mono_ns()))?;
        self.recorder.tick()
    }

    /// From now on `hear` is called when a record is written and nobody has ticked since, as [`Journal::on_append`] says.
    pub fn on_record(&self, hear: impl Fn() + Send + Sync + 'static) {
        self.recorder.journal.on_append(hear);
    }

    /// Whether nothing waits for the next [`Gate::tick`]: no question to a person, and no count of refusals.
    #[must_use]
    pub fn has_nothing_due(&self) -> bool {
        self.approvals.waiting() == 0 && self.turned_away.is_empty()
    }

    /// Whether the journal has failed: nothing passes any more.
    #[must_use]
    pub fn has_failed(&self) -> bool {
        self.recorder.failed()
    }

    /// What is looked for in what is sent and answered; none where that is nothing.
    #[must_use]
    pub fn inspection(&self) -> Option<Arc<Inspection>> {
        let world = self.world.load();
        (!world.inspect.is_off()).then(|| Arc::clone(&world.inspect))
    }

    /// Inspects a message before it is judged. `look` finds and masks by the rules in force and returns what is left of the
    /// message and the finding; it is not called if there are no rules.
    ///
    /// # Errors
    /// The error of `look`: what is left is not a message.
    pub fn inspect<M, E>(
        &self,
        message: M,
        look: impl FnOnce(&Inspection, M) -> Result<(M, Option<Finding>), E>,
    ) -> Result<Inspected<M>, E> {
        let Some(inspection) = self.inspection() else {
            return Ok(Inspected::new(message, None));
        };
        let (message, finding) = look(&inspection, message)?;
        Ok(Inspected::new(message, finding))
    }

    /// From now on every call is refused as *draining*, those that wait for a person included.
    pub fn drain(&self) {
        self.draining.store(true, Ordering::Release);
        self.approvals.void_all();
    }

    /// Whether every call that comes now is refused as *draining*.
    #[must_use]
    pub fn is_draining(&self) -> bool {
        self.draining.load(Ordering::Acquire)
    }

    /// The gate's wall clock, in milliseconds since 1970.
    #[must_use]
    pub fn wall_ms(&self) -> i64 {
        self.recorder.clock.wall_ms()
    }

    /// The gate's monotonic clock, for stamping frames at the edge.
    #[must_use]
    pub fn mono_ns(&self) -> u64 {
        self.recorder.clock.mono_ns()
    }

    /// The same clock for what is reckoned in seconds: it may be a few milliseconds late, and costs a tenth.
    #[must_use]
    pub fn about_ns(&self) -> u64 {
        self.recorder.clock.about_ns()
    }
}

fn micros(nanos: u64) -> crate::journal::Micros {
    crate::journal::Micros::from_nanos(nanos)
}

impl std::fmt::Debug for Gate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Gate")
            .field("world", &self.world())
            .finish_non_exhaustive()
    }
}
