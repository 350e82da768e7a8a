//! Sums of money as text.

/// Returns millionths of a dollar as dollars.
pub fn dollars(micros: u64) -> String {
    let text = format!("{}.{:06}", micros / 1_000_000, micros % 1_000_000);
    let short = text.trim_end_matches('0');
    let cents = text.len() - 4;
    text.get(..short.len().max(cents))
        .unwrap_or(&text)
        .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dollars_have_cents_and_no_more_than_they_need() {
        for (micros, expect) in [
            (0, "0.00"),
            (1_250_000, "1.25"),
            (125_000, "0.125"),
            (10_000_000, "10.00"),
            (1, "0.000001"),
        ] {
            assert_eq!(dollars(micros), expect);
        }
    }
}
