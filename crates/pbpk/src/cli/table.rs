//! Aligned text for people.

use std::io::{self, Write};

/// `1 run`, `2 runs`: for nouns that take an s.
pub(super) fn count(number: usize, noun: &str) -> String {
    let ending = if number == 1 { "" } else { "s" };
    format!("{number} {noun}{ending}")
}

/// Writes rows with columns as wide as their widest cell; columns from `right` on are aligned right.
pub(super) fn write(
    out: &mut dyn Write,
    header: &[&str],
    rows: &[Vec<String>],
    right: usize,
) -> io::Result<()> {
    let mut widths: Vec<usize> = header.iter().map(|h| h.chars().count()).collect();
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let mut line = |cells: &mut dyn Iterator<Item = &str>| -> io::Result<()> {
        let mut text = String::new();
        for (i, (cell, width)) in cells.zip(&widths).enumerate() {
            let padding = " ".repeat(width.saturating_sub(cell.chars().count()));
            if i > 0 {
                text.push_str("  ");
            }
            if i >= right {
                text.push_str(&padding);
                text.push_str(cell);
            } else {
                text.push_str(cell);
                text.push_str(&padding);
            }
        }
        writeln!(out, "{}", text.trim_end())
    };
    line(&mut header.iter().copied())?;
    for row in rows {
        line(&mut row.iter().map(String::as_str))?;
    }
    Ok(())
}

/// Returns a number with six significant digits.
pub(super) fn short(value: f64) -> String {
    if !value.is_finite() {
        return if value.is_nan() {
            "nan".to_owned()
        } else if value > 0.0 {
            "inf".to_owned()
        } else {
            "-inf".to_owned()
        };
    }
    let size = value.abs();
    if size != 0.0 && !(1e-3..1e7).contains(&size) {
        return format!("{value:.5e}");
    }
    let whole_digits = if size >= 1.0 {
        size.log10().floor() as usize + 1
    } else {
        1
    };
    let text = format!("{value:.*}", 6_usize.saturating_sub(whole_digits));
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text
    }
}

#[cfg(test)]
mod tests {
    use super::short;

    #[test]
    fn six_digits() {
        for (value, text) in [
            (0.0, "0"),
            (1.5, "1.5"),
            (123456.7, "123457"),
            (0.012, "0.012"),
            (1e-9, "1.00000e-9"),
            (48.008438, "48.0084"),
            (f64::NAN, "nan"),
        ] {
            assert_eq!(short(value), text);
        }
    }
}
