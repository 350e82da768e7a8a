//! A process that computes pieces for another one of this program.
//!
//! It reads pieces on its standard input, one at a time, and writes their results. It ends with its input: its parent
//! is gone.

use std::io::{self, Read, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use net::worker::{FRAME_BYTES_MAX, Frame, read, write};
use pbpk::watch::Interrupt;
use serde::Serialize;

use super::compute::{ComputedPiece, PieceComputer, WorkPiece};
use crate::fault::{Fault, Kind};

/// The one word with which this program is started as a worker.
pub const WORKER_COMMAND: &str = "__simulate";

/// To a worker: a piece, as JSON.
pub(super) const PIECE: u8 = b'w';
/// To a worker: stop the computation.
pub(super) const STOP: u8 = b's';
/// To a worker: whether it can compute; over R, how that is started, as JSON.
pub(super) const PROBE: u8 = b't';
/// From a worker: why it cannot compute, as a text; an empty one means that it can.
pub(super) const PROBED: u8 = b'T';
/// From a worker: that R can compute, and what R says of itself, as JSON.
pub(super) const PROBED_R: u8 = b'R';
/// From a worker: how far it is, as a number of 8 bytes.
pub(super) const PROGRESS: u8 = b'p';
/// From a worker: the summary of the numbers, as JSON; the numbers follow.
pub(super) const ABOUT: u8 = b'a';
/// From a worker: some of the numbers; none where these were all.
pub(super) const NUMBERS: u8 = b'n';
/// From a worker: why there are none, as JSON.
pub(super) const FAULT: u8 = b'f';

/// Bytes of numbers that are sent at once: between them the worker sees that they are not wanted any more.
const NUMBERS_BYTES: usize = 256 << 10;
/// Interval of progress, in milliseconds.
const PROGRESS_MS: u128 = 50;

/// Computes pieces until the input ends.
pub fn work(input: impl Read + Send + 'static, output: &mut (impl Write + Send)) -> io::Result<()> {
    let stop = Arc::new(AtomicBool::new(false));
    let (sender, pieces) = sync_channel::<Frame>(1);
    let told = Arc::clone(&stop);
    std::thread::Builder::new()
        .name("simulation-input".to_owned())
        .spawn(move || {
            let mut input = input;
            loop {
                match read(&mut input) {
                    Ok(asked @ (PIECE | PROBE, _)) => {
                        told.store(false, Ordering::SeqCst);
                        if sender.send(asked).is_err() {
                            return;
                        }
                    }
                    Ok((STOP, _)) => told.store(true, Ordering::SeqCst),
                    Ok(_) => {}
                    Err(_) => {
                        // The computation has no reader any more.
                        told.store(true, Ordering::SeqCst);
                        return;
                    }
                }
            }
        })?;
    let computer = PieceComputer::default();
    for (asked, piece) in pieces {
        match asked {
            PROBE if piece.is_empty() => {
                let wrong = super::probe::solve().err().unwrap_or_default();
                write(output, PROBED, wrong.as_bytes())?;
            }
            PROBE => match super::probe::begin(&piece) {
                Ok(told) => write(output, PROBED_R, &told)?,
                Err(wrong) => write(output, PROBED, wrong.as_bytes())?,
            },
            _ => answer(&computer, &piece, &stop, output)?,
        }
    }
    Ok(())
}

fn answer(
    computer: &PieceComputer,
    piece: &[u8],
    stop: &AtomicBool,
    output: &mut (impl Write + Send),
) -> io::Result<()> {
    let ask = || stop.load(Ordering::Relaxed).then_some(Interrupt::Cancelled);
    let told = Mutex::new((Instant::now(), &mut *output));
    let progress = |done: f64| {
        let mut told = told.lock().unwrap_or_else(PoisonError::into_inner);
        if told.0.elapsed().as_millis() >= PROGRESS_MS {
            told.0 = Instant::now();
            // A reader that misses progress misses the result too.
            let _ = write(told.1, PROGRESS, &done.to_le_bytes());
        }
    };
    let done = match serde_json::from_slice::<WorkPiece>(piece) {
        Ok(piece) => computer.compute(&piece, &ask, &progress),
        Err(error) => Err(Fault::new(Kind::InternalError, error.to_string())),
    };
    let (bytes, about) = match done {
        Ok(ComputedPiece { bytes, about }) => (bytes, about),
        Err(fault) => return say(output, FAULT, &fault),
    };
    say(output, ABOUT, &about)?;
    for some in bytes.chunks(NUMBERS_BYTES) {
        if let Some(cause) = ask() {
            return say(output, FAULT, &Fault::from(cause));
        }
        write(output, NUMBERS, some)?;
    }
    write(output, NUMBERS, b"")
}

fn say(output: &mut impl Write, kind: u8, what: &impl Serialize) -> io::Result<()> {
    write(output, kind, &serde_json::to_vec(what).unwrap_or_default())
}

/// Reads the last frames of a worker.
pub(super) fn read_end(
    about: Frame,
    mut next: impl FnMut() -> io::Result<Frame>,
) -> Option<Result<ComputedPiece, Fault>> {
    let about = match about {
        (ABOUT, about) => serde_json::from_slice(&about).ok()?,
        (FAULT, fault) => return Some(Err(serde_json::from_slice(&fault).ok()?)),
        _ => return None,
    };
    let mut bytes = Vec::new();
    loop {
        match next().ok()? {
            (NUMBERS, some) if some.is_empty() => return Some(Ok(ComputedPiece { bytes, about })),
            (NUMBERS, some) if (bytes.len() + some.len()) as u64 <= FRAME_BYTES_MAX => {
                bytes.extend_from_slice(&some);
            }
            (FAULT, fault) => return Some(Err(serde_json::from_slice(&fault).ok()?)),
            _ => return None,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Returns the end of a worker with these frames.
    fn final_result(frames: &[(u8, &[u8])]) -> Option<Result<Vec<u8>, Kind>> {
        let mut frames = frames.iter().map(|(kind, bytes)| (*kind, bytes.to_vec()));
        let first = frames.next().unwrap();
        let next = || frames.next().ok_or(io::ErrorKind::UnexpectedEof.into());
        let end = read_end(first, next)?;
        Some(end.map(|done| done.bytes).map_err(|fault| fault.kind))
    }

    #[test]
    fn numbers_come_in_parts_and_may_be_broken_off() {
        let about = json!({
            "times": [0.0, 1.0], "failed": {}, "preview": null, "states": 1, "steps": 2, "engine": "native",
        });
        let about = about.to_string().into_bytes();
        let fault = serde_json::to_vec(&Fault::from(Interrupt::Cancelled)).unwrap();
        let (about, fault) = ((ABOUT, about.as_slice()), (FAULT, fault.as_slice()));
        let some = |numbers: &'static [u8]| (NUMBERS, numbers);
        let (one, two, end) = (some(b"ab"), some(b"c"), some(b""));
        assert_eq!(
            final_result(&[about, one, two, end]),
            Some(Ok(b"abc".to_vec()))
        );
        assert_eq!(final_result(&[about, end]), Some(Ok(Vec::new())));
        assert_eq!(
            final_result(&[about, one, fault]),
            Some(Err(Kind::Cancelled))
        );
        assert_eq!(final_result(&[fault]), Some(Err(Kind::Cancelled)));
        // Part of the numbers is no result.
        assert_eq!(final_result(&[about, one]), None);
        assert_eq!(final_result(&[about, one, (PROGRESS, b"")]), None);
        assert_eq!(final_result(&[one]), None);
    }
}
