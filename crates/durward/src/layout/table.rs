//! Tables that fit the terminal: columns are as wide as what they hold, the longest give way first, and what still has no
//! room is left out, columns that say nothing before others.

use std::io::{self, Write};

use super::{cut, cut_front, fold};

/// Blanks between two columns.
const GAP: usize = 2;
/// Widest column that is no terminal's, where something stands behind it.
const CHARACTERS_MAX: usize = 40;

/// What is done with a text that is longer than its column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Long {
    /// The column is always as wide as its texts.
    Whole,
    /// The end is cut off.
    Cut,
    /// The beginning is cut off.
    CutFront,
    /// The text goes on below.
    Wrap,
}

/// A column.
#[derive(Debug, Clone, Copy)]
pub struct Column {
    /// What stands above it.
    pub heading: &'static str,
    /// Fewest characters it can give way to.
    pub least: usize,
    /// How it gives way.
    pub long: Long,
    /// Columns of a higher rank are left out first; those of rank 0 are never left out.
    pub rank: u8,
}

impl Column {
    /// A column that is never left out.
    pub const fn new(heading: &'static str, least: usize, long: Long) -> Self {
        Self {
            heading,
            least,
            long,
            rank: 0,
        }
    }

    /// The same with a rank.
    pub const fn of_rank(self, rank: u8) -> Self {
        Self { rank, ..self }
    }
}

/// Columns with their widths.
pub struct Table<'c> {
    columns: &'c [Column],
    /// `None` for a column that is left out.
    widths: Vec<Option<usize>>,
    /// Characters on a line, where texts have to fit.
    width: Option<usize>,
    indent: usize,
    /// Gives the colour of a text.
    colour: Option<fn(&str) -> Option<&'static str>>,
}

/// A text that says nothing.
fn is_empty(text: &str) -> bool {
    text.is_empty() || text == "-"
}

impl<'c> Table<'c> {
    /// Widths for these rows on lines of this width, which begin with so many blanks. Without a width every text is whole.
    pub fn of(
        columns: &'c [Column],
        rows: &[Vec<String>],
        width: Option<usize>,
        indent: usize,
    ) -> Self {
        let cells = |at: usize| rows.iter().filter_map(move |row| row.get(at));
        let last = columns.len().saturating_sub(1);
        let longest = columns.iter().enumerate().map(|(at, column)| {
            let is_whole = at == last || column.long == Long::Whole || width.is_some();
            let lengths = cells(at).map(|cell| fold::shown(cell));
            // One long text does not push what stands behind the others to the right.
            let lengths = lengths.filter(|length| is_whole || *length <= CHARACTERS_MAX);
            lengths.max().unwrap_or(0)
        });
        let longest: Vec<usize> = longest.collect();
        let with_headings = columns
            .iter()
            .zip(&longest)
            .map(|(column, longest)| Some(column.heading.chars().count().max(*longest)));
        let mut widths: Vec<Option<usize>> = with_headings.collect();
        let room = width.map_or(usize::MAX, |width| width.saturating_sub(indent));
        if total(&widths) > room {
            widths = narrowed(columns, rows, &longest, room);
        }
        Self {
            columns,
            widths,
            width,
            indent,
            colour: None,
        }
    }

    /// Columns with widths that are known.
    pub fn with(columns: &'c [Column], widths: Vec<Option<usize>>, width: Option<usize>) -> Self {
        Self {
            columns,
            widths,
            width,
            indent: 0,
            colour: None,
        }
    }

    /// The widths of the columns; `None` for one that is left out.
    pub fn widths(self) -> Vec<Option<usize>> {
        self.widths
    }

    /// The same with colours.
    pub fn painted(self, colour: fn(&str) -> Option<&'static str>) -> Self {
        Self {
            colour: Some(colour),
            ..self
        }
    }

    /// Writes the headings.
    ///
    /// # Errors
    /// What writing says.
    pub fn heading(&self, out: &mut dyn Write) -> io::Result<()> {
        let headings: Vec<String> = self.columns.iter().map(|c| c.heading.to_owned()).collect();
        self.write(&headings, None, out)
    }

    /// Writes a row.
    ///
    /// # Errors
    /// What writing says.
    pub fn row(&self, cells: &[String], out: &mut dyn Write) -> io::Result<()> {
        self.write(cells, self.colour, out)
    }

    /// A row without colours, which has no line end.
    pub fn text(&self, cells: &[String]) -> String {
        let mut out = Vec::new();
        // Writing to memory does not fail.
        let _ = self.write(cells, None, &mut out);
        String::from_utf8_lossy(&out).trim_end().to_owned()
    }

