//! Charts as SVG, written by hand: a chart knows its numbers, and draws itself at any width.

mod canvas;
mod ecdf;
mod forest;
mod lines;
mod scale;
mod stack;

pub(super) use canvas::escape;
pub(super) use ecdf::EcdfChart;
pub(super) use forest::{ForestChart, ForestRow};
pub(super) use lines::{ChartLine, LineChart};
pub(super) use stack::{StackBar, StackChart};

/// How many colours the style has; series beyond take the first again.
pub(super) const COLOURS: usize = 8;

/// A chart.
#[derive(Debug)]
pub(super) enum Chart {
    Forest(ForestChart),
    Ecdf(EcdfChart),
    Lines(LineChart),
    Stack(StackChart),
}

impl Chart {
    /// Returns the chart at a width, in pixels.
    pub(super) fn svg(&self, width: f64) -> String {
        match self {
            Self::Forest(chart) => chart.svg(width),
            Self::Ecdf(chart) => chart.svg(width),
            Self::Lines(chart) => chart.svg(width),
            Self::Stack(chart) => chart.svg(width),
        }
    }

    /// Returns the names of its series, with their colours.
    pub(super) fn legend(&self) -> Vec<(String, usize)> {
        match self {
            Self::Forest(_) => Vec::new(),
            Self::Ecdf(chart) => chart.legend(),
            Self::Lines(chart) => chart.legend(),
            Self::Stack(chart) => chart.legend(),
        }
    }
}
