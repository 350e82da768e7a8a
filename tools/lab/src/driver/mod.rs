//! The client on the timed path: one blocking loop over a child's pipes or a connection. It writes a frame, reads a
//! line, stops the watch, and only then checks the line: an answer that equals a good one, byte for byte but for its
//! id, is not parsed again.
//!
//! Invariants, as absences: nothing is parsed, allocated or locked between the two readings of the
//! clock, except where a line must be joined from several reads; no wait is without an end, because a
//! guard thread ends a silent child.

mod answer;
mod child;
mod concurrent;
mod flock;
mod guard;
mod http;
mod link;
mod question;
mod reaper;
mod scratch;
mod served;
mod session;
mod template;

pub(crate) use answer::{AnswerEquality, AnswerExpectation, CallAnswer, difference};
pub(crate) use child::{ChildProcess, PipedChild, spawn};
pub(crate) use concurrent::ConcurrentReply;
pub(crate) use flock::{AnsweredClient, ClientPool};
pub(crate) use http::{HttpConnection, HttpReply};
pub(crate) use link::{LinkOptions, VariantLink};
pub(crate) use question::{ProtocolRevision, RenderedRequest, TimedOperation};
pub(crate) use served::ListeningServer;
pub(crate) use session::HttpSession;

use crate::error::LabError;
use answer::RpcEnvelope;
use std::io::{Read, Write};
use std::process::{ChildStdin, ChildStdout};
use std::time::Instant;
use template::AnswerTemplate;

/// The longest line that is read, in bytes.
const LINE_BYTES_MAX: usize = 64 * 1024 * 1024;
/// How much one read asks for, in bytes.
const PIECE_BYTES: usize = 128 * 1024;
/// How many lines that answer nothing (notifications, requests of the server) one call may bring.
const STRAY_LINES_MAX: usize = 10_000;

/// One variant, started: a server and the questions put to it.
#[derive(Debug)]
pub(crate) struct VariantConnection {
    process: ChildProcess,
    input: ChildStdin,
    output: ChildStdout,
    template: AnswerTemplate,
    /// Whether the last answer is the one that was confirmed before.
    known: bool,
    buffer: Vec<u8>,
    filled: usize,
    line: usize,
    frame: Vec<u8>,
    next_id: u64,
}

impl VariantConnection {
    /// Takes over a started process.
    pub(crate) fn new(spawned: PipedChild) -> Self {
        let PipedChild {
            process,
            input,
            output,
        } = spawned;
        Self {
            process,
            input,
            output,
            template: AnswerTemplate::default(),
            known: false,
            buffer: vec![0; PIECE_BYTES],
            filled: 0,
            line: 0,
            frame: Vec::new(),
            next_id: 1,
        }
    }

    /// Returns the process behind it.
    pub(crate) fn process(&self) -> &ChildProcess {
        &self.process
    }

    /// Shakes hands in eras that do; gives nanoseconds from the spawn to the answer.
    pub(crate) fn open(&mut self, protocol: ProtocolRevision) -> Result<u64, LabError> {
        let hello = protocol.hello();
        self.ask(&hello)?;
        let since_spawn = nanoseconds(self.process.spawned);
        match self.answer()? {
            CallAnswer::Result(_) => {}
            CallAnswer::Refused { code, message } => {
                return Err(self.invalid(format!("{} failed: {code} {message}", hello.name())));
            }
        }
        if let Some(note) = protocol.ready() {
            self.send(note)?;
        }
        Ok(since_spawn)
    }

