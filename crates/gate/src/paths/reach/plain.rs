//! The grammar of a path that every reader takes for that one path.
//!
//! An allow rule relies on a text only if nothing but its characters decides where it leads. So this is a definition of
//! what a path is, and whatever it does not admit is ambiguous: a quote, an escape, a variable, a list, an option.

use super::escapes::{decode_escapes, read_reference};
use super::pieces::floor;
use super::texts::{compatible, ends_line, is_unseen};

/// Signs that separate the parts of a list, or that a path may follow inside a longer string.
const SEPARATORS: [char; 11] = [',', ';', '|', ':', '&', '=', '(', '[', '{', ' ', '>'];
/// Signs before or behind which some reader cuts a text off.
const CUTS: [char; 17] = [
    '?', '#', ';', '!', ':', ',', '&', ' ', '=', '(', '[', '{', '$', '%', '*', '\\', '\'',
];
/// Signs that stand for something else than themselves, wherever they stand.
const NEVER: [char; 5] = ['"', '`', '<', '>', '|'];
/// Signs of a path and of what shells and templates expand.
const SIGNS: [char; 5] = ['/', '.', '~', '\\', '$'];

/// Returns whether a text consists of letters, digits and `/ . _ -` alone.
pub fn is_simple(text: &str) -> bool {
    !text.starts_with('-') && text.bytes().all(is_simple_byte)
}

fn is_simple_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'/' | b'.' | b'_' | b'-')
}

/// Returns whether a text is one path for every reader. Real names have spaces, brackets, apostrophes and letters of
/// every script; they stay plain as long as no part of them could be taken for a path of its own.
pub fn is_plain_path(text: &str) -> bool {
    is_simple(text)
        || (begins_plainly(text)
            && text.chars().all(is_plain_char)
            && !text.ends_with(' ')
            && !climbs_behind_signs(text)
            && text
                .char_indices()
                .all(|(at, c)| is_plain_sign(text, at, c))
            && text.matches('\'').count() < 2
            && keeps_its_signs(text))
}

/// Whether the first character begins a name: no quote, bracket, option, variable or mark of YAML.
fn begins_plainly(text: &str) -> bool {
    let Some(first) = text.chars().next() else {
        return false;
    };
    let is_relative = !text.starts_with(['/', '~', '.']) && !is_windows(text);
    let begins_name = first.is_alphanumeric() || matches!(first, '/' | '.' | '_' | '%');
    let is_home = first == '~' && !matches!(text.as_bytes().get(1), Some(b'+' | b'-'));
    // `NAME=value` is an assignment or an option to many programs.
    let is_assignment = is_relative && text.contains('=') && !super::super::is_file_uri(text);
    (begins_name || is_home || is_windows(text)) && !is_assignment
}

/// Whether a text begins like an absolute path of Windows: `C:\` or `\\host\`.
fn is_windows(text: &str) -> bool {
    match text.as_bytes() {
        [drive, b':', b'\\', ..] => drive.is_ascii_alphabetic(),
        [b'\\', b'\\', host, ..] => host.is_ascii_alphanumeric(),
        _ => false,
    }
}

fn is_plain_char(c: char) -> bool {
    !(c.is_control()
        || is_unseen(c)
        || ends_line(c)
        || NEVER.contains(&c)
        || (c.is_whitespace() && c != ' '))
}

/// Whether a text has `..` behind a name and some sign that a reader may cut at: `x#/../../y`.
fn climbs_behind_signs(text: &str) -> bool {
    let parts = || text.split(['/', '\\']);
    let names = parts().skip_while(|part| matches!(*part, "" | "." | ".." | "~"));
    names.skip(1).any(|part| part == "..") && text.contains(CUTS)
}

/// Whether the sign `c` at byte `at` leaves the text one path.
fn is_plain_sign(text: &str, at: usize, c: char) -> bool {
    let behind = text.get(at + c.len_utf8()..).unwrap_or_default();
    let next = behind.chars().next();
    match c {
        // Variables of the environment are in capitals; `$types.ts` is a name.
        '$' => next.is_none_or(|c| matches!(c, '/' | '\\' | '.' | ' ') || c.is_ascii_lowercase()),
        '{' if behind.starts_with('{') => true,
        '{' => {
            let inside = near(behind).split('}').next().unwrap_or_default();
            !inside.contains(',') && !inside.contains("..") && !begins_path(behind)
        }
        '&' => read_reference(text.get(at..).unwrap_or_default()).is_none() && !begins_path(behind),
        '%' => !is_percent_variable(behind),
        ':' if next == Some(' ') || next.is_none() => false,
        // The authority of a URI.
        ':' if behind.starts_with("//") => true,
        c if SEPARATORS.contains(&c) => !begins_path(behind),
        _ => true,
    }
}

/// Returns the start of a text, as far as a name of a variable or a group in braces may go.
fn near(text: &str) -> &str {
    /// Longest name of a file, in bytes.
    const NAME_BYTES_MAX: usize = 255;
    text.get(..floor(text, NAME_BYTES_MAX)).unwrap_or_default()
}

