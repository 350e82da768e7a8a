//! Calls that wait for a person: kept beside the open ones, woken when their question has ended, asked
//! about at the client where a rule says so.

use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Wake, Waker};

use gate::approval::Channel;
use gate::facts::Facts;
use gate::{Admission, Reason, Refusal, Ticket};
use tokio::sync::Notify;
use wire::id::IdKey;
use wire::jsonrpc::{Envelope, Kind, member};
use wire::{Bounds, scan_request};

use crate::frames::{self, UpstreamFault};
use crate::upstream::{Frame, taken};
use crate::{ask_client, describe, request};

use super::open::{Open, OpenKind};
use super::{Flow, Session};

/// How often a client that asked for progress hears that its call still waits, in milliseconds.
const PROGRESS_MS: u64 = 10_000;

/// Who made the request that waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Side {
    /// The client: a call of a tool and the like.
    Client,
    /// The server: sampling and the like.
    Server,
    /// A result of the server, by its number: one of its `inputRequests`.
    Input(u64),
}

/// A waiting request: each side counts its own ids.
pub(super) type Key = (Side, IdKey);

/// A request that waits for a person.
#[derive(Debug)]
pub(super) struct Asking {
    /// The id as its sender spelled it.
    pub id: String,
    /// The id that the server will know, where that is another.
    sent_id: Option<String>,
    /// The batch that the answer belongs to.
    pub batch: Option<u64>,
    ticket: Box<Ticket<Frame>>,
    progress: Option<Progress>,
    /// Our own question to the client, while it is open.
    pub elicitation: Option<IdKey>,
}

impl Asking {
    /// A request whose sender has been told nothing yet.
    pub(super) fn of(ticket: Box<Ticket<Frame>>, open: Open) -> Self {
        Self {
            id: open.id,
            sent_id: open.sent_id,
            batch: open.batch,
            ticket,
            progress: None,
            elicitation: None,
        }
    }
}

#[derive(Debug)]
struct Progress {
    /// The client's token, as spelled.
    token: String,
    told: u32,
    next_ns: u64,
}

/// Rung by the gate when a question has ended; the session's loop listens.
#[derive(Debug, Default)]
pub(super) struct Bell {
    rung: Mutex<Vec<Key>>,
    notify: Notify,
}

impl Bell {
    fn ring(&self, key: Key) {
        self.rung
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(key);
        self.notify.notify_one();
    }

    /// Waits until it is rung.
    pub async fn heard(&self) {
        self.notify.notified().await;
    }

