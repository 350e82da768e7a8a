//! Requests of the Modern era for all servers. They have no session: each server is asked for the one request, in the
//! era that it speaks.

use std::sync::Arc;
use std::time::Duration;

use ::http::{HeaderMap, StatusCode};
use gate::Caller;
use gate::inspect::Inspected;
use net::http::server::Response;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use toolkit::Trace;
use wire::jsonrpc::{Kind, member, string};
use wire::{Bounds, Canonical, Revision, WireError, WireErrorKind, scan_reply};

use super::super::legacy::attend;
use super::super::modern::{self, Meta};
use super::super::post::{Message, UNFIT, carried_out};
use super::super::{Face, answer};
use super::lists::{self, Asked, LIST_WAIT_MS, Reach, Who};
use super::open::{starting, words};
use super::search::Searched;
use crate::call::{self, Asker, Basis, IncomingRequest, Server};
use crate::federation::{Missing, Spelling, merged, result_of, without_session};
use crate::message::frames::{Failure, UpstreamFault};
use crate::message::method::{self, Class};
use crate::message::{bridged, frames, shapes};
use crate::notes::{Note, Noted};
use crate::upstream::Slot;

/// A request, as far as servers are asked on its behalf.
pub(super) struct Alone {
    pub caller: Caller,
    client_id: Option<Arc<str>>,
    /// Its `_meta`, as it is spelled.
    pub meta: String,
}

/// A server that can be asked.
#[derive(Clone)]
pub(in crate::http) struct Reached {
    pub server: Arc<Server>,
    slot: Arc<Slot>,
    pub spelling: Spelling,
}

impl Reached {
    /// Whether it speaks an earlier revision only.
    pub fn is_legacy(&self) -> bool {
        self.slot.is_legacy()
    }
}

/// A server as it was found: it can be asked, or why not.
type Found = Result<Reached, Missing>;

/// A request for one server, read.
pub(in crate::http) type Read = (Box<Asker>, Box<call::Asked>, Inspected<Vec<u8>>);

/// Why a request is not one for its server.
pub(in crate::http) enum Unfit {
    Frame(WireError),
    /// Its headers do not repeat its arguments.
    Headers(String),
}

impl From<WireError> for Unfit {
    fn from(fault: WireError) -> Self {
        Self::Frame(fault)
    }
}

impl Face {
    /// Answers a request.
    pub(super) async fn take_alone(
        self: &Arc<Self>,
        (caller, headers): (&Caller, &HeaderMap),
        canonical: &Canonical,
        meta: Meta,
        (id, asked): (&str, &str),
        arrival: (u64, Trace),
    ) -> Response {
        if let Err(response) = modern::check(id, asked, &canonical.scan(), &meta, headers) {
            self.note(Note::ModernRequestRefused.with(UNFIT));
            return *response;
        }
        let alone = Arc::new(Alone {
            caller: caller.clone(),
            client_id: meta.client_id,
            meta: canonical.param("_meta").unwrap_or("{}").to_owned(),
        });
        let who = Who::Alone(&alone);
        let inner;
        let (called, headers) = match (method::of(asked).class, asked) {
            (Class::List(list), _) => {
                let asked = Asked {
                    list,
                    method: asked,
                    id,
                    cursor: canonical.param("cursor").and_then(string).map(Into::into),
                    arrival,
                };
                return whole(id, self.listed_of_all(who, asked).await);
            }
            (_, "server/discover") => {
                return whole(id, self.discovered(&alone, id, arrival).await);
            }
            (_, "subscriptions/listen") => {
                return self.listened(&alone, canonical, id, arrival).await;
            }
            (_, "tools/call") => match self.searched(who, canonical, id, &arrival).await {
                Searched::Other => (canonical, Some(headers)),
                Searched::Inner(call) => {
                    inner = call;
                    (&*inner, None)
                }
                Searched::Answer(answer) => return whole(id, answer),
            },
            _ => (canonical, Some(headers)),
        };
        self.called_alone(&alone, (called, headers), (id, asked), arrival)
            .await
    }

