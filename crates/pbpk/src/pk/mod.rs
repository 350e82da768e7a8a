//! Pharmacokinetic parameters of a concentration curve, as the suite computes them.
//!
//! Trapezoid areas, a log-linear terminal fit over the last tenth of the points, single and multiple
//! dosing, and parameters a user defines on an interval of their own. Everything is in base units
//! (minutes, µmol/l, µmol/kg) and in double precision; [`PkParameter::display`] converts.
//!
//! Invariants: nothing here runs a simulation or reads a file; what cannot be computed is not a number,
//! never a guess.

mod analysis;
mod catalogue;
mod curve;
mod dosing;
mod interval;
mod profile;
mod terminal;
mod user;

pub use analysis::{PkAnalysis, PkValue, analyse};
pub use catalogue::{CATALOGUE, DosingMode, PkParameter, parameter};
pub use curve::{Curve, CurveError};
pub use dosing::{Dosing, DosingError, DrugApplication};
pub use interval::{INTERVAL_CATALOGUE, analyse_all, analyse_intervals};
pub use profile::ObservedProfile;
pub use terminal::TerminalPhase;
pub use user::{IntervalMeasure, UserParameter};
