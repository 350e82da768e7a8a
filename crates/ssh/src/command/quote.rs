//! Writing words so that bash, dash, zsh, fish and tcsh read exactly these words.

use std::fmt;

/// Longest line, in bytes. OpenSSH hands one of 128 KiB to a login shell, with what the login needs before it.
const LINE_BYTES_MAX: usize = 127 * 1024;

/// Why words cannot be written for a login shell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QuoteFault {
    /// The line would be too long.
    TooLong,
    /// A word has a line end or a NUL, which tcsh or the protocol cannot carry.
    Character,
}

impl fmt::Display for QuoteFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLong => write!(f, "the command is longer than {LINE_BYTES_MAX} bytes"),
            Self::Character => f.write_str("a word has a line end or a NUL"),
        }
    }
}

impl std::error::Error for QuoteFault {}

/// A line that every one of the five shells reads as these words.
///
/// Inside `'…'` fish reads `\` and tcsh reads `!`, so these two and `'` stand outside, each behind a `\`.
///
/// # Errors
/// [`QuoteFault`].
pub fn quoted(words: &[String]) -> Result<String, QuoteFault> {
    let mut line = String::new();
    for (at, word) in words.iter().enumerate() {
        if at > 0 {
            line.push(' ');
        }
        // A word in quotes is no alias: tcsh and zsh have them for scripts, too, and those of zsh may be any word.
        push_word(&mut line, word)?;
    }
    if line.len() > LINE_BYTES_MAX {
        return Err(QuoteFault::TooLong);
    }
    Ok(line)
}

fn push_word(line: &mut String, word: &str) -> Result<(), QuoteFault> {
    if word.contains(['\n', '\r', '\0']) {
        return Err(QuoteFault::Character);
    }
    let mut is_open = false;
    if word.is_empty() {
        line.push_str("''");
    }
    for letter in word.chars() {
        let outside = matches!(letter, '\'' | '\\' | '!');
        if outside == is_open {
            line.push('\'');
            is_open = !is_open;
        }
        if outside {
            line.push('\\');
        }
        line.push(letter);
    }
    if is_open {
        line.push('\'');
    }
    Ok(())
}
