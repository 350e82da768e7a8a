//! Where the time of a call goes: one bar per variant, one piece per stage.

use super::super::numbers;
use super::canvas::{Anchor, Canvas, colour};
use super::scale::{self, Scale};

const ROW: f64 = 58.0;
const TOP: f64 = 8.0;
const FOOT: f64 = 40.0;
const BAR: f64 = 22.0;

/// Bars on a common axis, in microseconds.
#[derive(Debug)]
pub(in crate::report) struct Stack {
    pub(in crate::report) title: String,
    pub(in crate::report) bars: Vec<Bar>,
}

/// One bar.
#[derive(Debug)]
pub(in crate::report) struct Bar {
    pub(in crate::report) name: String,
    /// The name and the length of each piece, in the order of a call.
    pub(in crate::report) pieces: Vec<(String, f64)>,
}

impl Stack {
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

    /// Whether the piece is long enough in any bar to be seen.
    fn is_anywhere(&self, at: usize) -> bool {
        let mut pieces = self.bars.iter().filter_map(|bar| bar.pieces.get(at));
        pieces.any(|(_, us)| *us >= 0.05)
    }

    pub(super) fn svg(&self, width: f64) -> String {
        let bottom = TOP + ROW * self.bars.len() as f64;
        let mut canvas = Canvas::new(width, bottom + FOOT);
        let whole = |bar: &Bar| bar.pieces.iter().map(|(_, us)| us.max(0.0)).sum::<f64>();
        let longest = self.bars.iter().map(whole).fold(0.0, f64::max);
        let scale = Scale::linear(0.0, longest * 1.02, 8.0, width - 12.0);
        scale::horizontal(&mut canvas, &scale, TOP, bottom, "mean of a call, µs");
        for (number, bar) in self.bars.iter().enumerate() {
            let top = TOP + ROW * number as f64;
            canvas.text((8.0, top + 18.0), Anchor::Start, "name halo", &bar.name);
            let said = format!("{} µs", numbers::short(whole(bar)));
            canvas.text((width - 12.0, top + 18.0), Anchor::End, "value halo", &said);
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
