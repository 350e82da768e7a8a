//! Line plots of curves over time: a self-contained SVG and characters for a terminal.
//!
//! Invariants: a plot changes no number; a value that cannot be shown (no number, infinite, not positive on
//! a logarithmic axis) leaves a gap; no script, font, style sheet or link from outside is referred to.

mod axis;
mod frame;
mod goodness;
mod legend;
mod overlay;
mod svg;
mod terminal;

pub use axis::TimeUnit;
pub use goodness::{FittedOutput, goodness_of_fit};
pub use overlay::{MeasuredPoints, PlotOverlay, ValueBand};
pub use svg::{svg, svg_with};
pub use terminal::{TerminalOptions, terminal};

use std::fmt;

/// Most curves in one plot; more cannot be distinguished.
pub const SERIES_MAX: usize = 24;

/// How curves are drawn, on either medium.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct PlotOptions {
    /// Heading; none if empty.
    pub title: String,
    /// Logarithmic value axis.
    pub log: bool,
    /// Unit of the time axis; chosen by its length when not given.
    pub time_unit: Option<TimeUnit>,
}

/// Why there is nothing to draw.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlotError {
    /// No curve was given.
    NoSeries,
    /// More than [`SERIES_MAX`].
    TooManySeries {
        /// How many.
        found: usize,
    },
    /// No point can be shown.
    NoPoints {
        /// Whether the axis is logarithmic, which shows positive values only.
        log: bool,
    },
}

impl fmt::Display for PlotError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoSeries => f.write_str("no curve to plot; choose at least one output"),
            Self::TooManySeries { found } => {
                write!(
                    f,
                    "{found} curves are too many for one plot; choose at most {SERIES_MAX} outputs"
                )
            }
            Self::NoPoints { log: true } => {
                f.write_str("no positive value to plot on a logarithmic axis")
            }
            Self::NoPoints { log: false } => f.write_str("no finite value to plot"),
        }
    }
}

impl std::error::Error for PlotError {}
