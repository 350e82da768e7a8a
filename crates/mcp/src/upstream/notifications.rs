//! What a server says that belongs to no exchange, for its one reader; and that it has lost its session
//! and was asked again for what lasts.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use super::exchange::Incoming;
use super::link::Link;
use super::slot::Slot;
use crate::notes::Note;

/// Most times in a row that a server is asked again which loses its session while it is asked.
const ASKS_MAX: u8 = 3;

/// Something heard from a server.
#[derive(Debug)]
pub enum Heard {
    /// It said this.
    Said(Incoming),
    /// It had lost its session, which was opened again: its lists may be others.
    Reopened,
}

/// Hears one link of a slot.
pub struct Hearing {
    slot: Arc<Slot>,
    link: Arc<Link>,
    /// How often the server had opened its session when that was last looked at; 0 before the first time.
    epoch: u64,
    /// Asks the server again, while it is under way; gives whether it could be asked.
    asking: Option<Pin<Box<dyn Future<Output = bool> + Send>>>,
    /// How often in a row it has been asked.
    asks: u8,
}

impl Hearing {
    /// Hears this link.
    #[must_use]
    pub fn new(slot: &Arc<Slot>, link: &Arc<Link>) -> Self {
        Self {
            slot: Arc::clone(slot),
            link: Arc::clone(link),
            epoch: link.epoch(),
            asking: None,
            asks: 0,
        }
    }

    /// What comes next. Cancel-safe.
    pub async fn next(&mut self) -> Heard {
        loop {
            let is_asking = self.asking.is_some();
            tokio::select! {
                was_asked = settled(&mut self.asking) => {
                    self.asking = None;
                    if self.is_lost_again(was_asked) {
                        self.asking = Some(self.again());
                        return Heard::Reopened;
                    }
                }
                epoch = self.link.reopened(self.epoch), if !is_asking => {
                    let is_first = self.epoch == 0;
                    self.epoch = epoch;
                    if is_first {
                        continue;
                    }
                    self.link.note(Note::ServerSessionReopened.into());
                    self.asks = 1;
                    self.asking = Some(self.again());
                    return Heard::Reopened;
                }
                incoming = self.link.unsolicited() => return Heard::Said(incoming),
            }
        }
    }

    /// Whether the session was lost and opened again while the server was asked, so that it may have forgotten
    /// what it was asked first. A server that refuses, or loses every session over it, is not asked for ever.
    fn is_lost_again(&mut self, was_asked: bool) -> bool {
        let epoch = self.link.epoch();
        let is_lost = was_asked && epoch != self.epoch;
        self.epoch = epoch;
        if is_lost && self.asks >= ASKS_MAX {
            self.link.note(Note::ServerRefusesAgain.with(format!(
                "the server lost its session {ASKS_MAX} times in a row while it was asked again for a log level or subscription; it may have forgotten them"
            )));
            return false;
        }
        self.asks += u8::from(is_lost);
        is_lost
    }

    fn again(&self) -> Pin<Box<dyn Future<Output = bool> + Send>> {
        let (slot, link) = (Arc::clone(&self.slot), Arc::clone(&self.link));
        Box::pin(async move {
            let asked = slot.ask_again(&link).await;
            if let Err(failure) = &asked {
                let fault = failure.fault.sentence();
                link.note(Note::ServerRefusesAgain.with(format!(
                    "the server that opened its session again could not be asked for a log level or subscription that it had taken before: {fault}"
                )));
            }
            asked.is_ok()
        })
    }
}

async fn settled(asking: &mut Option<Pin<Box<dyn Future<Output = bool> + Send>>>) -> bool {
    match asking {
        Some(asking) => asking.await,
        None => std::future::pending().await,
    }
}