    fn write(
        &self,
        all: &[String],
        colour: Option<fn(&str) -> Option<&'static str>>,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        let columns = self.columns.iter().zip(&self.widths).zip(all);
        let shown = columns.filter_map(|((column, width), cell)| Some((column, (*width)?, cell)));
        let cells: Vec<(usize, Vec<String>)> = shown
            .map(|(column, width, cell)| (width, self.fitted(column, width, cell)))
            .collect();
        let height = cells
            .iter()
            .map(|(_, lines)| lines.len())
            .max()
            .unwrap_or(0);
        let mut written = Vec::with_capacity(height);
        for number in 0..height {
            let mut line = " ".repeat(self.indent);
            for (at, (width, lines)) in cells.iter().enumerate() {
                let gap = if at == 0 { 0 } else { GAP };
                line.extend(std::iter::repeat_n(' ', gap));
                let text = lines.get(number).map_or("", String::as_str);
                match colour.and_then(|colour| colour(text)) {
                    Some(code) => line.push_str(&format!("\x1b[{code}m{text}\x1b[0m")),
                    None => line.push_str(text),
                }
                // Colours have no width: the padding stands outside of them.
                let padding = width.saturating_sub(fold::shown(text));
                line.extend(std::iter::repeat_n(' ', padding));
            }
            let too_long = |width: &usize| fold::shown(line.trim_end()) > *width;
            match self.width.filter(too_long) {
                // Not even the columns that are never left out have room.
                Some(width) if colour.is_none() => written.push(cut(line.trim_end(), width)),
                Some(_) => return self.write(all, None, out),
                None => written.push(line.trim_end().to_owned()),
            }
        }
        written.iter().try_for_each(|line| writeln!(out, "{line}"))
    }

    /// The lines of a cell.
    fn fitted(&self, column: &Column, width: usize, cell: &str) -> Vec<String> {
        if self.width.is_none() || fold::shown(cell) <= width {
            return vec![cell.to_owned()];
        }
        match column.long {
            Long::CutFront => vec![cut_front(cell, width)],
            Long::Whole | Long::Cut => vec![cut(cell, width)],
            Long::Wrap => fold::bounded(cell, width, 0),
        }
    }
}

fn total(widths: &[Option<usize>]) -> usize {
    let shown = widths.iter().flatten();
    let gaps = shown.clone().count().saturating_sub(1) * GAP;
    shown.sum::<usize>() + gaps
}

/// Widths that fit where that can be. Headings are cut like texts, columns of empty texts are left out.
fn narrowed(
    columns: &[Column],
    rows: &[Vec<String>],
    longest: &[usize],
    room: usize,
) -> Vec<Option<usize>> {
    let cells = |at: usize| rows.iter().filter_map(move |row| row.get(at));
    let is_nothing = |at: usize| !rows.is_empty() && cells(at).all(|cell| is_empty(cell));
    let is_same = |at: usize| {
        let mut cells = cells(at);
        let first = cells.next();
        rows.len() > 1 && cells.all(|cell| Some(cell) == first)
    };
    let natural = columns.iter().zip(longest).map(|(column, longest)| {
        let heading = column.heading.chars().count();
        match column.long {
            Long::Whole => heading.max(*longest),
            _ => heading.min(column.least).max(*longest),
        }
    });
    let natural: Vec<usize> = natural.collect();
    let mut is_left_out: Vec<bool> = columns
        .iter()
        .enumerate()
        .map(|(at, column)| column.rank > 0 && is_nothing(at))
        .collect();
    loop {
        let widths = natural.iter().zip(&is_left_out);
        let mut widths: Vec<Option<usize>> = widths
            .map(|(natural, is_left_out)| (!is_left_out).then_some(*natural))
            .collect();
        shrink(columns, &mut widths, room);
        if total(&widths) <= room {
            return widths;
        }
        let shown = is_left_out.iter_mut().zip(columns).enumerate();
        let shown = shown.filter(|(_, (is_left_out, column))| column.rank > 0 && !**is_left_out);
        match shown.max_by_key(|(at, (_, column))| (is_same(*at), column.rank)) {
            Some((_, (is_left_out, _))) => *is_left_out = true,
            None => return widths,
        }
    }
}

