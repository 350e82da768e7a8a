//! The legend below a plot: what each line, area and circle is.

use super::Overlay;
use super::frame::shorten;
use super::svg::{COLOURS, LINE, escape, push, style};
use crate::csv::Series;

/// Characters of an entry that fit one line.
const CHARS: usize = 54;
/// From the lower end of a plot to the first entry.
const GAP: f64 = 52.0;

/// What stands before an entry.
#[derive(Debug, Clone, Copy)]
pub(super) enum Mark {
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
pub(super) struct Entry {
    pub(super) mark: Mark,
    /// Number of the curve whose colour it has.
    pub(super) curve: usize,
    pub(super) text: String,
}

/// The entries of a plot, curves first; `name` gives the text of a curve.
pub(super) fn entries(
    curves: &[Series],
    overlay: &Overlay,
    name: impl Fn(&Series) -> String,
) -> Vec<Entry> {
    let lines = curves.iter().enumerate().map(|(curve, series)| Entry {
        mark: Mark::Line,
        curve,
        text: name(series),
    });
    let areas = overlay.bands.iter().map(|band| Entry {
        mark: Mark::Area,
        curve: band.curve,
        text: band.name.clone(),
    });
    let circles = overlay.points.iter().map(|points| Entry {
        mark: Mark::Circle,
        curve: points.curve,
        text: points.name.clone(),
    });
    let limits = overlay.points.iter().filter(|p| p.censored.contains(&true));
    let triangles = limits.map(|points| Entry {
        mark: Mark::Triangle,
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
pub(super) fn write(out: &mut String, entries: &[Entry], bottom: f64) {
    for (index, entry) in entries.iter().enumerate() {
        let y = bottom + GAP + height(index);
        let middle = y - 4.0;
        let colour = entry.curve % COLOURS.len();
        match entry.mark {
            Mark::Line => push(
                out,
                format_args!("<path {} d=\"M10 {middle:.1}h22\"/>", style(entry.curve)),
            ),
            Mark::Area => push(
                out,
                format_args!(
                    "<rect class=\"h h{colour}\" x=\"10\" y=\"{:.1}\" width=\"22\" height=\"10\"/>\
                     <path {} d=\"M10 {:.1}h22\"/>",
                    middle - 5.0,
                    style(entry.curve),
                    middle - 5.0
                ),
            ),
            Mark::Triangle => push(
                out,
                format_args!(
                    "<path class=\"o c{colour}\" d=\"M18 {:.1}h6l-3 5.2Z\"/>",
                    middle - 2.6
                ),
            ),
            Mark::Circle => push(
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
                escape(&shortened(&entry.text))
            ),
        );
    }
}

/// What a text is about stays, and the end of a path, which tells most.
fn shortened(text: &str) -> String {
    match text.split_once(": ") {
        Some((about, path)) => {
            let about = format!("{about}: ");
            let left = CHARS.saturating_sub(about.chars().count());
            about + &shorten(path, left)
        }
        None => shorten(text, CHARS),
    }
}
