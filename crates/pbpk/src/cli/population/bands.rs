//! Pictures of percentiles: the middle one as a line, pairs around it as bands.

use std::fs;
use std::io::{self, BufReader};
use std::path::Path;

use crate::csv::{self, CsvError, CurveSeries, CurveTable, ResultTable};
use crate::plot::{PlotOptions, PlotOverlay, ValueBand, svg_with};
use crate::watch::Watch;

/// Columns before the percentiles: output, time, individuals.
const KEYS: usize = 3;

/// Writes `percentiles-1.svg` and so on, one for each output of the table.
pub(super) fn write(table: &Path, folder: &Path, watch: &Watch<'_>) -> io::Result<()> {
    let file = fs::File::open(table)?;
    let table = csv::read_watched(&mut BufReader::new(file), watch).map_err(|e| match e {
        CsvError::Interrupted(cause) => cause.into(),
        e => io::Error::other(e),
    })?;
    let by_output = table.rows.chunk_by(|a, b| a.first() == b.first());
    for (i, rows) in by_output.enumerate() {
        watch.ask()?;
        let (curves, overlay) = draw_bands(&table, rows);
        let title = rows
            .first()
            .and_then(|r| r.first())
            .map_or("", String::as_str);
        let options = PlotOptions {
            title: title.to_owned(),
            ..PlotOptions::default()
        };
        let text = svg_with(&curves, &overlay, &options).map_err(io::Error::other)?;
        fs::write(folder.join(format!("percentiles-{}.svg", i + 1)), text)?;
    }
    Ok(())
}

/// Lines and bands of one output.
fn draw_bands(table: &ResultTable, rows: &[Vec<String>]) -> (CurveTable, PlotOverlay) {
    let number = |text: Option<&String>| text.and_then(|t| csv::number(t)).unwrap_or(f64::NAN);
    let column = |c: usize| rows.iter().map(|r| number(r.get(c))).collect::<Vec<f64>>();
    let percent = |c: usize| number(table.header.get(c).map(|h| h.replacen('P', "", 1)).as_ref());
    let mut columns: Vec<usize> = (KEYS..table.header.len()).collect();
    columns.sort_by(|a, b| percent(*a).total_cmp(&percent(*b)));
    let unit = rows
        .first()
        .and_then(|r| r.first())
        .map_or("", |t| csv::split_unit(t).1);
    let line = |c: usize| CurveSeries {
        name: format!("{} %", percent(c)),
        unit: unit.to_owned(),
        values: column(c),
    };
    let mut series = Vec::new();
    let mut bands = Vec::new();
    let (mut low, mut high) = (0, columns.len());
    while high > low + 1 {
        high -= 1;
        if let (Some(a), Some(b)) = (columns.get(low), columns.get(high)) {
            bands.push(ValueBand {
                name: format!("{} to {} %", percent(*a), percent(*b)),
                curve: 0,
                low: column(*a),
                high: column(*b),
            });
            // Without a middle the innermost pair has lines of its own.
            if high == low + 1 {
                series.extend([line(*a), line(*b)]);
            }
        }
        low += 1;
    }
    if high == low + 1 {
        series.extend(columns.get(low).map(|c| line(*c)));
    }
    let curves = CurveTable {
        times: column(1),
        series,
    };
    let points = Vec::new();
    (curves, PlotOverlay { points, bands })
}
