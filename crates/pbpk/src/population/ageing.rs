//! Ageing data: parameters of single individuals that follow the time, in the suite's table of `IndividualId`,
//! `ParameterPath`, `Time` (minutes) and `Value` (base units), a row for each point.
//!
//! Between two points a value runs straight, before the first and after the last it stays. No event is tested at a
//! point because of it.

use std::collections::BTreeMap;
use std::io::BufRead;
use std::sync::Arc;

use super::table::PopulationError;
use crate::csv;
use crate::model::PointTable;
use crate::watch::Watch;

/// The columns of the table.
const COLUMNS: [&str; 4] = ["IndividualId", "ParameterPath", "Time", "Value"];

/// Points of a table that make a unit of work.
const POINTS_OF_A_UNIT: usize = 32;

/// Times and values, with the mark of no restart.
type Points = Vec<(f64, f64, bool)>;

/// Places of the columns.
fn places(table: &csv::ResultTable) -> Result<[usize; COLUMNS.len()], PopulationError> {
    let mut places = [0; COLUMNS.len()];
    for (place, name) in places.iter_mut().zip(COLUMNS) {
        *place = table.column(name).ok_or_else(|| PopulationError::Ageing {
            what: format!("there is no column '{name}'"),
        })?;
    }
    Ok(places)
}

/// Tables over time, by individual and path.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct AgeingTables {
    tables: BTreeMap<i64, BTreeMap<String, Arc<PointTable>>>,
}

impl AgeingTables {
    /// Reads the table; its rows may come in any order.
    ///
    /// # Errors
    /// [`PopulationError`]: a column that is not there, a cell that is no number, two values for one time.
    pub fn read(source: &mut dyn BufRead) -> Result<Self, PopulationError> {
        Self::read_watched(source, &Watch::default())
    }

    /// As [`AgeingTables::read`], asking `watch` now and then whether to go on.
    ///
    /// # Errors
    /// As [`AgeingTables::read`], and [`PopulationError::Interrupted`].
    pub fn read_watched(
        source: &mut dyn BufRead,
        watch: &Watch<'_>,
    ) -> Result<Self, PopulationError> {
        let mut points: BTreeMap<(i64, String), Points> = BTreeMap::new();
        let (mut known, mut rows) = (None, 0);
        csv::each_row(source, watch, |table, row| {
            let [id, path, time, value] = match known {
                Some(places) => places,
                None => *known.insert(places(table)?),
            };
            rows += 1;
            let text = |i: usize| row.get(i).map_or("", |f| &**f);
            let number = |i: usize| {
                let number = csv::number(text(i)).filter(|n| n.is_finite());
                number.ok_or_else(|| PopulationError::Cell {
                    row: rows,
                    column: table.header.get(i).cloned().unwrap_or_default(),
                    text: text(i).to_owned(),
                })
            };
            // A cast from float to integer saturates; an id is a small whole number.
            let key = (number(id)? as i64, text(path).to_owned());
            let point = (number(time)?, number(value)?, false);
            points.entry(key).or_default().push(point);
            Ok::<(), PopulationError>(())
        })?;
        let mut ageing = Self::default();
        for ((id, path), mut points) in points {
            watch.work(1 + points.len() / POINTS_OF_A_UNIT)?;
            points.sort_by(|a, b| a.0.total_cmp(&b.0));
            let table = PointTable::new(&points, false).map_err(|e| PopulationError::Ageing {
                what: format!("individual {id}, '{path}': {e}"),
            })?;
            let own = ageing.tables.entry(id).or_default();
            own.insert(path, Arc::new(table));
        }
        Ok(ageing)
    }

    /// Returns the ids of the individuals with data.
    pub fn ids(&self) -> impl Iterator<Item = i64> + '_ {
        self.tables.keys().copied()
    }

    /// Tables of each individual, by path.
    pub(super) fn tables(&self) -> impl Iterator<Item = (i64, &BTreeMap<String, Arc<PointTable>>)> {
        self.tables.iter().map(|(id, tables)| (*id, tables))
    }
}
