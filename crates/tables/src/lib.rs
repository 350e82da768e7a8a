//! Numbers as files that other programs read: Arrow IPC for columns of results, xlsx for tables that people open.
//!
//! Apart from `pbpk`, so that a program that only solves models does not carry these formats. Knows nothing of models;
//! the same numbers give the same bytes.

mod arrow;
mod workbook;

pub use arrow::{Columns, arrow};
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
