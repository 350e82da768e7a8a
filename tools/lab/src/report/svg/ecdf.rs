//! The share of calls that took at most so long, one curve per series.

use super::super::numbers::TimeUnit;
use super::canvas::{SvgCanvas, colour};
use super::scale::{self, AxisScale};
use crate::stats::SortedSamples;

const HEIGHT: f64 = 300.0;
const LEFT: f64 = 44.0;
const TOP: f64 = 24.0;
const FOOT: f64 = 40.0;
/// The share of the slowest calls that the axis leaves out: one stall would squeeze all the rest.
const CUT: f64 = 0.001;

/// Curves over times in microseconds.
#[derive(Debug)]
pub(in crate::report) struct EcdfChart {
    pub(in crate::report) title: String,
    /// Name, colour, values.
    pub(in crate::report) series: Vec<(String, usize, SortedSamples)>,
}

impl EcdfChart {
    pub(super) fn legend(&self) -> Vec<(String, usize)> {
        self.series
            .iter()
            .map(|(n, c, _)| (n.clone(), *c))
            .collect()
    }

    pub(super) fn svg(&self, width: f64) -> String {
        let mut canvas = SvgCanvas::new(width, HEIGHT);
        let at = |q: f64| self.series.iter().filter_map(move |(_, _, s)| s.at(q));
        let low = at(CUT).fold(f64::INFINITY, f64::min);
        let high = at(1.0 - CUT).fold(0.0, f64::max);
        let unit = TimeUnit::of(high);
        let (right, bottom) = (width - 12.0, HEIGHT - FOOT);
        let low = if low.is_finite() { low } else { 1.0 };
        let x = AxisScale::log(low * 0.9 / unit.us, high * 1.1 / unit.us, LEFT, right);
        let y = AxisScale::linear(0.0, 100.0, bottom, TOP);
        let name = format!("time of a call, {}, logarithmic", unit.name);
        scale::horizontal(&mut canvas, &x, TOP, bottom, &name);
        scale::vertical(&mut canvas, &y, LEFT, right, "% of calls");
        for (_, series, sorted) in &self.series {
            let points: Vec<(f64, f64)> = shares()
                .filter_map(|q| Some((x.at(sorted.at(q)? / unit.us), y.at(q * 100.0))))
                .collect();
            canvas.path(&points, &format!("curve {}", colour(*series)));
        }
        canvas.finish(&self.title)
    }
}

/// Shares close enough for a curve, closest at its strongest bends.
fn shares() -> impl Iterator<Item = f64> {
    let body = (1..=198).map(|step| f64::from(step) / 200.0);
    let tail = (1..=18).map(|step| 0.99 + f64::from(step) / 2_000.0);
    [CUT].into_iter().chain(body).chain(tail)
}
