//! What is written down of a change, before it is made.

use std::sync::Arc;

use gate::Gate;
use gate::journal::{Auth, AuthEvent, Record, Status};

use super::super::fault::AccountFault;
use super::Done;

/// Whose change it is, and the journal that is told of it.
pub(crate) struct Note {
    pub gate: Arc<Gate>,
    /// Who asks for it; nobody is known where somebody registers.
    pub by: Option<Arc<str>>,
    pub request_id: String,
}

impl Note {
    /// Writes down what is about to change.
    ///
    /// # Errors
    /// Where it is not in the journal: then nothing may be changed. A journal that fails here fails the gate as well.
    pub fn before(&self, what: &str) -> Done<()> {
        self.write(what, Status::Success)
    }

    /// Writes down that what was announced has not been made: the accounts could not be written.
    pub fn not_made(&self, what: &str) {
        // The change is not there either way.
        drop(self.write(&format!("not made: {what}"), Status::Failure));
    }

    fn write(&self, what: &str, status: Status) -> Done<()> {
        let record = Auth {
            status: Some(status),
            subject_id: self.by.as_deref(),
            request_id: Some(&self.request_id),
            message: Some(what),
            ..Auth::of(AuthEvent::AccountChanged)
        };
        let written = self.gate.record(&Record::Auth(&record));
        written.map_err(|_| AccountFault::Journal)
    }
}
