//! One client, one server, from the first frame to the last.
//!
//! Everything happens on one task: frames are read from both sides, judged, written at once where
//! the other side takes them, else queued; a side that does not read stops the other side's reader.

mod asking;
mod client_side;
mod inputs;
mod lists;
mod open;
mod parked;
mod run;
mod server_side;

use std::collections::HashMap;
use std::io;
use std::sync::Arc;

use gate::paths::PathView;
use gate::{Caller, Gate, PeerId};
use net::stdio::{FrameReader, FrameWriter};
use wire::{Era, Revision};

use crate::definitions::Definitions;
use crate::describe::{Context, PathSchemas};
use crate::finding::{Finding, Told};
use crate::notes::Notes;
use crate::upstream::Upstream;

use asking::Bell;
use lists::Lists;
use open::{Open, Table};

/// What a session is told at its start.
#[derive(Clone)]
pub struct SessionOptions {
    /// The server's name in policies and in the journal.
    pub backend_id: String,
    /// The caller.
    pub caller: Caller,
    /// 128 random bits in hex.
    pub session_id: Arc<str>,
    /// How long a server may take to answer, in milliseconds.
    pub call_timeout_ms: u64,
    /// The same for single tools, by name.
    pub tool_timeouts_ms: HashMap<String, u64>,
    /// How long calls under way may take to end at the end, in milliseconds.
    pub drain_ms: u64,
    /// The file system that the server sees, where it is ours.
    pub view: Option<Arc<dyn PathView>>,
    /// What is done about descriptions.
    pub descriptions: crate::descriptions::Options,
    /// Where definitions are pinned, and how strictly.
    pub pins: gate::pins::PinOptions,
}

/// How a session ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ending {
    /// The client closed its side.
    ClientClosed,
    /// A signal asked for it.
    Signal,
    /// The server ended by itself: how.
    ServerEnded(String),
    /// The journal failed.
    JournalFailed,
}

impl Ending {
    /// The word used in the journal.
    #[must_use]
    pub fn label(&self) -> &'static str {
        match self {
            Self::ClientClosed => "client_closed",
            Self::Signal => "signal",
            Self::ServerEnded(_) => "server_ended",
            Self::JournalFailed => "journal_failed",
        }
    }
}

/// A session over standard streams.
pub struct Session {
    gate: Arc<Gate>,
    options: SessionOptions,
    session_id: Arc<str>,
    /// The client as a destination.
    client: PeerId,
    client_reader: FrameReader,
    client_writer: FrameWriter,
    /// The client has closed its input; what it wrote before may be unread.
    client_hung_up: bool,
    upstream: Upstream,
    table: Table,
    schemas: PathSchemas,
    lists: Lists,
    definitions: Definitions,
    told: Told,
    notes: Notes,
    era: Option<Era>,
    revision: Option<Revision>,
    client_id: Option<Arc<str>>,
    /// The client can show a form to its person.
    client_elicits: bool,
    /// Rung when the question about a waiting call has ended.
    bell: Arc<Bell>,
    next_batch: u64,
    next_judging: u64,
    dropped_notifications: u64,
}

/// What follows from a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Flow {
    Go,
    ClientGone,
    UpstreamGone,
}

impl Flow {
    /// The first of the two that is not [`Flow::Go`].
    fn or(self, other: Self) -> Self {
        if self == Self::Go { other } else { self }
    }
}

impl Session {
    /// A session between a client's streams and a started server.
    #[must_use]
    pub fn new(
        gate: Arc<Gate>,
        client: (FrameReader, FrameWriter),
        upstream: Upstream,
        options: SessionOptions,
    ) -> Self {
        let definitions = Definitions::new(
            options.descriptions.clone(),
            &options.pins,
            &options.backend_id,
        );
        Self {
            lists: Lists::new(gate.world()),
            gate,
            session_id: Arc::clone(&options.session_id),
            client: PeerId::client(Arc::clone(&options.session_id)),
            options,
            client_reader: client.0,
            client_writer: client.1,
            client_hung_up: false,
            upstream,
            table: Table::default(),
            schemas: PathSchemas::default(),
            definitions,
            told: Told::default(),
            notes: Notes::default(),
            era: None,
            revision: None,
            client_id: None,
            client_elicits: false,
            bell: Arc::default(),
            next_batch: 0,
            next_judging: 0,
            dropped_notifications: 0,
        }
    }

    fn context(&self) -> Context<'_> {
        Context {
            backend_id: &self.options.backend_id,
            subject_id: &self.options.caller.subject,
            view: self.options.view.as_deref(),
            schemas: &self.schemas,
            definitions: Some(&self.definitions),
        }
    }

    /// Tells what was found, once.
    fn tell(&mut self, findings: Vec<Finding>) {
        let server = &self.options.backend_id;
        self.told
            .tell(findings, &self.gate, &self.session_id, server);
    }

    fn note(&mut self, event: &'static str, message: &str) {
        self.notes.add(event, message);
    }

    /// Sends a frame to the client.
    fn tell_client(&mut self, frame: &[u8]) -> Flow {
        match self.client_writer.send(frame) {
            Ok(()) => Flow::Go,
            Err(_) => Flow::ClientGone,
        }
    }

    /// Sends an answer to the client, or puts it into its batch.
    fn deliver(&mut self, batch: Option<u64>, answer: Vec<u8>) -> Flow {
        match batch {
            None => self.tell_client(&answer),
            Some(number) => self.batch_step(number, Some(answer)),
        }
    }

    /// As [`Session::deliver`], without a copy where there is no batch.
    fn deliver_bytes(&mut self, batch: Option<u64>, answer: &[u8]) -> Flow {
        match batch {
            None => self.tell_client(answer),
            Some(number) => self.batch_step(number, Some(answer.to_vec())),
        }
    }

    /// One more part of a batch will have an answer.
    fn expect_batch_part(&mut self, batch: Option<u64>) {
        if let Some(batch) = batch.and_then(|number| self.table.batches.get_mut(&number)) {
            batch.missing += 1;
        }
    }

    /// One part of a batch is done, with or without an answer; the last one sends the array.
    fn batch_step(&mut self, number: u64, answer: Option<Vec<u8>>) -> Flow {
        let Some(batch) = self.table.batches.get_mut(&number) else {
            return Flow::Go;
        };
        batch.parts.extend(answer);
        batch.missing -= 1;
        if batch.missing > 0 {
            return Flow::Go;
        }
        let parts = self
            .table
            .batches
            .remove(&number)
            .map(|b| b.parts)
            .unwrap_or_default();
        if parts.is_empty() {
            return Flow::Go;
        }
        let mut frame = vec![b'['];
        frame.extend(parts.join(&b","[..]));
        frame.push(b']');
        self.tell_client(&frame)
    }

    /// A cancelled part of a batch is not answered.
    fn close_batch_part(&mut self, open: &Open) {
        if let Some(number) = open.batch {
            // The client went away from this call; whether the rest can be written shows later.
            let _ = self.batch_step(number, None);
        }
    }
}

fn sent(sent: io::Result<()>) -> Flow {
    if sent.is_ok() {
        Flow::Go
    } else {
        Flow::UpstreamGone
    }
}
