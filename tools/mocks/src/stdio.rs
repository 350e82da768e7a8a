//! Drives a [`ProtocolMachine`] over standard input and output with blocking calls: one read and one write a
//! call. Delayed answers are kept in a queue, so that a cancel or another call can overtake them.

use crate::server::{MachineAction, ProtocolMachine};
use net::blocking::{FRAME_BYTES_MAX, Line, Lines, pause, poll_one};
use rustix::event::PollFlags;
use std::{
    fs::File,
    io::{self, Write},
    os::fd::AsFd,
    time::Instant,
};

/// How many delayed answers may wait; beyond it, no further frame is read until one has gone.
const DELAYED_MAX: usize = 4096;

struct DelayedFrame {
    due: Instant,
    id: String,
    frame: Vec<u8>,
}

struct StdioDriver {
    input: File,
    output: File,
    delayed: Vec<DelayedFrame>,
    /// Set once the input has ended but the machine stays.
    linger_until: Option<Instant>,
}

/// Serves until the input ends, the other side hangs up or the machine ends; returns the exit code.
///
/// # Errors
/// When standard input or output fails otherwise.
pub fn serve(machine: &mut dyn ProtocolMachine) -> io::Result<u8> {
    let input = File::from(io::stdin().as_fd().try_clone_to_owned()?);
    let output = File::from(io::stdout().as_fd().try_clone_to_owned()?);
    let mut driver = StdioDriver {
        input,
        output,
        delayed: Vec::new(),
        linger_until: None,
    };
    match driver.run(machine) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(0),
        other => other,
    }
}

impl StdioDriver {
    fn run(&mut self, machine: &mut dyn ProtocolMachine) -> io::Result<u8> {
        let mut lines = Lines::new(FRAME_BYTES_MAX);
        let mut actions = Vec::new();
        loop {
            self.send_due()?;
            if self.delayed.len() >= DELAYED_MAX {
                self.wait(false)?;
                continue;
            }
            match lines.next_line() {
                Line::Frame(frame) => machine.handle(frame, &mut actions),
                Line::TooLong => machine.too_long(&mut actions),
                Line::Incomplete => {
                    if !self.delayed.is_empty() && !self.wait(true)? {
                        continue;
                    }
                    if self.read(&mut lines)? == 0 {
                        machine.end_of_input(&mut actions);
                        let ended = self.perform(machine, &mut actions)?;
                        return self.linger(ended);
                    }
                }
            }
            if let Some(code) = self.perform(machine, &mut actions)? {
                return Ok(code);
            }
        }
    }

    fn read(&mut self, lines: &mut Lines) -> io::Result<usize> {
        loop {
            match lines.fill(&mut self.input) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    poll_one(&self.input, PollFlags::IN, None)?;
                }
                other => return other,
            }
        }
    }

    /// Performs and empties `actions`; an exit code ends the process.
    fn perform(
        &mut self,
        machine: &mut dyn ProtocolMachine,
        actions: &mut Vec<MachineAction>,
    ) -> io::Result<Option<u8>> {
        let mut events = Vec::new();
        loop {
            for action in actions.drain(..) {
                match action {
                    MachineAction::Send(mut frame) => {
                        frame.push(b'\n');
                        write_all(&mut self.output, &frame)?;
                    }
                    MachineAction::SendLater { id, after, frame } => {
                        let due = Instant::now() + after;
                        self.delayed.push(DelayedFrame { due, id, frame });
                    }
                    MachineAction::Withdraw { id } => {
                        self.delayed.retain(|delayed| delayed.id != id)
                    }
                    MachineAction::Publish(event) => events.push(event),
                    // One pipe carries every stream.
                    MachineAction::HangUp => {}
                    MachineAction::SendRaw(bytes) => write_all(&mut self.output, &bytes)?,
                    MachineAction::Complain { bytes } => complain(bytes),
                    MachineAction::Linger(longest) => {
                        self.linger_until = Some(Instant::now() + longest)
                    }
                    MachineAction::End(code) => return Ok(Some(code)),
                }
            }
            if events.is_empty() {
                return Ok(None);
            }
            for event in events.drain(..) {
                machine.event(&event, actions);
            }
        }
    }

    fn send_due(&mut self) -> io::Result<()> {
        if self.delayed.is_empty() {
            return Ok(());
        }
        let now = Instant::now();
        let mut due: Vec<DelayedFrame> = self
            .delayed
            .extract_if(.., |delayed| delayed.due <= now)
            .collect();
        due.sort_by_key(|delayed| delayed.due);
        for mut delayed in due {
            delayed.frame.push(b'\n');
            write_all(&mut self.output, &delayed.frame)?;
        }
        Ok(())
    }

    /// Waits for the next delayed answer, or for input if `input` is set; true when there is input.
    fn wait(&self, input: bool) -> io::Result<bool> {
        let next = self.delayed.iter().map(|delayed| delayed.due).min();
        let left = next.map(|due| due.saturating_duration_since(Instant::now()));
        if input {
            poll_one(&self.input, PollFlags::IN, left)
        } else {
            pause(left)
        }
    }

    /// Stays after the end of input if the machine asked for it.
    fn linger(&mut self, ended: Option<u8>) -> io::Result<u8> {
        while let (None, Some(until)) = (ended, self.linger_until) {
            self.send_due()?;
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            let next = self
                .delayed
                .iter()
                .map(|delayed| delayed.due.saturating_duration_since(Instant::now()))
                .min();
            pause(Some(next.map_or(left, |next| next.min(left))))?;
        }
        Ok(ended.unwrap_or(0))
    }
}

fn write_all(output: &mut File, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match output.write(bytes) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => bytes = bytes.get(written..).unwrap_or_default(),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                poll_one(output, PollFlags::OUT, None)?;
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// A log flood; a reader that is absent or has closed it is the other side's fault.
pub(crate) fn complain(bytes: usize) {
    let line = [b"mock: ".as_slice(), &[b'!'; 121], b"\n"].concat();
    let mut error = io::stderr().lock();
    for _ in 0..bytes.div_ceil(line.len()) {
        if error.write_all(&line).is_err() {
            return;
        }
    }
}
