//! What a server says that belongs to no exchange, for its one reader; and that it has lost its session
//! and was asked again for what lasts.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use super::exchange::Incoming;
use super::link::Link;
use super::slot::Slot;
use crate::notes::Note;

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
    /// Asks the server again, while it is under way.
    asking: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
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
        }
    }

    /// What comes next. Cancel-safe.
    pub async fn next(&mut self) -> Heard {
        loop {
            let is_asking = self.asking.is_some();
            tokio::select! {
                () = settled(&mut self.asking) => {
                    self.asking = None;
                    // What was lost while it was asked is seen by the next request of a client: a server
                    // that loses every session is not asked for ever.
                    self.epoch = self.link.epoch();
                }
                epoch = self.link.reopened(self.epoch), if !is_asking => {
                    let is_first = self.epoch == 0;
                    self.epoch = epoch;
                    if is_first {
                        continue;
                    }
                    self.link.note(Note::ServerSessionReopened.into());
                    self.asking = Some(self.again());
                    return Heard::Reopened;
                }
                incoming = self.link.unsolicited() => return Heard::Said(incoming),
            }
        }
    }

    fn again(&self) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        let (slot, link) = (Arc::clone(&self.slot), Arc::clone(&self.link));
        Box::pin(async move {
            if let Err(failure) = slot.ask_again(&link).await {
                let fault = failure.fault.sentence();
                link.note(Note::ServerRefusesAgain.with(format!(
                    "the server that opened its session again could not be asked for a log level or subscription that it had taken before: {fault}"
                )));
            }
        })
    }
}

async fn settled(asking: &mut Option<Pin<Box<dyn Future<Output = ()> + Send>>>) {
    match asking {
        Some(asking) => asking.await,
        None => std::future::pending().await,
    }
}
