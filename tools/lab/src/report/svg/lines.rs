//! Values over launches or over time, one line per series.

use super::canvas::{SvgCanvas, colour};
use super::scale::{self, AxisScale};

const HEIGHT: f64 = 240.0;
const LEFT: f64 = 56.0;
const TOP: f64 = 26.0;
const FOOT: f64 = 40.0;
/// Points up to which each is marked, so that single values can be read.
const MARKED_MAX: usize = 64;
/// Points of one line; more are thinned out.
const POINTS_MAX: usize = 600;

/// Lines on common axes.
#[derive(Debug)]
pub(in crate::report) struct LineChart {
    pub(in crate::report) title: String,
    pub(in crate::report) x_name: String,
    pub(in crate::report) y_name: String,
    /// Whether only whole numbers make sense on the horizontal axis.
    pub(in crate::report) counts: bool,
    pub(in crate::report) lines: Vec<ChartLine>,
}

/// One line.
#[derive(Debug)]
pub(in crate::report) struct ChartLine {
    pub(in crate::report) name: String,
    pub(in crate::report) series: usize,
    pub(in crate::report) points: Vec<(f64, f64)>,
}

impl LineChart {
    pub(super) fn legend(&self) -> Vec<(String, usize)> {
        self.lines
            .iter()
            .map(|l| (l.name.clone(), l.series))
            .collect()
    }

    pub(super) fn svg(&self, width: f64) -> String {
        let mut canvas = SvgCanvas::new(width, HEIGHT);
        let all = || self.lines.iter().flat_map(|line| line.points.iter());
        let (first, last) = (
            all().map(|p| p.0).fold(f64::INFINITY, f64::min),
            all().map(|p| p.0).fold(f64::NEG_INFINITY, f64::max),
        );
        let first = if first.is_finite() { first } else { 0.0 };
        let top = all().map(|p| p.1).fold(0.0, f64::max) * 1.08;
        let (right, bottom) = (width - 14.0, HEIGHT - FOOT);
        let x = AxisScale::linear(first, last.max(first), LEFT, right).counting(self.counts);
        let y = AxisScale::linear(0.0, top, bottom, TOP);
        scale::horizontal(&mut canvas, &x, TOP, bottom, &self.x_name);
        scale::vertical(&mut canvas, &y, LEFT, right, &self.y_name);
        for line in &self.lines {
            let thin = line.points.len().div_ceil(POINTS_MAX).max(1);
            let points: Vec<(f64, f64)> = line
                .points
                .iter()
                .step_by(thin)
                .map(|(px, py)| (x.at(*px), y.at(*py)))
                .collect();
            let tint = colour(line.series);
            canvas.path(&points, &format!("curve {tint}"));
            if line.points.len() <= MARKED_MAX {
                for (at, (px, py)) in points.iter().zip(&line.points) {
                    let tip = format!("{}: {py:.1} at {px:.0}", line.name);
                    canvas.dot(*at, 3.0, &format!("fill {tint}"), &tip);
                }
            }
        }
        canvas.finish(&self.title)
    }
}
