//! Lists of all servers as one.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tokio::task::JoinSet;
use toolkit::Trace;
use wire::Era;

use super::super::Face;
use super::super::session::Session;
use super::Federation;
use super::alone::{Alone, Reached};
use crate::call::{Basis, Server, ToList};
use crate::federation::{Cursor, Merged, Missing, Part, Spelling};
use crate::message::frames;
use crate::message::method::List;

/// How long a list waits for each server, in milliseconds.
pub(super) const LIST_WAIT_MS: u64 = 10_000;

/// Who asks all servers.
#[derive(Clone, Copy)]
pub(super) enum Who<'w> {
    /// A client in its session.
    Session(&'w Arc<Federation>),
    /// One without a session, by this request.
    Alone(&'w Arc<Alone>),
}

impl Who<'_> {
    pub fn era(&self) -> Era {
        match self {
            Self::Session(_) => Era::Legacy,
            Self::Alone(_) => Era::Modern,
        }
    }
}

/// A server as whoever asks all of them reaches it.
#[derive(Clone)]
pub(super) enum Reach {
    Session(Arc<Session>),
    Alone(Arc<Alone>, Reached),
}

impl Reach {
    fn server(&self) -> &Arc<Server> {
        match self {
            Self::Session(session) => &session.server,
            Self::Alone(_, reached) => &reached.server,
        }
    }

    fn spelling(&self) -> Option<&Spelling> {
        match self {
            Self::Session(session) => session.spelling(),
            Self::Alone(_, reached) => Some(&reached.spelling),
        }
    }

    /// Whether the server is to be asked for a list of this kind.
    fn lists(&self, list: List) -> bool {
        match self {
            Self::Session(session) => session.abilities.lists(list),
            // It says so in its answer.
            Self::Alone(..) => true,
        }
    }
}

/// The servers of whoever asks, and those that cannot be asked.
pub(super) type Group = (Vec<Reach>, Vec<Missing>);

/// A request for a list.
pub(super) struct Asked<'l> {
    pub list: List,
    pub method: &'l str,
    pub id: &'l str,
    /// The cursor as the client shows it.
    pub cursor: Option<String>,
    pub arrival: (u64, Trace),
}

/// A server's part in a list, and what it rests on where it may be remembered.
type Made = (Part, Option<Basis>);

impl Face {
    /// The answer to a request for a list.
    pub(super) async fn listed_of_all(self: &Arc<Self>, who: Who<'_>, asked: Asked<'_>) -> Vec<u8> {
        let id = asked.id;
        let is_of_tools = asked.list == List::Tools && asked.cursor.is_none();
        match self.merged_of_all(who, asked).await {
            Ok(merged) if is_of_tools => self.shortened(merged).answer(id),
            Ok(merged) => merged.answer(id),
            Err(answer) => answer,
        }
    }

    /// The lists of all servers as one; or the answer where the cursor is not valid.
    pub(super) async fn merged_of_all(
        self: &Arc<Self>,
        who: Who<'_>,
        asked: Asked<'_>,
    ) -> Result<Merged, Vec<u8>> {
        let after = match asked.cursor.as_deref().map(Cursor::read) {
            Some(None) => {
                let message = "the cursor is not one that this server gave out";
                return Err(frames::error(asked.id, -32602, message, None));
            }
            Some(cursor) => cursor,
            None => None,
        };
        let mut merged = Merged::new(asked.list, who.era());
        let (members, missing) = self.group(who, asked.id, after.is_none()).await?;
        if after.is_none() {
            missing.into_iter().for_each(|one| merged.lacks(one));
        }
        let mut listing = JoinSet::new();
        let mut parts: Vec<Option<Made>> = members.iter().map(|_| None).collect();
        let mut remembered = 0;
        for (at, member) in members.iter().enumerate() {
            let cursor = match &after {
                None => None,
                Some(after) => match after.0.get(&*member.server().name) {
                    None => continue,
                    some => some.cloned(),
                },
            };
            if !member.lists(asked.list) {
                continue;
            }
            if after.is_none()
                && let Some(part) = remembered_by(who, member, &asked)
                && let Some(place) = parts.get_mut(at)
            {
                *place = Some((part, None));
                remembered += 1;
                continue;
            }
            listing.spawn(self.part(at, member, &asked, cursor));
        }
        self.memories.count(remembered, listing.len());
        while let Some(joined) = listing.join_next().await {
            if let Ok((at, made)) = joined
                && let Some(place) = parts.get_mut(at)
            {
                *place = made;
            }
        }
        let now_ns = self.gate.mono_ns();
        for (member, made) in members.iter().zip(parts) {
            if let Some((part, basis)) = made {
                if let (Some(basis), Who::Session(federation), Reach::Session(session)) =
                    (basis, who, member)
                {
                    let memory = &federation.memory;
                    memory.keep(asked.list, session, basis, &part, now_ns);
                }
                merged.take(&member.server().name, part);
            }
        }
        Ok(merged)
    }

    /// The servers to ask; those that are missing are looked for where `is_first`. The error is the answer where none
    /// can be asked in the client's era.
    async fn group(
        self: &Arc<Self>,
        who: Who<'_>,
        id: &str,
        is_first: bool,
    ) -> Result<Group, Vec<u8>> {
        match who {
            Who::Session(federation) => {
                let missing = match is_first {
                    true => self.missing_of(federation),
                    false => Vec::new(),
                };
                let members = self.members(federation).into_iter().map(Reach::Session);
                Ok((members.collect(), missing))
            }
            Who::Alone(alone) => {
                let (reached, missing) = self.reached_by(alone, id).await?;
                let members = reached
                    .into_iter()
                    .map(|reached| Reach::Alone(Arc::clone(alone), reached));
                Ok((members.collect(), missing))
            }
        }
    }

