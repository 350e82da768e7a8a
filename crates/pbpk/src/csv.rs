//! Tables of numbers as text: writes results, reads the result files of the suite.
//!
//! Written: UTF-8 without mark, comma, `Time [min]` first, one column `path [unit]` each, fields quoted only where
//! needed, every number in the shortest form that reads back to the same bits, and `nan`, `inf`, `-inf`. Read: with or
//! without mark, comment lines starting with `#`, quoted fields, separated by comma, semicolon or tab. Between
//! semicolons a comma may be the decimal sign.

use std::borrow::Cow;
use std::fmt;
use std::io::{self, BufRead, Write};

use crate::watch::{Interrupt, Watch};

/// One curve: a value per time, or a single value that holds at all times.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct CurveSeries {
    /// Path of the quantity.
    pub name: String,
    /// Unit of the values; empty when dimensionless or unknown.
    pub unit: String,
    /// One value per time, or exactly one.
    pub values: Vec<f64>,
}

impl CurveSeries {
    /// Returns the value at a row; a single value is that of every row.
    #[must_use]
    pub fn at(&self, row: usize) -> Option<f64> {
        match self.values.as_slice() {
            [only] => Some(*only),
            values => values.get(row).copied(),
        }
    }
}

/// Curves over common times.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct CurveTable {
    /// Times in minutes.
    pub times: Vec<f64>,
    /// The curves, in column order.
    pub series: Vec<CurveSeries>,
}

/// Longest line accepted when reading.
pub const LINE_BYTES_MAX: usize = 4 << 20;
/// Most cells accepted when reading.
pub const CELLS_MAX: usize = 64 << 20;
/// Cells that make a unit of work.
pub(crate) const CELLS_OF_A_UNIT: usize = 8;

/// Why a text is no table of results.
#[derive(Debug)]
pub enum CsvError {
    /// The source failed.
    Io(io::Error),
    /// A line breaks a rule; lines count from 1.
    Line {
        /// Its number.
        line: usize,
        /// Fault, for people.
        what: String,
    },
    /// There is no header or no row.
    Empty,
    /// The caller asked to stop.
    Interrupted(Interrupt),
}

impl fmt::Display for CsvError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(e) => write!(f, "cannot read the table: {e}"),
            Self::Line { line, what } => write!(f, "line {line}: {what}"),
            Self::Empty => f.write_str("the table has no rows"),
            Self::Interrupted(cause) => write!(f, "{cause} while the table was read"),
        }
    }
}

impl std::error::Error for CsvError {}

impl From<Interrupt> for CsvError {
    fn from(cause: Interrupt) -> Self {
        Self::Interrupted(cause)
    }
}

impl From<io::Error> for CsvError {
    fn from(e: io::Error) -> Self {
        Self::Io(e)
    }
}

/// Writes the times in minutes and one column per curve, named by its path and its unit: `path [unit]`. Every name ends
/// with a unit, `[]` without one, so that readers strip all of them alike.
///
/// # Errors
/// Errors of the writer.
pub fn write(out: &mut dyn Write, times: &[f64], series: &[CurveSeries]) -> io::Result<()> {
    write_in(out, "min", times, series, &Watch::default())
}

/// As [`write`], with the times in a unit that [`minutes`] knows; `watch` is asked now and then whether to go on.
///
/// # Errors
/// Errors of the writer and of the watch.
pub fn write_in(
    out: &mut dyn Write,
    unit: &str,
    times: &[f64],
    series: &[CurveSeries],
    watch: &Watch<'_>,
) -> io::Result<()> {
    let mut line = titled("Time", unit);
    let minutes = minutes(unit).unwrap_or(f64::NAN);
    for s in series {
        line.push(',');
        push_field(&mut line, &format!("{} [{}]", s.name, s.unit));
    }
    line.push('\n');
    for (row, &t) in times.iter().enumerate() {
        watch.work(1 + series.len() / CELLS_OF_A_UNIT)?;
        push_number(&mut line, t / minutes);
        for s in series {
            line.push(',');
            push_number(&mut line, s.at(row).unwrap_or(f64::NAN));
        }
        line.push('\n');
        if line.len() > 1 << 16 {
            out.write_all(line.as_bytes())?;
            line.clear();
        }
    }
    out.write_all(line.as_bytes())
}

