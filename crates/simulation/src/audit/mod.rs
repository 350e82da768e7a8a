//! The journal's events of this server's calls, in the bridge's shape: `sim://audit/events`, over HTTP `/audit/events`.
//!
//! It is for callers of one group, for any rules, and of this server's records alone. No argument and no result is in
//! the journal, so none is told; names of simulations, paths and URIs, which it has, are left out too.

mod asked;
mod events;

use std::path::Path;
use std::sync::{Mutex, TryLockError};

use gate::journal::audit::{AuditError, Reach, back};
use serde_json::{Value, json};

pub use asked::{EventQuery, LIMIT_MAX, TYPE_CHARS_MAX, UNREAD, is_named};

use crate::fault::{Fault, FaultDetail, Kind};
use events::EventWindow;

/// The group of callers that may read it.
pub const GROUP: &str = "admin";

/// How much of a journal one reading looks at.
const REACH: Reach = Reach {
    bytes_max: 256 << 20,
    segments_max: 256,
};

/// Reads journals, one reading at a time.
#[derive(Default)]
pub struct JournalReader(Mutex<()>);

impl JournalReader {
    /// Returns the newest events of a server.
    ///
    /// # Errors
    /// [`Kind::Busy`] while another reading is under way, [`Kind::InternalError`] if the journal cannot be read or is
    /// damaged.
    pub fn events(&self, journal: &Path, server: &str, asked: &EventQuery) -> Result<Value, Fault> {
        self.events_within(REACH, journal, server, asked)
    }

    fn events_within(
        &self,
        reach: Reach,
        journal: &Path,
        server: &str,
        asked: &EventQuery,
    ) -> Result<Value, Fault> {
        let _alone = match self.0.try_lock() {
            Ok(alone) => alone,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => {
                let wrong = "the journal is being read for another request; ask again";
                return Err(Fault::new(Kind::Busy, wrong));
            }
        };
        let mut events = EventWindow::new(server, asked);
        let is_all = back(journal, reach, &mut events).map_err(|error| unread(&error))?;
        let is_full = events.is_full();
        let mut told = json!({"events": events.into_values()});
        if let (false, false, Some(members)) = (is_all, is_full, told.as_object_mut()) {
            let note = format!(
                "only the newest {} segments of the journal, and of these {} MiB, were looked at; durward audit show reads all of it",
                reach.segments_max,
                reach.bytes_max >> 20,
            );
            members.insert("notes".to_owned(), json!([note]));
        }
        Ok(told)
    }
}

/// Returns the answer to somebody who does not belong to the group.
#[must_use]
pub fn forbidden() -> Fault {
    let message = format!("the events of the journal are for callers of the group {GROUP}");
    let hint = format!(
        "use a key of that group (durward keys create NAME --group {GROUP}); the user who runs durward reads the journal with durward audit show"
    );
    Fault {
        kind: Kind::Forbidden,
        details: vec![FaultDetail {
            issue: message.clone(),
            field: None,
            hint: Some(hint),
            code: Some("group_required".to_owned()),
        }],
        message,
    }
}

fn unread(error: &AuditError) -> Fault {
    let fault = Fault::of(Kind::InternalError, "journal", error.to_string());
    match error {
        AuditError::Altered { .. } => fault.hint("durward audit verify tells all that is wrong"),
        _ => fault,
    }
}

#[cfg(test)]
mod tests;
