//! A self-contained SVG: drawn for a phone's width, sharp at any other.

use super::axis::{PlotAxis, label};
use super::frame::{PlotFrame, shorten_title};
use super::legend;
use super::{MeasuredPoints, PlotError, PlotOptions, PlotOverlay, ValueBand};
use crate::csv::CurveTable;
use std::fmt::Write as _;

/// Drawing size: 390 units wide, so that type stays readable on a narrow screen.
const WIDTH: f64 = 390.0;
pub(super) const PLOT_HEIGHT: f64 = 230.0;
pub(super) const LEFT: f64 = 54.0;
const RIGHT: f64 = 14.0;
pub(super) const LINE: f64 = 17.0;
/// Curves are thinned to this many columns; extremes within a column are kept.
const COLUMNS: f64 = 800.0;

/// Line colours on light and on dark, distinguished also by the colour-blind.
pub(super) const COLOURS: [(&str, &str); 8] = [
    ("#0b62c4", "#6db3ff"),
    ("#b5430b", "#ff9d6b"),
    ("#0a7a5a", "#4fd6ab"),
    ("#9a2f86", "#f08fdc"),
    ("#7a6200", "#e3c53f"),
    ("#46505c", "#b9c4d0"),
    ("#c0182f", "#ff8591"),
    ("#3d3aa8", "#a5a2ff"),
];
/// Colours that go by before the dashes change: no two curves have both alike, and colours that are near have other
/// dashes.
const COLOURS_OF_A_DASH: usize = 4;
/// Dashes, in the order in which curves take them.
const DASHES: [&str; 6] = ["", "7 3", "2 3", "9 3 2 3", "5 2 1 2 1 2", "1 4"];

/// Draws the curves.
///
/// # Errors
/// [`PlotError`] if there is no curve, no point to show, or too many curves.
pub fn svg(curves: &CurveTable, options: &PlotOptions) -> Result<String, PlotError> {
    svg_with(curves, &PlotOverlay::default(), options)
}

/// Draws the curves, with bands behind them and points on top of them.
///
/// # Errors
/// As [`svg`].
pub fn svg_with(
    curves: &CurveTable,
    overlay: &PlotOverlay,
    options: &PlotOptions,
) -> Result<String, PlotError> {
    let frame = PlotFrame::new(curves, overlay, options, 6, 5)?;
    let top = if options.title.is_empty() { 26.0 } else { 46.0 };
    let bottom = top + PLOT_HEIGHT;
    let entries = legend::entries(&curves.series, overlay, |series| {
        frame.legend(&series.name, &series.unit)
    });
    let height = bottom + 46.0 + legend::height(entries.len());
    let mut out = String::new();
    let names: Vec<&str> = curves.series.iter().map(|s| s.name.as_str()).collect();
    head(&mut out, &options.title, &names, height);
    if !options.title.is_empty() {
        heading(&mut out, 20.0, "t", &shorten_title(&options.title, 36));
    }
    heading(&mut out, top - 10.0, "n", &frame.y_label());
    axes(&mut out, [&frame.x, &frame.y], &frame.x_label(), top);
    for drawn in &overlay.bands {
        band(&mut out, &frame, &curves.times, drawn, top);
    }
    for (index, series) in curves.series.iter().enumerate() {
        let mut path = String::new();
        for piece in frame.pieces(curves, index) {
            trace(&mut path, &thin(&piece), top);
        }
        push(
            &mut out,
            format_args!(
                "<path {} d=\"{path}\"><title>{}</title></path>\n",
                style(index),
                escape(&series.name)
            ),
        );
    }
    for drawn in &overlay.points {
        points(&mut out, &frame, drawn, top);
    }
    legend::write(&mut out, &entries, bottom);
    out.push_str("</svg>\n");
    Ok(out)
}