/// Returns the head of a column: `path [unit]`, or the path alone without a unit.
#[must_use]
pub fn titled(path: &str, unit: &str) -> String {
    if unit.is_empty() {
        path.to_owned()
    } else {
        format!("{path} [{unit}]")
    }
}

/// Appends a field, quoted if it holds a comma, a quote, a line break or a space at its ends.
pub fn push_field(line: &mut String, field: &str) {
    let plain = !field.contains([',', '"', '\n', '\r', ';'])
        && field.trim() == field
        && !field.starts_with('#');
    if plain {
        line.push_str(field);
        return;
    }
    line.push('"');
    for c in field.chars() {
        if c == '"' {
            line.push('"');
        }
        line.push(c);
    }
    line.push('"');
}

/// Appends a number in its shortest exact form; very large and very small ones with an exponent.
pub fn push_number(line: &mut String, value: f64) {
    use fmt::Write as _;
    let size = value.abs();
    let written = if value.is_nan() {
        line.push_str("nan");
        Ok(())
    } else if value.is_infinite() {
        line.push_str(if value > 0.0 { "inf" } else { "-inf" });
        Ok(())
    } else if size != 0.0 && !(1e-5..1e16).contains(&size) {
        write!(line, "{value:e}")
    } else {
        write!(line, "{value}")
    };
    // Writing to a string cannot fail.
    let _ = written;
}

/// Parses a number as the suite writes it: a point as decimal sign, `NaN`, `INF` and their kin in any case.
#[must_use]
pub fn number(text: &str) -> Option<f64> {
    let text = text.trim();
    // Nearly all are plain numbers; `nan`, `inf` and `infinity` in any case are among these.
    if let Ok(number) = text.parse() {
        return Some(number);
    }
    match text.to_ascii_lowercase().as_str() {
        "n. def." | "na" | "" => Some(f64::NAN),
        "∞" => Some(f64::INFINITY),
        "-∞" => Some(f64::NEG_INFINITY),
        _ => None,
    }
}

/// A table as in the file.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ResultTable {
    /// Comment lines before the header, without `#`.
    pub comments: Vec<String>,
    /// Column names; empty when the first line is already numbers.
    pub header: Vec<String>,
    /// Rows, each as long as the header.
    pub rows: Vec<Vec<String>>,
    /// Whether a number was written with a decimal comma; the rows have it with a point.
    pub decimal_commas: bool,
}

impl ResultTable {
    /// Position of a column by its exact name, or by its name without the unit.
    #[must_use]
    pub fn column(&self, name: &str) -> Option<usize> {
        self.header
            .iter()
            .position(|h| h == name || split_unit(h).0 == name)
    }
}

/// Reads a table; the separator is the one of tab, semicolon and comma that the first line has most often outside
/// quotes.
///
/// # Errors
/// [`CsvError`] with the line for anything that is not a table.
pub fn read(source: &mut dyn BufRead) -> Result<ResultTable, CsvError> {
    read_watched(source, &Watch::default())
}

/// As [`read`], asking `watch` now and then whether to go on.
///
/// # Errors
/// As [`read`], and [`CsvError::Interrupted`].
pub fn read_watched(source: &mut dyn BufRead, watch: &Watch<'_>) -> Result<ResultTable, CsvError> {
    let mut rows = Vec::new();
    let mut table = each_row(source, watch, |_, fields| {
        rows.push(fields.iter().map(|f| f.clone().into_owned()).collect());
        Ok::<(), CsvError>(())
    })?;
    table.rows = rows;
    Ok(table)
}

