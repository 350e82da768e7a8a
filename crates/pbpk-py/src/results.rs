//! What a run gives back.

use std::sync::Arc;

use numpy::{IntoPyArray, PyArray1, PyArrayMethods};
use pyo3::prelude::*;
use pyo3::types::PyAny;

use crate::errors::raised;

/// Curves of one run.
#[pyclass(module = "pbpk", frozen)]
pub(crate) struct SimulationResults {
    /// Output times in minutes.
    #[pyo3(get)]
    times: Py<PyArray1<f64>>,
    /// A row for each time, a column for each output.
    #[pyo3(get)]
    values: Py<PyAny>,
    /// Derivatives by the parameters asked for: by time, output and parameter; None where none were asked for.
    #[pyo3(get)]
    derivatives: Option<Py<PyAny>>,
    paths: Arc<[String]>,
    units: Arc<[String]>,
    /// Warnings of the run.
    #[pyo3(get)]
    warnings: Vec<String>,
    /// Release of OSP whose rules the run followed.
    #[pyo3(get)]
    osp_version: &'static str,
}

/// Numbers as an array of this shape that owns them.
pub(crate) fn shaped<'py, const N: usize>(
    py: Python<'py>,
    numbers: Vec<f64>,
    shape: [usize; N],
) -> PyResult<Bound<'py, PyAny>> {
    numbers
        .into_pyarray(py)
        .call_method1("reshape", (shape.to_vec(),))
}

impl SimulationResults {
    pub(crate) fn new(py: Python<'_>, results: solver::run::Results) -> PyResult<Self> {
        let (times, outputs) = (results.times.len(), results.paths.len());
        let width = results.derivatives.len() / results.values.len().max(1);
        let derivatives = match width {
            0 => None,
            _ => Some(shaped(py, results.derivatives, [times, outputs, width])?.unbind()),
        };
        Ok(Self {
            values: shaped(py, results.values, [times, outputs])?.unbind(),
            times: results.times.into_pyarray(py).unbind(),
            derivatives,
            paths: results.paths,
            units: results.units,
            warnings: results.warnings,
            osp_version: results.osp_version.name(),
        })
    }
}

#[pymethods]
impl SimulationResults {
    /// Paths of the outputs.
    #[getter]
    fn paths(&self) -> Vec<String> {
        self.paths.to_vec()
    }

    /// Their base units.
    #[getter]
    fn units(&self) -> Vec<String> {
        self.units.to_vec()
    }

    /// Values of the output with this path, by time.
    fn get_output_values<'py>(&self, py: Python<'py>, path: &str) -> PyResult<Bound<'py, PyAny>> {
        let place = self
            .paths
            .iter()
            .position(|p| p == path || p.ends_with(&format!("|{path}")));
        let place = place.ok_or_else(|| raised(format!("no output has the path '{path}'")))?;
        self.values.bind(py).getattr("T")?.get_item(place)
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        let times = self
            .times
            .bind(py)
            .readonly()
            .as_slice()
            .map_or(0, <[f64]>::len);
        format!(
            "SimulationResults({times} times, {} outputs)",
            self.paths.len()
        )
    }
}