    /// Answers a request that names what it is for.
    async fn called_alone(
        self: &Arc<Self>,
        alone: &Alone,
        (canonical, headers): (&Canonical, Option<&HeaderMap>),
        (id, asked): (&str, &str),
        arrival: (u64, Trace),
    ) -> Response {
        let (server, frame) = match self.aimed_at(&alone.caller, canonical, (id, asked)) {
            Ok(aimed) => aimed,
            Err(answer) => return whole(id, answer),
        };
        let reached = match self.reach(&server, &alone.caller).await {
            Ok(reached) => reached,
            Err(failure) => return self.not_reached(id, &server, &failure),
        };
        match self.read_alone(alone, &reached, frame, headers, &arrival) {
            Ok((asker, asked, frame)) => {
                let message = Message::Request(asker, asked, None);
                let of = (&server, &alone.caller);
                self.taken(message, frame, of, arrival).await
            }
            Err(Unfit::Frame(fault)) => self.bad_message(Some(id.to_owned()), &fault),
            Err(Unfit::Headers(why)) => {
                self.note(Note::ModernRequestRefused.with(UNFIT));
                *modern::header_mismatch(id, &why)
            }
        }
    }

    /// Reads a request in a server's own names. `headers` are those that repeat its arguments; where its client could not
    /// send them they are worked out.
    pub(super) fn read_alone(
        self: &Arc<Self>,
        alone: &Alone,
        reached: &Reached,
        frame: Vec<u8>,
        headers: Option<&HeaderMap>,
        (received_ns, trace): &(u64, Trace),
    ) -> Result<Read, Unfit> {
        let frame = match reached.is_legacy() {
            true => bridged::without_revision(&frame),
            false => frame,
        };
        let message = reached.server.inspect(shapes::of_client(&frame)?)?;
        let spelling = Some(reached.spelling.clone());
        let whose = (&alone.caller, alone.client_id.clone(), spelling);
        self.read_inspected(reached, message, whose, headers, (*received_ns, trace))
    }

    /// Reads a request that was inspected by the rules for its server.
    pub(in crate::http) fn read_inspected(
        self: &Arc<Self>,
        reached: &Reached,
        message: Inspected<Canonical>,
        (caller, client_id, spelling): (&Caller, Option<Arc<str>>, Option<Spelling>),
        headers: Option<&HeaderMap>,
        (received_ns, trace): (u64, &Trace),
    ) -> Result<Read, Unfit> {
        let server = &reached.server;
        let canonical = message.message();
        let scan = canonical.scan();
        let kind = canonical.envelope()?.kind;
        let Kind::Request { id, method } = &kind else {
            let message = "the message is not a request";
            return Err(WireError::new(WireErrorKind::NotJsonRpc, 0, message).into());
        };
        let worked_out;
        let headers = match headers {
            Some(headers) => headers,
            None => {
                worked_out = server.headers_of(&scan);
                &worked_out
            }
        };
        if method == "tools/call" {
            let repeated = server.check_headers(&scan, headers);
            repeated.map_err(Unfit::Headers)?;
        }
        let asker = self.passing(
            (server, Arc::clone(&reached.slot)),
            caller,
            client_id,
            spelling,
        );
        let mut asked = asker.read(&IncomingRequest {
            message: &message,
            scan: &scan,
            id: *id,
            method,
            received_ns,
            trace,
        });
        let is_masked = message.finding().is_some_and(|found| found.masked() > 0);
        if !reached.is_legacy() && !is_masked {
            // They repeat arguments, also those that are masked.
            asked.mirror(headers);
        }
        drop((kind, scan));
        let frame = message.map(Canonical::into_bytes);
        Ok((Box::new(asker), Box::new(asked), frame))
    }

    /// Asks a server for its part of an answer.
    pub(super) async fn asked_alone(
        self: &Arc<Self>,
        alone: &Alone,
        reached: &Reached,
        frame: Vec<u8>,
        arrival: (u64, Trace),
    ) -> Option<(Vec<u8>, Option<Basis>)> {
        match self.read_alone(alone, reached, frame, None, &arrival) {
            Ok((asker, asked, frame)) => carried_out(asker, asked, frame, None).await,
            Err(Unfit::Frame(fault)) => {
                self.note(Noted::frame(&fault));
                Some((frames::bad_frame("null", &fault), None))
            }
            Err(Unfit::Headers(why)) => Some((frames::header_mismatch("null", &why), None)),
        }
    }

