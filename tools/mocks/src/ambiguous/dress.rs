//! The same JSON text in unusual spelling.

use super::random::SeededRandom;

/// Puts white space between tokens and escapes characters in strings, here and there. Invalid JSON remains invalid.
pub(super) fn dress(text: &str, random: &mut SeededRandom) -> String {
    let mut out = String::with_capacity(text.len() * 2);
    let (mut inside, mut escaped) = (false, false);
    for c in text.chars() {
        let plain = !matches!(c, '"' | '\\') && !c.is_control();
        if inside && !escaped && plain && random.below(8) == 0 {
            push_escaped(&mut out, c, random);
            continue;
        }
        if !inside && matches!(c, '{' | '}' | '[' | ']' | ',' | ':') && random.below(4) == 0 {
            out.push_str(random.of(&[" ", "\t", "\r", "  ", "\r\r"]));
        }
        out.push(c);
        match c {
            _ if escaped => escaped = false,
            '\\' if inside => escaped = true,
            '"' => inside = !inside,
            _ => {}
        }
    }
    out
}

fn push_escaped(out: &mut String, c: char, random: &mut SeededRandom) {
    if c == '/' && random.coin() {
        out.push_str("\\/");
        return;
    }
    for unit in c.encode_utf16(&mut [0; 2]) {
        out.push_str(&if random.coin() {
            format!("\\u{unit:04x}")
        } else {
            format!("\\u{unit:04X}")
        });
    }
}
