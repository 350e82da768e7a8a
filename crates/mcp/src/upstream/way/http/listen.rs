//! The stream of messages that belong to no call (Legacy: GET).

use std::sync::Arc;
use std::time::Duration;

use net::outbound::http::StatusCode;
use tokio::sync::{mpsc, oneshot};

use super::open::stream_of;
use super::renew;
use super::session::HttpSession;

/// Shortest, usual and longest wait before the stream is asked for again, in milliseconds.
const AGAIN_MS: (u64, u64, u64) = (100, 1_000, 30_000);
/// After so many failures in a row the stream is asked for again only when the session is opened again.
const FAILURES_MAX: u32 = 10;

impl HttpSession {
    /// Reads the server's own stream into `sink` until nobody takes it any more or the server has
    /// none. To be started once the session is open. `opened` is told once the stream is open, or was
    /// refused.
    pub(super) async fn listen(
        self: Arc<Self>,
        sink: mpsc::Sender<Vec<u8>>,
        opened: oneshot::Sender<()>,
    ) {
        let mut opened = Some(opened);
        let mut openings = self.openings();
        let mut place: Option<String> = None;
        let mut failures = 0;
        loop {
            let generation = *openings.borrow_and_update();
            let mut wait_ms = AGAIN_MS.1;
            let reply = self.get(place.as_deref()).await;
            if let Some(opened) = opened.take() {
                // Whoever no longer waits has told the server already.
                let _ = opened.send(());
            }
            match reply {
                Ok(reply) if reply.status() == StatusCode::METHOD_NOT_ALLOWED => return,
                Ok(reply) if reply.status() == StatusCode::NOT_FOUND => {
                    place = None;
                    failures += 1;
                    if self.has_session() {
                        // A call that comes meanwhile sees for itself whether this went well.
                        drop(renew::renew(&self, generation).await);
                    }
                }
                Ok(reply) => match stream_of(&self, reply) {
                    Ok(mut events) => {
                        self.listens(Some(generation));
                        while let Ok(Some(frame)) = events.next().await {
                            failures = 0;
                            if sink.send(frame).await.is_err() {
                                return;
                            }
                        }
                        self.listens(None);
                        failures += 1;
                        place = events.parser.last_event_id().map(str::to_owned).or(place);
                        wait_ms = events.parser.retry_ms().unwrap_or(wait_ms);
                    }
                    Err(_) => failures += 1,
                },
                Err(_) => failures += 1,
            }
            if failures >= FAILURES_MAX {
                failures = 0;
                tokio::select! {
                    changed = openings.changed() => if changed.is_err() { return },
                    () = sink.closed() => return,
                }
                continue;
            }
            let wait = Duration::from_millis(wait_ms.clamp(AGAIN_MS.0, AGAIN_MS.2));
            tokio::select! {
                () = tokio::time::sleep(wait) => {}
                () = sink.closed() => return,
            }
        }
    }
}
