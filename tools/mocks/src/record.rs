//! A file that gains every frame that a server received, as it came: what a client, or whoever stands
//! before it, really said.

use crate::MockError;
use crate::server::{Action, Event, Machine};
use std::{
    fs::{File, OpenOptions},
    io::Write,
    path::Path,
    sync::Arc,
};

/// Where frames are written down.
#[derive(Debug, Clone)]
pub(crate) struct Record {
    file: Arc<File>,
}

/// A machine whose frames are written down before it takes them.
pub(crate) struct Recorded<M> {
    machine: M,
    record: Option<Record>,
}

impl Record {
    /// Opens `path` for appending, creating it.
    pub(crate) fn open(path: &Path) -> Result<Self, MockError> {
        let file = OpenOptions::new().create(true).append(true).open(path);
        file.map(|file| Self {
            file: Arc::new(file),
        })
        .map_err(|source| MockError::Path {
            path: path.to_owned(),
            source,
        })
    }

    /// One `write` of the frame and a newline. Line ends inside a frame, which only a body over HTTP can
    /// have, become blanks.
    fn note(&self, frame: &[u8]) -> std::io::Result<()> {
        let blank = |byte: &u8| match byte {
            b'\n' | b'\r' => b' ',
            other => *other,
        };
        let mut line: Vec<u8> = frame.trim_ascii().iter().map(blank).collect();
        line.push(b'\n');
        (&*self.file).write_all(&line)
    }
}

impl<M> Recorded<M> {
    pub(crate) fn new(machine: M, record: Option<Record>) -> Self {
        Self { machine, record }
    }
}

impl<M: Machine> Machine for Recorded<M> {
    fn handle(&mut self, frame: &[u8], actions: &mut Vec<Action>) {
        if let Some(Err(_)) = self.record.as_ref().map(|record| record.note(frame)) {
            // A record with a gap would be worse than no server.
            return actions.push(Action::End(1));
        }
        self.machine.handle(frame, actions);
    }

    fn event(&mut self, event: &Event, actions: &mut Vec<Action>) {
        self.machine.event(event, actions);
    }

    fn mirrored(&self, tool: &str) -> &[(&'static str, &'static str)] {
        self.machine.mirrored(tool)
    }

    fn end_of_input(&mut self, actions: &mut Vec<Action>) {
        self.machine.end_of_input(actions);
    }

    fn too_long(&mut self, actions: &mut Vec<Action>) {
        self.machine.too_long(actions);
    }
}
