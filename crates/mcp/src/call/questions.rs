//! What a server asks of its client: judged like a call in the other direction, and passed on. One that
//! waits for a person waits beside its call, which goes on meanwhile.

use std::sync::Arc;

use gate::inspect::{Inspected, Way};
use gate::journal::Status;
use gate::{Admission, Call, InFlight, Outcome, Reason, Refusal, Ticket};
use serde_json::value::RawValue;
use tokio::sync::mpsc;
use toolkit::reasons::mcp_error;
use wire::jsonrpc::{member, string};
use wire::{Bounds, Era, fold, scan_reply, scan_request};

use super::client::{Asker, Client, Work};
use super::input_required::only_client;
use super::read::After;
use super::run::{Run, Said, Stage};
use super::under_way::{AskGuard, Stop, Why};
use super::wait::{Asking, End, Next};
use crate::describe::{self, ELICIT};
use crate::message::frames::{self, UpstreamFault};
use crate::message::method::{self, Class};
use crate::message::refusal;
use crate::message::reply::Reply;
use crate::message::splice::Marks;
use crate::notes::Note;
use crate::upstream::{Frame, Link, taken};

/// Most questions that wait to be written on a call's stream; further ones wait for these.
const LATE_MAX: usize = 16;
/// Most requests of its client that a Modern server may put into one result.
pub const INPUTS_MAX: usize = 64;

/// A request of a server to its client.
pub(crate) struct Question {
    pub id: String,
    pub method: String,
    pub frame: Vec<u8>,
}

/// Where what comes late belongs: on the call's stream while that is there, else to the client.
pub(super) struct Late {
    sender: mpsc::Sender<Vec<u8>>,
    receiver: mpsc::Receiver<Vec<u8>>,
    client: Arc<dyn Client>,
}

impl Late {
    pub fn new(client: &Arc<dyn Client>) -> Self {
        let (sender, receiver) = mpsc::channel(LATE_MAX);
        Self {
            sender,
            receiver,
            client: Arc::clone(client),
        }
    }

    /// For what comes late.
    pub fn sender(&self) -> mpsc::Sender<Vec<u8>> {
        self.sender.clone()
    }

    /// What has come late.
    pub async fn next(&mut self) -> Vec<u8> {
        match self.receiver.recv().await {
            Some(frame) => frame,
            // There is a sender of our own.
            None => std::future::pending().await,
        }
    }
}

impl Drop for Late {
    fn drop(&mut self) {
        self.receiver.close();
        while let Ok(frame) = self.receiver.try_recv() {
            self.client.post(frame);
        }
    }
}

impl Asker {
    /// Judges a request of the server to this client; gives the frame for the client where it may
    /// pass at once. Where a person is asked first it comes `late`, or to the client by itself; where
    /// it may not pass, the server is answered.
    pub async fn pass_on(
        &self,
        link: &Arc<Link>,
        question: Question,
        late: Option<mpsc::Sender<Vec<u8>>>,
    ) -> Option<Vec<u8>> {
        let Question { id, method, frame } = question;
        let under_way = self.under_way.as_ref().filter(|_| !self.is_modern());
        let Some(under_way) = under_way else {
            let message = "this revision has no requests of servers; return input_required";
            link.refuse(frames::error(&id, -32601, message, None));
            return None;
        };
        let Some(place) = under_way.ask(&id, link) else {
            let message = "too many requests under way, or this id is in use";
            link.refuse(frames::error(&id, -32600, message, None));
            return None;
        };
        if let Class::Control(kind) = method::of_server_request(&method) {
            let frame = self.passed(kind, frame)?;
            place.ping();
            return Some(frame);
        }
        let frame = self.inspect_question(frame);
        let checked = self.checked_beside(Way::Result, &method, frame).await;
        match self.admit(&id, &method, checked.map(Frame::from)).await {
            Admission::Pending(ticket) => {
                let waiting = Waiting {
                    asker: self.clone(),
                    link: Arc::clone(link),
                    id,
                    method,
                    place,
                    late,
                };
                self.client.beside(Box::pin(waiting.go_on(ticket)));
                None
            }
            decided => self.passed_on(link, &id, place, decided),
        }
    }