    /// Starts a server for a caller where it does not run.
    pub(in crate::http) async fn reach(
        self: &Arc<Self>,
        server: &Arc<Server>,
        caller: &Caller,
    ) -> Result<Reached, Failure> {
        match server.pool.slot_of_either(caller).await {
            Ok(slot) => {
                self.absences.forget(server, caller);
                Ok(self.reached(server, slot))
            }
            Err(failure) => {
                self.note(failure.fault.into());
                let (why, now_ns) = (missing(server, &failure), self.gate.mono_ns());
                self.absences.add(server, caller, why, now_ns);
                Err(failure)
            }
        }
    }

    fn reached(self: &Arc<Self>, server: &Arc<Server>, slot: Arc<Slot>) -> Reached {
        if slot.is_legacy() && slot.attend() {
            tokio::spawn(attend(Arc::downgrade(self), Arc::clone(&slot)));
        }
        Reached {
            server: Arc::clone(server),
            slot,
            spelling: Spelling::of(&server.name),
        }
    }

    /// The answer to a request for a server that cannot be asked.
    fn not_reached(&self, id: &str, server: &Server, failure: &Failure) -> Response {
        let frame = lists::absent(id, &missing(server, failure));
        match failure.fault {
            UpstreamFault::NoPlace => answer::full(frame),
            _ => answer::json(StatusCode::OK, frame),
        }
    }

    /// The servers of a request, in the order of their names, and those that cannot be asked; for a bounded time.
    ///
    /// # Errors
    /// The answer to the request where all that can be asked speak earlier revisions only: in a session more can be
    /// done with them, and its client may be one that knows sessions.
    pub(super) async fn reached_by(
        self: &Arc<Self>,
        alone: &Alone,
        id: &str,
    ) -> Result<(Vec<Reached>, Vec<Missing>), Vec<u8>> {
        let servers = self.servers_of(&alone.caller);
        let known = |server: &Arc<Server>| self.known(server, &alone.caller);
        let mut found: Vec<Option<Found>> = servers.iter().map(known).collect();
        self.reach_the_rest(alone, &servers, &mut found).await;
        let (mut reached, mut absent) = (Vec::new(), Vec::new());
        for (server, found) in servers.iter().zip(found) {
            match found {
                Some(Ok(one)) => reached.push(one),
                Some(Err(why)) => absent.push(why),
                None => {
                    let (why, now_ns) = (starting(&server.name), self.gate.mono_ns());
                    self.absences
                        .add(server, &alone.caller, why.clone(), now_ns);
                    absent.push(why);
                }
            }
        }
        if !reached.is_empty() && reached.iter().all(Reached::is_legacy) {
            self.note(Noted::fallback());
            return Err(modern::none_is_modern(id, Revision::V2026_07_28.name()));
        }
        Ok((reached, absent))
    }

    /// What is known of a server without waiting for it: that it can be asked, or that it lately could not. It is tried
    /// again beside then.
    fn known(self: &Arc<Self>, server: &Arc<Server>, caller: &Caller) -> Option<Found> {
        if let Some(slot) = server.pool.running_in_either(caller) {
            return Some(Ok(self.reached(server, slot)));
        }
        let now_ns = self.gate.mono_ns();
        let (why, is_due) = self.absences.of(server, caller, now_ns)?;
        if is_due && !server.pool.is_being_started(caller) {
            let (face, server) = (Arc::clone(self), Arc::clone(server));
            let caller = caller.clone();
            tokio::spawn(async move { drop(face.reach(&server, &caller).await) });
        }
        Some(Err(why))
    }

