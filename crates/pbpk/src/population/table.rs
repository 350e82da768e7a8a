//! The table of a population, as the suite writes it: `IndividualId`, covariates of people, and one column `path
//! [unit]` for each parameter.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;
use std::io::BufRead;

use super::INDIVIDUALS_MAX;
use crate::csv::{self, CELLS_OF_A_UNIT, CsvError};
use crate::watch::{Interrupt, Watch};

/// The column that numbers the individuals.
const ID: &str = "IndividualId";
/// Columns that are no parameters of a model, with any names.
const COVARIATES: [&str; 3] = ["Gender", "RaceIndex", "Population"];

/// A parameter of the population.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParameterColumn {
    /// Path of the quantity.
    pub path: String,
    /// Unit of the values; empty: base units.
    pub unit: String,
}

/// A covariate of the individuals: a column that is no parameter of a model.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Covariate {
    /// The head of the column.
    pub name: String,
    /// One text per individual.
    pub values: Vec<String>,
}

/// Parameter values of individuals, one row each.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Population {
    /// The parameters. A value that is not a number leaves the individual the value of the model.
    pub columns: Vec<ParameterColumn>,
    /// What else is known of the individuals; no model uses it.
    pub covariates: Vec<Covariate>,
    /// Warnings of reading a file.
    pub warnings: Vec<String>,
    /// Whether a file of the suite was read.
    is_read: bool,
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
    /// Two columns have the same name.
    Column {
        /// The name, without unit.
        name: String,
    },
    /// More individuals than [`INDIVIDUALS_MAX`], or none.
    Size {
        /// How many.
        count: usize,
    },
    /// Correlations that no population can have.
    Correlation {
        /// Fault, for people.
        what: String,
    },
    /// Ageing data that make no sense.
    Ageing {
        /// Fault, for people.
        what: String,
    },
    /// A distribution that makes no sense.
    Distribution {
        /// Its path.
        path: String,
        /// Fault, for people.
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
            Self::Column { name } => write!(
                f,
                "column '{name}' occurs twice; delete or rename one of the two"
            ),
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

/// Positions of the columns of a table by what they are.
#[derive(Debug, Default)]
struct ColumnLayout {
    id: Option<usize>,
    parameters: Vec<usize>,
    covariates: Vec<usize>,
}

impl ColumnLayout {
    /// Sorts the columns of a header: a parameter has the delimiter of paths in its name without unit.
    ///
    /// # Errors
    /// [`PopulationError::ParameterColumn`] for a name that occurs twice.
    fn new(header: &[String]) -> Result<Self, PopulationError> {
        let mut layout = Self::default();
        let mut names = HashSet::new();
        for (i, head) in header.iter().enumerate() {
            let name = csv::split_unit(head.trim()).0.trim();
            if !names.insert(name) {
                return Err(PopulationError::Column {
                    name: name.to_owned(),
                });
            }
            let is_covariate = COVARIATES.iter().any(|c| name.eq_ignore_ascii_case(c));
            if name.eq_ignore_ascii_case(ID) {
                layout.id = Some(i);
            } else if name.contains('|') && !is_covariate {
                layout.parameters.push(i);
            } else {
                layout.covariates.push(i);
            }
        }
        Ok(layout)
    }
}

/// State of a table that is being read.
#[derive(Debug, Default)]
struct RowReader {
    layout: Option<ColumnLayout>,
    ids: Vec<i64>,
    values: Vec<f64>,
    covariates: Vec<Covariate>,
}

impl RowReader {
    fn push(
        &mut self,
        table: &csv::ResultTable,
        row: &[Cow<'_, str>],
        watch: &Watch<'_>,
    ) -> Result<(), PopulationError> {
        let head = |i: usize| table.header.get(i).cloned().unwrap_or_default();
        let layout = match &self.layout {
            Some(layout) => layout,
            None => {
                let layout = ColumnLayout::new(&table.header)?;
                let named = |i: &usize| Covariate {
                    name: head(*i),
                    values: Vec::new(),
                };
                self.covariates = layout.covariates.iter().map(named).collect();
                self.layout.insert(layout)
            }
        };
        let r = self.ids.len();
        let text = |i: usize| row.get(i).map_or("", |f| &**f);
        let cell = |i: usize| {
            csv::number(text(i)).ok_or_else(|| PopulationError::Cell {
                row: r + 1,
                column: head(i),
                text: text(i).to_owned(),
            })
        };
        // A cast from float to integer saturates; an id is a small whole number.
        let id = layout
            .id
            .map_or(Ok(r as i64), |i| cell(i).map(|v| v as i64));
        self.ids.push(id?);
        watch.work((layout.parameters.len() + layout.covariates.len()) / CELLS_OF_A_UNIT)?;
        for &i in &layout.parameters {
            self.values.push(cell(i)?);
        }
        for (covariate, &i) in self.covariates.iter_mut().zip(&layout.covariates) {
            covariate.values.push(text(i).to_owned());
        }
        Ok(())
    }
}

impl Population {
    /// Returns a population of these numbers, row by row.
    pub(super) fn new(columns: Vec<ParameterColumn>, ids: Vec<i64>, values: Vec<f64>) -> Self {
        Self {
            columns,
            ids,
            values,
            ..Self::default()
        }
    }

    /// Returns whether the individuals were read from a file of the suite.
    #[must_use]
    pub fn is_read(&self) -> bool {
        self.is_read
    }

    /// Reads the suite's CSV: comment lines, ids that need not be dense, units in the heads of the columns. Separators
    /// are comma, semicolon and tab; between semicolons a comma may be the decimal sign. Empty cells are not-a-number.
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
        let mut rows = RowReader::default();
        let table = csv::each_row(source, watch, |table, row| rows.push(table, row, watch))?;
        let RowReader {
            layout,
            ids,
            values,
            covariates,
        } = rows;
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
            let (path, unit) = csv::split_unit(table.header.get(i).map_or("", |h| h.trim()));
            ParameterColumn {
                path: path.to_owned(),
                unit: unit.to_owned(),
            }
        };
        let layout = layout.unwrap_or_default();
        let mut warnings = Vec::new();
        if table.decimal_commas {
            warnings.push("numbers with a decimal comma were read".to_owned());
        }
        Ok(Self {
            columns: layout.parameters.into_iter().map(column).collect(),
            covariates,
            warnings,
            is_read: true,
            ids,
            values,
        })
    }

    /// Number of individuals.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ids.len()
    }

    /// Returns whether there is no individual.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }

    /// Returns the id of the individual of a row; the row without one.
    #[must_use]
    pub fn id(&self, row: usize) -> i64 {
        self.ids.get(row).copied().unwrap_or(row as i64)
    }

    /// Returns the row of the individual with this id.
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

    /// Returns the table as the suite reads it.
    #[must_use]
    pub fn to_csv(&self) -> String {
        self.lines().collect()
    }

    /// Returns the lines of [`Population::to_csv`].
    pub(crate) fn lines(&self) -> impl Iterator<Item = String> + '_ {
        let mut head = String::from("\u{feff}IndividualId");
        for covariate in &self.covariates {
            head.push(',');
            csv::push_field(&mut head, &covariate.name);
        }
        for column in &self.columns {
            head.push(',');
            csv::push_field(&mut head, &csv::titled(&column.path, &column.unit));
        }
        head.push('\n');
        let line = |row: usize| {
            let mut text = self.id(row).to_string();
            for covariate in &self.covariates {
                text.push(',');
                csv::push_field(
                    &mut text,
                    covariate.values.get(row).map_or("", String::as_str),
                );
            }
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
