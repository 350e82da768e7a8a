//! Opening a session with each server, at once and later.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use gate::Caller;
use gate::journal::EndReason;
use share::SharePermit;
use tokio::task::JoinSet;
use toolkit::Trace;
use wire::jsonrpc::{member, string};
use wire::scan::Scan;
use wire::{Era, Revision};

use super::super::Face;
use super::super::legacy::{Introduction, NotOpened, ToOpen};
use super::super::session::Member;
use super::super::streams::{NEWS, Streams};
use super::{Absent, Federation};
use crate::call::Server;
use crate::federation::{Missing, merged};
use crate::message::announced::KINDS;
use crate::message::era;
use crate::message::frames::{Failure, UpstreamFault};
use crate::message::reply::Reply;
use crate::message::request;

/// How long the answer to `initialize` waits for the servers, in milliseconds. One that takes longer joins later.
const OPEN_WAIT_MS: u64 = 10_000;

/// What a federation is opened with.
pub(super) struct Opening<'o> {
    pub id: Arc<str>,
    pub caller: &'o Caller,
    pub permit: Option<SharePermit>,
    pub streams: Arc<Streams>,
    pub initialize: Vec<u8>,
    pub scan: &'o Scan<'o>,
}

impl Face {
    /// Opens a session with each server; gives the result of `initialize`.
    pub(super) fn federate(self: &Arc<Self>, opening: Opening<'_>) -> Arc<Federation> {
        let asked = member(&opening.scan.params, "protocolVersion").and_then(string);
        let asked = asked.and_then(|version| Revision::parse(&version));
        let servers = self.all_servers().len();
        let federation = Arc::new(Federation {
            id: opening.id,
            caller: Caller {
                // What it took belongs to this request alone.
                identity_ns: 0,
                ..opening.caller.clone()
            },
            _permit: opening.permit,
            streams: opening.streams,
            client: Introduction::of(opening.scan),
            initialize: opening.initialize,
            revision: asked
                .filter(|revision| revision.era() == Era::Legacy)
                .unwrap_or(Revision::V2025_11_25),
            is_bare: self.options.prefix.is_bare(servers),
            missing: Mutex::new(BTreeMap::new()),
            initialized: Mutex::default(),
            level: Mutex::default(),
            is_open: AtomicBool::new(false),
            memory: self.memories.of_client(),
            used_ns: AtomicU64::new(self.gate.mono_ns()),
        });
        let mut all = self.federations.map();
        all.insert(Arc::clone(&federation.id), Arc::clone(&federation));
        drop(all);
        federation
    }

    /// Asks each server for a session, for a bounded time; gives what the client is answered.
    pub(super) async fn joined_result(self: &Arc<Self>, federation: &Arc<Federation>) -> String {
        let mut joining = JoinSet::new();
        for server in self.servers_of(&federation.caller) {
            joining.spawn(self.joining(federation, server));
        }
        let mut results = BTreeMap::new();
        let all = async {
            while let Some(joined) = joining.join_next().await {
                if let Ok(Some((server, result))) = joined {
                    results.insert(server, result);
                }
            }
        };
        let wait = Duration::from_millis(OPEN_WAIT_MS);
        // Those that take longer go on, and join when they are ready.
        drop(tokio::time::timeout(wait, all).await);
        joining.detach_all();
        federation.is_open.store(true, Ordering::Release);
        let missing: Vec<Missing> = self.missing_of(federation);
        let results: Vec<(String, String)> = results.into_iter().collect();
        merged(federation.revision, &results, &missing)
    }

    /// The servers that have no session, and why; those that may be tried again are.
    pub(super) fn missing_of(self: &Arc<Self>, federation: &Arc<Federation>) -> Vec<Missing> {
        let now_ns = self.gate.mono_ns();
        let mut missing = Vec::new();
        for server in self.servers_of(&federation.caller) {
            if self.sessions.member(&federation.id, &server.name).is_some() {
                continue;
            }
            // A further server would need names that the client was not told.
            if federation.is_bare && !federation.missing().contains_key(&server.name) {
                continue;
            }
            let (why, is_due) = {
                let mut absent = federation.missing();
                match absent.get_mut(&server.name) {
                    Some(known) => {
                        let age_ns = now_ns.saturating_sub(known.tried_ns);
                        let is_due = !known.is_being_tried && age_ns >= super::RETRY_MS * 1_000_000;
                        known.is_being_tried |= is_due;
                        (known.why.clone(), is_due)
                    }
                    None => (starting(&server.name), true),
                }
            };
            if is_due {
                tokio::spawn(self.joining(federation, server));
            }
            missing.push(why);
        }
        missing
    }

