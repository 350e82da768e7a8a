//! Numbers with their nouns, and columns.

use std::fmt::Display;

/// `1 segment`, `2 segments`: for nouns that take an s.
pub fn count<N: Display + PartialEq + From<u8>>(number: N, noun: &str) -> String {
    let ending = if number == N::from(1) { "" } else { "s" };
    format!("{number} {noun}{ending}")
}

/// Rows as columns that are as wide as their longest cell; the last is not filled up.
pub fn columns(rows: &[Vec<String>]) -> String {
    let number = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |at: usize| {
        let cells = rows.iter().filter_map(|row| row.get(at));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..number).map(width).collect();
    let mut out = String::new();
    for row in rows {
        let cells = row.iter().zip(&widths);
        let line: Vec<String> = cells
            .map(|(cell, width)| format!("{cell:<width$}"))
            .collect();
        out.push_str(line.join("  ").trim_end());
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_no_plural() {
        assert_eq!(count(0_usize, "key"), "0 keys");
        assert_eq!(count(1_usize, "key"), "1 key");
        assert_eq!(count(2_u64, "key"), "2 keys");
    }

    #[test]
    fn columns_are_as_wide_as_their_cells() {
        let row = |cells: &[&str]| cells.iter().map(|cell| (*cell).to_owned()).collect();
        let rows: Vec<Vec<String>> = vec![row(&["NAME", "STATE"]), row(&["a-long-one", "good"])];
        assert_eq!(columns(&rows), "NAME        STATE\na-long-one  good\n");
        assert_eq!(columns(&[]), "");
    }
}
