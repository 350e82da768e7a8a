//! A file that gains every frame that a server received, as it came: the true bytes of a client, or of a process in
//! front of it.

use crate::MockError;
use crate::server::{ChangeEvent, MachineAction, ProtocolMachine};
use std::{
    fs::{File, OpenOptions},
    io::Write,
    path::Path,
    sync::Arc,
};

/// Where frames are written down.
#[derive(Debug, Clone)]
pub(crate) struct FrameLog {
    file: Arc<File>,
}

/// A machine that logs each frame before it handles it.
pub(crate) struct RecordedMachine<M> {
    machine: M,
    record: Option<FrameLog>,
}

impl FrameLog {
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

impl<M> RecordedMachine<M> {
    pub(crate) fn new(machine: M, record: Option<FrameLog>) -> Self {
        Self { machine, record }
    }
}

impl<M: ProtocolMachine> ProtocolMachine for RecordedMachine<M> {
    fn handle(&mut self, frame: &[u8], actions: &mut Vec<MachineAction>) {
        if let Some(Err(_)) = self.record.as_ref().map(|record| record.note(frame)) {
            // A record with a gap would be worse than no server.
            return actions.push(MachineAction::End(1));
        }
        self.machine.handle(frame, actions);
    }

    fn event(&mut self, event: &ChangeEvent, actions: &mut Vec<MachineAction>) {
        self.machine.event(event, actions);
    }

    fn mirrored_parameters(&self, tool: &str) -> &[(&'static str, &'static str)] {
        self.machine.mirrored_parameters(tool)
    }

    fn end_of_input(&mut self, actions: &mut Vec<MachineAction>) {
        self.machine.end_of_input(actions);
    }

    fn too_long(&mut self, actions: &mut Vec<MachineAction>) {
        self.machine.too_long(actions);
    }
}