    async fn admit(&self, id: &str, method: &str, request: Inspected<Frame>) -> Admission<Frame> {
        let gate = &self.server.gate;
        let asked = &request.message().bytes;
        let facts = self.with_context(|context| describe::server_request(method, asked, context));
        let origin = self.origin(id, Some(gate.digest(asked)), gate.mono_ns(), (None, None));
        let call = Call {
            caller: self.caller.clone(),
            facts: Box::new(facts),
            origin: Box::new(origin),
            targets: self.peer().into(),
            request,
        };
        gate.admit(call).await
    }

    /// Goes on with a request whose question has ended.
    fn asked_again(&self, method: &str, ticket: Box<Ticket<Frame>>) -> Admission<Frame> {
        let asked = ticket.request().map_or(&[][..], |asked| &asked.bytes);
        let now = self.with_context(|context| describe::server_request(method, asked, context));
        self.server.gate.resume(ticket, now)
    }

    /// Waits for a person until there is a decision; `judge_again` judges what the person has answered about. Returns
    /// `None` if `stop` withdraws the question.
    pub(super) async fn wait_for_person(
        &self,
        ticket: Box<Ticket<Frame>>,
        stop: &Arc<Stop>,
        late: Option<&mpsc::Sender<Vec<u8>>>,
        judge_again: impl Fn(Box<Ticket<Frame>>) -> Admission<Frame>,
    ) -> Option<Admission<Frame>> {
        let mut ticket = ticket;
        loop {
            let mut asking = match Asking::of(self, ticket, Marks::default(), None) {
                Ok(asking) => asking.stopped_by(stop),
                Err(refusal) => return Some(Admission::Refused(refusal)),
            };
            let end = loop {
                match asking.next().await {
                    Next::Show(frame) => tell(&*self.client, late, frame).await,
                    Next::Over(end) => break end,
                }
            };
            let unanswered = asking.into_ticket();
            match end {
                // Dropped, the ticket records that the request was withdrawn.
                End::Over(Why::Withdrawn) => return None,
                End::Over(Why::Refused(reason)) => {
                    let refusal = self.server.gate.decline(*unanswered, reason);
                    return Some(Admission::Refused(refusal));
                }
                End::Settled => match judge_again(unanswered) {
                    // The rules have changed, and they ask as well.
                    Admission::Pending(again) => ticket = again,
                    decided => return Some(decided),
                },
            }
        }
    }

    /// The frame for the client of what was decided, or the server's answer.
    fn passed_on(
        &self,
        link: &Arc<Link>,
        id: &str,
        place: AskGuard,
        decided: Admission<Frame>,
    ) -> Option<Vec<u8>> {
        let refusal = match decided {
            Admission::Permit(permit) => {
                let (frame, flight) = taken(permit, &self.peer())?;
                place.judged(flight);
                return Some(frame.bytes);
            }
            Admission::Pending(ticket) => self.undecidable(*ticket),
            Admission::Refused(refusal) => refusal,
        };
        drop(place);
        link.refuse(refusal::as_error(id, &refusal));
        None
    }
}

/// A request of a server that waits for a person. There are as many as a session may have open.
struct Waiting {
    asker: Asker,
    link: Arc<Link>,
    id: String,
    method: String,
    place: AskGuard,
    late: Option<mpsc::Sender<Vec<u8>>>,
}

impl Waiting {
    async fn go_on(self, ticket: Box<Ticket<Frame>>) {
        let Self {
            asker,
            link,
            id,
            method,
            place,
            late,
        } = self;
        let again = |ticket| asker.asked_again(&method, ticket);
        let decided = asker.wait_for_person(ticket, place.stop(), late.as_ref(), again);
        let Some(decided) = decided.await else {
            return;
        };
        if let Some(frame) = asker.passed_on(&link, &id, place, decided) {
            tell(&*asker.client, late.as_ref(), frame).await;
        }
    }
}

async fn tell(client: &dyn Client, late: Option<&mpsc::Sender<Vec<u8>>>, frame: Vec<u8>) {
    let frame = match late {
        Some(late) => match late.send(frame).await {
            Ok(()) => return,
            // The call has ended meanwhile.
            Err(mpsc::error::SendError(frame)) => frame,
        },
        None => frame,
    };
    client.tell(frame).await;
}

