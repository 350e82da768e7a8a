//! Several calls under way on one connection at the same time.

use super::answer::{CallAnswer, RpcEnvelope};
use super::{RenderedRequest, STRAY_LINES_MAX, VariantConnection};
use crate::error::LabError;
use std::collections::VecDeque;
use std::io::Write;
use std::time::Instant;

/// How many bytes of requests may be under way at once. More could fill the pipe while the server waits for
/// its answers to be read, and neither would move again.
const REQUEST_BYTES_MAX: usize = 48 * 1024;

/// The answer to one of the calls.
#[derive(Debug)]
pub(crate) struct ConcurrentReply<'a> {
    /// The id it went out under.
    pub(crate) id: u64,
    /// When its write began.
    pub(crate) begun: Instant,
    /// From then to the read of the answer, in nanoseconds.
    pub(crate) elapsed_ns: u64,
    /// The size of the answer.
    pub(crate) bytes: usize,
    /// The answer; `None` if it equals one that was confirmed before.
    pub(crate) answer: Option<CallAnswer<'a>>,
}

impl VariantConnection {
    /// Makes `calls` calls, `width` of them under way at any time, and hands every answer to `each` as it
    /// comes; what `each` objects to makes the variant invalid.
    pub(crate) fn volley(
        &mut self,
        question: &RenderedRequest,
        calls: u32,
        width: usize,
        each: &mut dyn FnMut(&ConcurrentReply<'_>) -> Result<(), String>,
    ) -> Result<(), LabError> {
        fits(question, width)?;
        let mut open = VecDeque::with_capacity(width);
        let (mut sent, mut answered, mut strays) = (0, 0, 0);
        while answered < calls {
            while sent < calls && open.len() < width {
                open.push_back(self.launch(question)?);
                sent += 1;
            }
            self.discard();
            if let Err(error) = self.read_line() {
                return Err(self.process.fault(question.name(), &error));
            }
            let now = Instant::now();
            let reply = self.settle(&mut open, now, each);
            match reply.map_err(|what| self.invalid(what))? {
                Some(known) => {
                    answered += 1;
                    if !known {
                        self.confirm();
                    }
                    // The guard sees each answer as progress.
                    self.process.guard.end();
                }
                None => {
                    strays += 1;
                    let waiting = open.front().map_or(0, |(id, _)| *id);
                    self.is_answer(waiting)?;
                    if strays > STRAY_LINES_MAX {
                        return Err(self.invalid(format!(
                            "more than {STRAY_LINES_MAX} lines that answer nothing"
                        )));
                    }
                }
            }
        }
        Ok(())
    }

    /// Finds the call that the current line answers and hands it on; returns whether the answer was known, `None` if
    /// the line answers none.
    fn settle(
        &self,
        open: &mut VecDeque<(u64, Instant)>,
        now: Instant,
        each: &mut dyn FnMut(&ConcurrentReply<'_>) -> Result<(), String>,
    ) -> Result<Option<bool>, String> {
        let known = self.template.id_of(self.current());
        let (found, answer) = match known {
            Some(known) => (open.iter().position(|(id, _)| *id == known), None),
            None => {
                let envelope = RpcEnvelope::read(self.current())?;
                let found = open.iter().position(|(id, _)| envelope.answers(*id));
                let answer = found.is_some().then(|| envelope.answer()).transpose()?;
                (found, answer)
            }
        };
        let Some((id, begun)) = found.and_then(|at| open.remove(at)) else {
            return Ok(None);
        };
        let elapsed = now.duration_since(begun).as_nanos();
        each(&ConcurrentReply {
            id,
            begun,
            elapsed_ns: u64::try_from(elapsed).unwrap_or(u64::MAX),
            bytes: self.line,
            answer,
        })?;
        Ok(Some(known.is_some()))
    }

    /// Sends requests without a wait for their answers: an answer makes the next call fail.
    pub(crate) fn leave_open(
        &mut self,
        question: &RenderedRequest,
        calls: usize,
    ) -> Result<(), LabError> {
        fits(question, calls)?;
        for _ in 0..calls {
            self.launch(question)?;
        }
        self.process.guard.end();
        Ok(())
    }

    fn launch(&mut self, question: &RenderedRequest) -> Result<(u64, Instant), LabError> {
        let id = self.next_id;
        self.next_id += 1;
        let mut frame = std::mem::take(&mut self.frame);
        question.render(id, &mut frame);
        self.process.guard.begin();
        let begun = Instant::now();
        let sent = self.input.write_all(&frame);
        self.frame = frame;
        match sent {
            Ok(()) => Ok((id, begun)),
            Err(error) => Err(self.process.fault(question.name(), &error)),
        }
    }
}

fn fits(question: &RenderedRequest, width: usize) -> Result<(), LabError> {
    if question.length() * width > REQUEST_BYTES_MAX {
        return Err(LabError::Usage(format!(
            "{width} requests of {} bytes under way at once would fill a pipe; ask for fewer or smaller ones",
            question.length()
        )));
    }
    Ok(())
}
