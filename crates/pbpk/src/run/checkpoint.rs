//! Runs in pieces: a run that stops at a time, and goes on from there later, perhaps in another process, with the bits
//! that it would have had without the stop.
//!
//! A checkpoint holds the history of the integrator, the numbers and what events have done; model, individual and
//! output times are the caller's again, and are compared with a digest.

use std::fmt;

use super::course::RunCourse;
use super::{Results, RunError, RunFailure, RunOptions};
use crate::compile::Instance;
use crate::watch::Watch;
use crate::words::{DamagedBytes, WordBuffer};

/// First word of a checkpoint; another layout gets another one.
const LAYOUT: u64 = u64::from_le_bytes(*b"pbpkrun1");

/// State of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunCheckpoint {
    bytes: Vec<u8>,
}

/// Why a run was not continued, or not stopped with a checkpoint.
#[derive(Debug, Clone, PartialEq)]
pub enum CheckpointError {
    /// The bytes are none of a checkpoint of this version.
    Damaged,
    /// The checkpoint belongs to another model, individual, grid or outputs.
    OtherRun,
    /// Runs with derivatives have no checkpoints.
    Derivatives,
    /// The run itself failed.
    Run(Box<RunFailure>),
}

impl fmt::Display for CheckpointError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Damaged => f.write_str("the checkpoint is damaged, or of another version"),
            Self::OtherRun => f.write_str(
                "the checkpoint belongs to another run: model, parameters, output times and outputs must be the same",
            ),
            Self::Derivatives => f.write_str("a run with derivatives has no checkpoints"),
            Self::Run(failure) => failure.fmt(f),
        }
    }
}

impl std::error::Error for CheckpointError {}

impl From<DamagedBytes> for CheckpointError {
    fn from(_: DamagedBytes) -> Self {
        Self::Damaged
    }
}

impl RunCheckpoint {
    /// Returns the checkpoint as bytes, to be kept.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Returns a checkpoint that was kept as bytes. Whether they are whole is seen when a run goes on from them.
    #[must_use]
    pub fn from_bytes(bytes: Vec<u8>) -> Self {
        Self { bytes }
    }
}

/// Runs an individual to the last output time that is not after `until`: the rows up to there, and a checkpoint from
/// which [`resume`] makes the others.
///
/// # Errors
/// [`CheckpointError`]: that of the run, or derivatives are asked for.
pub fn run_until(
    instance: &Instance,
    options: &RunOptions<'_>,
    until: f64,
) -> Result<(Results, RunCheckpoint), CheckpointError> {
    if !options.sensitivity_to.is_empty() {
        return Err(CheckpointError::Derivatives);
    }
    let mut written = Err(CheckpointError::Damaged);
    let results = super::attempts(instance, options, |options, results, warnings| {
        let mut course = RunCourse::new(instance, options, results, warnings)?;
        course.begin(results, warnings)?;
        course.follow(results, warnings, until)?;
        let mut words = WordBuffer::to_write();
        written = pass(&mut course, instance, &mut words).map(|()| RunCheckpoint {
            bytes: append_checksum(words.into_bytes()),
        });
        Ok(())
    });
    let results = results.map_err(CheckpointError::Run)?;
    Ok((results, written?))
}

/// Goes on from a checkpoint to the end: the rows after it. Tolerances are those of the run so far.
///
/// # Errors
/// [`CheckpointError`].
pub fn resume(
    instance: &Instance,
    options: &RunOptions<'_>,
    checkpoint: &RunCheckpoint,
) -> Result<Results, CheckpointError> {
    if !options.sensitivity_to.is_empty() {
        return Err(CheckpointError::Derivatives);
    }
    let mut words = WordBuffer::to_read(opened(&checkpoint.bytes).ok_or(CheckpointError::Damaged)?);
    let mut results = Results::new(instance);
    let mut warnings = Vec::new();
    let failed = |error: RunError, warnings: Vec<String>, results: &Results| {
        CheckpointError::Run(Box::new(RunFailure {
            error,
            warnings,
            statistics: results.statistics,
        }))
    };
    let course = RunCourse::new(instance, options, &mut results, &mut warnings);
    let mut course = match course {
        Ok(course) => course,
        Err(error) => return Err(failed(error, warnings, &results)),
    };
    pass(&mut course, instance, &mut words)?;
    let mut done = course.take_code(&mut warnings);
    if done.is_ok() {
        if let Some(solver) = &mut course.solver {
            solver.pass(&mut words)?;
            results.statistics = solver.statistics();
        }
        if !words.is_read() {
            return Err(CheckpointError::Damaged);
        }
        results.settings = course.settings;
        done = course.follow(&mut results, &mut warnings, f64::INFINITY);
    }
    match done {
        Ok(()) => {
            results.warnings = warnings;
            Ok(results)
        }
        Err(error) => Err(failed(error, warnings, &results)),
    }
}

