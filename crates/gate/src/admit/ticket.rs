//! A call that waits for a person, and how it goes on.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll};

use crate::approval::{Approvals, Asking, Binding, Choice, GrantedCall, Id, Outcome, Shown, Slot};
use crate::channel::Channel;
use crate::effect::Effect;
use crate::facts::{Fact, FactId, Facts};
use crate::journal::{Micros, Stages};
use crate::limits::Standing;
use crate::paths::PathArgument;
use crate::policy::ANCESTOR_RULE;
use crate::reason::Reason;

use super::call::Call;
use super::decide::{Decided, Hitl};
use super::recorder::Recorder;
use super::refusal::Refusal;
use super::{Admission, Gate, World, micros};

/// A call that waits for a person. Nothing of it has been sent or written. Dropped, it is withdrawn and
/// recorded as such.
#[must_use = "a ticket that is dropped withdraws its call"]
pub struct Ticket<R> {
    held: Option<Box<Held<R>>>,
    id: Id,
    slot: Arc<Slot>,
    deadline_ns: u64,
    approvers: Vec<Channel>,
}

/// What a ticket holds until its call goes on.
struct Held<R> {
    recorder: Arc<Recorder>,
    approvals: Arc<Approvals>,
    world: Arc<World>,
    call: Call<R>,
    decided: Decided,
    stages: Stages,
    binding: Option<Binding>,
    asked_ns: u64,
}

impl<R> Ticket<R> {
    /// The question's name, as every channel shows it.
    #[must_use]
    pub fn id(&self) -> Id {
        self.id
    }

    /// When nobody answering becomes a no, on the gate's monotonic clock.
    #[must_use]
    pub fn deadline_ns(&self) -> u64 {
        self.deadline_ns
    }

    /// Whether a person is asked because a tool was called too often. An answer to that is never
    /// remembered, and no remembered answer replaces it.
    #[must_use]
    pub fn is_escalated(&self) -> bool {
        self.held
            .as_ref()
            .is_some_and(|held| held.decided.escalated)
    }

    /// Who may answer.
    #[must_use]
    pub fn approvers(&self) -> &[Channel] {
        &self.approvers
    }

    /// The request, to look at.
    #[must_use]
    pub fn request(&self) -> Option<&R> {
        self.held.as_ref().map(|held| held.call.request.message())
    }

    /// Whether [`Gate::resume`] has something to go on with.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        self.slot.outcome().is_some()
    }

    /// As [`Ticket::is_settled`]; else the context's waker is woken when it
    /// has.
    pub fn poll_settled(&self, cx: &Context<'_>) -> Poll<()> {
        self.slot.poll(cx)
    }

    /// Waits until [`Gate::resume`] has something to go on with.
    pub async fn settled(&self) {
        poll_fn(|cx| self.slot.poll(cx)).await;
    }
}

impl<R> Held<R> {
    /// Ends the call here, for this reason.
    fn decline(mut self, reason: Reason, hitl: Option<Hitl>) -> Refusal {
        self.decided.reason = Some(reason);
        self.decided.hitl = hitl;
        let (op, reason) = match self.decided.write(
            &self.recorder,
            &self.world,
            &self.call.facts,
            &self.call.origin,
        ) {
            Ok(op) => {
                let Call { facts, origin, .. } = &self.call;
                let by = (&*self.recorder, &*self.world);
                self.decided.observe(op, by, facts, origin);
                (Some(op), reason)
            }
            Err(_) => (None, Reason::Journal),
        };
        let hidden = self.world.hidden(&self.call.facts);
        let refusal = self.decided.refusal(&hidden, reason);
        Refusal { op, ..refusal }
    }

    fn waited(&self) -> Micros {
        let now_ns = self.recorder.clock.mono_ns();
        Micros::from_nanos(now_ns.saturating_sub(self.asked_ns))
    }
}

impl<R> Drop for Ticket<R> {
    fn drop(&mut self) {
        if let Some(held) = self.held.take() {
            held.approvals.withdraw(self.id);
            let hitl = Hitl::without_answer("withdrawn", held.waited());
            // Nobody is left to be told.
            drop(held.decline(Reason::ApprovalWithdrawn, Some(hitl)));
        }
    }
}

impl<R> std::fmt::Debug for Ticket<R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Ticket({})", self.id)
    }
}

/// A verdict of *hitl* on its way to a person.
pub(super) struct ToAsk<R> {
    pub call: Call<R>,
    pub decided: Decided,
    pub world: Arc<World>,
    pub stages: Stages,
    /// Since when the call has waited for people, where it has before.
    pub asked_ns: u64,
    /// Until when, where it has before.
    pub deadline_ns: Option<u64>,
}

