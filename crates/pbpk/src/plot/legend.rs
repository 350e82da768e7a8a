//! The legend below a plot: what each line, area and circle is.

use super::PlotOverlay;
use super::frame::shorten;
use super::svg::{COLOURS, LINE, escape, push, style};
use crate::csv::CurveSeries;

/// Characters of an entry that fit one line.
const CHARS: usize = 54;
/// From the lower end of a plot to the first entry.
const GAP: f64 = 52.0;

/// Mark of an entry.
#[derive(Debug, Clone, Copy)]
pub(super) enum LegendMark {
    /// A curve.
    Line,
    /// A band.
    Area,
    /// Observed values.
    Circle,
    /// Values below the limit of quantification.
    Triangle,
}

/// An entry.
#[derive(Debug)]
pub(super) struct LegendEntry {
    pub(super) mark: LegendMark,
    /// Number of the curve with its colour.
    pub(super) curve: usize,
    pub(super) text: String,
}

/// Returns the entries of a plot, curves first; `name` gives the text of a curve.
pub(super) fn entries(
    curves: &[CurveSeries],
    overlay: &PlotOverlay,
    name: impl Fn(&CurveSeries) -> String,
) -> Vec<LegendEntry> {
    let lines = curves
        .iter()
        .enumerate()
        .map(|(curve, series)| LegendEntry {
            mark: LegendMark::Line,
            curve,
            text: name(series),
        });
    let areas = overlay.bands.iter().map(|band| LegendEntry {
        mark: LegendMark::Area,
        curve: band.curve,
        text: band.name.clone(),
    });
    let circles = overlay.points.iter().map(|points| LegendEntry {
        mark: LegendMark::Circle,
        curve: points.curve,
        text: points.name.clone(),
    });
    let limits = overlay.points.iter().filter(|p| p.censored.contains(&true));
    let triangles = limits.map(|points| LegendEntry {
        mark: LegendMark::Triangle,
        curve: points.curve,
        text: format!("below quantification, {}", points.name),
    });
    lines.chain(areas).chain(circles).chain(triangles).collect()
}

/// Height of so many entries.
#[expect(
    clippy::cast_precision_loss,
    reason = "a plot has few curves, bands and sets of points"
)]
pub(super) fn height(entries: usize) -> f64 {
    LINE * entries as f64
}

/// Writes the entries below a plot that ends at `bottom`.
pub(super) fn write(out: &mut String, entries: &[LegendEntry], bottom: f64) {
    for (index, entry) in entries.iter().enumerate() {
        let y = bottom + GAP + height(index);
        let middle = y - 4.0;
        let colour = entry.curve % COLOURS.len();
        match entry.mark {
            LegendMark::Line => push(
                out,
                format_args!("<path {} d=\"M10 {middle:.1}h22\"/>", style(entry.curve)),
            ),
            LegendMark::Area => push(
                out,
                format_args!(
                    "<rect class=\"h h{colour}\" x=\"10\" y=\"{:.1}\" width=\"22\" height=\"10\"/>\
                     <path {} d=\"M10 {:.1}h22\"/>",
                    middle - 5.0,
                    style(entry.curve),
                    middle - 5.0
                ),
            ),
            LegendMark::Triangle => push(
                out,
                format_args!(
                    "<path class=\"o c{colour}\" d=\"M18 {:.1}h6l-3 5.2Z\"/>",
                    middle - 2.6
                ),
            ),
            LegendMark::Circle => push(
                out,
                format_args!(
                    "<path class=\"o c{colour}\" d=\"M18.4 {middle:.1}a2.6 2.6 0 1 0 5.2 0a2.6 2.6 0 1 0-5.2 0\"/>"
                ),
            ),
        }
        push(
            out,
            format_args!(
                "<text x=\"38\" y=\"{y:.1}\">{}</text>\n",
                escape(&shorten_text(&entry.text))
            ),
        );
    }
}

/// Shortens a text; keeps its subject and the end of a path, which matters most.
fn shorten_text(text: &str) -> String {
    match text.split_once(": ") {
        Some((about, path)) => {
            let about = format!("{about}: ");
            let left = CHARS.saturating_sub(about.chars().count());
            about + &shorten(path, left)
        }
        None => shorten(text, CHARS),
    }
}
