//! A subscription of a client of the Modern era at several servers, as one: one acknowledgement, one stream, one end.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use net::http::server::Response;
use serde_json::{Map, Value, json};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::Instant;
use toolkit::Trace;
use wire::Canonical;

use super::super::Face;
use super::super::reply::Going;
use super::alone::{Alone, Read, Unfit, whole};
use super::lists::LIST_WAIT_MS;
use crate::call::{Begun, Said};
use crate::federation::{Spelling, edited, listened_for};
use crate::message::frames::{self, UpstreamFault};
use crate::message::splice::META_SUBSCRIPTION;

/// How a server says what it will tell of.
const ACKNOWLEDGED: &str = "notifications/subscriptions/acknowledged";
/// Most news that wait, of all servers.
const NEWS_MAX: usize = 256;

/// The subscription.
pub(in crate::http) struct Listening {
    /// Its id, as its client spells it.
    id: String,
    heard: mpsc::Receiver<(usize, Said)>,
    /// It at each server, which ends with this.
    _running: JoinSet<()>,
    spellings: Vec<Spelling>,
    /// The servers that have not acknowledged it yet, and until when they are waited for.
    awaited: BTreeSet<usize>,
    until: Instant,
    /// What servers will tell of; none where no server has acknowledged it.
    accepted: Option<Map<String, Value>>,
    /// The client has the acknowledgement.
    is_acknowledged: bool,
    news: VecDeque<Vec<u8>>,
    /// How it has ended at the server where it ended last.
    ended: Option<Said>,
}

impl Face {
    /// Answers `subscriptions/listen`.
    pub(super) async fn listened(
        self: &Arc<Self>,
        alone: &Arc<Alone>,
        canonical: &Canonical,
        id: &str,
        arrival: (u64, Trace),
    ) -> Response {
        let reached = match self.reached_by(alone, id).await {
            Ok((reached, _)) => reached,
            Err(answer) => return whole(id, answer),
        };
        let mut asked = Vec::new();
        // Sessions of earlier revisions have no subscriptions of this kind.
        for one in reached.into_iter().filter(|one| !one.is_legacy()) {
            let Some(edits) = listened_for(canonical.text(), &one.spelling) else {
                continue;
            };
            let frame = edited(canonical.text().as_bytes(), edits);
            match self.read_alone(alone, &one, frame, None, &arrival) {
                Ok(read) => asked.push((one.spelling, read)),
                Err(Unfit::Frame(fault)) => {
                    return self.bad_message(Some(id.to_owned()), &fault);
                }
                Err(Unfit::Headers(why)) => {
                    return whole(id, frames::header_mismatch(id, &why));
                }
            }
        }
        if asked.is_empty() {
            let message =
                "the subscription asks for nothing of a server here: URIs begin with SERVER+";
            return whole(id, frames::error(id, -32602, message, None));
        }
        let listening = Listening::begin(id, asked);
        let going = Going::Listening(Box::new(listening));
        self.modern_answer(going, &alone.caller).await
    }
}

impl Listening {
    /// Asks each server.
    fn begin(id: &str, asked: Vec<(Spelling, Read)>) -> Self {
        let (sender, heard) = mpsc::channel(NEWS_MAX);
        let mut running = JoinSet::new();
        let mut spellings = Vec::new();
        for (at, (spelling, read)) in asked.into_iter().enumerate() {
            spellings.push(spelling);
            running.spawn(listen_at(at, read, sender.clone()));
        }
        Self {
            id: id.to_owned(),
            heard,
            _running: running,
            awaited: (0..spellings.len()).collect(),
            spellings,
            until: Instant::now() + Duration::from_millis(LIST_WAIT_MS),
            accepted: None,
            is_acknowledged: false,
            news: VecDeque::new(),
            ended: None,
        }
    }

    /// What there is for the client next. Cancel-safe.
    pub async fn next(&mut self) -> Said {
        loop {
            if self.is_acknowledged {
                if let Some(frame) = self.news.pop_front() {
                    return Said::Emit(frame);
                }
            } else if self.awaited.is_empty()
                && let Some(accepted) = &self.accepted
            {
                self.is_acknowledged = true;
                return Said::Emit(acknowledgement(&self.id, accepted));
            }
            let is_late = !self.is_acknowledged && self.accepted.is_some();
            let until = tokio::time::sleep_until(self.until);
            tokio::select! {
                biased;
                said = self.heard.recv() => match said {
                    Some((at, said)) => self.take(at, said),
                    None => return self.ended.take().unwrap_or(Said::Gone),
                },
                // Those that have answered by now are enough.
                () = until, if is_late => self.awaited.clear(),
            }
            // Servers whose rules have changed all say so.
            while let Ok((at, said)) = self.heard.try_recv() {
                self.take(at, said);
            }
        }
    }

    fn take(&mut self, at: usize, said: Said) {
        let frame = match said {
            Said::Emit(frame) => frame,
            ended => {
                self.awaited.remove(&at);
                // The first refusal says why where nobody listens; else the last one ends it.
                if self.ended.is_none() || self.accepted.is_some() {
                    self.ended = Some(ended);
                }
                return;
            }
        };
        if let Some(accepted) = accepted_in(&frame) {
            // One that comes too late is not passed on: there is one acknowledgement.
            if self.awaited.remove(&at) {
                self.accept(at, accepted);
            }
        } else if self.news.len() < NEWS_MAX && !self.news.contains(&frame) {
            self.news.push_back(frame);
        }
    }

