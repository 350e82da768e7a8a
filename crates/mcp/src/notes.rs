//! Records about things that no call stands for, coalesced so that a flood of them cannot fill the
//! journal: one record per kind and second, with how often it happened.

use gate::Gate;
use gate::journal::{Record, System};

/// Most kinds that are kept apart.
const KINDS_MAX: usize = 64;

/// What has been noted and not been written.
#[derive(Debug, Default)]
pub struct Notes {
    waiting: Vec<Note>,
}

#[derive(Debug)]
struct Note {
    event: &'static str,
    message: String,
    count: u64,
}

impl Notes {
    /// Notes an event; it is written with the next flush.
    pub fn add(&mut self, event: &'static str, message: &str) {
        if let Some(note) = self.waiting.iter_mut().find(|note| note.event == event) {
            note.count += 1;
        } else if self.waiting.len() < KINDS_MAX {
            tracing::warn!(event, "{message}");
            self.waiting.push(Note {
                event,
                message: message.to_owned(),
                count: 1,
            });
        }
    }

    /// Writes what has been noted. A journal that fails here fails the gate, which the session sees.
    pub fn flush(&mut self, gate: &Gate, session_id: &str, backend_id: &str) {
        for note in self.waiting.drain(..) {
            let message = if note.count > 1 {
                format!("{} ({} times)", note.message, note.count)
            } else {
                note.message
            };
            let record = System {
                event: note.event,
                level: Some("warning"),
                component: Some("mcp"),
                message: Some(&message),
                session_id: Some(session_id),
                backend_id: Some(backend_id),
                ..System::default()
            };
            drop(gate.record(&Record::System(&record)));
        }
    }
}