impl Gate {
    /// Asks a person, unless a grant answers at once or the queue has no room.
    pub(super) fn ask<R: Shown>(&self, ask: ToAsk<R>) -> Admission<R> {
        let ToAsk {
            call,
            mut decided,
            world,
            stages,
            asked_ns,
            deadline_ns,
        } = ask;
        let binding = binding_of(&call, &decided, &world);
        if let Some(grant) =
            binding.and_then(|b| self.approvals.granted(&b, &call.origin.session_id))
        {
            decided.hitl = Some(Hitl::remembered(grant.channel, grant.approver));
            return self.conclude(call, decided, world, stages, self.mono_ns());
        }
        let rules = world.policy.rules();
        let rule = rules.iter().find(|rule| *rule.id == *decided.final_rule);
        let approvers = rule.map_or(&Channel::DEFAULT[..], |rule| &rule.approvers);
        let asking = Asking {
            facts: &call.facts,
            request_id: &call.origin.request_id,
            session_id: &call.origin.session_id,
            client_id: call.origin.client_id.as_deref(),
            arguments: call.request.message().arguments(),
            rule: &decided.final_rule,
            description: match &*decided.final_rule {
                ANCESTOR_RULE => Some(MAY_MOVE_ANCESTOR),
                _ => rule.and_then(|rule| rule.description.as_deref()),
            },
            side_effects: decided.side_effects,
            approvers,
            labelled_by: labelled_by(&call.facts),
            view: call.request.message().view(),
            seen: call.request.message().seen(),
            binding,
            created_ms: self.recorder.clock.wall_ms(),
            deadline_ns,
            weight: call
                .request
                .message()
                .weight()
                .saturating_add(weight_of(&call.facts)),
        };
        let (id, deadline_ns, slot) = match self.approvals.ask(&asking) {
            Ok(asked) => asked,
            Err(full) => {
                decided.reason = Some(full.into());
                return self.conclude(call, decided, world, stages, self.mono_ns());
            }
        };
        Admission::Pending(Box::new(Ticket {
            id,
            slot,
            deadline_ns,
            approvers: approvers.to_vec(),
            held: Some(Box::new(Held {
                recorder: Arc::clone(&self.recorder),
                approvals: Arc::clone(&self.approvals),
                world,
                call,
                decided,
                stages,
                binding,
                asked_ns,
            })),
        }))
    }

    /// Goes on with a call whose question has ended. `now` are the facts of the same request as they
    /// are now: what was approved must be what is sent, so a link that leads elsewhere by now, or a
    /// tool that is another one, makes the answer void. The decision is in the journal before this
    /// returns. A ticket that is not settled comes back as it is.
    ///
    /// Where the policy has changed meanwhile, the current one judges: a deny wins, an allow passes,
    /// and where a person still has to be asked they are asked anew, until the first question's
    /// deadline.
    pub fn resume<R: Shown>(&self, mut ticket: Box<Ticket<R>>, mut now: Facts) -> Admission<R> {
        let Some(outcome) = ticket.slot.outcome() else {
            return Admission::Pending(ticket);
        };
        let deadline_ns = ticket.deadline_ns;
        let Some(mut held) = ticket.held.take() else {
            return Admission::Pending(ticket);
        };
        if let Some(finding) = &held.call.facts.inspected {
            // It was found in the message as it came, which is not what is kept.
            now.state_finding(finding);
        }
        now.state_caller(&held.call.caller);
        self.state_labels(&self.world(), &mut now, &held.call.caller);
        let waited = held.waited();
        held.stages.approval_us = waited;
        let answer = match outcome {
            Outcome::Answered(answer) if answer.choice == Choice::Deny => {
                let hitl = Hitl::answered("user_denied", &answer, waited);
                let mut refusal = held.decline(Reason::ApprovalDenied, Some(hitl));
                refusal.said = answer.reason;
                return Admission::Refused(refusal);
            }
            Outcome::TimedOut => {
                let hitl = Hitl::without_answer("timeout", waited);
                return Admission::Refused(held.decline(Reason::ApprovalTimeout, Some(hitl)));
            }
            Outcome::Withdrawn => {
                let hitl = Hitl::without_answer("withdrawn", waited);
                return Admission::Refused(held.decline(Reason::ApprovalWithdrawn, Some(hitl)));
            }
            Outcome::Answered(answer) => Some(answer),
            Outcome::Void => None,
        };
        if held.call.caller.is_revoked() {
            return Admission::Refused(held.decline(Reason::CallerRevoked, None));
        }
        if self.is_draining() {
            return Admission::Refused(held.decline(Reason::Draining, None));
        }
        if now.unsettled {
            return Admission::Refused(held.decline(Reason::PlaceUnsettled, None));
        }
        let world = self.world();
        let same = world.judges_like(&held.world) && is_same(&held.call.facts, &now);
        match answer {
            Some(answer) if same => {
                if let Some(binding) = held.binding {
                    let session = &held.call.origin.session_id;
                    let shown = held.call.request.message().arguments();
                    let call = GrantedCall::new(
                        &ticket.id.to_string(),
                        &held.call.facts,
                        shown.as_deref(),
                        &held.decided.final_rule,
                    );
                    self.approvals.grant(binding, session, &answer, call);
                }
                held.decided.hitl = Some(Hitl::answered("user_allowed", &answer, waited));
                self.note_approved(&held.world, &held.call, &held.decided);
                self.conclude(
                    held.call,
                    held.decided,
                    held.world,
                    held.stages,
                    self.mono_ns(),
                )
            }
            _ => {
                *held.call.facts = now;
                self.judge_again(*held, world, deadline_ns)
            }
        }
    }