/// Whether a part of a string begins like a path that leaves where the string began.
fn begins_path(part: &str) -> bool {
    let part = part.trim_start_matches(' ');
    let is_parent = part
        .strip_prefix("..")
        .is_some_and(|rest| !rest.starts_with(|c: char| c.is_alphanumeric() || c == '.'));
    part.starts_with('/')
        || part.starts_with("~/")
        || part == "~"
        || part.starts_with(['$', '[', '{', '(', '\''])
        || is_parent
        || super::super::is_file_uri(part)
}

/// Whether `%` and these characters are a variable of Windows, `%NAME%`, or `%uXXXX`.
fn is_percent_variable(behind: &str) -> bool {
    let name = near(behind).split('%').next().unwrap_or_default();
    let is_closed = behind
        .get(name.len()..)
        .is_some_and(|rest| rest.starts_with('%'));
    let is_name = name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    let is_encoded = name.len() >= 2 && name.bytes().take(2).all(|b| b.is_ascii_hexdigit());
    let is_unicode = behind.strip_prefix('u').and_then(|digits| digits.get(..4));
    let is_unicode = is_unicode.is_some_and(|digits| digits.bytes().all(|b| b.is_ascii_hexdigit()));
    is_unicode || (is_closed && is_name && !is_encoded)
}

/// Whether decoding or folding the text leaves its signs as they are.
fn keeps_its_signs(text: &str) -> bool {
    let signs = |text: &str| text.matches(SIGNS).count();
    if compatible(text).is_some_and(|plain| signs(&plain) != signs(text)) {
        return false;
    }
    if !text.contains('\\') {
        return true;
    }
    // Without its backslashes, or with slashes for them, it climbs nowhere.
    if text.contains("..\\") || text.contains("\\..") || text.contains("\\.\\") {
        return false;
    }
    let Some(decoded) = decode_escapes(text) else {
        return !["\\.", "\\/", "\\~", "\\$"]
            .iter()
            .any(|escaped| text.contains(escaped));
    };
    let others = |text: &str| text.matches(['/', '.', '~', '$']).count();
    // `C:\new` is a path of Windows; nothing else has escapes.
    is_windows(text) && others(&decoded) == others(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_real_files_have_are_plain() {
        for text in [
            "/usr/bin/[",
            "/usr/share/man/man3/Pod::Usage.3pm.gz",
            "/usr/lib/x86_64-linux-gnu/libstdc++.so.6",
            "/lib/systemd/system/getty@.service",
            "/W/app/[id]/page.tsx",
            "/W/app/(group)/page.tsx",
            "/W/node_modules/@scope/pkg/index.js",
            "/home/u/My Documents/John's letter, final.pdf",
            "/home/u/Zoë/日本語.txt",
            "/var/lib/dpkg/info/libc6:amd64.list",
            "/W/date=2024/x",
            "/W/C#/a+b/x~",
            "/W/100%/x",
            "/W/a%20b",
            "/W/AT&T/x",
            "/W/$types.ts",
            "/W/{90120000-0011}/x",
            "/W/{{cookiecutter.name}}/x",
            "C:\\Users\\new\\x86\\My File.txt",
            "\\\\host\\C$\\x",
            "~/x",
            "../a b/c",
            "/W/é/../x",
            "./x",
            "notes.txt",
            "file:///W/x",
            "/W/*.txt",
        ] {
            assert!(is_plain_path(text), "{text}");
        }
    }

    #[test]
    fn whatever_else_a_reader_may_make_of_a_text_is_not_plain() {
        for text in [
            "['/etc/x']",
            "[/etc/x]",
            "('/etc/x',)",
            "{/etc/x}",
            "\"/etc/x\"",
            "'/etc/x'",
            "`x`",
            " /W/x",
            "/W/x ",
            "\t[\"/etc/x\"]",
            "\u{a0}[\"/etc/x\"]",
            "\u{feff}/W/x",
            "a\t/etc/x",
            "/W/x\n/etc/x",
            "x/y,b/../../etc/passwd",
            "/W/x,/etc/x",
            "/W/x /etc/x",
            "/W/x:/etc/x",
            "/W/x;~/x",
            "/W/x|../x",
            "/W/x, [/etc/x]",
            "/W/x=/etc/x",
            "/W/x&/etc/x",
            "$HOME/x",
            "/W/$HOME/x",
            "/W/${X}",
            "/W/$(x)",
            "%HOME%/x",
            "~+/x",
            "~-",
            "\\x2fetc",
            "/W/\\u002e\\u002e/x",
            "/W/\\56\\56/x",
            "/W/\\N{FULL STOP}",
            "&#47;etc",
            "/W/&sol;x",
            "%u002fetc",
            "/W/\\.\\./x",
            "..\\x",
            "C:\\W\\..\\x",
            "C:\\W\\x2f..\\x\\x2fy",
            "/etc/passwd#/../../W/x",
            "/etc/passwd /../../W/x",
            "/etc/passwd?/../../W/x",
            "/W/{a,b}",
            "/W/{1..3}",
            "-x",
            "@file",
            "--file=x",
            "a=/etc/x",
            "- /etc/x",
            "k: /etc/x",
            "!tag x",
            "*x",
            "&a x",
            "#x",
            "? x",
            "/W/\u{ff0f}etc",
            "/W/a\u{200b}b",
        ] {
            assert!(!is_plain_path(text), "{text}");
        }
    }
}