/// A result of a Modern server that asks its client for something, while that is judged.
pub(super) struct Judging {
    reply: Reply,
    waiting: Vec<(String, Box<Ticket<Frame>>)>,
    permitted: Vec<InFlight>,
    /// Told when the client no longer wants the call.
    stop: Arc<Stop>,
    gone: Work,
}

impl Judging {
    /// Ready when no question is open. Nothing is lost where this is dropped on the way.
    ///
    /// # Errors
    /// Why the answers are no longer waited for.
    pub async fn settled(&mut self) -> Result<(), Why> {
        let Self {
            waiting,
            stop,
            gone,
            ..
        } = self;
        let settled = async {
            for (_, ticket) in waiting.iter() {
                ticket.settled().await;
            }
        };
        tokio::select! {
            biased;
            why = stop.heard() => Err(why),
            () = settled => Ok(()),
            () = gone => Err(Why::Refused(Reason::ApprovalWithdrawn)),
        }
    }
}

/// What a result asks of the client: each request's method and text. None where it asks for nothing.
fn inputs(payload: &str) -> Result<Vec<(String, String)>, &'static str> {
    const NAME: &str = "inputRequests";
    // A name may be spelled with escapes, which costs a look; most results have neither.
    if !payload.contains(NAME) && !payload.contains("\\u") {
        return Ok(Vec::new());
    }
    let scan = scan_reply(payload.as_bytes(), &Bounds::default()).map_err(|f| f.message)?;
    if member(&scan.members, NAME).is_none() {
        return Ok(Vec::new());
    }
    // A name that stands twice would be read one way here and another way there.
    let scan = scan_request(payload.as_bytes(), &Bounds::default()).map_err(|f| f.message)?;
    let raw = member(&scan.members, NAME).unwrap_or("null");
    if raw == "null" {
        return Ok(Vec::new());
    }
    let wanted: std::collections::BTreeMap<String, &RawValue> =
        serde_json::from_str(raw).map_err(|_| "inputRequests is not an object")?;
    if wanted.len() > INPUTS_MAX {
        return Err("a result asks its client for more than 64 things");
    }
    let method = |raw: &RawValue| {
        let request: serde_json::Value = serde_json::from_str(raw.get()).ok()?;
        Some(request.get("method")?.as_str()?.to_owned())
    };
    wanted
        .into_values()
        .map(|raw| Some((method(raw)?, raw.get().to_owned())))
        .collect::<Option<_>>()
        .ok_or("an entry of inputRequests names no method")
}

/// Returns whether a result says that it wants input. Results of earlier revisions cannot want any, and clients that
/// know the newest one obey them all the same.
fn wants_input(payload: &str) -> bool {
    if !payload.contains("input_required") && !payload.contains("\\u") {
        return false;
    }
    let Ok(scan) = scan_reply(payload.as_bytes(), &Bounds::default()) else {
        return false;
    };
    let mut types = scan
        .members
        .iter()
        .filter(|(name, _)| fold::same(name, "resultType"));
    types.any(|(_, raw)| string(raw).is_some_and(|text| text == "input_required"))
}

/// What an error asks of the client (2025-11-25): to have its person open an address, as `elicitation/create` does.
fn elicitations(payload: &str) -> Result<Vec<(String, String)>, &'static str> {
    const ELICITATION_REQUIRED: f64 = -32042.0;
    let scan = scan_reply(payload.as_bytes(), &Bounds::default()).map_err(|f| f.message)?;
    // As leniently as the most lenient client reads it.
    let code = member(&scan.members, "code").unwrap_or_default();
    let code = code.trim_matches('"').parse::<f64>();
    if !code.is_ok_and(|code| (code - ELICITATION_REQUIRED).abs() < 1.0) {
        return Ok(Vec::new());
    }
    // A name that stands twice would be read one way here and another way there.
    let scan = scan_request(payload.as_bytes(), &Bounds::default()).map_err(|f| f.message)?;
    let data = member(&scan.members, "data").unwrap_or("null");
    let data = scan_reply(data.as_bytes(), &Bounds::default()).map_err(|f| f.message)?;
    let listed = member(&data.members, "elicitations");
    let listed: Option<Vec<&RawValue>> = listed.and_then(|raw| serde_json::from_str(raw).ok());
    let asked = match &listed {
        Some(listed) if listed.len() > INPUTS_MAX => {
            return Err("an error asks its client for more than 64 things");
        }
        Some(listed) if !listed.is_empty() => listed.iter().map(|raw| raw.get()).collect(),
        _ => vec![payload],
    };
    let one = |text: &str| (ELICIT.to_owned(), text.to_owned());
    Ok(asked.into_iter().map(one).collect())
}

