//! The call as a signed message over HTTP ([`crate::signed`]).

use std::time::Duration;

use net::outbound::http::{HttpClient, HttpOptions};
use tokio::time::Instant;

use crate::config::notify::Webhook;
use crate::signed::Key;

/// How long one try may take, in milliseconds.
const TRY_MS_MAX: u64 = 5_000;
/// Waits before the second try and the following ones, in milliseconds.
const PAUSES_MS: [u64; 4] = [500, 1_000, 2_000, 4_000];

/// Posts to one address.
pub(super) struct Sender {
    client: HttpClient,
    key: Key,
}

/// How a try ended.
enum Tried {
    Done,
    /// Another try may help.
    Again(String),
    /// No other try will.
    Refused(String),
}

impl Sender {
    pub fn new(webhook: &Webhook) -> Result<Self, String> {
        let options = HttpOptions {
            connections_max: super::UNDER_WAY_MAX,
            ..HttpOptions::default()
        };
        let client = HttpClient::new(webhook.target.clone(), &options);
        Ok(Self {
            client: client.map_err(|error| error.to_string())?,
            key: Key::new(&webhook.secret),
        })
    }

    /// Posts a message; tries again while the call waits, for at most `time`.
    pub async fn post(&self, body: &str, time: Duration, waits: &(dyn Fn() -> bool + Sync)) {
        let end = Instant::now() + time;
        let mut pauses = PAUSES_MS.into_iter();
        loop {
            let why = match self.try_once(body).await {
                Tried::Done => return,
                Tried::Refused(why) => {
                    tracing::warn!("approval.notify.webhook: {why}; not sent again");
                    return;
                }
                Tried::Again(why) => why,
            };
            let next = pauses.next().map(Duration::from_millis);
            let Some(pause) = next.filter(|pause| Instant::now() + *pause < end && waits()) else {
                tracing::warn!("approval.notify.webhook: {why}; given up");
                return;
            };
            tokio::time::sleep(pause).await;
        }
    }

    async fn try_once(&self, body: &str) -> Tried {
        let outgoing = self.key.message(&self.client, body.to_owned(), TRY_MS_MAX);
        match self.client.send(outgoing).await {
            Ok(reply) => match reply.status() {
                status if status.is_success() => Tried::Done,
                status if status.is_server_error() || status.as_u16() == 429 => {
                    Tried::Again(format!("answered {status}"))
                }
                status => Tried::Refused(format!("answered {status}")),
            },
            Err(fault) => Tried::Again(fault.to_string()),
        }
    }
}
