//! A call of a tool that its server has not listed yet. What its arguments mean stands in its schema, so
//! the server is asked for its tools first, on the gate's own behalf; a tool that is not among them no rule
//! lets pass.

use std::sync::atomic::Ordering;
use std::time::Duration;

use ::http::HeaderMap;
use gate::effects::{Annotations, Evidence};
use gate::facts::{Facts, ResourceType};
use gate::inspect::Inspected;
use gate::{Admission, ControlKind, Origin, Reason, Refusal};
use wire::id::IdKey;
use wire::jsonrpc::member;
use wire::{Bounds, Era, scan_reply, scan_request};

use super::begin::Begun;
use super::client::Asker;
use super::order::Waited;
use super::questions::Question;
use super::read::{Asked, Step};
use super::under_way::CallGuard;
use crate::describe;
use crate::descriptions::listing;
use crate::message::era;
use crate::message::frames::{Failure, UpstreamFault};
use crate::message::method::List;
use crate::message::reply::Reply;
use crate::message::request::{META_CAPABILITIES, META_CLIENT};
use crate::message::splice::Marks;
use crate::notes::Note;
use crate::upstream::{Frame, Incoming};
use wire::revision::META_PROTOCOL_VERSION;

/// Most pages of a list that a server is asked for.
pub const PAGES_MAX: usize = 64;
/// Longest time that it may take for all of them, in milliseconds. Starting it has bounds of its own.
pub const LIST_WAIT_MS_MAX: u64 = 10_000;

/// What a Modern request says of its client, as the call says it.
const META: [&str; 3] = [META_PROTOCOL_VERSION, META_CAPABILITIES, META_CLIENT];

/// How a call comes to its judgement.
pub(super) enum Listed {
    /// All that is needed of its server was known.
    Known,
    /// Its server was asked first; where the tool is still not known, this kept the server from listing it.
    Asked(Option<Failure>),
    /// It has waited for other calls.
    Waited,
    /// Its client has gone meanwhile, or has taken it back.
    Withdrawn,
}

impl Listed {
    /// The same of a call that has waited for others as well.
    pub fn waited(self, waited: Waited) -> Self {
        match (self, waited) {
            (Self::Withdrawn, _) | (_, Waited::Withdrawn) => Self::Withdrawn,
            (Self::Known | Self::Waited, Waited::On) => Self::Waited,
            (Self::Asked(failure), Waited::On) => Self::Asked(failure),
        }
    }
}

impl Asker {
    /// Whether a call has to wait for its server's list: its tool is not known, and there are arguments with
    /// which the rules could let it pass.
    pub(super) fn has_to_list_first(&self, facts: &Facts) -> bool {
        let Some(tool) = facts.tool_name.known().filter(|_| facts.unlisted) else {
            return false;
        };
        let gate = &self.server.gate;
        // What is built in has no tools but those that are known.
        if self.server.builtin().is_some() || gate.is_draining() {
            return false;
        }
        let mut any =
            self.with_context(|context| describe::listed(ResourceType::Tool, tool, context));
        gate.may_be_listed(&any) || {
            // A person may have approved a definition that says that it only reads.
            any.state_evidence(Evidence {
                annotations: Annotations {
                    read_only: Some(true),
                    approved: true,
                    ..Annotations::default()
                },
                ..any.evidence
            });
            gate.may_be_listed(&any)
        }
    }

    /// Has the server list its tools, and reads the call again by what is known then; else what its client is
    /// told.
    pub(super) async fn listed_first(
        &self,
        frame: &Inspected<Vec<u8>>,
        asked: &mut Asked,
        guard: Option<&CallGuard>,
    ) -> Result<Listed, Begun> {
        let Step::Unlisted(facts, origin) = &asked.step else {
            return Ok(Listed::Known);
        };
        let list = self.list_for(frame.message(), facts, origin);
        let (listed, is_withdrawn) = self.before_judging(guard, list).await;
        let failure = match listed {
            Some(Ok(failure)) => failure,
            Some(Err(refusal)) => {
                return Err(Begun::Answered(self.refused(&asked.names, &refusal)));
            }
            None => return Ok(Listed::Withdrawn),
        };
        // It was read before, so it can be again; else it is judged by what was known then.
        match asked.is_long {
            true => Box::pin(self.read_whole(frame, asked, false)).await,
            false => drop(self.read_again(frame, asked)),
        }
        self.headers_repeat(frame.message(), asked)?;
        if let Step::Judge(_, origin) | Step::Unlisted(_, origin) = &mut asked.step {
            origin.waited = true;
        }
        if is_withdrawn {
            return Ok(Listed::Withdrawn);
        }
        Ok(Listed::Asked(failure))
    }

