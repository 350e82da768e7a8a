//! Estimates with their intervals, one row each, over the launches they come from.

use super::super::numbers::{self, TimeUnit};
use super::canvas::{SvgCanvas, TextAnchor, colour};
use super::scale::{self, AxisScale};
use crate::stats::Interval;

const ROW: f64 = 54.0;
const TOP: f64 = 8.0;
const FOOT: f64 = 40.0;

/// What each variant adds.
#[derive(Debug)]
pub(in crate::report) struct ForestChart {
    pub(in crate::report) title: String,
    pub(in crate::report) rows: Vec<ForestRow>,
}

/// One estimate, in microseconds.
#[derive(Debug)]
pub(in crate::report) struct ForestRow {
    pub(in crate::report) name: String,
    pub(in crate::report) series: usize,
    pub(in crate::report) interval: Interval,
    /// The value of each launch.
    pub(in crate::report) launches: Vec<f64>,
}

impl ForestRow {
    fn values(&self) -> impl Iterator<Item = f64> + '_ {
        let ends = [self.interval.ci_low, self.interval.ci_high];
        self.launches
            .iter()
            .copied()
            .chain(ends.into_iter().flatten())
            .chain([self.interval.point])
    }
}

impl ForestChart {
    pub(super) fn svg(&self, width: f64) -> String {
        let height = TOP + ROW * self.rows.len() as f64 + FOOT;
        let mut canvas = SvgCanvas::new(width, height);
        let all = || self.rows.iter().flat_map(ForestRow::values);
        let (low, high) = (all().fold(0.0, f64::min), all().fold(0.0, f64::max));
        let unit = TimeUnit::of(high.max(-low));
        let room = 0.04 * (high - low);
        let low = if low < 0.0 { low - room } else { 0.0 };
        let scale = AxisScale::linear(low / unit.us, (high + room) / unit.us, 8.0, width - 12.0);
        let bottom = TOP + ROW * self.rows.len() as f64;
        let name = format!("added per call, {}", unit.name);
        scale::horizontal(&mut canvas, &scale, TOP, bottom, &name);
        canvas.line((scale.at(0.0), TOP), (scale.at(0.0), bottom), "zero");
        for (number, row) in self.rows.iter().enumerate() {
            draw(&mut canvas, row, &scale, unit, number, width);
        }
        canvas.finish(&self.title)
    }
}

fn draw(
    canvas: &mut SvgCanvas,
    row: &ForestRow,
    scale: &AxisScale,
    unit: TimeUnit,
    number: usize,
    width: f64,
) {
    let (top, tint) = (TOP + ROW * number as f64, colour(row.series));
    let middle = top + 36.0;
    canvas.text((8.0, top + 18.0), TextAnchor::Start, "name halo", &row.name);
    let said = format!(
        "{} {}",
        numbers::whole(&row.interval.scaled(1.0 / unit.us)),
        unit.name
    );
    canvas.text(
        (width - 12.0, top + 18.0),
        TextAnchor::End,
        "value halo",
        &said,
    );
    for (launch, value) in (1..).zip(&row.launches) {
        let tip = format!("launch {launch}: {}", numbers::time(*value));
        let at = (scale.at(value / unit.us), middle);
        canvas.dot(at, 3.5, &format!("fill faint {tint}"), &tip);
    }
    if let (Some(low), Some(high)) = (row.interval.ci_low, row.interval.ci_high) {
        let (from, to) = (scale.at(low / unit.us), scale.at(high / unit.us));
        canvas.line((from, middle), (to, middle), &format!("whisker {tint}"));
        for end in [from, to] {
            canvas.line(
                (end, middle - 6.0),
                (end, middle + 6.0),
                &format!("whisker {tint}"),
            );
        }
    }
    let at = (scale.at(row.interval.point / unit.us), middle);
    canvas.dot(
        at,
        5.5,
        &format!("fill mark {tint}"),
        &format!("{}: {said}", row.name),
    );
}