/// Reads a table and gives its rows away one by one, each with its header: a large table is never whole in memory, and
/// need not be freed at once.
///
/// # Errors
/// As [`read_watched`], and that of `each`.
pub(crate) fn each_row<E: From<CsvError>>(
    source: &mut dyn BufRead,
    watch: &Watch<'_>,
    mut each: impl FnMut(&ResultTable, &[Cow<'_, str>]) -> Result<(), E>,
) -> Result<ResultTable, E> {
    watch.ask().map_err(CsvError::Interrupted)?;
    let mut table = ResultTable::default();
    let (mut number_of_line, mut separator, mut width, mut cells) = (0_usize, None, 0, 0_usize);
    let mut is_empty = true;
    loop {
        let first = number_of_line + 1;
        let Some(text) = next_line(source, &mut number_of_line)? else {
            break;
        };
        if width == 0 && (text.starts_with('#') || text.trim().is_empty()) {
            if let Some(comment) = text.strip_prefix('#') {
                table
                    .comments
                    .push(comment.trim_end_matches([',', ';']).to_owned());
            }
            continue;
        }
        if text.trim().is_empty() {
            continue;
        }
        let separator = *separator.get_or_insert_with(|| separator_of(&text));
        let mut fields =
            split(&text, separator).map_err(|what| CsvError::Line { line: first, what })?;
        if separator == ';' {
            table.decimal_commas |= with_points(&mut fields);
        }
        cells += fields.len();
        let counted = watch.work(1 + fields.len() / CELLS_OF_A_UNIT);
        counted.map_err(CsvError::Interrupted)?;
        if cells > CELLS_MAX {
            return Err(CsvError::Line {
                line: first,
                what: format!("more than {CELLS_MAX} cells"),
            }
            .into());
        }
        if width == 0 {
            width = fields.len();
            if !fields.iter().all(|f| !f.is_empty() && number(f).is_some()) {
                table.header = fields.into_iter().map(Cow::into_owned).collect();
                continue;
            }
        } else if fields.len() != width {
            let what = format!("expected {width} fields, found {}", fields.len());
            return Err(CsvError::Line { line: first, what }.into());
        }
        is_empty = false;
        each(&table, &fields)?;
    }
    if is_empty {
        Err(CsvError::Empty.into())
    } else {
        Ok(table)
    }
}

/// Returns the separator of a table with this first line; the comma if none stands out.
fn separator_of(line: &str) -> char {
    let mut counts = [(',', 0_usize), (';', 0), ('\t', 0)];
    let mut quoted = false;
    for c in line.chars() {
        quoted ^= c == '"';
        let found = counts.iter_mut().find(|(separator, _)| *separator == c);
        if let Some((_, count)) = found.filter(|_| !quoted) {
            *count += 1;
        }
    }
    let first = counts.iter().map(|(_, count)| *count).max();
    let most = counts.iter().find(|(_, count)| Some(*count) == first);
    most.map_or(',', |(separator, _)| *separator)
}

/// Writes numbers that have a decimal comma with a point; returns whether there was one.
fn with_points(fields: &mut [Cow<'_, str>]) -> bool {
    let mut any = false;
    for field in fields {
        if field.matches(',').count() == 1 && !field.contains('.') {
            let text = field.replace(',', ".");
            let bare = text.trim_start_matches(['<', ' ']);
            if number(bare).is_some() {
                *field = Cow::Owned(text);
                any = true;
            }
        }
    }
    any
}

/// Returns the next record without its line end; a quoted field may run over several lines.
fn next_line(source: &mut dyn BufRead, count: &mut usize) -> Result<Option<String>, CsvError> {
    let mut bytes = Vec::new();
    loop {
        let before = bytes.len();
        let mut limited = io::Read::take(&mut *source, (LINE_BYTES_MAX + 1 - before) as u64);
        let got = limited.read_until(b'\n', &mut bytes)?;
        if got == 0 && before == 0 {
            return Ok(None);
        }
        *count += 1;
        if bytes.len() > LINE_BYTES_MAX {
            return Err(CsvError::Line {
                line: *count,
                what: format!("longer than {LINE_BYTES_MAX} bytes"),
            });
        }
        if bytes.iter().filter(|&&b| b == b'"').count() % 2 == 0 || got == 0 {
            break;
        }
    }
    let text = String::from_utf8(bytes).map_err(|_| CsvError::Line {
        line: *count,
        what: "not valid utf-8".to_owned(),
    })?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    Ok(Some(text.trim_end_matches(['\n', '\r']).to_owned()))
}

/// Splits a record at the separator outside quotes. Without quotes its fields are parts of it.
fn split(text: &str, separator: char) -> Result<Vec<Cow<'_, str>>, String> {
    if !text.contains('"') {
        return Ok(text.split(separator).map(Cow::Borrowed).collect());
    }
    let mut fields = Vec::new();
    let mut field = String::new();
    let mut quoted = false;
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '"' if quoted && chars.peek() == Some(&'"') => {
                chars.next();
                field.push('"');
            }
            '"' if quoted => quoted = false,
            '"' if field.is_empty() => quoted = true,
            c if c == separator && !quoted => fields.push(Cow::Owned(std::mem::take(&mut field))),
            c => field.push(c),
        }
    }
    if quoted {
        return Err("a quoted field is not closed".to_owned());
    }
    fields.push(Cow::Owned(field));
    Ok(fields)
}

