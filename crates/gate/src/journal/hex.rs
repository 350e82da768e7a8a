//! Numbers as the format spells them: lower-case hexadecimal, and decimals without leading zeros.

/// Bytes that are spelt at a time: those of a hash.
const CHUNK: usize = 32;

/// Appends two digits a byte.
pub(super) fn push(out: &mut Vec<u8>, bytes: &[u8]) {
    // Sums instead of a table, into a place of fixed size: the compiler spells many bytes at once.
    for chunk in bytes.chunks(CHUNK) {
        let mut digits = [[0_u8; 2]; CHUNK];
        for (pair, byte) in digits.iter_mut().zip(chunk) {
            *pair = [digit(byte >> 4), digit(byte & 0x0f)];
        }
        let spelt = digits.as_flattened();
        out.extend_from_slice(spelt.get(..2 * chunk.len()).unwrap_or(spelt));
    }
}

const fn digit(nibble: u8) -> u8 {
    const TO_LETTERS: u8 = b'a' - 10 - b'0';
    let letters = if nibble > 9 { TO_LETTERS } else { 0 };
    nibble.wrapping_add(b'0').wrapping_add(letters)
}

/// Two digits a byte, as text.
pub(crate) fn text(bytes: &[u8]) -> String {
    let mut out = Vec::with_capacity(bytes.len().saturating_mul(2));
    push(&mut out, bytes);
    String::from_utf8(out).unwrap_or_default()
}

/// Appends a number in decimal.
pub(super) fn push_decimal(out: &mut Vec<u8>, number: u64) {
    out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
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
