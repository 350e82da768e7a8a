//! Columns of numbers as an Arrow IPC file (also known as Feather, version 2).

use std::sync::Arc;

use arrow_array::{ArrayRef, Float64Array, Int64Array, RecordBatch};
use arrow_ipc::writer::FileWriter;
use arrow_schema::{ArrowError, DataType, Field, Schema};

use crate::TableError;

/// Results of individuals: a row for each individual and time.
#[derive(Debug, Clone, Copy)]
pub struct Columns<'a> {
    /// Numbers of the individuals, one a row.
    pub ids: &'a [i64],
    /// Name and values of every other column, one value a row.
    pub numbers: &'a [(String, Vec<f64>)],
}

/// Returns the columns as one record batch, `IndividualId` first. Not-a-number stays not-a-number; nothing is null.
///
/// # Errors
/// [`TableError`] if the columns have different lengths.
pub fn arrow(columns: &Columns<'_>) -> Result<Vec<u8>, TableError> {
    let failed = |e: ArrowError| TableError(format!("cannot write Arrow IPC: {e}"));
    let mut fields = vec![Field::new("IndividualId", DataType::Int64, false)];
    let mut arrays: Vec<ArrayRef> = vec![Arc::new(Int64Array::from(columns.ids.to_vec()))];
    for (name, values) in columns.numbers {
        fields.push(Field::new(name, DataType::Float64, false));
        arrays.push(Arc::new(Float64Array::from(values.clone())));
    }
    let schema = Arc::new(Schema::new(fields));
    let batch = RecordBatch::try_new(Arc::clone(&schema), arrays).map_err(failed)?;
    let mut writer = FileWriter::try_new(Vec::new(), &schema).map_err(failed)?;
    writer.write(&batch).map_err(failed)?;
    writer.into_inner().map_err(failed)
}