/// Splits `path [unit]` into path and unit; the unit is empty if there is none.
#[must_use]
pub fn split_unit(name: &str) -> (&str, &str) {
    match name.strip_suffix(']').and_then(|n| n.rsplit_once(" [")) {
        Some((path, unit)) => (path, unit),
        None => (name, ""),
    }
}

/// The curves of one individual.
#[derive(Debug, Clone, PartialEq)]
pub struct IndividualCurves {
    /// Its number in the file; 0 when the file has no such column.
    pub id: i64,
    /// Its curves, times in minutes, values in the unit of the column.
    pub curves: CurveTable,
}

/// Reads results: a time column (in minutes unless it names another unit), optionally `IndividualId`,
/// and curves. A table without header is a time column and one unnamed curve.
///
/// # Errors
/// [`CsvError`] if a cell is no number, the time column is missing or its unit is unknown.
pub fn results(source: &mut dyn BufRead) -> Result<Vec<IndividualCurves>, CsvError> {
    results_watched(source, &Watch::default())
}

/// As [`results`], asking `watch` now and then whether to go on.
///
/// # Errors
/// As [`results`], and [`CsvError::Interrupted`].
pub fn results_watched(
    source: &mut dyn BufRead,
    watch: &Watch<'_>,
) -> Result<Vec<IndividualCurves>, CsvError> {
    let mut table = read_watched(source, watch)?;
    let width = table.rows.first().map_or(0, Vec::len);
    if table.header.is_empty() {
        table.header = (0..width)
            .map(|i| {
                if i == 0 {
                    "Time".to_owned()
                } else {
                    format!("column {i}")
                }
            })
            .collect();
    }
    let bad = |line: usize, what: String| CsvError::Line { line, what };
    let time = table
        .column("Time")
        .ok_or_else(|| bad(1, "no column named Time".to_owned()))?;
    let unit = table.header.get(time).map_or("", |h| split_unit(h).1);
    let factor = minutes(unit).ok_or_else(|| bad(1, format!("unknown time unit {unit}")))?;
    let id = table.column("IndividualId");
    let mut found: Vec<IndividualCurves> = Vec::new();
    for (row, fields) in table.rows.iter().enumerate() {
        watch.work(1 + fields.len() / CELLS_OF_A_UNIT)?;
        let line = row + table.comments.len() + 2;
        let mut values = Vec::with_capacity(width);
        for field in fields {
            values.push(
                number(field).ok_or_else(|| bad(line, format!("{field:?} is not a number")))?,
            );
        }
        // A cast from float to integer saturates; such an id only groups rows.
        let who = id.and_then(|i| values.get(i)).map_or(0, |v| *v as i64);
        if found.last().is_none_or(|last| last.id != who) {
            found.push(IndividualCurves {
                id: who,
                curves: empty_curves(&table.header, time, id),
            });
        }
        let Some(IndividualCurves { curves, .. }) = found.last_mut() else {
            continue;
        };
        let others = values
            .iter()
            .enumerate()
            .filter(|(i, _)| *i != time && Some(*i) != id);
        for (series, (_, value)) in curves.series.iter_mut().zip(others) {
            series.values.push(*value);
        }
        curves.times.extend(values.get(time).map(|t| t * factor));
    }
    Ok(found)
}

fn empty_curves(header: &[String], time: usize, id: Option<usize>) -> CurveTable {
    let series = header
        .iter()
        .enumerate()
        .filter(|(i, _)| *i != time && Some(*i) != id)
        .map(|(_, h)| {
            let (name, unit) = split_unit(h);
            CurveSeries {
                name: name.to_owned(),
                unit: unit.to_owned(),
                values: Vec::new(),
            }
        })
        .collect();
    CurveTable {
        times: Vec::new(),
        series,
    }
}

/// Minutes in one unit of time; the empty unit is the minute.
#[must_use]
pub fn minutes(unit: &str) -> Option<f64> {
    Some(match unit {
        "" | "min" => 1.0,
        "s" => 1.0 / 60.0,
        "h" => 60.0,
        "day(s)" | "d" => 1440.0,
        "week(s)" => 10_080.0,
        "month(s)" => 43_830.0,
        "year(s)" => 525_960.0,
        "ks" => 1000.0 / 60.0,
        _ => return None,
    })
}
