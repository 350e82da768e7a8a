//! Errors of the library as exceptions.

use pyo3::PyErr;
use pyo3::create_exception;
use pyo3::exceptions::PyException;

create_exception!(
    pbpk,
    PbpkError,
    PyException,
    "A model that cannot be read or run, an unknown path, a wrong unit."
);

/// Any error of the library, with its message.
pub(crate) fn raised(error: impl std::fmt::Display) -> PyErr {
    PbpkError::new_err(error.to_string())
}