impl RunCourse<'_> {
    /// Code and solver for what was read of a state.
    fn take_code(&mut self, warnings: &mut Vec<String>) -> Result<(), RunError> {
        let watch = Watch::new(self.interrupt());
        self.state.take_code(&watch, self.from)?;
        if !self.state.y.is_empty() {
            self.solver = Some(self.new_solver(warnings)?);
        }
        Ok(())
    }
}

/// Writes a run, or reads it up to the solver; the solver's code is known only then.
fn pass(
    course: &mut RunCourse<'_>,
    instance: &Instance,
    words: &mut WordBuffer,
) -> Result<(), CheckpointError> {
    let mut layout = LAYOUT;
    words.word(&mut layout)?;
    if layout != LAYOUT {
        return Err(CheckpointError::Damaged);
    }
    let own = digest(course, instance);
    let mut found = own;
    words.word(&mut found)?;
    if found != own {
        return Err(CheckpointError::OtherRun);
    }
    words.number(&mut course.settings.rel_tol)?;
    words.number(&mut course.settings.abs_tol)?;
    words.count(&mut course.next, usize::MAX)?;
    words.number(&mut course.from)?;
    course.state.pass(words)?;
    if !words.reads()
        && let Some(solver) = &mut course.solver
    {
        solver.pass(words)?;
    }
    Ok(())
}

/// Returns a digest of everything that a run depends on besides its tolerances: it finds mistakes, not forgery.
fn digest(course: &RunCourse<'_>, instance: &Instance) -> u64 {
    let structure = instance.structure();
    let model = structure.model();
    let mut hash = FnvHash(0xcbf2_9ce4_8422_2325);
    for quantity in &model.quantities {
        hash.bytes(quantity.path.as_bytes());
        hash.word(quantity.scale.to_bits());
    }
    let counts = [
        model.formulas.len(),
        model.events.len(),
        course.state.y.len(),
    ];
    counts.iter().for_each(|n| hash.word(*n as u64));
    for value in instance.values().iter().chain(&course.times) {
        hash.word(value.to_bits());
    }
    instance
        .overridden()
        .iter()
        .for_each(|set| hash.word(u64::from(*set)));
    structure
        .outputs()
        .iter()
        .for_each(|q| hash.word(*q as u64));
    hash.bytes(course.release().name().as_bytes());
    hash.0
}

/// FNV-1a in 64 bits.
struct FnvHash(u64);

impl FnvHash {
    fn bytes(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }

    fn word(&mut self, word: u64) {
        self.bytes(&word.to_le_bytes());
    }
}

/// Bytes with their checksum.
fn append_checksum(mut bytes: Vec<u8>) -> Vec<u8> {
    let mut hash = FnvHash(0xcbf2_9ce4_8422_2325);
    hash.bytes(&bytes);
    bytes.extend(hash.0.to_le_bytes());
    bytes
}

/// Bytes without their checksum, if that is right.
fn opened(bytes: &[u8]) -> Option<Vec<u8>> {
    let (bytes, check) = bytes.split_last_chunk::<8>()?;
    let mut hash = FnvHash(0xcbf2_9ce4_8422_2325);
    hash.bytes(bytes);
    (hash.0 == u64::from_le_bytes(*check)).then(|| bytes.to_vec())
}