    /// Whether the headers of a Modern request repeat the arguments that its tool declares.
    fn headers_repeat(&self, frame: &[u8], asked: &Asked) -> Result<(), Begun> {
        if !self.is_modern() || !self.client.is_over_http() {
            return Ok(());
        }
        let none = HeaderMap::new();
        let headers = asked.marks.mirrored.as_deref().unwrap_or(&none);
        match scan_request(frame, &Bounds::default()) {
            Ok(scan) => {
                let repeated = self.server.check_headers(&scan, headers);
                repeated.map_err(Begun::HeaderMismatch)
            }
            Err(_) => Ok(()),
        }
    }

    /// Asks, unless somebody else has while this call waited; gives why there is no list, where there is none.
    async fn list_for(
        &self,
        call: &[u8],
        facts: &Facts,
        origin: &Origin,
    ) -> Result<Option<Failure>, Box<Refusal>> {
        let listing = self.slot.listing();
        let before = listing.ended.load(Ordering::Acquire);
        let mut last = listing.turn.lock().await;
        let tool = facts.tool_name.known();
        if tool.is_some_and(|tool| self.server.has_listed(tool))
            || listing.ended.load(Ordering::Acquire) != before
        {
            return Ok(last.clone());
        }
        if before > 0 {
            // Who calls again and again what is not there counts as one who lists again and again.
            let (gate, to) = (&self.server.gate, self.server.peer());
            let mut facts = facts.clone();
            let _ = self.hide_name(&mut facts);
            drop(gate.admit_control(ControlKind::List, &facts, origin, &to, ())?);
        }
        *last = self.list_tools(call).await.err();
        listing.ended.fetch_add(1, Ordering::AcqRel);
        Ok(last.clone())
    }

    async fn list_tools(&self, call: &[u8]) -> Result<(), Failure> {
        self.server.pool.link(&self.slot).await?;
        let wait = Duration::from_millis(LIST_WAIT_MS_MAX);
        let listed = tokio::time::timeout(wait, self.list_pages(call)).await;
        listed.unwrap_or_else(|_| Err(UpstreamFault::Timeout.into()))
    }

    /// Asks page by page, and learns from each. A server that answers with an error lists nothing.
    async fn list_pages(&self, call: &[u8]) -> Result<(), Failure> {
        let mut cursor: Option<String> = None;
        for page in 0..PAGES_MAX {
            let reply = self.page(call, cursor.as_deref()).await?;
            let payload = reply.payload();
            if reply.is_error {
                let wrong = |of| era::is_mismatch(of, era::Asked::Other, payload);
                return match self.era {
                    Some(of) if wrong(of) => Err(UpstreamFault::EraMismatch.because(payload)),
                    _ => Ok(()),
                };
            }
            let listed = match listing::of_reply(List::Tools, &reply.frame, payload) {
                Ok(Some(listed)) => listed,
                Ok(None) => return Ok(()),
                Err(message) => {
                    self.client.note(Note::ServerListUnreadable.with(message));
                    return Err(UpstreamFault::Garbage.into());
                }
            };
            let is_last = listed.is_last;
            // The client is shown nothing of it.
            let page = (List::Tools, page == 0);
            let world = self.server.gate.world();
            drop(self.server.listed(page, listed, &self.reader(), &world));
            cursor = next_cursor(payload).filter(|_| !is_last);
            if cursor.is_none() {
                return Ok(());
            }
        }
        Ok(())
    }