/// The columns that are shown give way, the widest first, until they fit or none can.
fn shrink(columns: &[Column], widths: &mut [Option<usize>], room: usize) {
    while total(widths) > room {
        let able = columns.iter().zip(widths.iter_mut());
        let able = able.filter_map(|(column, width)| {
            let width = width.as_mut()?;
            (column.long != Long::Whole && *width > column.least).then_some(width)
        });
        match able.max_by_key(|width| **width) {
            Some(width) => *width -= 1,
            None => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COLUMNS: [Column; 4] = [
        Column::new("time", 0, Long::Whole),
        Column::new("caller", 6, Long::Cut).of_rank(2),
        Column::new("rule", 4, Long::Cut).of_rank(1),
        Column::new("path", 6, Long::CutFront),
    ];

    fn rows(all: &[[&str; 4]]) -> Vec<Vec<String>> {
        let row = |row: &[&str; 4]| row.iter().map(|cell| (*cell).to_owned()).collect();
        all.iter().map(row).collect()
    }

    fn printed(rows: &[Vec<String>], width: Option<usize>) -> String {
        let table = Table::of(&COLUMNS, rows, width, 0);
        let mut out = Vec::new();
        table.heading(&mut out).unwrap();
        for row in rows {
            table.row(row, &mut out).unwrap();
        }
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn every_line_fits_and_the_columns_that_matter_stay() {
        let rows = rows(&[
            [
                "00:03:05",
                "uid:0",
                "starter-allow-reads",
                "/home/me/work/a.txt",
            ],
            [
                "00:03:07",
                "key:laptop",
                "no-secrets",
                "/home/me/work/secret/key.pem",
            ],
        ]);
        let whole = printed(&rows, None);
        assert_eq!(
            whole,
            "time      caller      rule                 path\n\
             00:03:05  uid:0       starter-allow-reads  /home/me/work/a.txt\n\
             00:03:07  key:laptop  no-secrets           /home/me/work/secret/key.pem\n"
        );
        assert_eq!(printed(&rows, Some(200)), whole);
        for width in 16..80 {
            let text = printed(&rows, Some(width));
            assert!(
                text.lines().all(|line| line.chars().count() <= width),
                "{width}\n{text}"
            );
            assert!(text.contains("00:03:07"), "{text}");
            assert!(
                text.contains(".pem") && text.contains("path"),
                "{width}\n{text}"
            );
        }
        assert_eq!(
            printed(&rows, Some(32)),
            "time      caller  rule    path\n\
             00:03:05  uid:0   start…  …a.txt\n\
             00:03:07  key:l…  no-se…  …y.pem\n"
        );
        let narrow = printed(&rows, Some(24));
        assert!(
            !narrow.contains("caller") && narrow.contains("rule"),
            "{narrow}"
        );
    }

    #[test]
    fn columns_that_say_nothing_or_always_the_same_are_left_out_first() {
        let same = rows(&[
            ["00:03:05", "uid:0", "one", "/home/me/work/a.txt"],
            ["00:03:07", "uid:7", "one", "/home/me/work/b.txt"],
        ]);
        let narrow = printed(&same, Some(26));
        assert!(
            !narrow.contains("rule") && narrow.contains("uid:7"),
            "{narrow}"
        );
        let empty = rows(&[["00:03:05", "-", "one", "/home/me/work/a.txt"]]);
        let narrow = printed(&empty, Some(26));
        assert!(
            !narrow.contains("caller") && narrow.contains("one"),
            "{narrow}"
        );
    }

    #[test]
    fn a_row_without_room_is_written_once_in_colour_too() {
        let columns = [
            Column::new("decision", 0, Long::Whole),
            Column::new("why", 4, Long::Wrap),
        ];
        let row = ["deny", "for want of an answer"].map(str::to_owned);
        let painted = |word: &str| (word == "deny").then_some("31");
        for width in 0..30 {
            let table = Table::with(&columns, vec![Some(8), Some(4)], Some(width));
            let (mut plain, mut colours) = (Vec::new(), Vec::new());
            table.row(&row, &mut plain).unwrap();
            let table = table.painted(painted);
            table.row(&row, &mut colours).unwrap();
            let lines = |text: &[u8]| text.iter().filter(|byte| **byte == b'\n').count();
            assert_eq!(lines(&colours), lines(&plain), "{width}");
        }
    }

    #[test]
    fn texts_that_wrap_go_on_below() {
        let columns = [
            Column::new("key", 0, Long::Whole),
            Column::new("value", 8, Long::Wrap),
            Column::new("from", 0, Long::Whole),
        ];
        let rows = vec![
            ["threads", "one for each processor", "default"]
                .map(str::to_owned)
                .to_vec(),
            ["policy", "/home/me/policy.json", "line 6"]
                .map(str::to_owned)
                .to_vec(),
        ];
        let table = Table::of(&columns, &rows, Some(32), 2);
        let mut out = Vec::new();
        for row in &rows {
            table.row(row, &mut out).unwrap();
        }
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "  threads  one for each  default\n           processor\n  \
             policy   /home/me/pol  line 6\n           icy.json\n"
        );
    }
}
