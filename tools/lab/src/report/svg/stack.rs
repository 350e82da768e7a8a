//! Stages of a call: one bar per variant, one piece per stage.

use super::super::numbers;
use super::canvas::{SvgCanvas, TextAnchor, colour};
use super::scale::{self, AxisScale};

const ROW: f64 = 58.0;
const TOP: f64 = 8.0;
const FOOT: f64 = 40.0;
const BAR: f64 = 22.0;

/// Bars on a common axis, in microseconds.
#[derive(Debug)]
pub(in crate::report) struct StackChart {
    pub(in crate::report) title: String,
    pub(in crate::report) bars: Vec<StackBar>,
}

/// One bar.
#[derive(Debug)]
pub(in crate::report) struct StackBar {
    pub(in crate::report) name: String,
    /// The name and the length of each piece, in the order of a call.
    pub(in crate::report) pieces: Vec<(String, f64)>,
}

impl StackChart {
    pub(super) fn legend(&self) -> Vec<(String, usize)> {
        let Some(bar) = self.bars.first() else {
            return Vec::new();
        };
        let names = bar.pieces.iter().enumerate();
        names
            .filter(|(at, _)| self.is_anywhere(*at))
            .map(|(at, (name, _))| (name.clone(), at))
            .collect()
    }

    /// Returns whether the piece is long enough in any bar to be seen.
    fn is_anywhere(&self, at: usize) -> bool {
        let mut pieces = self.bars.iter().filter_map(|bar| bar.pieces.get(at));
        pieces.any(|(_, us)| *us >= 0.05)
    }

    pub(super) fn svg(&self, width: f64) -> String {
        let bottom = TOP + ROW * self.bars.len() as f64;
        let mut canvas = SvgCanvas::new(width, bottom + FOOT);
        let whole = |bar: &StackBar| bar.pieces.iter().map(|(_, us)| us.max(0.0)).sum::<f64>();
        let longest = self.bars.iter().map(whole).fold(0.0, f64::max);
        let scale = AxisScale::linear(0.0, longest * 1.02, 8.0, width - 12.0);
        scale::horizontal(&mut canvas, &scale, TOP, bottom, "mean of a call, µs");
        for (number, bar) in self.bars.iter().enumerate() {
            let top = TOP + ROW * number as f64;
            canvas.text((8.0, top + 18.0), TextAnchor::Start, "name halo", &bar.name);
            let said = format!("{} µs", numbers::short(whole(bar)));
            canvas.text(
                (width - 12.0, top + 18.0),
                TextAnchor::End,
                "value halo",
                &said,
            );
            let mut from = 0.0;
            for (at, (name, us)) in bar.pieces.iter().enumerate() {
                let to = from + us.max(0.0);
                let (left, right) = (scale.at(from), scale.at(to));
                let tip = format!("{name}: {} µs", numbers::short(*us));
                let size = ((right - left).max(0.0), BAR);
                canvas.rect(
                    (left, top + 26.0),
                    size,
                    &format!("fill {}", colour(at)),
                    &tip,
                );
                from = to;
            }
        }
        canvas.finish(&self.title)
    }
}