    async fn page(&self, call: &[u8], cursor: Option<&str>) -> Result<Reply, Failure> {
        let frame = self.list_request(call, cursor);
        let marks = scan_request(&frame, &Bounds::default()).ok();
        let marks = marks.and_then(|scan| Marks::of(&frame, &scan));
        let marks = marks.ok_or(UpstreamFault::Garbage)?;
        let gate = &self.server.gate;
        let pass = gate.control(ControlKind::List, &self.server.peer(), Frame::from(frame));
        let (mut exchange, ()) = self.dispatch(pass, &marks, u64::MAX).await?;
        loop {
            match exchange.next().await {
                Incoming::Response(reply) => return Ok(reply),
                Incoming::Fault(failure) => return Err(failure),
                Incoming::Cancelled => return Err(UpstreamFault::Stopping.into()),
                // A list is no call: nothing has to be judged again.
                Incoming::Found(_) => {}
                // It is about something else: this client has asked for nothing here.
                Incoming::Notification(mut news) => {
                    if news.tie.is_none()
                        && let Some(frame) = self.news(&mut news)
                    {
                        self.client.tell(frame).await;
                    }
                }
                Incoming::Request { id, method, frame } => {
                    let question = Question { id, method, frame };
                    if let Some(frame) = self.pass_on(exchange.link(), question, None).await {
                        self.client.tell(frame).await;
                    }
                }
            }
        }
    }

    /// A request for a page, under an id that no call of the client has.
    fn list_request(&self, call: &[u8], cursor: Option<&str>) -> Vec<u8> {
        let link = self.slot.current();
        let is_free = |id: &String| {
            let key = IdKey::Text(id.clone());
            !link.as_ref().is_some_and(|link| link.has_id(&key))
        };
        let mut ids = (0_u64..).map(|number| format!("durward-list-{number}"));
        let id = ids.find(is_free).unwrap_or_default();
        let mut members = Vec::new();
        if self.era == Some(Era::Modern) {
            members.push(format!("\"_meta\":{{{}}}", modern_meta(call)));
        }
        members.extend(cursor.map(|raw| format!("\"cursor\":{raw}")));
        let params = members.join(",");
        format!(r#"{{"jsonrpc":"2.0","id":"{id}","method":"tools/list","params":{{{params}}}}}"#)
            .into_bytes()
    }

    /// What a client is told whose call was refused because its server could not be asked; none where the
    /// refusal says it all.
    pub(super) fn not_listed<R>(
        &self,
        listed: &Listed,
        admission: &Admission<R>,
        id: &str,
    ) -> Option<Begun> {
        let (Listed::Asked(Some(failure)), Admission::Refused(refusal)) = (listed, admission)
        else {
            return None;
        };
        if refusal.reason != Reason::UnknownTool {
            return None;
        }
        match (failure.fault, &failure.detail, self.era) {
            // The server is there, and has not listed the tool.
            (UpstreamFault::Timeout | UpstreamFault::Garbage, ..) => None,
            (UpstreamFault::EraMismatch, Some(error), Some(era)) => {
                Some(Begun::Answered(era::refusal(id, era, error)))
            }
            _ => Some(self.unsent(id, failure)),
        }
    }
}

/// The members of a call's `_meta` that a Modern request cannot do without.
fn modern_meta(call: &[u8]) -> String {
    let said = || {
        let scan = scan_request(call, &Bounds::default()).ok()?;
        let meta = scan_reply(
            member(&scan.params, "_meta")?.as_bytes(),
            &Bounds::default(),
        )
        .ok()?;
        let members = META
            .iter()
            .filter_map(|name| Some(format!("\"{name}\":{}", member(&meta.members, name)?)));
        Some(members.collect::<Vec<_>>().join(","))
    };
    said().unwrap_or_default()
}

/// The cursor of the next page, as it is spelled.
fn next_cursor(result: &str) -> Option<String> {
    let scan = scan_reply(result.as_bytes(), &Bounds::default()).ok()?;
    let raw = member(&scan.members, "nextCursor")?;
    (raw != "null").then(|| raw.to_owned())
}
