//! What a terminal shows, as text: without what only moves the cursor or sets colours (ECMA-48).

const ESCAPE: u8 = 0x1b;
const BELL: u8 = 0x07;
const BACKSPACE: u8 = 0x08;

/// The text of what a program wrote to a terminal; lines end in `\n`, what is no UTF-8 is marked.
pub(crate) fn plain(bytes: &[u8]) -> String {
    let mut out: Vec<u8> = Vec::with_capacity(bytes.len());
    let mut rest = bytes.iter().copied().peekable();
    while let Some(byte) = rest.next() {
        match byte {
            ESCAPE => skip(&mut rest),
            BACKSPACE => {
                // Over a character of several bytes.
                while out.pop().is_some_and(|last| last & 0xc0 == 0x80) {}
            }
            b'\r' if rest.peek() == Some(&b'\n') => {}
            b'\r' => {
                // The line is written over.
                let line = out.iter().rposition(|byte| *byte == b'\n');
                out.truncate(line.map_or(0, |at| at + 1));
            }
            b'\n' | b'\t' => out.push(byte),
            0..=0x1f | 0x7f => {}
            _ => out.push(byte),
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// Takes what follows an escape.
fn skip(rest: &mut std::iter::Peekable<impl Iterator<Item = u8>>) {
    match rest.next() {
        // Up to the final byte.
        Some(b'[') => {
            while rest
                .next()
                .is_some_and(|byte| !(0x40..=0x7e).contains(&byte))
            {}
        }
        // A string up to a bell or an escape and `\`.
        Some(b']' | b'P' | b'X' | b'^' | b'_') => {
            while let Some(byte) = rest.next() {
                if byte == BELL || byte == ESCAPE && rest.next_if_eq(&b'\\').is_some() {
                    return;
                }
            }
        }
        // A set of characters.
        Some(b'(' | b')' | b'*' | b'+' | b'#' | b'%') => drop(rest.next()),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_only_moves_and_colours_is_left_out() {
        for (bytes, text) in [
            (b"a\r\nb\r\n".as_slice(), "a\nb\n"),
            (b"\x1b[1;31mred\x1b[0m \x1b[?2004hx", "red x"),
            (b"\x1b]0;title\x07y\x1b]0;t\x1b\\z", "yz"),
            (b"\x1b(Bq\x1b=r", "qr"),
            ("aé\u{8}b".as_bytes(), "ab"),
            (b"10%\r20%\r30%\ndone\r", "30%\n"),
            (b"\x07\x00a\tb\x7f", "a\tb"),
            (b"\xff", "\u{fffd}"),
            (b"\x1b[", ""),
            (b"\x1b", ""),
            (b"\x1b]0;never", ""),
        ] {
            assert_eq!(plain(bytes), text, "{bytes:?}");
        }
    }
}