/// A band as one area for each stretch of times at which it can be shown; what lies below a logarithmic axis ends
/// there.
fn band(out: &mut String, frame: &PlotFrame, times: &[f64], band: &ValueBand, top: f64) {
    let ends = times.iter().zip(band.low.iter().zip(&band.high));
    let placed: Vec<Option<[(f64, f64); 2]>> = ends
        .map(|(t, (low, high))| {
            let upper = frame.place(*t, *high)?;
            let lower = match frame.place(*t, *low) {
                Some(lower) => lower,
                None if low.is_finite() => (upper.0, 0.0),
                None => return None,
            };
            Some([lower, upper])
        })
        .collect();
    let mut path = String::new();
    for piece in placed.split(Option::is_none) {
        let lower = piece.iter().flatten().map(|ends| ends[0]);
        let upper = piece.iter().flatten().map(|ends| ends[1]);
        let around: Vec<(f64, f64)> = lower.chain(upper.rev()).collect();
        if !around.is_empty() {
            trace(&mut path, &around, top);
            path.push('Z');
        }
    }
    push(
        out,
        format_args!(
            "<path class=\"h h{}\" d=\"{path}\"><title>{}</title></path>\n",
            band.curve % COLOURS.len(),
            escape(&band.name)
        ),
    );
}

/// Points as circles.
fn points(out: &mut String, frame: &PlotFrame, points: &MeasuredPoints, top: f64) {
    push(
        out,
        format_args!(
            "<g class=\"o c{}\"><title>{}</title>",
            points.curve % COLOURS.len(),
            escape(&points.name)
        ),
    );
    for (i, (t, value)) in points.times.iter().zip(&points.values).enumerate() {
        let Some(at) = frame.place(*t, *value) else {
            continue;
        };
        let (x, y) = on_page(at, top);
        if points.is_censored(i) {
            push(
                out,
                format_args!("<path d=\"M{:.2} {:.2}h6l-3 5.2Z\"/>", x - 3.0, y - 2.6),
            );
            continue;
        }
        let deviation = points.deviations.get(i).copied().unwrap_or(0.0);
        if let Some(upper) = frame.place(*t, value + deviation)
            && deviation > 0.0
        {
            // What lies below a logarithmic axis ends there.
            let lower = frame.place(*t, value - deviation).unwrap_or((at.0, 0.0));
            let (upper, lower) = (on_page(upper, top).1, on_page(lower, top).1);
            push(
                out,
                format_args!("<path d=\"M{x:.2} {upper:.2}V{lower:.2}\"/>"),
            );
        }
        push(
            out,
            format_args!("<circle cx=\"{x:.2}\" cy=\"{y:.2}\" r=\"2.6\"/>"),
        );
    }
    out.push_str("</g>\n");
}

/// From places between 0 and 1 to the page.
pub(super) fn on_page((x, y): (f64, f64), top: f64) -> (f64, f64) {
    (
        LEFT + x * (WIDTH - RIGHT - LEFT),
        top + (1.0 - y) * PLOT_HEIGHT,
    )
}

pub(super) fn push(out: &mut String, text: std::fmt::Arguments<'_>) {
    // Writing to a string cannot fail.
    let _ = out.write_fmt(text);
}

/// A line of text over a plot.
pub(super) fn heading(out: &mut String, y: f64, class: &str, text: &str) {
    push(
        out,
        format_args!(
            "<text x=\"{LEFT}\" y=\"{y}\" class=\"{class}\">{}</text>\n",
            escape(text)
        ),
    );
}

/// The document's beginning: titles for readers that do not see it, styles, ground.
pub(super) fn head(out: &mut String, title: &str, names: &[&str], height: f64) {
    let title = if title.is_empty() {
        "Simulation results"
    } else {
        title
    };
    push(
        out,
        format_args!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" role=\"img\">\n"
        ),
    );
    push(
        out,
        format_args!(
            "<title>{}</title>\n<desc>{}</desc>\n",
            escape(title),
            escape(&names.join("; "))
        ),
    );
    out.push_str("<style>svg{color-scheme:light dark;max-width:900px}.b{fill:#fff}text{fill:#1d2329;font:11px system-ui,sans-serif}");
    out.push_str(".t{font-size:14px;font-weight:600}.e{text-anchor:end}.m{text-anchor:middle}.g{stroke:#e2e6ea}.a{stroke:#6a7480}path{fill:none;stroke-width:1.8;stroke-linejoin:round}.g{stroke-width:1}.h{stroke:none;fill-opacity:.18}.o{fill:none;stroke-width:1.3}");
    for (i, (light, _)) in COLOURS.iter().enumerate() {
        push(
            out,
            format_args!(".c{i}{{stroke:{light}}}.h{i}{{fill:{light}}}"),
        );
    }
    out.push_str("@media(prefers-color-scheme:dark){.b{fill:#14181d}text{fill:#e8ecf0}.g{stroke:#2c333b}.a{stroke:#8d98a4}");
    for (i, (_, dark)) in COLOURS.iter().enumerate() {
        push(
            out,
            format_args!(".c{i}{{stroke:{dark}}}.h{i}{{fill:{dark}}}"),
        );
    }
    push(
        out,
        format_args!("}}</style>\n<rect class=\"b\" width=\"{WIDTH}\" height=\"{height}\"/>\n"),
    );
}

