//! Numbers as the format spells them: lower-case hexadecimal, and decimals without leading zeros.

const DIGITS: &[u8; 16] = b"0123456789abcdef";

/// Appends two digits a byte.
pub(super) fn push(out: &mut Vec<u8>, bytes: &[u8]) {
    for byte in bytes {
        let digit = |nibble: u8| DIGITS.get(usize::from(nibble)).copied().unwrap_or(b'0');
        out.push(digit(byte >> 4));
        out.push(digit(byte & 0x0f));
    }
}

/// Two digits a byte, as text.
pub(crate) fn text(bytes: &[u8]) -> String {
    let mut out = Vec::with_capacity(bytes.len().saturating_mul(2));
    push(&mut out, bytes);
    String::from_utf8(out).unwrap_or_default()
}

/// Appends a number in decimal.
pub(super) fn push_decimal(out: &mut Vec<u8>, mut number: u64) {
    let mut digits = [0_u8; 20];
    let mut used = 0_usize;
    for digit in &mut digits {
        *digit = b'0'.saturating_add(u8::try_from(number % 10).unwrap_or(0));
        number /= 10;
        used = used.saturating_add(1);
        if number == 0 {
            break;
        }
    }
    out.extend(digits.iter().take(used).rev());
}

/// Reads exactly `2 N` lower-case digits.
pub(crate) fn parse<const N: usize>(digits: &[u8]) -> Option<[u8; N]> {
    let (pairs, rest) = digits.as_chunks::<2>();
    if pairs.len() != N || !rest.is_empty() {
        return None;
    }
    let mut out = [0_u8; N];
    for (byte, [high, low]) in out.iter_mut().zip(pairs) {
        *byte = value(*high)? << 4 | value(*low)?;
    }
    Some(out)
}

fn value(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_lower_case_of_the_right_length_is_read() {
        assert_eq!(text(&[0x00, 0xaf, 0x10]), "00af10");
        assert_eq!(parse::<3>(b"00af10"), Some([0x00, 0xaf, 0x10]));
        for wrong in [&b"00AF10"[..], b"00af1", b"00af1000", b"00ag10", b""] {
            assert_eq!(parse::<3>(wrong), None, "{wrong:?}");
        }
    }
}