impl Run {
    /// Judges what a Modern server's result, or an error, asks of the client; gives the reply back where it may
    /// be passed on at once.
    pub(super) async fn judged(&mut self, reply: Reply) -> Result<Reply, Option<Said>> {
        let wanted = match reply.is_error {
            true => elicitations(reply.payload()),
            false if self.asker.era == Some(Era::Legacy) && !wants_input(reply.payload()) => {
                return Ok(reply);
            }
            false => inputs(reply.payload()),
        };
        let wanted = match wanted {
            Ok(wanted) if wanted.is_empty() => return Ok(reply),
            Ok(wanted) => wanted,
            Err(message) => {
                self.asker.client.note(Note::ServerGarbage.with(message));
                return Err(Some(self.failed(&UpstreamFault::Garbage.into())));
            }
        };
        let mut judging = Judging {
            reply,
            waiting: Vec::new(),
            permitted: Vec::new(),
            stop: Arc::default(),
            gone: self.asker.client.gone(),
        };
        for (method, text) in wanted {
            let id = self.id().to_owned();
            let request = self.asker.inspect_nested(text).map(Frame::from);
            let admission = Box::pin(self.asker.admit(&id, &method, request)).await;
            if let Err(said) = self.take(&mut judging, method, admission) {
                return Err(Some(said));
            }
        }
        self.settle(judging)
    }

    /// The questions about a result are no longer waited for: the call ends without it.
    pub(super) fn no_longer_judged(&mut self, why: Why) -> Said {
        let stage = std::mem::replace(&mut self.stage, Stage::Over);
        let (Stage::Judging(judging), Why::Refused(reason)) = (stage, why) else {
            // Dropped, what waits is withdrawn, and the call is settled as cancelled.
            drop(self.take_after());
            return Said::Gone;
        };
        let gate = &self.asker.server.gate;
        let refused = judging.waiting.into_iter();
        let refused = refused
            .map(|(_, ticket)| gate.decline(*ticket, reason))
            .last();
        match refused {
            Some(refusal) => self.refused_inside(&refusal),
            None => Said::Gone,
        }
    }

    /// The answer to a call whose result asks for something that may not pass.
    fn refused_inside(&mut self, refusal: &Refusal) -> Said {
        let by_result = self.asker.refuses_by_result(&self.names);
        if let Some(After::Call(flight)) = self.take_after() {
            flight.finish(Outcome {
                status: Status::Failure,
                error_code: (!by_result).then(|| mcp_error(refusal.reason).into()),
                reason: Some(refusal.reason.into()),
                ..Outcome::default()
            });
        }
        Said::Done(self.asker.refused(&self.names, refusal), None)
    }

    /// Goes on when no question about a result is open any more.
    pub(super) fn judged_again(&mut self) -> Result<Reply, Option<Said>> {
        let Stage::Judging(mut judging) = std::mem::replace(&mut self.stage, Stage::Over) else {
            return Err(None);
        };
        for (method, ticket) in std::mem::take(&mut judging.waiting) {
            let admission = self.asker.asked_again(&method, ticket);
            if let Err(said) = self.take(&mut judging, method, admission) {
                return Err(Some(said));
            }
        }
        self.settle(*judging)
    }

    fn settle(&mut self, judging: Judging) -> Result<Reply, Option<Said>> {
        if !judging.waiting.is_empty() {
            if let Some(guard) = &self.guard {
                guard.waits(&judging.stop);
            }
            self.stage = Stage::Judging(Box::new(judging));
            return Err(None);
        }
        // The client's answers come with its next request, which is judged by itself.
        for mut flight in judging.permitted {
            flight.reply_arrived();
            flight.finish(Outcome {
                status: Status::Success,
                ..Outcome::default()
            });
        }
        Ok(judging.reply)
    }

