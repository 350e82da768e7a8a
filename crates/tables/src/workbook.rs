//! Tables as a workbook (xlsx).

use rust_xlsxwriter::{DocProperties, ExcelDateTime, Format, Workbook, XlsxError};

use crate::TableError;

/// Most rows of a sheet that the format allows, its header included.
pub const SHEET_ROWS_MAX: usize = 1 << 20;

/// Content of a cell.
#[derive(Debug, Clone, PartialEq)]
pub enum SheetCell {
    /// Text, never taken as a formula.
    Text(String),
    /// A number; the format has none that is not finite, such a cell shows `nan`, `inf` or `-inf` as text.
    Number(f64),
}

/// One sheet: a header and rows below it.
#[derive(Debug, Clone, PartialEq)]
pub struct WorkSheet {
    /// Its name: at most 31 characters.
    pub name: String,
    /// Names of the columns.
    pub header: Vec<String>,
    /// The rows.
    pub rows: Vec<Vec<SheetCell>>,
}

/// Returns the sheets as one xlsx file, headers in bold and kept in view.
///
/// # Errors
/// [`TableError`] for too many rows or columns, and for a name that a sheet cannot have.
pub fn workbook(sheets: &[WorkSheet]) -> Result<Vec<u8>, TableError> {
    let mut book = Workbook::new();
    // Without a fixed date the same table would be other bytes a second later.
    let created = ExcelDateTime::from_ymd(2000, 1, 1).map_err(workbook_error)?;
    book.set_properties(&DocProperties::new().set_creation_datetime(&created));
    for sheet in sheets {
        write(&mut book, sheet)?;
    }
    book.save_to_buffer().map_err(workbook_error)
}

fn workbook_error(e: XlsxError) -> TableError {
    TableError(format!("cannot write xlsx: {e}"))
}

fn write(book: &mut Workbook, sheet: &WorkSheet) -> Result<(), TableError> {
    if sheet.rows.len() >= SHEET_ROWS_MAX {
        let rows = sheet.rows.len();
        return Err(TableError(format!(
            "{rows} rows are too many for a sheet of xlsx, at most {}; write CSV instead",
            SHEET_ROWS_MAX - 1
        )));
    }
    let page = book.add_worksheet();
    page.set_name(&sheet.name).map_err(workbook_error)?;
    page.set_freeze_panes(1, 0).map_err(workbook_error)?;
    let bold = Format::new().set_bold();
    for (c, name) in (0_u16..).zip(&sheet.header) {
        page.write_string_with_format(0, c, name, &bold)
            .map_err(workbook_error)?;
    }
    for (r, row) in (1_u32..).zip(&sheet.rows) {
        for (c, cell) in (0_u16..).zip(row) {
            match cell {
                SheetCell::Text(text) => page.write_string(r, c, text),
                SheetCell::Number(value) if value.is_finite() => page.write_number(r, c, *value),
                SheetCell::Number(value) => page.write_string(r, c, not_finite(*value)),
            }
            .map_err(workbook_error)?;
        }
    }
    page.autofit();
    Ok(())
}

fn not_finite(value: f64) -> &'static str {
    if value.is_nan() {
        "nan"
    } else if value > 0.0 {
        "inf"
    } else {
        "-inf"
    }
}
