//! How well curves fit data: observed against fitted values, and what is left over over time.

use super::axis::{PlotAxis, TimeUnit, time_steps};
use super::frame::shorten_title;
use super::legend::{self, LegendEntry, LegendMark};
use super::svg::{COLOURS, PLOT_HEIGHT, axes, escape, head, heading, on_page, push};
use super::{PlotError, PlotOptions, SERIES_MAX};

/// Ticks along and up; the same, so that both axes of observed against fitted values are one.
const TICKS: usize = 5;
/// From the lower end of one plot to the upper end of the next.
const GAP: f64 = 62.0;

/// Observed and fitted values of one output.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct FittedOutput {
    /// The output.
    pub name: String,
    /// Unit of its values.
    pub unit: String,
    /// Times in minutes.
    pub times: Vec<f64>,
    /// Observed values.
    pub observed: Vec<f64>,
    /// Values of the model.
    pub fitted: Vec<f64>,
}

impl FittedOutput {
    /// Time, observed and fitted value of each observation that can be shown.
    fn visible_points(&self, log: bool) -> impl Iterator<Item = (f64, f64, f64)> + '_ {
        let values = self.observed.iter().zip(&self.fitted);
        let all = self
            .times
            .iter()
            .zip(values)
            .map(|(t, (o, f))| (*t, *o, *f));
        let on_axis = move |v: f64| v.is_finite() && (!log || v > 0.0);
        all.filter(move |(t, o, f)| t.is_finite() && on_axis(*o) && on_axis(*f))
    }
}

/// The axes of both plots.
struct PlotAxes {
    values: PlotAxis,
    times: PlotAxis,
    left_over: PlotAxis,
    unit: TimeUnit,
}

/// Returns observed less fitted; on a logarithmic axis the logarithm of their ratio.
fn left_over(log: bool, observed: f64, fitted: f64) -> f64 {
    if log {
        (observed / fitted).ln()
    } else {
        observed - fitted
    }
}

/// Draws observed against fitted values with the line on which both are equal, and below it the differences over time.
/// With [`PlotOptions::log`] the axes are logarithmic, and the differences are those of natural logarithms.
///
/// # Errors
/// [`PlotError`] if there is no output, no point to show, or too many outputs.
pub fn goodness_of_fit(
    outputs: &[FittedOutput],
    options: &PlotOptions,
) -> Result<String, PlotError> {
    let found = outputs.len();
    match found {
        0 => return Err(PlotError::NoSeries),
        _ if found > SERIES_MAX => return Err(PlotError::TooManySeries { found }),
        _ => {}
    }
    let shown = PlotAxes::of(outputs, options).ok_or(PlotError::NoPoints { log: options.log })?;
    let top = if options.title.is_empty() { 26.0 } else { 46.0 };
    let second = top + PLOT_HEIGHT + GAP;
    let bottom = second + PLOT_HEIGHT;
    let height = bottom + 46.0 + legend::height(found);
    let mut out = String::new();
    let names: Vec<&str> = outputs.iter().map(|o| o.name.as_str()).collect();
    head(&mut out, &options.title, &names, height);
    if !options.title.is_empty() {
        heading(&mut out, 20.0, "t", &shorten_title(&options.title, 36));
    }
    let unit = common_unit(outputs);
    heading(&mut out, top - 10.0, "n", &with_unit("Observed", unit));
    axes(
        &mut out,
        [&shown.values; 2],
        &with_unit("Fitted", unit),
        top,
    );
    line(&mut out, top, [(0.0, 0.0), (1.0, 1.0)]);
    let difference = if options.log {
        "ln(observed / fitted)".to_owned()
    } else {
        with_unit("Observed - fitted", unit)
    };
    heading(&mut out, second - 10.0, "n", &difference);
    let label = format!("Time [{}]", shown.unit.symbol());
    axes(&mut out, [&shown.times, &shown.left_over], &label, second);
    if let Some(zero) = shown.left_over.place(0.0) {
        line(&mut out, second, [(0.0, zero), (1.0, zero)]);
    }
    for (index, output) in outputs.iter().enumerate() {
        circles(&mut out, output, index, &shown, options.log, [top, second]);
    }
    let entry = |(curve, output): (usize, &FittedOutput)| LegendEntry {
        mark: LegendMark::Circle,
        curve,
        text: match unit {
            Some(_) => output.name.clone(),
            None => with_unit(&output.name, Some(&output.unit)),
        },
    };
    let entries: Vec<LegendEntry> = outputs.iter().enumerate().map(entry).collect();
    legend::write(&mut out, &entries, bottom);
    out.push_str("</svg>\n");
    Ok(out)
}

