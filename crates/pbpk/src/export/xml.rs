//! Small helpers for writing XML.

use super::ExportError;

/// Text or attribute value with the five special characters replaced.
///
/// # Errors
/// [`ExportError::Unsupported`] for a character that XML 1.0 cannot hold.
pub(super) fn escape(format: &'static str, text: &str) -> Result<String, ExportError> {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            // A reader would turn these into spaces.
            '\t' | '\n' | '\r' => out.push_str(&format!("&#{};", u32::from(c))),
            c if c < ' ' || matches!(c, '\u{fffe}' | '\u{ffff}') => {
                let what = format!("character U+{:04X} is not allowed in xml", u32::from(c));
                return Err(ExportError::unsupported(
                    format,
                    &text.escape_debug().to_string(),
                    what,
                ));
            }
            c => out.push(c),
        }
    }
    Ok(out)
}

/// Returns a number that reads back to the same bits; `NaN`, `INF`, `-INF`.
pub(super) fn number(value: f64) -> String {
    if value.is_nan() {
        "NaN".to_owned()
    } else if value.is_infinite() {
        if value > 0.0 {
            "INF".to_owned()
        } else {
            "-INF".to_owned()
        }
    } else {
        format!("{value:?}")
    }
}
