//! A place at a server for requests without a session, in whichever era the server speaks: one of the Legacy era is
//! opened a session by us, which all requests of a caller share.

use std::sync::Arc;

use gate::Caller;
use wire::Era;

use super::pool::Pool;
use super::slot::Slot;
use crate::message::frames::{Failure, UpstreamFault};

/// What opens it. Nobody can be asked anything in it, and the server is told so.
const INITIALIZE: &[u8] = br#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"durward","version":"1"}}}"#;
const INITIALIZED: &[u8] = br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;

impl Pool {
    /// A caller's place at the server, where one runs; the Modern one first.
    #[must_use]
    pub fn running_in_either(&self, caller: &Caller) -> Option<Arc<Slot>> {
        let running = |era| {
            let slot = self.known_slot(era, caller);
            slot.filter(|slot| slot.current().is_some())
        };
        // A session that a client has opened says nothing of what else the server speaks.
        let is_fit = |slot: &Arc<Slot>| {
            let opened = slot.hello().initialize.as_deref() == Some(INITIALIZE);
            opened || self.speaks_only_legacy()
        };
        running(Era::Modern).or_else(|| running(Era::Legacy).filter(is_fit))
    }

    /// Whether somebody is starting it for this caller at the moment.
    #[must_use]
    pub fn is_being_started(&self, caller: &Caller) -> bool {
        let eras = [Era::Modern, Era::Legacy];
        let slots = eras.map(|era| self.known_slot(era, caller));
        let is_held = |slot: Arc<Slot>| slot.starting.try_lock().is_err();
        slots.into_iter().flatten().any(is_held)
    }

    /// A caller's place at the server, which is started where it does not run.
    ///
    /// # Errors
    /// Why it cannot be asked anything.
    pub async fn slot_of_either(&self, caller: &Caller) -> Result<Arc<Slot>, Failure> {
        if let Some(slot) = self.running_in_either(caller) {
            return Ok(slot);
        }
        let modern = self.slot(Era::Modern, caller, None);
        match self.link(&modern).await {
            Ok(_) => return Ok(modern),
            Err(failure) if failure.fault == UpstreamFault::EraMismatch => {}
            Err(failure) => return Err(failure),
        }
        let legacy = self.slot(Era::Legacy, caller, None);
        match self.open(&legacy, INITIALIZE.to_vec()).await? {
            Ok(_) => {
                legacy.initialized(INITIALIZED.to_vec()).await;
                Ok(legacy)
            }
            Err(reply) => Err(UpstreamFault::EraMismatch.because(reply.payload())),
        }
    }
}
