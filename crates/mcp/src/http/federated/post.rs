//! Requests over HTTP for all servers.

use std::sync::Arc;

use ::http::{HeaderMap, HeaderValue, Method, StatusCode};
use gate::Caller;
use gate::journal::EndReason;
use net::http::server::{Request, Response};
use toolkit::Trace;
use wire::jsonrpc::Kind;
use wire::{Canonical, WireError};

use super::super::Face;
use super::super::answer::{self, SESSION_ID};
use super::super::legacy::listening;
use super::super::modern::Meta;
use super::super::post::{is_modern, salvaged};
use super::super::refused::Refused;
use super::Federation;
use super::messages::Routed;
use super::open::Opening;
use crate::call::Server;
use crate::message::{batch, shapes};

impl Face {
    /// Answers a request for all servers at once.
    pub async fn handle_all(self: &Arc<Self>, caller: &Caller, request: Request) -> Response {
        let received_ns = self.gate.mono_ns();
        match request.head.method {
            Method::POST => self.post_to_all(caller, request, received_ns).await,
            Method::GET => self.listen_to_all(caller, &request),
            Method::DELETE => match self.federation(caller, &request.head.headers) {
                Ok(federation) => {
                    self.end_federation(&federation, EndReason::Normal);
                    let mut response = answer::accepted();
                    *response.status_mut() = StatusCode::NO_CONTENT;
                    response
                }
                Err(response) => *response,
            },
            _ => answer::not_allowed("GET, POST, DELETE"),
        }
    }

    async fn post_to_all(
        self: &Arc<Self>,
        caller: &Caller,
        mut request: Request,
        received_ns: u64,
    ) -> Response {
        let body = match self.body(&mut request).await {
            Ok(body) => body,
            Err(response) => return *response,
        };
        let headers = &request.head.headers;
        let arrival = (received_ns, Trace::of(headers));
        match shapes::of_client(&body.bytes) {
            Ok(canonical) => {
                let _permit = body.into_permit();
                self.take_for_all(caller, headers, canonical, arrival).await
            }
            Err(fault) => self.bad_frame(&body.bytes, &fault),
        }
    }

    async fn take_for_all(
        self: &Arc<Self>,
        caller: &Caller,
        headers: &HeaderMap,
        canonical: Canonical,
        arrival: (u64, Trace),
    ) -> Response {
        if let Some(elements) = canonical.batch() {
            let elements = elements.map(|e| e.as_bytes().to_vec()).collect();
            return self.batch_for_all(caller, headers, elements, arrival).await;
        }
        let envelope = match canonical.envelope() {
            Ok(envelope) => envelope,
            Err(fault) => return self.bad_frame(canonical.text().as_bytes(), &fault),
        };
        let meta = Meta::of(&canonical.scan());
        let is_modern = is_modern(headers, &meta);
        if is_modern && let Some(server) = self.only_server(caller) {
            drop(envelope);
            return self
                .take_for_one(&server, caller, headers, canonical, arrival)
                .await;
        }
        match &envelope.kind {
            // Who has a session keeps it: its servers may come back with a reload.
            Kind::Request { id, method }
                if (is_modern || method == "initialize") && self.is_closed_to(caller) =>
            {
                let refused = Refused::KeyReachesNoServer;
                self.note(refused.into());
                answer::refusal(id.raw(), refused, refused.sentence())
            }
            Kind::Request { id, method } if is_modern => {
                let (from, of) = ((caller, headers), (id.raw(), &**method));
                let answer = self.take_alone(from, &canonical, meta, of, arrival);
                Box::pin(answer).await
            }
            // Of no session, as at the URL of one server.
            Kind::Notification { .. } if is_modern => answer::accepted(),
            Kind::Request { id, method } if method == "initialize" => {
                self.open_all(caller, id.raw(), &canonical).await
            }
            kind => {
                let federation = match self.federation(caller, headers) {
                    Ok(federation) => federation,
                    Err(response) => return *response,
                };
                match kind {
                    Kind::Request { id, method } => {
                        let of = (*id, &**method);
                        match self.routed(&federation, &canonical, of, &arrival).await {
                            Routed::Answer(frame) => answer::json(StatusCode::OK, frame),
                            Routed::Message(session, mut message, frame) => {
                                message.identified(caller.identity_ns);
                                let of = (&session.server, caller);
                                self.taken(message, frame, of, arrival).await
                            }
                        }
                    }
                    kind => {
                        self.told_all(&federation, &canonical, kind).await;
                        answer::accepted()
                    }
                }
            }
        }
    }