    fn take(&self) -> Vec<Key> {
        std::mem::take(&mut *self.rung.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The rope of one question.
struct Rope {
    bell: Arc<Bell>,
    key: Key,
}

impl Wake for Rope {
    fn wake(self: Arc<Self>) {
        self.bell.ring(self.key.clone());
    }
}

impl Session {
    /// Sends, keeps or refuses a request, as the gate says.
    pub(super) fn admitted(
        &mut self,
        admission: Admission<Frame>,
        (side, key): Key,
        open: Open,
    ) -> Flow {
        if let Side::Input(_) = side {
            return self.input_admitted(admission, (side, key), open.id);
        }
        let refusal = match admission {
            Admission::Permit(permit) if side == Side::Server => {
                let Some((frame, flight)) = taken(permit, &self.client) else {
                    return Flow::Go;
                };
                self.table.server_requests.insert(key, flight);
                return self.tell_client(&frame.0);
            }
            Admission::Permit(permit) => {
                return match self.upstream.send_pass(permit) {
                    Ok(flight) => {
                        let kind = OpenKind::Call(flight);
                        self.table.insert(key, Open { kind, ..open });
                        Flow::Go
                    }
                    Err(_) => {
                        let answer = frames::upstream_fault(&open.id, UpstreamFault::Died);
                        self.deliver(open.batch, answer).or(Flow::UpstreamGone)
                    }
                };
            }
            Admission::Pending(ticket) => return self.hold((side, key), ticket, open),
            Admission::Refused(refusal) => refusal,
        };
        self.table.forget_other_id(&key);
        self.answer_refused(side, open.batch, &open.id, &refusal)
    }

    /// Tells whoever made the request that it is refused.
    fn answer_refused(
        &mut self,
        side: Side,
        batch: Option<u64>,
        id: &str,
        refusal: &Refusal,
    ) -> Flow {
        match side {
            Side::Client => self.deliver(batch, frames::refused(id, refusal)),
            Side::Server => self.answer_server(frames::refused(id, refusal)),
            Side::Input(number) => self.input_refused(number, refusal),
        }
    }

    /// Keeps a request until its question has ended, or its Modern client comes back with the answer.
    fn hold(&mut self, key: Key, mut ticket: Box<Ticket<Frame>>, open: Open) -> Flow {
        if key.0 == Side::Client {
            ticket = match self.park(ticket, &open.id) {
                Ok(answer) => return self.deliver(open.batch, answer),
                Err(ticket) => ticket,
            };
        }
        self.wait(key, ticket, open)
    }

    /// Keeps a request until its question has ended.
    pub(super) fn wait(&mut self, key: Key, ticket: Box<Ticket<Frame>>, open: Open) -> Flow {
        let by_client = ticket.approvers().contains(&Channel::Client) && self.client_elicits;
        let nobody = !by_client && ticket.approvers().iter().all(|c| *c == Channel::Client);
        if nobody {
            let refusal = self.gate.decline(*ticket, Reason::ApprovalUnreachable);
            return self.answer_refused(key.0, open.batch, &open.id, &refusal);
        }
        let rope = Waker::from(Arc::new(Rope {
            bell: Arc::clone(&self.bell),
            key: key.clone(),
        }));
        if ticket.poll_settled(&Context::from_waker(&rope)).is_ready() {
            rope.wake();
        }
        let token = ticket.request().and_then(progress_token);
        let progress = token.map(|token| Progress {
            token,
            told: 0,
            next_ns: self.gate.mono_ns().saturating_add(PROGRESS_MS * 1_000_000),
        });
        let (mut elicitation, mut flow) = (None, Flow::Go);
        if by_client && let Some(question) = self.gate.approvals().question(ticket.id()) {
            let (id, frame) = ask_client::question(&question);
            self.table.elicitations.insert(id.clone(), key.clone());
            elicitation = Some(id);
            flow = self.tell_client(&frame);
        }
        let asking = Asking {
            progress,
            elicitation,
            ..Asking::of(ticket, open)
        };
        self.table.asking.insert(key, asking);
        flow
    }

    /// Goes on with every request whose question has ended.
    pub(super) fn on_bell(&mut self) -> Flow {
        let mut flow = Flow::Go;
        for key in self.bell.take() {
            // An id that was used again may hear the bell of its first call.
            let settled = |asking: &Asking| asking.ticket.is_settled();
            if self.table.asking.get(&key).is_some_and(settled)
                && let Some(asking) = self.table.asking.remove(&key)
            {
                flow = flow.or(self.go_on(key, asking));
            }
        }
        flow
    }

    pub(super) fn go_on(&mut self, key: Key, asking: Asking) -> Flow {
        let flow = self.close_elicitation(asking.elicitation.clone());
        let now = match key.0 {
            // It has a method, but is no message of its own; the method stands for its id.
            Side::Input(_) => Some(describe::server_request(&asking.id, &self.context())),
            side => asking
                .ticket
                .request()
                .and_then(|frame| self.describe(side, frame)),
        };
        let Some(mut now) = now else {
            // It was described before, so it can be again.
            return self.refuse(key.0, asking, Reason::Undecidable).or(flow);
        };
        if let (Some(_), Some(tool)) = (now.quarantine, now.tool_name.known()) {
            now.quarantine = self.definitions.quarantine_now(tool);
        }
        let tool = now.tool_name.known();
        let own_ms = tool.and_then(|tool| self.options.tool_timeouts_ms.get(tool));
        let timeout_ms = *own_ms.unwrap_or(&self.options.call_timeout_ms);
        let open = Open {
            id: asking.id,
            sent_id: asking.sent_id,
            kind: OpenKind::Plain,
            batch: asking.batch,
            // The server's time begins now.
            deadline_ns: self
                .gate
                .mono_ns()
                .saturating_add(timeout_ms.saturating_mul(1_000_000)),
        };
        let admission = self.gate.resume(asking.ticket, now);
        flow.or(self.admitted(admission, key, open))
    }

    /// The facts of a waiting request as they are now.
    fn describe(&self, side: Side, frame: &Frame) -> Option<Facts> {
        let scan = scan_request(&frame.0, &Bounds::default()).ok()?;
        let envelope = Envelope::of(&scan).ok()?;
        let Kind::Request { method, .. } = &envelope.kind else {
            return None;
        };
        if side == Side::Server {
            return Some(describe::server_request(method, &self.context()));
        }
        request::described(method, &scan, &self.context())
    }

    fn refuse(&mut self, side: Side, asking: Asking, reason: Reason) -> Flow {
        let refusal = self.gate.decline(*asking.ticket, reason);
        self.answer_refused(side, asking.batch, &asking.id, &refusal)
    }

    /// Takes back a request that its sender no longer wants; `false` where none waits under this id.
    pub(super) fn withdraw(&mut self, key: &Key) -> bool {
        let Some(asking) = self.table.asking.remove(key) else {
            return false;
        };
        self.table.forget_other_id(&key.1);
        // Whether the client still reads shows with the next frame that it has to get.
        let _ = self.close_elicitation(asking.elicitation.clone());
        if let Some(number) = asking.batch {
            let _ = self.batch_step(number, None);
        }
        // Dropped, the ticket records that the call was withdrawn.
        drop(asking);
        true
    }

    /// Refuses everything that waits.
    pub(super) fn refuse_waiting(&mut self, reason: Reason) -> Flow {
        let mut flow = Flow::Go;
        self.give_up_parked(reason);
        let waiting: Vec<(Key, Asking)> = self.table.asking.drain().collect();
        for ((side, _), asking) in waiting {
            flow = flow.or(self.close_elicitation(asking.elicitation.clone()));
            flow = flow.or(self.refuse(side, asking, reason));
        }
        flow
    }

    /// Tells clients that asked for progress that their calls still wait.
    pub(super) fn tell_progress(&mut self) -> Flow {
        if self.table.asking.is_empty() || self.client_writer.is_congested() {
            return Flow::Go;
        }
        let now_ns = self.gate.mono_ns();
        let mut due = Vec::new();
        for asking in self.table.asking.values_mut() {
            if let Some(progress) = &mut asking.progress
                && progress.next_ns <= now_ns
            {
                progress.told += 1;
                progress.next_ns = now_ns.saturating_add(PROGRESS_MS * 1_000_000);
                let left_ns = asking.ticket.deadline_ns().saturating_sub(now_ns);
                due.push(frames::waiting(
                    &progress.token,
                    progress.told,
                    left_ns / 1_000_000_000,
                ));
            }
        }
        let mut flow = Flow::Go;
        for frame in due {
            flow = flow.or(self.tell_client(&frame));
        }
        flow
    }

    /// The client need not ask its person any more.
    fn close_elicitation(&mut self, elicitation: Option<IdKey>) -> Flow {
        match elicitation {
            Some(id) if self.table.elicitations.remove(&id).is_some() => {
                self.tell_client(&ask_client::cancelled(&id))
            }
            _ => Flow::Go,
        }
    }

    /// The client's answer to a question of ours.
    pub(super) fn on_elicited(&mut self, id: &IdKey, key: &Key, frame: &[u8]) -> Flow {
        self.table.elicitations.remove(id);
        let Some(asking) = self.table.asking.get_mut(key) else {
            return Flow::Go;
        };
        asking.elicitation = None;
        let only_client = asking
            .ticket
            .approvers()
            .iter()
            .all(|c| *c == Channel::Client);
        let name = asking.ticket.id().to_string();
        let subject = &self.options.caller.subject;
        match ask_client::answer(frame, subject, only_client) {
            ask_client::Said::Answer(answer) => {
                // Where another channel was faster, its answer stands.
                drop(self.gate.approvals().answer(&name, answer));
                Flow::Go
            }
            ask_client::Said::Nothing if only_client => match self.table.asking.remove(key) {
                Some(asking) => self.refuse(key.0, asking, Reason::ApprovalUnreachable),
                None => Flow::Go,
            },
            ask_client::Said::Nothing => {
                self.note(
                    "elicitation_unanswered",
                    "the client did not answer a question about approval; other channels still may",
                );
                Flow::Go
            }
        }
    }
}

/// The token under which the client wants to hear of progress, as spelled.
fn progress_token(frame: &Frame) -> Option<String> {
    let scan = scan_request(&frame.0, &Bounds::default()).ok()?;
    let meta: serde_json::Value = serde_json::from_str(member(&scan.params, "_meta")?).ok()?;
    let token = meta.get("progressToken")?;
    (token.is_string() || token.is_number()).then(|| token.to_string())
}
