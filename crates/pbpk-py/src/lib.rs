//! The Python module `pbpk`: models of the Open Systems Pharmacology suite, with the names of `ospsuite`.
//!
//! Numbers cross the border without a copy (results become numpy arrays that own them), long work holds no interpreter lock,
//! every error is a Python exception with the message of the library, and Ctrl-C ends it. Nothing is computed here.

mod errors;
mod fitting;
mod population;
mod results;
mod signals;
mod simulation;

use pyo3::prelude::*;

/// Read, run and fit simulations of the Open Systems Pharmacology suite.
#[pymodule]
fn pbpk(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add("PbpkError", module.py().get_type::<errors::PbpkError>())?;
    module.add_class::<simulation::Simulation>()?;
    module.add_class::<results::SimulationResults>()?;
    module.add_class::<population::Population>()?;
    module.add_class::<population::PopulationResults>()?;
    module.add_class::<fitting::Estimate>()?;
    module.add_class::<fitting::FitResult>()?;
    module.add_function(wrap_pyfunction!(simulation::load_simulation, module)?)?;
    module.add_function(wrap_pyfunction!(population::load_population, module)?)?;
    module.add_function(wrap_pyfunction!(population::run_population, module)?)?;
    module.add_function(wrap_pyfunction!(population::run_chunk, module)?)?;
    module.add_function(wrap_pyfunction!(fitting::fit, module)?)?;
    Ok(())
}
