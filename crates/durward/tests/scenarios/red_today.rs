//! Where today's build falls short of the table.

use super::row::{Column, OPERATIONS, Red};

/// Entries are removed as the defects are mended, and never added for anything that was right.
pub const RED_TODAY: &[Red] = &[Red {
    defect: "H4",
    row: OPERATIONS,
    cells: "stdio/*/http",
    column: Column::Marks,
    today: &[r#"operation transport="stdio""#],
}];
