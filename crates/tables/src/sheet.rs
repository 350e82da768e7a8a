//! Sheets of workbooks that others have written: xlsx, xlsb, xls and ods.

use std::io::Cursor;

use calamine::{Data, Reader as _, open_workbook_auto_from_rs};

use crate::TableError;

/// Largest workbook that is read, in bytes.
pub const WORKBOOK_BYTES_MAX: u64 = 64 << 20;
/// Most cells of a sheet that is read.
pub const SHEET_CELLS_MAX: usize = 4 << 20;

/// Cells of a sheet as texts, row by row; numbers have a decimal point and all digits.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SheetText {
    /// Name of the sheet.
    pub name: String,
    /// Its rows, from the first that has a cell.
    pub rows: Vec<Vec<String>>,
}

/// Returns whether these are the first bytes of a workbook.
#[must_use]
pub fn is_workbook(start: &[u8]) -> bool {
    start.starts_with(b"PK\x03\x04") || start.starts_with(&[0xd0, 0xcf, 0x11, 0xe0])
}

/// Reads the sheet of this name, or the first.
///
/// # Errors
/// [`TableError`] for bytes that are no workbook, an unknown sheet (with the names that there are), too many cells.
pub fn read_sheet(bytes: &[u8], name: Option<&str>) -> Result<SheetText, TableError> {
    let failed = |what: String| TableError(format!("cannot read the workbook: {what}"));
    if bytes.len() as u64 > WORKBOOK_BYTES_MAX {
        return Err(failed(format!(
            "it has more than {WORKBOOK_BYTES_MAX} bytes"
        )));
    }
    let mut book =
        open_workbook_auto_from_rs(Cursor::new(bytes)).map_err(|e| failed(e.to_string()))?;
    let names = book.sheet_names();
    let known = match name {
        Some(name) => names.iter().find(|known| *known == name),
        None => names.first(),
    };
    let Some(sheet) = known.cloned() else {
        let all = names.join(", ");
        return Err(failed(format!(
            "it has no sheet '{}'; its sheets are {all}",
            name.unwrap_or_default()
        )));
    };
    let range = book.worksheet_range(&sheet);
    let range = range.map_err(|e| failed(e.to_string()))?;
    let (height, width) = range.get_size();
    if height.saturating_mul(width) > SHEET_CELLS_MAX {
        return Err(failed(format!(
            "'{sheet}' has more than {SHEET_CELLS_MAX} cells"
        )));
    }
    let text = |cell: &Data| match cell {
        Data::Error(_) => String::new(),
        cell => cell.to_string(),
    };
    let rows = range.rows().map(|row| row.iter().map(text).collect());
    Ok(SheetText {
        rows: rows.collect(),
        name: sheet,
    })
}

#[cfg(test)]
mod tests {
    use super::{is_workbook, read_sheet};
    use crate::{SheetCell, WorkSheet, workbook};

    #[test]
    fn cells_are_those_that_were_written() {
        let sheet = |name: &str, value: f64| WorkSheet {
            name: name.to_owned(),
            header: vec!["Time [h]".to_owned(), "A|C [mg/l]".to_owned()],
            rows: vec![
                vec![SheetCell::Number(0.5), SheetCell::Number(value)],
                vec![SheetCell::Number(8.0), SheetCell::Text("<0.2".to_owned())],
            ],
        };
        let bytes = workbook(&[sheet("one", 10.25), sheet("two", 3.0)]).unwrap();
        assert!(is_workbook(&bytes) && !is_workbook(b"Time,A\n"));
        let rows = read_sheet(&bytes, None).unwrap().rows;
        assert_eq!(
            rows,
            [["Time [h]", "A|C [mg/l]"], ["0.5", "10.25"], ["8", "<0.2"]]
        );
        let second = read_sheet(&bytes, Some("two")).unwrap();
        assert_eq!(
            (second.name.as_str(), second.rows[1][1].as_str()),
            ("two", "3")
        );
        let error = read_sheet(&bytes, Some("three")).unwrap_err().to_string();
        assert!(error.contains("its sheets are one, two"), "{error}");
        assert!(read_sheet(b"PK\x03\x04 and no more", None).is_err());
    }
}