/// Both axes, along and up, with their ticks.
pub(super) fn axes(out: &mut String, [along, up]: [&PlotAxis; 2], x_label: &str, top: f64) {
    let (right, bottom) = (WIDTH - RIGHT, top + PLOT_HEIGHT);
    for tick in &up.ticks {
        let Some(at) = up.place(*tick) else {
            continue;
        };
        let y = bottom - at * PLOT_HEIGHT;
        push(
            out,
            format_args!("<path class=\"g\" d=\"M{LEFT} {y:.1}H{right}\"/>"),
        );
        push(
            out,
            format_args!(
                "<text class=\"e\" x=\"{}\" y=\"{:.1}\">{}</text>\n",
                LEFT - 6.0,
                y + 4.0,
                label(*tick)
            ),
        );
    }
    for tick in &along.ticks {
        let Some(at) = along.place(*tick) else {
            continue;
        };
        let x = LEFT + at * (right - LEFT);
        push(
            out,
            format_args!("<path class=\"g\" d=\"M{x:.1} {top}V{bottom}\"/>"),
        );
        push(
            out,
            format_args!(
                "<text class=\"m\" x=\"{x:.1}\" y=\"{:.1}\">{}</text>\n",
                bottom + 15.0,
                label(*tick)
            ),
        );
    }
    push(
        out,
        format_args!("<path class=\"a\" d=\"M{LEFT} {top}V{bottom}H{right}\"/>\n"),
    );
    let middle = f64::midpoint(LEFT, right);
    push(
        out,
        format_args!(
            "<text class=\"m\" x=\"{middle}\" y=\"{:.1}\">{}</text>\n",
            bottom + 31.0,
            escape(x_label)
        ),
    );
}

pub(super) fn style(index: usize) -> String {
    let dash = DASHES
        .get(index / COLOURS_OF_A_DASH)
        .copied()
        .unwrap_or_default();
    let dashed = if dash.is_empty() {
        String::new()
    } else {
        format!(" stroke-dasharray=\"{dash}\"")
    };
    format!("class=\"c{}\"{dashed}", index % COLOURS.len())
}

/// Appends a piece as path commands; a lone point becomes a small circle.
fn trace(path: &mut String, piece: &[(f64, f64)], top: f64) {
    for (i, point) in piece.iter().enumerate() {
        let (x, y) = on_page(*point, top);
        push(
            path,
            format_args!("{}{x:.2} {y:.2}", if i == 0 { 'M' } else { 'L' }),
        );
    }
    if piece.len() == 1 {
        path.push_str("m-2.2 0a2.2 2.2 0 1 0 4.4 0a2.2 2.2 0 1 0-4.4 0");
    }
}

/// Keeps first, lowest, highest and last point of each column.
fn thin(piece: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let column = |p: &(f64, f64)| (p.0 * COLUMNS).floor();
    let mut kept = Vec::new();
    for group in piece.chunk_by(|a, b| column(a) == column(b)) {
        if group.len() <= 4 {
            kept.extend_from_slice(group);
            continue;
        }
        let by_value = |a: &&(f64, f64), b: &&(f64, f64)| a.1.total_cmp(&b.1);
        let mut four: Vec<(f64, f64)> = [
            group.first(),
            group.iter().min_by(by_value),
            group.iter().max_by(by_value),
            group.last(),
        ]
        .into_iter()
        .flatten()
        .copied()
        .collect();
        four.sort_by(|a, b| a.0.total_cmp(&b.0));
        four.dedup();
        kept.extend(four);
    }
    kept
}

/// Escapes text for XML and drops what XML cannot hold.
pub(super) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            c if (c < ' ' && c != '\t') || matches!(c, '\u{fffe}' | '\u{ffff}') => out.push(' '),
            c => out.push(c),
        }
    }
    out
}
