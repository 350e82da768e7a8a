//! From values to pixels, with ticks at round numbers.

use super::super::numbers;
use super::canvas::{SvgCanvas, TextAnchor};

/// One axis.
#[derive(Debug, Clone, Copy)]
pub(super) struct AxisScale {
    low: f64,
    high: f64,
    /// The pixels of `low` and `high`.
    from: f64,
    to: f64,
    log: bool,
    /// Ticks are whole numbers.
    counts: bool,
}

impl AxisScale {
    /// Returns an axis on which equal distances are equal differences.
    pub(super) fn linear(low: f64, high: f64, from: f64, to: f64) -> Self {
        let high = if high > low { high } else { low + 1.0 };
        Self {
            low,
            high,
            from,
            to,
            log: false,
            counts: false,
        }
    }

    /// Returns an axis on which equal distances are equal ratios.
    pub(super) fn log(low: f64, high: f64, from: f64, to: f64) -> Self {
        let low = low.max(1e-3);
        Self {
            low,
            high: high.max(low * 1.5),
            from,
            to,
            log: true,
            counts: false,
        }
    }

    /// Returns the same with ticks at whole numbers only.
    pub(super) fn counting(self, counts: bool) -> Self {
        Self { counts, ..self }
    }

    /// Returns the pixel of a value; values beyond the ends stay at them.
    pub(super) fn at(&self, value: f64) -> f64 {
        let value = value.clamp(self.low, self.high);
        let share = if self.log {
            (value / self.low).ln() / (self.high / self.low).ln()
        } else {
            (value - self.low) / (self.high - self.low)
        };
        self.from + share * (self.to - self.from)
    }

    /// Round values about `pixels` apart.
    pub(super) fn ticks(&self, pixels: f64) -> Vec<f64> {
        let wanted = ((self.to - self.from).abs() / pixels).max(2.0);
        let found = if self.log {
            self.log_ticks(wanted)
        } else {
            self.linear_ticks(wanted)
        };
        let room = 1e-9 * (self.high - self.low);
        found
            .into_iter()
            .filter(|v| (self.low - room..=self.high + room).contains(v))
            .collect()
    }

    fn linear_ticks(&self, wanted: f64) -> Vec<f64> {
        let rough = (self.high - self.low) / wanted;
        let magnitude = 10_f64.powf(rough.log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0]
            .into_iter()
            .map(|factor| factor * magnitude)
            .find(|step| *step >= rough)
            .unwrap_or(rough)
            .max(if self.counts { 1.0 } else { 0.0 });
        let first = (self.low / step).ceil() as i64;
        let last = (self.high / step).floor() as i64;
        (first..=last.min(first + 100))
            .map(|number| number as f64 * step)
            .collect()
    }

    fn log_ticks(&self, wanted: f64) -> Vec<f64> {
        let (first, last) = (self.low.log10().floor(), self.high.log10().ceil());
        let factors: &[f64] = if last - first <= wanted / 2.0 {
            &[1.0, 2.0, 5.0]
        } else {
            &[1.0]
        };
        let decades = (first as i32)..=(last as i32);
        decades
            .flat_map(|decade| factors.iter().map(move |f| f * 10_f64.powi(decade)))
            .collect()
    }
}

/// Draws the ticks of a horizontal axis below a plot that spans `top` to `bottom`.
pub(super) fn horizontal(
    canvas: &mut SvgCanvas,
    scale: &AxisScale,
    top: f64,
    bottom: f64,
    name: &str,
) {
    for tick in scale.ticks(64.0) {
        let x = scale.at(tick);
        canvas.line((x, top), (x, bottom), "grid");
        canvas.text((x, bottom + 16.0), TextAnchor::Middle, "tick", &label(tick));
    }
    canvas.text((scale.to, bottom + 32.0), TextAnchor::End, "axis", name);
}

/// Draws the ticks of a vertical axis left of a plot that spans `left` to `right`.
pub(super) fn vertical(
    canvas: &mut SvgCanvas,
    scale: &AxisScale,
    left: f64,
    right: f64,
    name: &str,
) {
    for tick in scale.ticks(36.0) {
        let y = scale.at(tick);
        canvas.line((left, y), (right, y), "grid");
        canvas.text((left - 8.0, y + 4.0), TextAnchor::End, "tick", &label(tick));
    }
    canvas.text((0.0, 12.0), TextAnchor::Start, "axis", name);
}

fn label(value: f64) -> String {
    let value = if value.abs() < 1e-9 { 0.0 } else { value };
    if value.abs() >= 1_000.0 {
        return numbers::group_thousands(value);
    }
    // Ticks are round: the shortest writing is the right one.
    format!("{}", (value * 1e6).round() / 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_inside() {
        let check = |scale: AxisScale, expect: &[f64]| assert_eq!(scale.ticks(50.0), expect);
        check(
            AxisScale::linear(0.0, 100.0, 0.0, 250.0),
            &[0.0, 20.0, 40.0, 60.0, 80.0, 100.0],
        );
        check(AxisScale::linear(-3.0, 8.0, 200.0, 0.0), &[0.0, 5.0]);
        check(
            AxisScale::log(3.0, 300.0, 0.0, 400.0),
            &[5.0, 10.0, 20.0, 50.0, 100.0, 200.0],
        );
        check(
            AxisScale::log(1.0, 1e6, 0.0, 300.0),
            &[1.0, 10.0, 100.0, 1e3, 1e4, 1e5, 1e6],
        );
        // Equal ends must not divide by zero.
        assert!(AxisScale::linear(5.0, 5.0, 0.0, 100.0).at(5.0).is_finite());
        assert!(AxisScale::log(0.0, 0.0, 0.0, 100.0).at(0.0).is_finite());
    }

    #[test]
    fn values_find_their_pixels() {
        let scale = AxisScale::log(1.0, 100.0, 0.0, 200.0);
        for (value, pixel) in [(1.0, 0.0), (10.0, 100.0), (100.0, 200.0), (1e9, 200.0)] {
            assert!((scale.at(value) - pixel).abs() < 1e-9, "{value}");
        }
    }
}
