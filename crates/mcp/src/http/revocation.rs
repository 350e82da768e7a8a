//! Callers who are no longer welcome: what they have opened ends.

use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use super::{Caller, Face};
use crate::call::{Client, Work};
use crate::federation::Spelling;
use crate::notes::Noted;
use crate::reading_pool::ReadingPool;
use gate::journal::EndReason;

/// What callers without a session have that lasts: streams, and calls that wait for a person. Calls
/// that are answered at once are not listed; they were judged while their caller was welcome.
#[derive(Debug, Default)]
pub(super) struct Stays(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    next: u64,
    /// Gone again with its [`Stay`], and so bounded by what may be under way.
    open: HashMap<u64, (Arc<str>, Arc<Notify>)>,
}

/// Something of a caller that lasts.
#[derive(Debug)]
pub(super) struct Stay {
    face: Arc<Face>,
    number: u64,
    over: Arc<Notify>,
}

impl Stays {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Stay {
    /// Ready when its caller is no longer welcome.
    pub async fn over(&self) {
        self.over.notified().await;
    }
}

impl Drop for Stay {
    fn drop(&mut self) {
        self.face.stays.state().open.remove(&self.number);
    }
}

/// A Modern client's request: no session stands behind it, and its answer is all that it is told.
pub(super) struct Passing {
    pub face: Arc<Face>,
    pub caller: Caller,
    /// How the server's names are spelled, where they are not left as they are.
    pub spelling: Option<Spelling>,
}

impl Client for Passing {
    fn tell(&self, _: Vec<u8>) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(std::future::ready(()))
    }

    fn post(&self, _: Vec<u8>) {}

    fn beside(&self, work: Work) {
        tokio::spawn(work);
    }

    fn gone(&self) -> Work {
        let stay = self.face.stay(&self.caller.subject);
        // Before anybody could be told.
        let is_over = self.caller.is_expelled();
        Box::pin(async move {
            if !is_over {
                stay.over().await;
            }
        })
    }

    fn told(&self, frame: Vec<u8>) -> Vec<u8> {
        match &self.spelling {
            Some(spelling) => spelling.of_server(frame),
            None => frame,
        }
    }

    fn is_over_http(&self) -> bool {
        true
    }

    fn reading_pool(&self) -> Option<&ReadingPool> {
        Some(&self.face.reading)
    }

    fn note(&self, noted: Noted<'_>) {
        self.face.note(noted);
    }
}

impl Face {
    /// Notes something of a caller that lasts.
    pub(super) fn stay(self: &Arc<Self>, caller: &Arc<str>) -> Stay {
        let over = Arc::new(Notify::new());
        let mut state = self.stays.state();
        state.next += 1;
        let number = state.next;
        let noted = (Arc::clone(caller), Arc::clone(&over));
        state.open.insert(number, noted);
        drop(state);
        Stay {
            face: Arc::clone(self),
            number,
            over,
        }
    }

    /// Ends what a caller has opened: sessions with their calls and streams, subscriptions, calls that
    /// wait for a person, what servers keep for the caller between requests (processes, port forwards), and what was
    /// remembered of earlier answers.
    pub fn expel(&self, subject_id: &str) {
        self.end_federations(Some(subject_id), EndReason::AuthExpired);
        for session in self.sessions.all() {
            if *session.caller.subject == *subject_id {
                self.end(&session, EndReason::AuthExpired);
            }
        }
        for (caller, over) in self.stays.state().open.values() {
            if **caller == *subject_id {
                over.notify_one();
            }
        }
        self.lot.withdraw(|caller, _| caller == subject_id);
        for server in self.all_servers() {
            server.pool.expel(subject_id);
            server.gate.approvals().forget();
        }
    }
}
