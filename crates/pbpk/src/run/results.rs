//! Results of a run.
#![expect(
    clippy::indexing_slicing,
    reason = "numeric kernel: rows have one number per output"
)]

use std::sync::Arc;

use multiversion::multiversion;

use super::events::EventState;
use super::{OspVersion, Sink};
use crate::compile::Instance;
use crate::model::SolverSettings;
use crate::solve::SolverStatistics;
use crate::watch::{Interrupt, Watch};
#[cfg(feature = "cli")]
use crate::words::{DamagedBytes, WordBuffer};

/// Most numbers of results that are read.
#[cfg(feature = "cli")]
const NUMBERS_MAX: usize = 1 << 30;

/// Output values by time, with what it took.
#[derive(Debug, Clone, PartialEq)]
pub struct Results {
    /// Output times, in minutes.
    pub times: Vec<f64>,
    /// Paths of the outputs; all results of a structure share them.
    pub paths: Arc<[String]>,
    /// Base units of the outputs, as far as known.
    pub units: Arc<[String]>,
    /// All values, row by row: one row per time, one number per output.
    pub values: Vec<f64>,
    /// Derivatives of all values by the quantities of [`super::RunOptions::sensitivity_to`], in base units: a row of
    /// them for each value. Empty if none were requested.
    pub derivatives: Vec<f64>,
    /// Counts of the solver.
    pub statistics: SolverStatistics,
    /// Tolerances and bounds used.
    pub settings: SolverSettings,
    /// Release of the OSP solver that the run followed.
    pub osp_version: OspVersion,
    /// Warnings of the run.
    pub warnings: Vec<String>,
    /// Scratch: a state with tiny negative values removed.
    clean: Vec<f64>,
}

/// The states, without tiny negative values.
#[multiversion(targets("x86_64+avx2"))]
fn clean(clean: &mut [f64], y: &[f64], abs_tol: f64) {
    for (clean, &y) in clean.iter_mut().zip(y) {
        let tiny = (y < 0.0) & (y > -abs_tol);
        *clean = if tiny { 0.0 } else { y };
    }
}

impl Results {
    pub(super) fn new(instance: &Instance) -> Self {
        let structure = instance.structure();
        let titles = structure.titles();
        Self {
            times: Vec::new(),
            paths: Arc::clone(&titles.paths),
            units: Arc::clone(&titles.units),
            values: Vec::new(),
            derivatives: Vec::new(),
            statistics: SolverStatistics::default(),
            settings: structure.model().solver,
            osp_version: OspVersion::default(),
            warnings: Vec::new(),
            clean: Vec::new(),
        }
    }

    pub(super) fn reserve(&mut self, times: usize, sunk: bool) {
        self.times.reserve(times);
        if sunk {
            return;
        }
        self.values
            .reserve(times.saturating_mul(self.paths.len()).min(1 << 26));
    }

    /// Stores the outputs at t, or hands them to the sink; scaled states in (−abs_tol, 0) count as zero.
    pub(super) fn store(
        &mut self,
        state: &mut EventState,
        t: f64,
        abs_tol: f64,
        sink: Option<Sink<'_>>,
        watch: &Watch<'_>,
    ) -> Result<(), Interrupt> {
        self.clean.resize(state.y.len(), 0.0);
        clean(&mut self.clean, &state.y, abs_tol);
        let start = self.values.len();
        self.values.resize(start + self.paths.len(), 0.0);
        state
            .engine
            .outputs(t, &self.clean, &mut self.values[start..]);
        if let Some(tangents) = &mut state.tangents {
            let start = self.derivatives.len();
            let length = self.paths.len() * tangents.width();
            self.derivatives.resize(start + length, 0.0);
            let row = &mut self.derivatives[start..];
            tangents.outputs(&state.engine, &state.s, row, watch)?;
        }
        self.times.push(t);
        if let Some(sink) = sink {
            sink(t, &self.values[start..]);
            self.values.clear();
        }
        Ok(())
    }

    /// As bytes: everything but what the individual says itself.
    #[cfg(feature = "cli")]
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let mut words = WordBuffer::to_write();
        let mut copy = self.clone();
        // Writing never fails.
        let _ = copy.pass(&mut words);
        words.into_bytes()
    }

    /// Results of this individual that were written as bytes.
    #[cfg(feature = "cli")]
    pub(crate) fn from_bytes(instance: &Instance, bytes: Vec<u8>) -> Option<Self> {
        let mut results = Self::new(instance);
        let mut words = WordBuffer::to_read(bytes);
        results.pass(&mut words).ok()?;
        let fits = results.values.len() == results.times.len() * results.paths.len();
        (words.is_read() && fits).then_some(results)
    }

    #[cfg(feature = "cli")]
    fn pass(&mut self, words: &mut WordBuffer) -> Result<(), DamagedBytes> {
        for numbers in [&mut self.times, &mut self.values, &mut self.derivatives] {
            words.list(numbers, NUMBERS_MAX, WordBuffer::number)?;
        }
        self.statistics.pass(words)?;
        let s = &mut self.settings;
        for number in [
            &mut s.abs_tol,
            &mut s.rel_tol,
            &mut s.h0,
            &mut s.h_min,
            &mut s.h_max,
        ] {
            words.number(number)?;
        }
        words.word(&mut s.max_steps)?;
        words.flag(&mut s.use_jacobian)?;
        words.flag(&mut s.check_negative)?;
        let mut release = self.osp_version as usize;
        words.count(&mut release, OspVersion::ALL.len())?;
        self.osp_version = OspVersion::ALL.get(release).copied().unwrap_or_default();
        words.list(&mut self.warnings, NUMBERS_MAX, WordBuffer::text)
    }

    /// Values of one output by time.
    pub fn column(&self, output: usize) -> impl Iterator<Item = f64> + '_ {
        let columns = self.paths.len().max(1);
        self.values.iter().skip(output).step_by(columns).copied()
    }

    /// Derivatives of one output by the quantity at this place of [`super::RunOptions::sensitivity_to`], by time.
    pub fn derivative(&self, output: usize, parameter: usize) -> impl Iterator<Item = f64> + '_ {
        let outputs = self.paths.len().max(1);
        let width = self.derivatives.len() / self.values.len().max(1);
        let row = self.derivatives.iter().skip(output * width + parameter);
        row.step_by((outputs * width).max(1)).copied()
    }

    /// Values of the output with this path.
    #[must_use]
    pub fn by_path(&self, path: &str) -> Option<Vec<f64>> {
        let output = self.paths.iter().position(|p| p == path)?;
        Some(self.column(output).collect())
    }
}
