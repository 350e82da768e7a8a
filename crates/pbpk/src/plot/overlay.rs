//! What is drawn with the curves: bands behind them and points on top of them.

/// Values that were measured, drawn as circles in the colour of the curve that they belong to.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Points {
    /// What they are.
    pub name: String,
    /// Number of the curve.
    pub curve: usize,
    /// Times in minutes.
    pub times: Vec<f64>,
    /// Values in the unit of the curve.
    pub values: Vec<f64>,
}

/// The space between two values at each time of the curves, drawn in the colour of a curve.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Band {
    /// What it is.
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
pub struct Overlay {
    /// Drawn last.
    pub points: Vec<Points>,
    /// Drawn first.
    pub bands: Vec<Band>,
}

impl Overlay {
    /// All values that the axis has to reach.
    pub(super) fn values(&self) -> impl Iterator<Item = f64> + '_ {
        let points = self.points.iter().flat_map(|p| &p.values);
        let bands = self.bands.iter().flat_map(|b| b.low.iter().chain(&b.high));
        points.chain(bands).copied()
    }

    /// All times that the axis has to reach, besides those of the curves.
    pub(super) fn times(&self) -> impl Iterator<Item = f64> + '_ {
        self.points.iter().flat_map(|p| &p.times).copied()
    }
}
