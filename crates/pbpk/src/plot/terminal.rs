//! A plot in characters: braille dots if the terminal has them, else plain ASCII.

use super::axis::label;
use super::frame::{PlotFrame, shorten, shorten_title};
use super::{PlotError, PlotOptions};
use crate::csv::CurveTable;

/// Capabilities of the terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TerminalOptions {
    /// Its width in characters; clamped to 32 to 400.
    pub columns: usize,
    /// Height of the drawing in lines; a quarter of the width when zero.
    pub rows: usize,
    /// Only ASCII characters.
    pub ascii: bool,
    /// Whether colour escapes may be used.
    pub colour: bool,
}

impl Default for TerminalOptions {
    fn default() -> Self {
        Self {
            columns: 80,
            rows: 0,
            ascii: false,
            colour: false,
        }
    }
}

/// Marks of the curves for terminals without braille.
const MARKS: [char; 8] = ['*', '+', 'o', 'x', '#', '@', '%', '='];
/// Colour escapes: blue, yellow, green, magenta, cyan, red, bright black, white.
const COLOURS: [&str; 8] = [
    "\x1b[34m", "\x1b[33m", "\x1b[32m", "\x1b[35m", "\x1b[36m", "\x1b[31m", "\x1b[90m", "\x1b[37m",
];
const RESET: &str = "\x1b[0m";
/// Bits of the eight dots of a braille character, by column and row.
const DOTS: [[u32; 4]; 2] = [[0x01, 0x02, 0x04, 0x40], [0x08, 0x10, 0x20, 0x80]];

/// A grid of characters, each with the dots or the mark it holds and the curve it shows.
struct CharacterCanvas {
    columns: usize,
    rows: usize,
    cells: Vec<(u32, Option<usize>)>,
    braille: bool,
}

/// Draws the curves in characters.
///
/// # Errors
/// [`PlotError`] if there is no curve, no point to show, or too many curves.
pub fn terminal(
    curves: &CurveTable,
    options: &PlotOptions,
    terminal: &TerminalOptions,
) -> Result<String, PlotError> {
    let width = terminal.columns.clamp(32, 400);
    let rows = if terminal.rows == 0 {
        (width / 4).clamp(8, 24)
    } else {
        terminal.rows.clamp(4, 200)
    };
    let frame = PlotFrame::new(
        curves,
        &super::PlotOverlay::default(),
        options,
        width / 12,
        rows / 3,
    )?;
    let labels: Vec<(usize, String)> = frame
        .y
        .ticks
        .iter()
        .filter_map(|t| Some((row_of(frame.y.place(*t)?, rows), label(*t))))
        .collect();
    let margin = labels.iter().map(|(_, l)| l.len()).max().unwrap_or(1);
    let columns = width - margin - 2;
    // Without colour, dots of several curves would all look alike.
    let braille = !terminal.ascii && (terminal.colour || curves.series.len() == 1);
    let mut canvas = CharacterCanvas {
        columns,
        rows,
        cells: vec![(0, None); columns * rows],
        braille,
    };
    for index in 0..curves.series.len() {
        for piece in frame.pieces(curves, index) {
            canvas.line(&piece, index);
        }
    }
    let mut out = String::new();
    for heading in [shorten_title(&options.title, width), frame.y_label()] {
        if !heading.is_empty() {
            out.push_str(&heading);
            out.push('\n');
        }
    }
    body(&mut out, &canvas, &labels, margin, terminal);
    x_labels(&frame, columns, margin, &mut out);
    legend(&mut out, curves, &frame, &canvas, width, terminal);
    Ok(if terminal.ascii { to_ascii(&out) } else { out })
}

/// The drawing with its value axis and the line under it.
fn body(
    out: &mut String,
    canvas: &CharacterCanvas,
    labels: &[(usize, String)],
    margin: usize,
    terminal: &TerminalOptions,
) {
    let (bar, tick_bar, corner, dash) = if terminal.ascii {
        ('|', '+', '+', '-')
    } else {
        ('│', '┤', '└', '─')
    };
    for row in 0..canvas.rows {
        let here = labels.iter().find(|(r, _)| *r == row);
        let text = here.map_or("", |(_, l)| l.as_str());
        out.push_str(&format!(
            "{text:>margin$} {}",
            if here.is_some() { tick_bar } else { bar }
        ));
        canvas.write_row(row, terminal.colour, out);
        out.push('\n');
    }
    out.push_str(&format!(
        "{:>margin$} {corner}{}\n",
        "",
        dash.to_string().repeat(canvas.columns)
    ));
}