    fn take(
        &mut self,
        judging: &mut Judging,
        method: String,
        admission: Admission<Frame>,
    ) -> Result<(), Said> {
        let refusal = match admission {
            Admission::Permit(permit) => {
                let spent = taken(permit, &self.asker.peer());
                judging.permitted.extend(spent.map(|(_, flight)| flight));
                return Ok(());
            }
            Admission::Pending(ticket) if only_client(&ticket) && !ticket.is_settled() => {
                let reason = Reason::ApprovalUnreachable;
                self.asker.server.gate.decline(*ticket, reason)
            }
            Admission::Pending(ticket) => {
                judging.waiting.push((method, ticket));
                return Ok(());
            }
            Admission::Refused(refusal) => refusal,
        };
        Err(self.refused_inside(&refusal))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_result_asks_of_its_client_is_found_however_it_is_spelled() {
        let cases: [(&str, Result<&[&str], ()>); 9] = [
            (r#"{"content":[]}"#, Ok(&[])),
            (r#"{"content":[{"text":"inputRequests"}]}"#, Ok(&[])),
            (r#"{"inputRequests":null}"#, Ok(&[])),
            (
                r#"{"inputRequests":{"a":{"method":"x"},"b":{"method":"y","params":{}}}}"#,
                Ok(&["x", "y"]),
            ),
            (
                r#"{"input\u0052equests":{"a":{"method":"x\u0079"}}}"#,
                Ok(&["xy"]),
            ),
            (
                r#"{"inputRequests":{},"inputRequests":{"a":{"method":"x"}}}"#,
                Err(()),
            ),
            (
                r#"{"inputRequests":{"a":{"method":"x","method":"y"}}}"#,
                Err(()),
            ),
            (r#"{"inputRequests":[{"method":"x"}]}"#, Err(())),
            (r#"{"inputRequests":{"a":{}}}"#, Err(())),
        ];
        for (payload, expect) in cases {
            let found = inputs(payload).map_err(|_| ());
            let methods = found.map(|all| all.into_iter().map(|(m, _)| m).collect::<Vec<_>>());
            let expect = expect.map(|all| all.iter().map(|m| (*m).to_owned()).collect());
            assert_eq!(methods, expect, "{payload}");
        }
    }

    #[test]
    fn what_an_error_asks_of_its_client_is_found_however_it_is_spelled() {
        let of = |code: &str, data: &str| {
            elicitations(&format!(r#"{{"code":{code},"message":"m","data":{data}}}"#))
        };
        let two = r#"{"elicitations":[{"mode":"url","url":"https://a"},{"mode":"url"}]}"#;
        for code in ["-32042", "-32042.0", "-3.2042e4", "\"-32042\""] {
            let found = of(code, two).unwrap();
            let texts: Vec<&str> = found.iter().map(|(_, text)| text.as_str()).collect();
            let asked = [r#"{"mode":"url","url":"https://a"}"#, r#"{"mode":"url"}"#];
            assert_eq!(texts, asked, "{code}");
            assert!(found.iter().all(|(method, _)| method == ELICIT));
        }
        for data in [
            "null",
            "[]",
            "{}",
            r#"{"elicitations":[]}"#,
            r#"{"elicitations":"x"}"#,
        ] {
            assert_eq!(of("-32042", data).unwrap().len(), 1, "{data}");
        }
        let twice = r#"{"elicitations":[],"elicitations":[{}]}"#;
        assert!(of("-32042", twice).is_err());
        for code in ["-32603", "-32041", "null", "\"x\""] {
            assert_eq!(of(code, two), Ok(Vec::new()), "{code}");
        }
        let many = vec!["{}"; INPUTS_MAX + 1].join(",");
        assert!(of("-32042", &format!(r#"{{"elicitations":[{many}]}}"#)).is_err());
    }

    #[test]
    fn a_result_asks_for_a_bounded_number_of_things() {
        let with = |count: usize| {
            let all: Vec<String> = (0..count)
                .map(|n| format!(r#""k{n}":{{"method":"x"}}"#))
                .collect();
            inputs(&format!(r#"{{"inputRequests":{{{}}}}}"#, all.join(",")))
        };
        assert_eq!(with(INPUTS_MAX).map(|all| all.len()), Ok(INPUTS_MAX));
        assert!(with(INPUTS_MAX + 1).is_err());
    }
}