impl PlotAxes {
    fn of(outputs: &[FittedOutput], options: &PlotOptions) -> Option<Self> {
        let all = || outputs.iter().flat_map(|o| o.visible_points(options.log));
        let range = |of: &dyn Fn((f64, f64, f64)) -> f64| {
            let (low, high) = (
                all().map(of).reduce(f64::min),
                all().map(of).reduce(f64::max),
            );
            low.zip(high)
        };
        let (observed, fitted) = (range(&|p| p.1)?, range(&|p| p.2)?);
        let (low, high) = (observed.0.min(fitted.0), observed.1.max(fitted.1));
        let values = if options.log {
            PlotAxis::logarithmic(low, high, TICKS)
        } else {
            PlotAxis::linear(low.min(0.0), high, TICKS, &[], true)
        };
        let (start, end) = range(&|p| p.0)?;
        let unit = options.time_unit;
        let unit = unit.unwrap_or_else(|| TimeUnit::for_span(end - start));
        let (start, end) = (start.min(0.0) / unit.minutes(), end / unit.minutes());
        let most = range(&|p| left_over(options.log, p.1, p.2).abs())?.1;
        Some(Self {
            values,
            times: PlotAxis::linear(start, end, TICKS, time_steps(unit, end - start), false),
            left_over: PlotAxis::linear(-most, most, TICKS, &[], true),
            unit,
        })
    }
}

/// Returns the unit of all outputs, if it is one.
fn common_unit(outputs: &[FittedOutput]) -> Option<&str> {
    let first = outputs.first()?.unit.as_str();
    outputs.iter().all(|o| o.unit == first).then_some(first)
}

fn with_unit(text: &str, unit: Option<&str>) -> String {
    match unit {
        None | Some("") => text.to_owned(),
        Some(unit) => format!("{text} [{unit}]"),
    }
}

/// A line to compare with, dashed.
fn line(out: &mut String, top: f64, [from, to]: [(f64, f64); 2]) {
    let ((a, b), (c, d)) = (on_page(from, top), on_page(to, top));
    push(
        out,
        format_args!(
            "<path class=\"a\" stroke-dasharray=\"4 3\" d=\"M{a:.2} {b:.2}L{c:.2} {d:.2}\"/>\n"
        ),
    );
}

/// The observations of one output in both plots.
fn circles(
    out: &mut String,
    output: &FittedOutput,
    index: usize,
    shown: &PlotAxes,
    log: bool,
    [first, second]: [f64; 2],
) {
    let name = escape(&output.name);
    let colour = index % COLOURS.len();
    push(
        out,
        format_args!("<g class=\"o c{colour}\"><title>{name}</title>"),
    );
    for (time, observed, fitted) in output.visible_points(log) {
        let above = shown.values.place(fitted).zip(shown.values.place(observed));
        let rest = shown.left_over.place(left_over(log, observed, fitted));
        let below = shown.times.place(time / shown.unit.minutes()).zip(rest);
        for (at, top) in [(above, first), (below, second)] {
            if let Some(at) = at {
                let (x, y) = on_page(at, top);
                push(
                    out,
                    format_args!("<circle cx=\"{x:.2}\" cy=\"{y:.2}\" r=\"2.6\"/>"),
                );
            }
        }
    }
    out.push_str("</g>\n");
}