    /// Starts the servers that do not run.
    async fn reach_the_rest(
        self: &Arc<Self>,
        alone: &Alone,
        servers: &[Arc<Server>],
        found: &mut [Option<Found>],
    ) {
        let (sender, mut came) = mpsc::channel(servers.len().max(1));
        let mut waiting = JoinSet::new();
        for (at, server) in servers.iter().enumerate() {
            if found.get(at).is_none_or(Option::is_some) {
                continue;
            }
            let (face, server, sender) = (Arc::clone(self), Arc::clone(server), sender.clone());
            let caller = alone.caller.clone();
            let is_first = !server.pool.is_being_started(&caller);
            let reach = async move {
                let reached = face.reach(&server, &caller).await;
                let reached = reached.map_err(|failure| missing(&server, &failure));
                // Who has waited long enough has gone.
                drop(sender.send((at, reached)).await);
            };
            if is_first {
                // One that takes longer is there for a later request. Only one request waits for each in this way.
                tokio::spawn(reach);
            } else {
                waiting.spawn(reach);
            }
        }
        drop(sender);
        let all = async {
            while let Some((at, reached)) = came.recv().await {
                if let Some(place) = found.get_mut(at) {
                    *place = Some(reached);
                }
            }
        };
        let wait = Duration::from_millis(LIST_WAIT_MS);
        drop(tokio::time::timeout(wait, all).await);
    }

    /// The answer to `server/discover`: what each server says of itself, put together.
    async fn discovered(
        self: &Arc<Self>,
        alone: &Arc<Alone>,
        id: &str,
        arrival: (u64, Trace),
    ) -> Vec<u8> {
        let (reached, mut missing) = match self.reached_by(alone, id).await {
            Ok(group) => group,
            Err(answer) => return answer,
        };
        let mut asking = JoinSet::new();
        for one in reached {
            let (face, alone, arrival) = (Arc::clone(self), Arc::clone(alone), arrival.clone());
            let id = id.to_owned();
            asking.spawn(async move { face.introduced(&alone, one, &id, arrival).await });
        }
        let mut members = Vec::new();
        for said in asking.join_all().await {
            match said {
                Ok(member) => members.push(member),
                Err(absent) => missing.push(absent),
            }
        }
        members.sort_unstable();
        missing.sort_unstable_by(|a, b| a.server.cmp(&b.server));
        lists::result(id, &merged(Revision::V2026_07_28, &members, &missing))
    }

    /// What a server says of itself, with its name.
    async fn introduced(
        self: &Arc<Self>,
        alone: &Arc<Alone>,
        reached: Reached,
        id: &str,
        arrival: (u64, Trace),
    ) -> Result<(String, String), Missing> {
        let (server, slot) = (Arc::clone(&reached.server), Arc::clone(&reached.slot));
        if slot.is_legacy() {
            let said = slot.opened_with().unwrap_or_default();
            let caller = &alone.caller.subject;
            let screened = server.screen_handshake(&said, caller, &self.no_session);
            let said = screened.unwrap_or(said);
            return Ok((server.name.to_string(), without_session(&said)));
        }
        let frame = lists::request(id, "server/discover", &format!("\"_meta\":{}", alone.meta));
        let member = Reach::Alone(Arc::clone(alone), reached);
        let answer = self.in_time(&member, frame, arrival).await;
        let answer = answer.map(|(answer, _)| answer).unwrap_or_default();
        result_of(&server.name, &answer).map(|said| (server.name.to_string(), said))
    }
}

fn missing(server: &Server, failure: &Failure) -> Missing {
    let (reason, message) = words(failure);
    Missing {
        server: server.name.to_string(),
        reason,
        message,
    }
}

/// An answer that is whole, with the status of its error where it is one.
pub(super) fn whole(id: &str, frame: Vec<u8>) -> Response {
    const HEAD: &str = "{\"jsonrpc\":\"2.0\",\"id\":";
    let rest = frame.get(HEAD.len() + id.len()..).unwrap_or_default();
    let code = match rest.starts_with(b",\"error\":") {
        true => code(&frame),
        false => None,
    };
    answer::json(modern::status(code), frame)
}

/// The code of an error.
fn code(frame: &[u8]) -> Option<i64> {
    let scan = scan_reply(frame, &Bounds::default()).ok()?;
    frames::error_code(member(&scan.members, "error")?)
}