    /// Whether there are servers, and none of them is for this caller.
    fn is_closed_to(&self, caller: &Caller) -> bool {
        self.servers_of(caller).is_empty() && !self.all_servers().is_empty()
    }

    /// The server of all requests, where there is one and its names stay as they are.
    fn only_server(&self, caller: &Caller) -> Option<Arc<Server>> {
        let is_bare = self.options.prefix.is_bare(self.all_servers().len());
        is_bare.then(|| self.servers_of(caller).pop()).flatten()
    }

    /// Takes a message without a session, as that server's own URL does.
    async fn take_for_one(
        self: &Arc<Self>,
        server: &Arc<Server>,
        caller: &Caller,
        headers: &HeaderMap,
        canonical: Canonical,
        arrival: (u64, Trace),
    ) -> Response {
        let id = salvaged(canonical.text().as_bytes());
        match server.inspect(canonical) {
            Ok(inspected) => {
                self.take((server, caller), headers, inspected, arrival)
                    .await
            }
            Err(fault) => self.bad_message(id, &fault),
        }
    }

    async fn open_all(
        self: &Arc<Self>,
        caller: &Caller,
        id: &str,
        canonical: &Canonical,
    ) -> Response {
        let Some(permit) = self.session_permit(caller) else {
            let refused = Refused::TooManySessions;
            self.note(refused.into());
            return answer::refusal(id, refused, refused.sentence());
        };
        let session_id: Arc<str> = match self.lot.random() {
            Ok(random) => random.into(),
            Err(error) => {
                tracing::error!("no randomness for a session id: {error}");
                return answer::fault(Refused::NoRandomness);
            }
        };
        let header = HeaderValue::from_str(&session_id);
        let federation = self.federate(Opening {
            id: session_id,
            caller,
            permit: Some(permit),
            streams: Arc::default(),
            initialize: canonical.text().as_bytes().to_vec(),
            scan: &canonical.scan(),
        });
        let result = self.joined_result(&federation).await;
        let mut response = answer::json(StatusCode::OK, super::lists::result(id, &result));
        if let Ok(header) = header {
            response.headers_mut().insert(&SESSION_ID, header);
        }
        response
    }

    /// The session that a request names.
    fn federation(
        &self,
        caller: &Caller,
        headers: &HeaderMap,
    ) -> Result<Arc<Federation>, Box<Response>> {
        let federation = self.named_session(headers, |id| {
            let found = self.federations.map().get(id).cloned();
            // Of another caller's it is not even said that it exists.
            found.filter(|of| of.caller.subject == caller.subject)
        })?;
        federation.touch(self.gate.about_ns());
        Ok(federation)
    }

    fn listen_to_all(&self, caller: &Caller, request: &Request) -> Response {
        let session = |headers: &HeaderMap| self.federation(caller, headers);
        listening(request, session, |federation| &federation.streams)
    }

    async fn batch_for_all(
        self: &Arc<Self>,
        caller: &Caller,
        headers: &HeaderMap,
        elements: Vec<Vec<u8>>,
        arrival: (u64, Trace),
    ) -> Response {
        let federation = match self.federation(caller, headers) {
            Ok(federation) => federation,
            Err(response) => return *response,
        };
        if let Err(fault) = federation.may_batch(elements.len()) {
            return self.bad_frame(b"", &fault);
        }
        match self.batch_of_all(&federation, elements, arrival).await {
            Some(frame) => answer::json(StatusCode::OK, frame),
            None => answer::accepted(),
        }
    }

    /// Takes the messages of a batch at once; gives the answers when all are answered.
    pub(super) async fn batch_of_all(
        self: &Arc<Self>,
        federation: &Arc<Federation>,
        elements: Vec<Vec<u8>>,
        arrival: (u64, Trace),
    ) -> Option<Vec<u8>> {
        let mut running = tokio::task::JoinSet::new();
        for element in elements {
            let (face, federation) = (Arc::clone(self), Arc::clone(federation));
            let arrival = arrival.clone();
            running.spawn(async move { face.one_of_all(&federation, &element, arrival).await });
        }
        let answers: Vec<Vec<u8>> = running.join_all().await.into_iter().flatten().collect();
        batch::joined(&answers)
    }
}

impl Federation {
    /// Whether its client may send this many messages in one.
    pub(super) fn may_batch(&self, length: usize) -> Result<(), WireError> {
        batch::fits(Some(self.revision.has_batches()), length)
    }
}
