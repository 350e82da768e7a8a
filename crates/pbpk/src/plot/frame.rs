//! What both media share: the ranges, and the curves as places between 0 and 1.

use super::axis::{PlotAxis, TimeUnit, time_steps};
use super::{PlotError, PlotOptions, PlotOverlay, SERIES_MAX};
use crate::csv::CurveTable;

/// Axes and labels of a plot.
pub(super) struct PlotFrame {
    pub(super) x: PlotAxis,
    pub(super) y: PlotAxis,
    pub(super) unit: TimeUnit,
    /// Common unit of the curves; `None` when they differ.
    pub(super) value_unit: Option<String>,
}

impl PlotFrame {
    pub(super) fn new(
        curves: &CurveTable,
        overlay: &PlotOverlay,
        options: &PlotOptions,
        x_ticks: usize,
        y_ticks: usize,
    ) -> Result<Self, PlotError> {
        let Some(first) = curves.series.first() else {
            return Err(PlotError::NoSeries);
        };
        if curves.series.len() > SERIES_MAX {
            return Err(PlotError::TooManySeries {
                found: curves.series.len(),
            });
        }
        let shown = |v: &f64| v.is_finite() && (!options.log || *v > 0.0);
        let values = || {
            curves
                .series
                .iter()
                .flat_map(|s| &s.values)
                .copied()
                .chain(overlay.values())
                .filter(shown)
        };
        let times = || {
            let times = curves.times.iter().copied().chain(overlay.times());
            times.filter(|t| t.is_finite())
        };
        let least = |a: f64, b: f64| a.min(b);
        let most = |a: f64, b: f64| a.max(b);
        let range = values()
            .reduce(least)
            .zip(values().reduce(most))
            .zip(times().reduce(least).zip(times().reduce(most)));
        let Some(((low, high), (start, end))) = range else {
            return Err(PlotError::NoPoints { log: options.log });
        };
        let unit = options
            .time_unit
            .unwrap_or_else(|| TimeUnit::for_span(end - start));
        let (start, end) = (start / unit.minutes(), end / unit.minutes());
        let y = if options.log {
            PlotAxis::logarithmic(low, high, y_ticks)
        } else {
            // A curve that stays above zero is shown from zero.
            let low = if low > 0.0 { 0.0 } else { low };
            PlotAxis::linear(low, high, y_ticks, &[], true)
        };
        let same = curves.series.iter().all(|s| s.unit == first.unit);
        Ok(Self {
            x: PlotAxis::linear(start, end, x_ticks, time_steps(unit, end - start), false),
            y,
            unit,
            value_unit: same.then(|| first.unit.clone()),
        })
    }

    /// Returns the pieces of curve number `index`, broken at points that cannot be shown.
    pub(super) fn pieces(&self, curves: &CurveTable, index: usize) -> Vec<Vec<(f64, f64)>> {
        let mut pieces = vec![Vec::new()];
        let Some(series) = curves.series.get(index) else {
            return pieces;
        };
        for (row, t) in curves.times.iter().enumerate() {
            match series.at(row).and_then(|v| self.place(*t, v)) {
                Some(point) => {
                    if let Some(piece) = pieces.last_mut() {
                        piece.push(point);
                    }
                }
                None => pieces.push(Vec::new()),
            }
        }
        pieces.retain(|p| !p.is_empty());
        pieces
    }

    /// Returns the position of a value at a time in minutes, if it can be shown.
    pub(super) fn place(&self, time: f64, value: f64) -> Option<(f64, f64)> {
        self.x
            .place(time / self.unit.minutes())
            .zip(self.y.place(value))
    }

    /// `Time [h]`.
    pub(super) fn x_label(&self) -> String {
        format!("Time [{}]", self.unit.symbol())
    }

    /// Unit of the value axis, in brackets, if there is one for all.
    pub(super) fn y_label(&self) -> String {
        match self.value_unit.as_deref() {
            Some("") => String::new(),
            Some(unit) => format!("[{unit}]"),
            None => "units in the legend".to_owned(),
        }
    }

    /// Legend entry of a curve; with its unit where units differ.
    pub(super) fn legend(&self, name: &str, unit: &str) -> String {
        if self.value_unit.is_none() && !unit.is_empty() {
            format!("{name} [{unit}]")
        } else {
            name.to_owned()
        }
    }
}

/// Shortens from the left, where paths are least telling, to so many characters.
pub(super) fn shorten(text: &str, width: usize) -> String {
    let count = text.chars().count();
    if count <= width {
        return text.to_owned();
    }
    let kept: String = text.chars().skip(count - width.saturating_sub(1)).collect();
    format!("…{kept}")
}

/// Shortens a title: a path from the left, words from the right, if they are least telling.
pub(super) fn shorten_title(text: &str, width: usize) -> String {
    if text.contains('|') {
        return shorten(text, width);
    }
    if text.chars().count() <= width {
        return text.to_owned();
    }
    let kept: String = text.chars().take(width.saturating_sub(1)).collect();
    format!("{}…", kept.trim_end())
}
