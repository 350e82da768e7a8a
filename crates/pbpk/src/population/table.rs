//! The table of a population, as the suite writes it: `IndividualId`, facts about people, and one column `path [unit]` for
//! each parameter.

use std::fmt;
use std::io::BufRead;

use super::INDIVIDUALS_MAX;
use crate::csv::{self, CELLS_OF_A_UNIT, CsvError};
use crate::watch::{Interrupt, Watch};

/// Facts about people that are no parameters of a model.
const FACTS: [&str; 5] = [
    "IndividualId",
    "Gender",
    "Race",
    "RaceIndex",
    "Population Name",
];

/// A parameter of the population.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    /// Path of the quantity.
    pub path: String,
    /// Unit of the values; empty: base units.
    pub unit: String,
}

/// Parameter values of individuals, one row each.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Population {
    /// The parameters.
    pub columns: Vec<Column>,
    ids: Vec<i64>,
    /// Row by row, one number per column.
    values: Vec<f64>,
}

/// Why a text is no population.
#[derive(Debug)]
pub enum PopulationError {
    /// The table itself is broken.
    Table(CsvError),
    /// A cell of a parameter is no number.
    Cell {
        /// Row, from 1.
        row: usize,
        /// Name of the column.
        column: String,
        /// The text.
        text: String,
    },
    /// Two rows have the same id.
    Twice {
        /// The id.
        id: i64,
    },
    /// More individuals than [`INDIVIDUALS_MAX`], or none.
    Size {
        /// How many.
        count: usize,
    },
    /// Correlations that no population can have.
    Correlation {
        /// What is wrong.
        what: String,
    },
    /// Ageing data that make no sense.
    Ageing {
        /// What is wrong.
        what: String,
    },
    /// A distribution that makes no sense.
    Distribution {
        /// Its path.
        path: String,
        /// What is wrong.
        what: String,
    },
    /// The caller asked to stop.
    Interrupted(Interrupt),
}

impl fmt::Display for PopulationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Table(e) => e.fmt(f),
            Self::Cell { row, column, text } => {
                write!(f, "row {row}, column '{column}': '{text}' is not a number")
            }
            Self::Twice { id } => write!(f, "individual {id} occurs twice"),
            Self::Size { count } => write!(
                f,
                "a population has 1 to {INDIVIDUALS_MAX} individuals, not {count}"
            ),
            Self::Interrupted(cause) => write!(f, "{cause} while the population was made"),
            Self::Ageing { what } => write!(f, "ageing data: {what}"),
            Self::Correlation { what } => write!(f, "correlations: {what}"),
            Self::Distribution { path, what } => write!(f, "distribution of '{path}': {what}"),
        }
    }
}

impl std::error::Error for PopulationError {}

impl From<CsvError> for PopulationError {
    fn from(e: CsvError) -> Self {
        match e {
            CsvError::Interrupted(cause) => Self::Interrupted(cause),
            e => Self::Table(e),
        }
    }
}

impl From<Interrupt> for PopulationError {
    fn from(cause: Interrupt) -> Self {
        Self::Interrupted(cause)
    }
}

/// Places of the columns that are parameters.
fn kept(table: &csv::Table) -> Vec<usize> {
    let is_fact = |name: &str| FACTS.iter().any(|f| name.eq_ignore_ascii_case(f));
    let heads = table.header.iter().enumerate();
    let kept = heads.filter(|(_, name)| !is_fact(name));
    kept.map(|(i, _)| i).collect()
}

impl Population {
    /// A population of these numbers, row by row.
    pub(super) fn new(columns: Vec<Column>, ids: Vec<i64>, values: Vec<f64>) -> Self {
        Self {
            columns,
            ids,
            values,
        }
    }

    /// Reads the suite's CSV: comment lines, ids that need not be dense, units in the heads of the columns.
    ///
    /// # Errors
    /// [`PopulationError`] with row and column.
    pub fn read(source: &mut dyn BufRead) -> Result<Self, PopulationError> {
        Self::read_watched(source, &Watch::default())
    }

    /// As [`Population::read`], asking `watch` now and then whether to go on.
    ///
    /// # Errors
    /// As [`Population::read`], and [`PopulationError::Interrupted`].
    pub fn read_watched(
        source: &mut dyn BufRead,
        watch: &Watch<'_>,
    ) -> Result<Self, PopulationError> {
        let mut known: Option<(Option<usize>, Vec<usize>)> = None;
        let (mut ids, mut values) = (Vec::new(), Vec::new());
        let table = csv::each_row(source, watch, |table, row| {
            let (id, kept) =
                known.get_or_insert_with(|| (table.column("IndividualId"), kept(table)));
            let r = ids.len();
            let cell = |i: usize| {
                let text = row.get(i).map_or("", |f| &**f);
                csv::number(text).ok_or_else(|| PopulationError::Cell {
                    row: r + 1,
                    column: table.header.get(i).cloned().unwrap_or_default(),
                    text: text.to_owned(),
                })
            };
            // A cast from float to integer saturates; an id is a small whole number.
            ids.push(id.map_or(Ok(r as i64), |i| cell(i).map(|v| v as i64))?);
            watch.work(kept.len() / CELLS_OF_A_UNIT)?;
            for i in kept {
                values.push(cell(*i)?);
            }
            Ok::<(), PopulationError>(())
        })?;
        if ids.is_empty() || ids.len() > INDIVIDUALS_MAX {
            return Err(PopulationError::Size { count: ids.len() });
        }
        let mut sorted = ids.clone();
        sorted.sort_unstable();
        if let Some(twice) = sorted.windows(2).find(|w| w.first() == w.last()) {
            let id = twice.first().copied().unwrap_or_default();
            return Err(PopulationError::Twice { id });
        }
        let column = |i: usize| {
            let (path, unit) = csv::split_unit(table.header.get(i).map_or("", String::as_str));
            Column {
                path: path.to_owned(),
                unit: unit.to_owned(),
            }
        };
        let columns = kept(&table).into_iter().map(column).collect();
        Ok(Self::new(columns, ids, values))
    }

    /// Number of individuals.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ids.len()
    }

    /// Whether there is nobody.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }

    /// Id of the individual of a row; the row where there is none.
    #[must_use]
    pub fn id(&self, row: usize) -> i64 {
        self.ids.get(row).copied().unwrap_or(row as i64)
    }

    /// The row of the individual with this id.
    #[must_use]
    pub fn find(&self, id: i64) -> Option<usize> {
        self.ids.iter().position(|i| *i == id)
    }

    /// Numbers of an individual, in the units of the columns.
    #[must_use]
    pub fn row(&self, row: usize) -> &[f64] {
        let width = self.columns.len();
        self.values
            .get(row * width..(row + 1) * width)
            .unwrap_or_default()
    }

    /// The table as the suite reads it.
    #[must_use]
    pub fn to_csv(&self) -> String {
        self.lines().collect()
    }

    /// The lines of [`Population::to_csv`].
    pub(crate) fn lines(&self) -> impl Iterator<Item = String> + '_ {
        let mut head = String::from("\u{feff}IndividualId");
        for column in &self.columns {
            head.push(',');
            csv::push_field(&mut head, &csv::titled(&column.path, &column.unit));
        }
        head.push('\n');
        let line = |row: usize| {
            let mut text = self.id(row).to_string();
            for value in self.row(row) {
                text.push(',');
                csv::push_number(&mut text, *value);
            }
            text.push('\n');
            text
        };
        std::iter::once(head).chain((0..self.len()).map(line))
    }
}