    /// Works out the part of a server in a list; gives it with its place.
    fn part(
        self: &Arc<Self>,
        at: usize,
        member: &Reach,
        asked: &Asked<'_>,
        cursor: Option<String>,
    ) -> impl Future<Output = (usize, Option<Made>)> + Send + use<> {
        let (face, member) = (Arc::clone(self), member.clone());
        let meta = match &member {
            Reach::Session(_) => None,
            Reach::Alone(alone, _) => Some(&*alone.meta),
        };
        let frame = frame(asked, cursor, meta);
        let (list, arrival) = (asked.list, asked.arrival.clone());
        async move {
            let answer = face.in_time(&member, frame, arrival).await;
            // Read here, beside the others.
            let made = answer.map(|(answer, basis)| {
                let part = Part::of(list, member.spelling(), &answer);
                (part, basis)
            });
            (at, made)
        }
    }

    pub(super) async fn in_time(
        self: &Arc<Self>,
        member: &Reach,
        frame: Vec<u8>,
        arrival: (u64, Trace),
    ) -> Option<(Vec<u8>, Option<Basis>)> {
        let wait = Duration::from_millis(LIST_WAIT_MS);
        let answer = async {
            match member {
                Reach::Session(session) => self.element_resting(session, frame, arrival).await,
                Reach::Alone(alone, reached) => {
                    self.asked_alone(alone, reached, frame, arrival).await
                }
            }
        };
        let answer = tokio::time::timeout(wait, answer).await;
        answer.unwrap_or_else(|_| {
            let fault = frames::UpstreamFault::Timeout;
            Some((frames::upstream_fault("null", fault), None))
        })
    }

    /// The answer to `logging/setLevel`: each server that logs is asked.
    pub(super) async fn level_of_all(
        self: &Arc<Self>,
        federation: &Federation,
        id: &str,
        frame: Vec<u8>,
        arrival: (u64, Trace),
    ) -> Vec<u8> {
        let mut asked = JoinSet::new();
        for session in self.members(federation) {
            if session.abilities.has("logging") {
                let (face, frame, arrival) = (Arc::clone(self), frame.clone(), arrival.clone());
                asked.spawn(async move {
                    let member = Reach::Session(session);
                    let (answer, _) = face.in_time(&member, frame, arrival).await?;
                    Some(answer)
                });
            }
        }
        let answers: Vec<Vec<u8>> = asked.join_all().await.into_iter().flatten().collect();
        let is_good = |answer: &Vec<u8>| {
            serde_json::from_slice::<serde_json::Value>(answer)
                .is_ok_and(|answer| answer.get("result").is_some())
        };
        match answers.iter().position(is_good) {
            None if !answers.is_empty() => answers.into_iter().next().unwrap_or_default(),
            Some(_) | None => {
                let mut level = federation.level.lock();
                if let Ok(level) = &mut level {
                    **level = Some(frame);
                }
                result(id, "{}")
            }
        }
    }
}

/// The part of a session in a list as it was, where it would come out the same; or why this request gets none.
fn remembered_by(who: Who<'_>, member: &Reach, asked: &Asked<'_>) -> Option<Part> {
    let (Who::Session(federation), Reach::Session(session)) = (who, member) else {
        return None;
    };
    let (basis, part) = federation.memory.of(asked.list, session)?;
    let to_list = ToList {
        method: asked.method,
        id: asked.id,
        received_ns: asked.arrival.0,
        trace: &asked.arrival.1,
    };
    Some(match session.asker().lists_again(&to_list, &basis)? {
        Ok(()) => part,
        Err(refused) => Part::of(asked.list, session.spelling(), &refused),
    })
}

/// A result as a frame.
pub(super) fn result(id: &str, result: &str) -> Vec<u8> {
    format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{result}}}").into_bytes()
}

fn frame(asked: &Asked<'_>, cursor: Option<String>, meta: Option<&str>) -> Vec<u8> {
    let cursor = cursor.map(|cursor| format!("\"cursor\":{}", serde_json::Value::from(cursor)));
    let meta = meta.map(|meta| format!("\"_meta\":{meta}"));
    let params: Vec<String> = cursor.into_iter().chain(meta).collect();
    request(asked.id, asked.method, &params.join(","))
}

/// A request; `params` are members without their braces.
pub(super) fn request(id: &str, method: &str, params: &str) -> Vec<u8> {
    format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"{method}\",\"params\":{{{params}}}}}")
        .into_bytes()
}

/// A name at `/mcp` that names no server.
pub(super) fn unknown(spelled: &str, servers: &[Arc<Server>], is_tool: bool) -> String {
    let shown: String = spelled.chars().take(128).collect();
    let mut message = format!(
        "\"{}\" does not name a server: names begin with SERVER__ and URIs with SERVER+",
        shown.escape_debug()
    );
    let has = |server: &&Arc<Server>| is_tool && server.has_listed(spelled);
    let known: Vec<String> = servers
        .iter()
        .filter(has)
        .map(|server| Spelling::of(&server.name).name(spelled))
        .collect();
    if !known.is_empty() {
        message.push_str(&format!("; did you mean {}?", known.join(" or ")));
    }
    message
}

/// A server that is not there, in answer to a request for it.
pub(super) fn absent(id: &str, missing: &Missing) -> Vec<u8> {
    let message = format!(
        "the server \"{}\" is not available: {}",
        missing.server, missing.message
    );
    let data = json!({"reason": missing.reason, "server": missing.server, "retryable": true});
    frames::error(id, frames::UPSTREAM_CODE, &message, Some(&data))
}
