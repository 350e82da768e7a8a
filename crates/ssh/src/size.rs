//! How large terminals are.

/// Most columns and rows.
pub(crate) const COLUMNS_MAX: u32 = 500;
pub(crate) const ROWS_MAX: u32 = 200;

/// How large it is, in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Size {
    pub columns: u32,
    pub rows: u32,
}
