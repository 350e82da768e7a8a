//! Numbers as files that other programs read: Arrow IPC for columns of results, xlsx for tables that people open. Sheets
//! of workbooks are read as texts.
//!
//! Apart from `pbpk`, so that a program that only solves models does not carry these formats. Knows nothing of models;
//! the same numbers give the same bytes.

mod arrow;
mod sheet;
mod workbook;

pub use arrow::{Columns, arrow};
pub use sheet::{SHEET_CELLS_MAX, SheetText, WORKBOOK_BYTES_MAX, is_workbook, read_sheet};
pub use workbook::{SHEET_ROWS_MAX, SheetCell, WorkSheet, workbook};

/// Reason why a file was not made: something that the format cannot hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableError(String);

impl std::fmt::Display for TableError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for TableError {}