    /// Opens a session with a server; gives its name and its answer to `initialize`.
    fn joining(
        self: &Arc<Self>,
        federation: &Arc<Federation>,
        server: Arc<Server>,
    ) -> impl Future<Output = Option<(String, String)>> + Send + use<> {
        let (face, federation) = (Arc::clone(self), Arc::clone(federation));
        let now_ns = face.gate.mono_ns();
        federation
            .missing()
            .entry(Arc::clone(&server.name))
            .and_modify(|known| (known.tried_ns, known.is_being_tried) = (now_ns, true))
            .or_insert_with(|| Absent {
                why: starting(&server.name),
                tried_ns: now_ns,
                is_being_tried: true,
            });
        async move {
            let asked = ToOpen {
                server: &server,
                caller: &federation.caller,
                session_id: Arc::clone(&federation.id),
                client: federation.client.clone(),
                permit: None,
                member: Some(Member {
                    streams: Arc::clone(&federation.streams),
                    spelling: federation.spelling(&server),
                }),
            };
            let frame = federation.initialize.clone();
            let begun = face.begin_session(asked, frame).await;
            let (session, result) = match begun {
                Ok(begun) => begun,
                Err(why) => {
                    face.stays_away(&federation, &server, &why);
                    return None;
                }
            };
            let agreed = request::version_of(&result);
            if agreed.is_none_or(|revision| revision.era() != Era::Legacy) {
                face.end(&session, EndReason::Normal);
                face.stays_away(
                    &federation,
                    &server,
                    &NotOpened::Unreached(UpstreamFault::EraMismatch.into()),
                );
                return None;
            }
            if !face.federations.map().contains_key(&federation.id) {
                // The client has gone meanwhile.
                face.end(&session, EndReason::Normal);
                return None;
            }
            federation.missing().remove(&server.name);
            face.catches_up(&federation, &session).await;
            Some((server.name.to_string(), result))
        }
    }

    /// Tells a server what its client has said before it was there, and the client that there is more.
    async fn catches_up(self: &Arc<Self>, federation: &Federation, session: &Arc<super::Session>) {
        let Some(initialized) = federation.initialized() else {
            return;
        };
        self.notified(session, "notifications/initialized", None, initialized)
            .await;
        if let Some(level) = federation
            .level()
            .filter(|_| session.abilities.has("logging"))
        {
            let arrival = (self.gate.mono_ns(), Trace::default());
            // A server that refuses it tells the journal, and nobody waits for its answer.
            drop(self.element(session, level, arrival).await);
        }
        if federation.is_open.load(Ordering::Acquire) {
            // Any list may be longer now.
            for (_, method, _) in KINDS {
                let frame = format!("{{\"jsonrpc\":\"2.0\",\"method\":\"{method}\"}}");
                federation.streams.post(NEWS, frame.as_bytes());
            }
        }
    }

    fn stays_away(&self, federation: &Federation, server: &Server, why: &NotOpened) {
        let (reason, message) = match why {
            NotOpened::Unreached(failure) => words(failure),
            NotOpened::Refused(reply) => refused(reply),
        };
        tracing::warn!(server = %server.name, reason, "the server cannot be used: {message}");
        let absent = Absent {
            why: Missing {
                server: server.name.to_string(),
                reason,
                message,
            },
            tried_ns: self.gate.mono_ns(),
            is_being_tried: false,
        };
        federation
            .missing()
            .insert(Arc::clone(&server.name), absent);
    }
}

pub(super) fn starting(server: &Arc<str>) -> Missing {
    Missing {
        server: server.to_string(),
        reason: "upstream_starting".into(),
        message: "the server is being started".into(),
    }
}

pub(super) fn words(failure: &Failure) -> (String, String) {
    let sentence = failure.fault.sentence();
    let message = match &failure.detail {
        Some(detail) => format!("{sentence}: {detail}"),
        None => sentence.to_owned(),
    };
    (failure.fault.label().to_owned(), message)
}

fn refused(reply: &Reply) -> (String, String) {
    if era::is_mismatch(Era::Legacy, era::Asked::Initialize, reply.payload()) {
        return words(&UpstreamFault::EraMismatch.into());
    }
    let message = "the server refuses to open a session";
    ("refused_by_server".into(), message.into())
}
