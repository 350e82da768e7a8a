//! Lists of all servers as one.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tokio::task::JoinSet;
use toolkit::Trace;

use super::super::Face;
use super::super::session::Session;
use super::Federation;
use crate::call::{Basis, ToList};
use crate::federation::{Cursor, Merged, Missing, Part};
use crate::message::frames;
use crate::message::method::List;

/// How long a list waits for each server, in milliseconds.
const LIST_WAIT_MS: u64 = 10_000;

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
    pub(super) async fn listed_of_all(
        self: &Arc<Self>,
        federation: &Arc<Federation>,
        asked: Asked<'_>,
    ) -> Vec<u8> {
        let id = asked.id;
        let is_of_tools = asked.list == List::Tools && asked.cursor.is_none();
        match self.merged_of_all(federation, asked).await {
            Ok(merged) if is_of_tools => self.shortened(merged).answer(id),
            Ok(merged) => merged.answer(id),
            Err(answer) => answer,
        }
    }

    /// The lists of all servers as one; or the answer where the cursor is not valid.
    pub(super) async fn merged_of_all(
        self: &Arc<Self>,
        federation: &Arc<Federation>,
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
        let mut merged = Merged::new(asked.list);
        if after.is_none() {
            for missing in self.missing_of(federation) {
                merged.lacks(missing);
            }
        }
        let mut listing = JoinSet::new();
        let members = self.members(federation);
        let mut parts: Vec<Option<Made>> = members.iter().map(|_| None).collect();
        let mut remembered = 0;
        for (at, session) in members.iter().enumerate() {
            let cursor = match &after {
                None => None,
                Some(after) => match after.0.get(&*session.server.name) {
                    None => continue,
                    some => some.cloned(),
                },
            };
            if !session.abilities.lists(asked.list) {
                continue;
            }
            if after.is_none()
                && let Some(part) = remembered_by(federation, session, &asked)
                && let Some(place) = parts.get_mut(at)
            {
                *place = Some((part, None));
                remembered += 1;
                continue;
            }
            listing.spawn(self.part(at, session, &asked, cursor));
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
        for (session, made) in members.iter().zip(parts) {
            if let Some((part, basis)) = made {
                if let Some(basis) = basis {
                    let memory = &federation.memory;
                    memory.keep(asked.list, session, basis, &part, now_ns);
                }
                merged.take(&session.server.name, part);
            }
        }
        Ok(merged)
    }

    /// Works out the part of a session in a list; gives it with its place.
    fn part(
        self: &Arc<Self>,
        at: usize,
        session: &Arc<Session>,
        asked: &Asked<'_>,
        cursor: Option<String>,
    ) -> impl Future<Output = (usize, Option<Made>)> + Send + use<> {
        let (face, session) = (Arc::clone(self), Arc::clone(session));
        let (list, frame, arrival) = (asked.list, frame(asked, cursor), asked.arrival.clone());
        async move {
            let answer = face.in_time(&session, frame, arrival).await;
            // Read here, beside the others.
            let made = answer.map(|(answer, basis)| {
                let part = Part::of(list, session.spelling(), &answer);
                (part, basis)
            });
            (at, made)
        }
    }

    async fn in_time(
        self: &Arc<Self>,
        session: &Arc<Session>,
        frame: Vec<u8>,
        arrival: (u64, Trace),
    ) -> Option<(Vec<u8>, Option<Basis>)> {
        let wait = Duration::from_millis(LIST_WAIT_MS);
        let answer = self.element_resting(session, frame, arrival);
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
                    let (answer, _) = face.in_time(&session, frame, arrival).await?;
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
fn remembered_by(
    federation: &Federation,
    session: &Arc<Session>,
    asked: &Asked<'_>,
) -> Option<Part> {
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

fn frame(asked: &Asked<'_>, cursor: Option<String>) -> Vec<u8> {
    let params = match cursor {
        Some(cursor) => json!({ "cursor": cursor }),
        None => json!({}),
    };
    format!(
        "{{\"jsonrpc\":\"2.0\",\"id\":{},\"method\":\"{}\",\"params\":{params}}}",
        asked.id, asked.method
    )
    .into_bytes()
}

/// A name at `/mcp` that names no server.
pub(super) fn unknown(spelled: &str, members: &[Arc<Session>], is_tool: bool) -> String {
    let shown: String = spelled.chars().take(128).collect();
    let mut message = format!(
        "\"{}\" does not name a server: names begin with SERVER__ and URIs with SERVER+",
        shown.escape_debug()
    );
    let has = |session: &&Arc<Session>| is_tool && session.server.has_listed(spelled);
    let known: Vec<String> = members
        .iter()
        .filter(has)
        .filter_map(|session| Some(session.spelling()?.name(spelled)))
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