/// One line for each curve.
fn legend(
    out: &mut String,
    curves: &CurveTable,
    frame: &PlotFrame,
    canvas: &CharacterCanvas,
    width: usize,
    terminal: &TerminalOptions,
) {
    for (index, series) in curves.series.iter().enumerate() {
        let sign = if canvas.braille { '━' } else { mark(index) };
        let name = shorten(&frame.legend(&series.name, &series.unit), width - 2);
        let (on, off) = if terminal.colour {
            (colour(index), RESET)
        } else {
            ("", "")
        };
        out.push_str(&format!("{on}{sign}{off} {name}\n"));
    }
}

fn to_ascii(text: &str) -> String {
    text.replace('…', "~")
        .replace('µ', "u")
        .replace(|c: char| !c.is_ascii(), "?")
}

fn mark(index: usize) -> char {
    MARKS.get(index % MARKS.len()).copied().unwrap_or('*')
}

fn colour(index: usize) -> &'static str {
    COLOURS
        .get(index % COLOURS.len())
        .copied()
        .unwrap_or_default()
}

/// Line of a place between 0 (bottom) and 1 (top).
fn row_of(place: f64, rows: usize) -> usize {
    nearest((1.0 - place) * (rows - 1) as f64)
}

/// Rounds a small non-negative number; the cast saturates.
fn nearest(value: f64) -> usize {
    value.round() as usize
}

/// Labels under the axis, as many as fit without touching.
fn x_labels(frame: &PlotFrame, columns: usize, margin: usize, out: &mut String) {
    let mut line = " ".repeat(margin + 1);
    let unit = frame.x_label();
    for tick in &frame.x.ticks {
        let Some(place) = frame.x.place(*tick) else {
            continue;
        };
        let text = label(*tick);
        let centre = margin + 2 + nearest(place * (columns - 1) as f64);
        let start = centre
            .saturating_sub(text.len() / 2)
            .min((margin + 2 + columns).saturating_sub(text.len()));
        if start > line.len() || (line.trim().is_empty() && start >= line.len()) {
            line.push_str(&" ".repeat(start - line.len()));
            line.push_str(&text);
        }
    }
    out.push_str(line.trim_end());
    out.push('\n');
    out.push_str(&format!(
        "{unit:>w$}\n",
        w = (margin + 2 + columns).max(unit.len())
    ));
}

impl CharacterCanvas {
    /// Dots per character, across and down.
    fn density(&self) -> (usize, usize) {
        if self.braille { (2, 4) } else { (1, 1) }
    }

    /// Draws a piece of curve number `index` with straight lines between its points.
    fn line(&mut self, piece: &[(f64, f64)], index: usize) {
        let (across, down) = self.density();
        let (w, h) = (
            (self.columns * across - 1) as f64,
            (self.rows * down - 1) as f64,
        );
        let dots: Vec<(f64, f64)> = piece.iter().map(|(x, y)| (x * w, (1.0 - y) * h)).collect();
        if let Some((x, y)) = dots.first() {
            self.dot(*x, *y, index);
        }
        for (a, b) in dots.iter().zip(dots.iter().skip(1)) {
            let count = (b.0 - a.0).abs().max((b.1 - a.1).abs()).ceil().max(1.0);
            for k in 1..=nearest(count) {
                let part = k as f64 / count;
                self.dot(a.0 + (b.0 - a.0) * part, a.1 + (b.1 - a.1) * part, index);
            }
        }
    }

    fn dot(&mut self, x: f64, y: f64, index: usize) {
        let (across, down) = self.density();
        let (x, y) = (nearest(x), nearest(y));
        let Some(cell) = self.cells.get_mut(y / down * self.columns + x / across) else {
            return;
        };
        if self.braille {
            cell.0 |= DOTS
                .get(x % across)
                .and_then(|c| c.get(y % down))
                .copied()
                .unwrap_or(0);
        }
        cell.1 = Some(index);
    }

    fn write_row(&self, row: usize, coloured: bool, out: &mut String) {
        let cells = self
            .cells
            .iter()
            .skip(row * self.columns)
            .take(self.columns);
        let mut line = String::new();
        let mut last = None;
        for (dots, index) in cells {
            if coloured && *index != last {
                line.push_str(if last.is_some() { RESET } else { "" });
                line.push_str(index.map_or("", colour));
                last = *index;
            }
            line.push(match index {
                None => ' ',
                Some(_) if self.braille => char::from_u32(0x2800 + dots).unwrap_or(' '),
                Some(i) => mark(*i),
            });
        }
        if last.is_some() {
            line.push_str(RESET);
        }
        out.push_str(line.trim_end());
    }
}
