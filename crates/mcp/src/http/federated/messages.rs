//! What a message of a client of all servers becomes: a message of one server's session, or an answer.

use std::sync::Arc;

use gate::inspect::Inspected;
use gate::{Caller, ControlKind};
use serde_json::json;
use toolkit::Trace;
use wire::id::IdKey;
use wire::jsonrpc::{Kind, string};
use wire::{Canonical, Id, WireError};

use super::super::Face;
use super::super::post::{Message, ReceivedMessage};
use super::super::session::Session;
use super::Federation;
use super::lists::{self, Asked, Who};
use super::search::Searched;
use crate::call::{Server, form};
use crate::federation::{Aim, Missing, aim, edited, id_of_server, scheme, split_name, split_uri};
use crate::message::method::{self, Class, Notice};
use crate::message::{frames, shapes};
use crate::notes::{Note, Noted};

/// What a request becomes.
pub(super) enum Routed {
    /// The answer.
    Answer(Vec<u8>),
    /// A message of this server's session, and its frame.
    Message(Arc<Session>, Message, Inspected<Vec<u8>>),
}

impl Face {
    /// Routes a request.
    pub(super) async fn routed(
        self: &Arc<Self>,
        federation: &Arc<Federation>,
        canonical: &Canonical,
        (id, asked): (Id<'_>, &str),
        arrival: &(u64, Trace),
    ) -> Routed {
        let id = id.raw();
        match (method::of(asked).class, asked) {
            (Class::List(list), _) => {
                let asked = Asked {
                    list,
                    method: asked,
                    id,
                    cursor: canonical.param("cursor").and_then(string).map(Into::into),
                    arrival: arrival.clone(),
                };
                let who = Who::Session(federation);
                Routed::Answer(self.listed_of_all(who, asked).await)
            }
            (Class::Control(ControlKind::Ping), _) => Routed::Answer(lists::result(id, "{}")),
            (Class::Control(ControlKind::LogLevel), _) => {
                let frame = canonical.text().as_bytes().to_vec();
                let answer = self.level_of_all(federation, id, frame, arrival.clone());
                Routed::Answer(answer.await)
            }
            (_, "tools/call") => {
                let of = (id, asked);
                let who = Who::Session(federation);
                match self.searched(who, canonical, id, arrival).await {
                    Searched::Other => self.called(federation, canonical, of, arrival),
                    Searched::Inner(call) => self.called(federation, &call, of, arrival),
                    Searched::Answer(answer) => Routed::Answer(answer),
                }
            }
            _ => self.called(federation, canonical, (id, asked), arrival),
        }
    }

    /// A request that names what it is for.
    fn called(
        self: &Arc<Self>,
        federation: &Arc<Federation>,
        canonical: &Canonical,
        (id, asked): (&str, &str),
        arrival: &(u64, Trace),
    ) -> Routed {
        match self.aimed(federation, canonical, (id, asked)) {
            Ok((session, frame)) => self.of_session(&session, frame, id, arrival),
            Err(answer) => Routed::Answer(answer),
        }
    }

    /// The session that a request is for, and the request in its server's own names; or the answer where there
    /// is none.
    fn aimed(
        self: &Arc<Self>,
        federation: &Arc<Federation>,
        canonical: &Canonical,
        (id, asked): (&str, &str),
    ) -> Result<(Arc<Session>, Vec<u8>), Vec<u8>> {
        if federation.is_bare {
            return match self.members(federation).into_iter().next() {
                Some(session) => Ok((session, canonical.text().as_bytes().to_vec())),
                None => Err(self.absent(federation, id, None)),
            };
        }
        let (server, frame) = self.aimed_at(&federation.caller, canonical, (id, asked))?;
        match self.member_at(federation, &server) {
            Some(session) => Ok((session, frame)),
            None => Err(self.absent(federation, id, Some(&server.name))),
        }
    }

    /// The server that a caller's request is for, and the request in that server's own names; or the answer where it is
    /// for none.
    pub(super) fn aimed_at(
        &self,
        caller: &Caller,
        canonical: &Canonical,
        (id, asked): (&str, &str),
    ) -> Result<(Arc<Server>, Vec<u8>), Vec<u8>> {
        let frame = canonical.text().as_bytes();
        let Some(aim) = aim(asked, canonical) else {
            self.note(
                Note::ClientParamsUnusable
                    .with("a request for all servers does not name one of them"),
            );
            let known = method::of(asked).named_by.is_some() || asked == "completion/complete";
            let message = match known {
                true => format!("{asked} does not name a server"),
                false => {
                    format!("{asked} cannot be routed to a server; send it to /mcp/NAME")
                }
            };
            let code = if known { -32602 } else { -32601 };
            return Err(frames::error(id, code, &message, None));
        };
        let (split, spelled, place) = match &aim {
            Aim::Name(spelled, place) => (split_name(spelled), spelled, place),
            Aim::Uri(spelled, place) => (split_uri(spelled), spelled, place),
        };
        if let Some((prefix, own)) = split
            && let Some(server) = self.spelled_by(caller, &aim, prefix)
        {
            let own = serde_json::Value::from(own).to_string();
            return Ok((server, edited(frame, vec![(place.clone(), own)])));
        }
        self.note(
            Note::ClientParamsUnusable.with("a request for all servers does not name one of them"),
        );
        let servers = self.servers_of(caller);
        let message = lists::unknown(spelled, &servers, asked == "tools/call");
        let data = json!({"reason": "server_unknown"});
        Err(frames::error(id, -32602, &message, Some(&data)))
    }

    /// The server of this caller's that a prefix stands for. A call is not to look at all of them.
    fn spelled_by(&self, caller: &Caller, aim: &Aim, prefix: &str) -> Option<Arc<Server>> {
        let servers = self.servers();
        let is_theirs = |server: &&Arc<Server>| caller.may_reach(&server.name);
        match aim {
            Aim::Name(..) => servers.get(prefix).filter(is_theirs).cloned(),
            Aim::Uri(..) => {
                let is = |of: &&Arc<Server>| scheme(&of.name).eq_ignore_ascii_case(prefix);
                let all = servers.values().filter(is_theirs).filter(is);
                all.min_by(|a, b| a.name.cmp(&b.name)).cloned()
            }
        }
    }

    /// The answer to a request for a server that is not there.
    fn absent(
        self: &Arc<Self>,
        federation: &Arc<Federation>,
        id: &str,
        server: Option<&str>,
    ) -> Vec<u8> {
        let missing = self.missing_of(federation).into_iter();
        let missing = missing
            .into_iter()
            .find(|one| server.is_none_or(|name| one.server == name));
        lists::absent(
            id,
            &missing.unwrap_or_else(|| Missing {
                server: server.unwrap_or_default().to_owned(),
                reason: "upstream_starting".into(),
                message: "the server is being started".into(),
            }),
        )
    }

    /// A request as one of a session.
    fn of_session(
        self: &Arc<Self>,
        session: &Arc<Session>,
        frame: Vec<u8>,
        id: &str,
        (received_ns, trace): &(u64, Trace),
    ) -> Routed {
        let read = || -> Result<(Message, Inspected<Vec<u8>>), WireError> {
            let inspected = session.server.inspect(shapes::of_client(&frame)?)?;
            let kind = inspected.message().envelope()?.kind;
            let message = {
                let came = ReceivedMessage {
                    message: &inspected,
                    scan: &inspected.message().scan(),
                    trace,
                    received_ns: *received_ns,
                };
                self.in_session(session, &kind, &came)
            };
            drop(kind);
            Ok((message, inspected.map(Canonical::into_bytes)))
        };
        match read() {
            Ok((message, frame)) => Routed::Message(Arc::clone(session), message, frame),
            Err(fault) => {
                self.note(Noted::frame(&fault));
                Routed::Answer(frames::bad_frame(id, &fault))
            }
        }
    }

    /// Takes a message that has no answer.
    pub(super) async fn told_all(
        self: &Arc<Self>,
        federation: &Arc<Federation>,
        canonical: &Canonical,
        kind: &Kind<'_>,
    ) {
        match kind {
            Kind::Notification { method } => self.notified_all(federation, canonical, method).await,
            Kind::Response { id: Some(id), .. } => {
                self.answered_by(federation, canonical, id.key())
            }
            Kind::Response { id: None, .. } => self.note(Note::ClientAnswerWithoutId.into()),
            Kind::Request { .. } => {}
        }
    }

    async fn notified_all(
        self: &Arc<Self>,
        federation: &Arc<Federation>,
        canonical: &Canonical,
        method: &str,
    ) {
        let frame = || canonical.text().as_bytes().to_vec();
        match method::of_client_notification(method) {
            Notice::Control(ControlKind::Handshake) => {
                if let Ok(mut initialized) = federation.initialized.lock() {
                    *initialized = Some(frame());
                }
                for session in self.members(federation) {
                    self.notified(&session, method, None, frame()).await;
                }
            }
            Notice::Control(ControlKind::Cancel) => {
                let key = canonical
                    .param("requestId")
                    .and_then(Id::from_raw)
                    .map(Id::key);
                for session in self.members(federation) {
                    // A list is under way at several of them.
                    if key
                        .as_ref()
                        .is_some_and(|key| session.under_way.has_id(key))
                    {
                        self.notified(&session, method, key.clone(), frame()).await;
                    }
                }
            }
            Notice::Control(_) if method == method::PROGRESS && !federation.is_bare => {
                let token = id_of_server(canonical.text());
                if let Some((server, edit)) = token
                    && let Some(session) = self.sessions.member(&federation.id, &server)
                {
                    let frame = edited(canonical.text().as_bytes(), vec![edit]);
                    // The token came out of a string: what is sent is written anew.
                    match shapes::of_client(&frame) {
                        Ok(written) => {
                            let frame = written.into_bytes();
                            self.notified(&session, method, None, frame).await;
                        }
                        Err(fault) => self.note(Noted::frame(&fault)),
                    }
                }
            }
            Notice::Control(_) => {
                for session in self.members(federation) {
                    self.notified(&session, method, None, frame()).await;
                }
            }
            Notice::Judged if federation.is_bare => {
                for session in self.members(federation) {
                    self.notified(&session, method, None, frame()).await;
                }
            }
            Notice::Judged | Notice::Foreign => {
                self.note(Note::ClientNotificationDropped.into());
            }
        }
    }

    /// Gives the client's answer to the server that has asked, or to our own question.
    fn answered_by(&self, federation: &Federation, canonical: &Canonical, key: IdKey) {
        let frame = canonical.text().as_bytes();
        let asked = match id_of_server(canonical.text()) {
            Some((server, edit)) if !federation.is_bare => {
                let own = Id::from_raw(&edit.1).map(Id::key);
                let session = self.sessions.member(&federation.id, &server);
                own.zip(session)
                    .map(|(own, session)| (session, own, edited(frame, vec![edit])))
            }
            _ => None,
        };
        let is_taken = match asked {
            Some((session, own, frame)) => self.answered_in(&session, &own, &frame),
            // What a server has asked carries its name. Under an id without one that is known, another server may
            // have asked as well: it is not to learn what the first one was told.
            None if !federation.is_bare && !form::is_own(&key) => false,
            None => self
                .members(federation)
                .iter()
                .any(|session| self.answered_in(session, &key, frame)),
        };
        if !is_taken {
            self.note(Note::ClientAnswerUnknown.into());
        }
    }

    /// Gives a session an answer as the inspection for its server leaves it; whether it was taken.
    fn answered_in(&self, session: &Arc<Session>, key: &IdKey, frame: &[u8]) -> bool {
        let inspected = shapes::of_client(frame).and_then(|read| session.server.inspect(read));
        match inspected {
            Ok(inspected) => {
                let frame = inspected.map(Canonical::into_bytes);
                session.under_way.answer(&session.asker(), key, frame)
            }
            Err(fault) => {
                self.note(Noted::frame(&fault));
                false
            }
        }
    }
}
