//! Additions to the curves: bands behind them and points on top of them.

/// Values that were measured, drawn as circles in the colour of the curve that they belong to.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct MeasuredPoints {
    /// What they are.
    pub name: String,
    /// Number of the curve.
    pub curve: usize,
    /// Times in minutes.
    pub times: Vec<f64>,
    /// Values in the unit of the curve.
    pub values: Vec<f64>,
    /// Standard deviations in the unit of the curve, drawn as bars; 0, or none at all, for no bar.
    pub deviations: Vec<f64>,
    /// Which values are limits of quantification below which the true value lies: drawn as triangles.
    pub censored: Vec<bool>,
}

impl MeasuredPoints {
    /// Returns whether the value at this place is a limit of quantification.
    pub(super) fn is_censored(&self, i: usize) -> bool {
        self.censored.get(i) == Some(&true)
    }
}

/// The space between two values at each time of the curves, drawn in the colour of a curve.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ValueBand {
    /// Name for the legend.
    pub name: String,
    /// Number of the curve.
    pub curve: usize,
    /// Lower ends, in the unit of the curve.
    pub low: Vec<f64>,
    /// Upper ends.
    pub high: Vec<f64>,
}

/// Points and bands of a plot.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct PlotOverlay {
    /// Drawn last.
    pub points: Vec<MeasuredPoints>,
    /// Drawn first.
    pub bands: Vec<ValueBand>,
}

impl PlotOverlay {
    /// Returns all values that the axis has to reach.
    pub(super) fn values(&self) -> impl Iterator<Item = f64> + '_ {
        let points = self.points.iter().flat_map(|p| &p.values);
        let bars = self.points.iter().flat_map(|p| {
            let ends = p.values.iter().zip(&p.deviations);
            ends.map(|(value, deviation)| value + deviation)
        });
        let bands = self.bands.iter().flat_map(|b| b.low.iter().chain(&b.high));
        points.chain(bands).copied().chain(bars)
    }

    /// Returns all times that the axis has to reach, besides those of the curves.
    pub(super) fn times(&self) -> impl Iterator<Item = f64> + '_ {
        self.points.iter().flat_map(|p| &p.times).copied()
    }
}