    /// Adds what a server will tell of.
    fn accept(&mut self, at: usize, accepted: Map<String, Value>) {
        let all = self.accepted.get_or_insert_default();
        for (name, value) in accepted {
            match (value, self.spellings.get(at)) {
                (Value::Array(uris), Some(spelling)) => {
                    let spelled = uris
                        .iter()
                        .filter_map(Value::as_str)
                        .map(|uri| Value::from(spelling.uri(uri)));
                    let known = all.entry(name).or_insert_with(|| json!([]));
                    if let Some(known) = known.as_array_mut() {
                        known.extend(spelled);
                    }
                }
                (Value::Bool(true), _) => {
                    all.insert(name, true.into());
                }
                _ => {}
            }
        }
    }
}

/// Asks one server, and passes on what it says.
async fn listen_at(at: usize, (asker, asked, frame): Read, sender: mpsc::Sender<(usize, Said)>) {
    let id = asked.id().to_owned();
    let ended = match asker.begin(frame, asked, None).await {
        Begun::Answered(answer) | Begun::Full(answer) => Said::Done(answer, None),
        Begun::EraMismatch => {
            let answer = frames::upstream_fault(&id, UpstreamFault::EraMismatch);
            Said::Done(answer, None)
        }
        Begun::HeaderMismatch(why) => Said::Done(frames::header_mismatch(&id, &why), None),
        Begun::Running(mut run) => loop {
            match run.next().await {
                Said::Emit(frame) => {
                    let said = Said::Emit(run.told(frame));
                    if sender.send((at, said)).await.is_err() {
                        return;
                    }
                }
                Said::Done(answer, code) => break Said::Done(run.told(answer), code),
                Said::Gone => break Said::Gone,
            }
        },
    };
    // Nobody hears it any more where that fails.
    drop(sender.send((at, ended)).await);
}

fn acknowledgement(id: &str, accepted: &Map<String, Value>) -> Vec<u8> {
    let accepted = Value::from(accepted.clone());
    format!(
        "{{\"jsonrpc\":\"2.0\",\"method\":\"{ACKNOWLEDGED}\",\"params\":{{\"_meta\":{{\"{META_SUBSCRIPTION}\":{id}}},\"notifications\":{accepted}}}}}"
    )
    .into_bytes()
}

/// What a server will tell of, where this is its acknowledgement.
fn accepted_in(frame: &[u8]) -> Option<Map<String, Value>> {
    if !std::str::from_utf8(frame).is_ok_and(|text| text.contains(ACKNOWLEDGED)) {
        return None;
    }
    let mut message: Value = serde_json::from_slice(frame).ok()?;
    if message.get("method")?.as_str()? != ACKNOWLEDGED {
        return None;
    }
    let accepted = message.get_mut("params")?.get_mut("notifications")?.take();
    match accepted {
        Value::Object(accepted) => Some(accepted),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(servers: &[&str]) -> (Listening, mpsc::Sender<(usize, Said)>) {
        let (sender, heard) = mpsc::channel(16);
        let spellings: Vec<Spelling> = servers
            .iter()
            .map(|name| Spelling::of(&Arc::from(*name)))
            .collect();
        let listening = Listening {
            heard,
            awaited: (0..spellings.len()).collect(),
            spellings,
            ..Listening::begin("7", Vec::new())
        };
        (listening, sender)
    }

    fn acknowledged(filter: &str) -> Said {
        let accepted: Map<String, Value> = serde_json::from_str(filter).unwrap();
        Said::Emit(acknowledgement("7", &accepted))
    }

    fn text(said: Said) -> String {
        match said {
            Said::Emit(frame) | Said::Done(frame, _) => String::from_utf8(frame).unwrap(),
            Said::Gone => String::new(),
        }
    }

    #[tokio::test]
    async fn one_acknowledgement_says_what_all_servers_accept_and_comes_first() {
        let (mut listening, sender) = of(&["a_b", "c"]);
        let news = || Said::Emit(b"news".to_vec());
        let first = acknowledged(r#"{"toolsListChanged":true,"resourceSubscriptions":["x:1"]}"#);
        sender.send((0, first)).await.unwrap();
        sender.send((0, news())).await.unwrap();
        let second = acknowledged(r#"{"promptsListChanged":true,"resourceSubscriptions":["y:2"]}"#);
        sender.send((1, second)).await.unwrap();
        sender.send((1, news())).await.unwrap();
        let said: Value = serde_json::from_str(&text(listening.next().await)).unwrap();
        assert_eq!(
            said["params"]["notifications"],
            json!({"toolsListChanged": true, "promptsListChanged": true,
                "resourceSubscriptions": ["a-b+x:1", "c+y:2"]})
        );
        assert_eq!(said["params"]["_meta"][META_SUBSCRIPTION], 7);
        // What both say in one breath is said once.
        assert_eq!(text(listening.next().await), "news");
        sender.send((0, Said::Gone)).await.unwrap();
        sender
            .send((1, Said::Done(b"end".to_vec(), None)))
            .await
            .unwrap();
        drop(sender);
        assert_eq!(text(listening.next().await), "end");
    }

    #[tokio::test]
    async fn a_server_that_refuses_takes_nothing_from_the_others() {
        let (mut listening, sender) = of(&["a", "b"]);
        sender
            .send((0, Said::Done(b"no".to_vec(), None)))
            .await
            .unwrap();
        let other = acknowledged(r#"{"toolsListChanged":true}"#);
        sender.send((1, other)).await.unwrap();
        assert!(text(listening.next().await).contains("toolsListChanged"));
        let (mut listening, sender) = of(&["a", "b"]);
        for (at, answer) in ["first", "second"].into_iter().enumerate() {
            let refused = Said::Done(answer.into(), None);
            sender.send((at, refused)).await.unwrap();
        }
        drop(sender);
        assert_eq!(text(listening.next().await), "first");
    }
}