    /// The answer, if there was one, was to another question: the call is judged as if it had come now,
    /// but may not wait longer than it was told at first.
    fn judge_again<R: Shown>(
        &self,
        held: Held<R>,
        world: Arc<World>,
        deadline_ns: u64,
    ) -> Admission<R> {
        let now_ns = self.recorder.clock.mono_ns();
        let standing = if held.decided.escalated {
            Standing::Breach
        } else {
            Standing::Within
        };
        let decided = self.judge(&world, &held.call.facts, &held.call.origin);
        let mut decided = decided.joined_by(standing);
        decided.policy_us = micros(self.recorder.clock.mono_ns().saturating_sub(now_ns));
        if decided.effect != Effect::Hitl {
            return self.conclude(held.call, decided, world, held.stages, self.mono_ns());
        }
        if deadline_ns <= now_ns {
            let waited = held.stages.approval_us;
            decided.hitl = Some(Hitl::without_answer("timeout", waited));
            decided.reason = Some(Reason::ApprovalTimeout);
            return self.conclude(held.call, decided, world, held.stages, self.mono_ns());
        }
        self.ask(ToAsk {
            call: held.call,
            decided,
            world,
            stages: held.stages,
            asked_ns: held.asked_ns,
            deadline_ns: Some(deadline_ns),
        })
    }

    /// Answers a ticket with no, for a reason of the face's own.
    pub fn decline<R>(&self, mut ticket: Ticket<R>, reason: Reason) -> Refusal {
        let Some(held) = ticket.held.take() else {
            return Decided::refused(reason).refusal(&Facts::default(), reason);
        };
        held.approvals.withdraw(ticket.id);
        let hitl = Hitl::without_answer("withdrawn", held.waited());
        held.decline(reason, Some(hitl))
    }
}

/// Why a person is asked about a call of [`ANCESTOR_RULE`].
const MAY_MOVE_ANCESTOR: &str =
    "the tool may move or replace this directory, which holds Durward's own files";

/// What a yes to a call is remembered by, where its rule lets one be. What a server has looked up for
/// a call is another thing the next time, so a yes to it is not remembered.
fn binding_of<R: Shown>(call: &Call<R>, decided: &Decided, world: &World) -> Option<Binding> {
    if !decided.remember || call.request.message().seen().is_some() {
        return None;
    }
    let shown = call.request.message().arguments();
    let asked = (shown.as_deref(), call.origin.arguments_digest);
    let policy = world.policy.digest();
    Binding::of(&call.facts, asked, policy, &decided.final_rule)
}

/// What the facts of a call take, about, in bytes: those of a long call are its paths.
fn weight_of(facts: &Facts) -> usize {
    const ENTRY_BYTES: usize = 128;
    let of_path = |path: &PathArgument| {
        let places = path.meaning.places.iter();
        let places: usize = places.map(|place| ENTRY_BYTES + place.len()).sum();
        ENTRY_BYTES + path.text.len() + places
    };
    let paths = facts.paths.known().map(Vec::as_slice).unwrap_or_default();
    let reach = &facts.reach;
    let lists = [&reach.places, &reach.words, &reach.relative, &reach.globs];
    let reached = lists
        .into_iter()
        .flatten()
        .map(|text| ENTRY_BYTES + text.len());
    let listed: usize = paths.iter().map(of_path).chain(reached).sum();
    listed + reach.urls.bytes()
}

/// The calls that gave the caller's session its labels.
fn labelled_by(facts: &Facts) -> Vec<String> {
    let told = facts.get(FactId::LabelledBy);
    let told = told.known().into_iter();
    told.flat_map(|value| value.texts().map(str::to_owned).collect::<Vec<_>>())
        .collect()
}

/// Whether a call still means what was asked about. A definition that has become known meanwhile is no
/// other one.
fn is_same(before: &Facts, now: &Facts) -> bool {
    let redefined = match (&before.definition, &now.definition) {
        (Fact::Known(before), Fact::Known(now)) => before != now,
        _ => false,
    };
    let now = Facts {
        definition: before.definition.clone(),
        // What was unsettled when the person was asked is read anew by now.
        unsettled: before.unsettled,
        // So is what a definition says of itself, where none was known.
        evidence: match &before.definition {
            Fact::Known(_) => now.evidence,
            Fact::Unknown | Fact::Absent => before.evidence,
        },
        ..now.clone()
    };
    !redefined && *before == now
}
