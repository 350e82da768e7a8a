//! The table. A frame stands as it goes over the wire; `frames::fill` says what the braces mean.

mod calls;
mod endings;
pub(crate) mod frames;
mod lists;
mod people;
mod questions;

use std::sync::OnceLock;

use super::row::Row;

/// Every row, in the order of the printed table.
pub(crate) fn rows() -> &'static [Row] {
    static ALL: OnceLock<Vec<Row>> = OnceLock::new();
    ALL.get_or_init(|| {
        [
            calls::ROWS,
            people::ROWS,
            questions::ROWS,
            lists::ROWS,
            endings::ROWS,
        ]
        .concat()
    })
}
