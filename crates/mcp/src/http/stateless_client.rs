//! The client of one request of the stateless revision.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use super::{Caller, Face};
use crate::call::{Client, Work};
use crate::federation::Spelling;
use crate::notes::Noted;
use crate::reading_pool::ReadingPool;

/// Client of a request without a session: it receives the answer and nothing else.
pub(super) struct StatelessClient {
    pub face: Arc<Face>,
    pub caller: Caller,
    /// How the server's names are spelled; `None` leaves them as they are.
    pub spelling: Option<Spelling>,
}

impl Client for StatelessClient {
    fn tell(&self, _: Vec<u8>) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(std::future::ready(()))
    }

    fn post(&self, _: Vec<u8>) {}

    fn beside(&self, work: Work) {
        tokio::spawn(work);
    }

    fn gone(&self) -> Work {
        Box::pin(self.caller.revocation.revoked())
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