    /// One timed call: nanoseconds from before the write of the request to after the read of its
    /// answer. The id is checked; the answer waits in [`Self::answer`].
    pub(crate) fn ask(&mut self, question: &RenderedRequest) -> Result<u64, LabError> {
        let id = self.next_id;
        self.next_id += 1;
        let mut frame = std::mem::take(&mut self.frame);
        question.render(id, &mut frame);
        self.discard();
        self.process.guard.begin();
        let start = Instant::now();
        let mut done = self.input.write_all(&frame);
        self.frame = frame;
        for _ in 0..STRAY_LINES_MAX {
            let read = match done {
                Ok(()) => self.read_line(),
                Err(error) => Err(error),
            };
            let elapsed = nanoseconds(start);
            if let Err(error) = read {
                return Err(self.process.fault(question.name(), &error));
            }
            if self.is_answer(id)? {
                self.process.guard.end();
                return Ok(elapsed);
            }
            self.discard();
            done = Ok(());
        }
        Err(self.invalid(format!(
            "more than {STRAY_LINES_MAX} lines that answer nothing"
        )))
    }

    /// Returns the answer of the last call.
    pub(crate) fn answer(&self) -> Result<CallAnswer<'_>, LabError> {
        RpcEnvelope::read(self.current())
            .and_then(RpcEnvelope::answer)
            .map_err(|what| self.invalid(what))
    }

    /// Returns the id of the last call, and the size of its answer in bytes.
    pub(crate) fn last(&self) -> (u64, usize) {
        (self.next_id - 1, self.line)
    }

    /// Ends the child by closing its input, by force if that does not help.
    pub(crate) fn close(self) {
        let Self {
            process,
            input,
            output,
            ..
        } = self;
        drop(input);
        drop(output);
        process.close();
    }

    /// Returns whether the last answer is, byte for byte but for its id, one that was confirmed.
    pub(crate) fn is_known(&self) -> bool {
        self.known
    }

    /// The last answer is good; the same one again is known.
    pub(crate) fn confirm(&mut self) {
        let line = self.buffer.get(..self.line).unwrap_or_default();
        self.template.learn(line);
    }

    pub(crate) fn invalid(&self, what: String) -> LabError {
        LabError::Invalid {
            arm: self.process.arm.clone(),
            what,
        }
    }

    fn send(&mut self, frame: &[u8]) -> Result<(), LabError> {
        let sent = self.input.write_all(frame);
        sent.map_err(|error| self.process.fault("a notification", &error))
    }

    /// Returns whether the current line answers `id`. A notification or a request of the server is none; any
    /// other line is an error.
    fn is_answer(&mut self, id: u64) -> Result<bool, LabError> {
        self.known = self.template.id_of(self.current()) == Some(id);
        if self.known {
            return Ok(true);
        }
        let stranger = match RpcEnvelope::read(self.current()) {
            Err(what) => return Err(self.invalid(what)),
            Ok(envelope) if envelope.answers(id) => return Ok(true),
            Ok(envelope) => envelope.stray(id).map_err(|what| self.invalid(what))?,
        };
        if let Some(refusal) = stranger {
            self.send(&refusal)?;
        }
        Ok(false)
    }

    /// Returns the line read last, without its end.
    fn current(&self) -> &[u8] {
        self.buffer.get(..self.line).unwrap_or_default()
    }

    /// Forgets the line read last; what came behind it moves to the front.
    fn discard(&mut self) {
        if self.line > 0 {
            self.buffer.copy_within(self.line..self.filled, 0);
            self.filled -= self.line;
            self.line = 0;
        }
    }

    fn read_line(&mut self) -> std::io::Result<()> {
        let mut searched = 0;
        loop {
            let fresh = self.buffer.get(searched..self.filled).unwrap_or_default();
            if let Some(at) = memchr::memchr(b'\n', fresh) {
                self.line = searched + at + 1;
                return Ok(());
            }
            searched = self.filled;
            if searched > LINE_BYTES_MAX {
                return Err(std::io::Error::other("a line longer than 64 MiB"));
            }
            if self.buffer.len() - searched < PIECE_BYTES / 2 {
                self.buffer.resize(self.buffer.len() * 2, 0);
            }
            let free = self.buffer.get_mut(searched..).unwrap_or_default();
            let read = self.output.read(free)?;
            if read == 0 {
                return Err(std::io::ErrorKind::UnexpectedEof.into());
            }
            self.filled += read;
        }
    }
}

fn nanoseconds(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_nanos()).unwrap_or(u64::MAX)
}
