//! Charts as SVG, written by hand: a chart knows its numbers, and draws itself at any width.

mod canvas;
mod ecdf;
mod forest;
mod lines;
mod scale;
mod stack;

pub(super) use canvas::escape;
pub(super) use ecdf::Ecdf;
pub(super) use forest::{Forest, Row};
pub(super) use lines::{Line, Lines};
pub(super) use stack::{Bar, Stack};

/// How many colours the style has; series beyond take the first again.
pub(super) const COLOURS: usize = 8;

/// A chart.
#[derive(Debug)]
pub(super) enum Chart {
    Forest(Forest),
    Ecdf(Ecdf),
    Lines(Lines),
    Stack(Stack),
}

impl Chart {
    /// The chart at a width, in pixels.
    pub(super) fn svg(&self, width: f64) -> String {
        match self {
            Self::Forest(chart) => chart.svg(width),
            Self::Ecdf(chart) => chart.svg(width),
            Self::Lines(chart) => chart.svg(width),
            Self::Stack(chart) => chart.svg(width),
        }
    }

    /// The names of its series, with their colours.
    pub(super) fn legend(&self) -> Vec<(String, usize)> {
        match self {
            Self::Forest(_) => Vec::new(),
            Self::Ecdf(chart) => chart.legend(),
            Self::Lines(chart) => chart.legend(),
            Self::Stack(chart) => chart.legend(),
        }
    }
}
