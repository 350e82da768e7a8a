//! Values of attributes and texts.

/// Returns a number as the files write it: 15 digits, `INF`, `-INF`, `NaN`, `n. def.`, and their variants.
pub(crate) fn number(text: &str) -> Option<f64> {
    let text = text.trim();
    if let Ok(value) = text.parse::<f64>() {
        return Some(value);
    }
    let folded: String = text
        .chars()
        .filter(|c| !c.is_whitespace())
        .collect::<String>()
        .to_ascii_lowercase();
    match folded.as_str() {
        "n.def." | "nan" => Some(f64::NAN),
        "inf" | "+inf" | "infinity" | "\u{221e}" | "1.#inf" => Some(f64::INFINITY),
        "-inf" | "-infinity" | "-\u{221e}" | "-1.#inf" => Some(f64::NEG_INFINITY),
        _ => text.replace(',', ".").parse().ok(),
    }
}

/// `1`, `true` and their opposites.
pub(crate) fn flag(text: &str) -> Option<bool> {
    match text.trim() {
        "1" | "true" | "True" => Some(true),
        "0" | "false" | "False" => Some(false),
        _ => None,
    }
}
