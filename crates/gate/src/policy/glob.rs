//! The two glob dialects of policies, translated to regular expressions that run in linear time.

/// A glob that cannot be used: what is wrong and how to mend it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GlobError {
    /// Lowercase sentence.
    pub message: &'static str,
    /// What to write instead.
    pub hint: &'static str,
}

/// Longest pattern, in bytes.
pub const PATTERN_BYTES_MAX: usize = 1_024;

/// Shell glob (`*`, `?`, `[abc]`, `[!abc]`) over a whole name.
///
/// # Errors
/// Empty or overlong patterns and an unclosed `[`.
pub fn shell(pattern: &str, ignore_case: bool) -> Result<String, GlobError> {
    check(pattern)?;
    let mut out = String::from(if ignore_case { "(?si)^" } else { "(?s)^" });
    let mut rest = pattern.chars();
    while let Some(ch) = rest.next() {
        match ch {
            '*' => out.push_str(".*"),
            '?' => out.push('.'),
            '[' => rest = class(rest, &mut out)?,
            ch => push_literal(&mut out, ch),
        }
    }
    out.push('$');
    Ok(out)
}

/// Reads a bracket expression behind its `[`.
fn class<'a>(
    rest: std::str::Chars<'a>,
    out: &mut String,
) -> Result<std::str::Chars<'a>, GlobError> {
    let text = rest.as_str();
    let negated = text.starts_with(['!', '^']);
    let body_from = usize::from(negated);
    // A `]` that comes first stands for itself, as in POSIX.
    let close = text
        .char_indices()
        .find(|(at, ch)| *ch == ']' && *at > body_from)
        .map(|(at, _)| at)
        .ok_or(GlobError {
            message: "the bracket [ is never closed",
            hint: "close it with ], or write [[] for a literal bracket",
        })?;
    out.push('[');
    if negated {
        out.push('^');
    }
    let body = text.get(body_from..close).unwrap_or_default();
    for ch in body.chars() {
        if matches!(ch, '[' | ']' | '\\' | '^' | '&' | '~') {
            out.push('\\');
        }
        out.push(ch);
    }
    out.push(']');
    if body
        .as_bytes()
        .windows(3)
        .any(|w| matches!(w, [a, b'-', c] if a > c))
    {
        return Err(GlobError {
            message: "a range in [ ] runs backwards",
            hint: "write the smaller character first, as in [a-z]",
        });
    }
    Ok(text.get(close + 1..).unwrap_or_default().chars())
}

/// Path glob: `*` any run without a slash, `**` any run, `?` one character that is no slash; a
/// trailing `/**` includes the directory itself; a trailing slash is ignored; anchored at both ends.
///
/// # Errors
/// Empty or overlong patterns, three stars in a row, an unclosed `[`.
pub fn path(pattern: &str) -> Result<String, GlobError> {
    check(pattern)?;
    if pattern.contains("***") {
        return Err(GlobError {
            message: "three stars in a row mean nothing",
            hint: "write * for one component, ** for any depth",
        });
    }
    if pattern.matches('[').count() > pattern.matches(']').count() {
        return Err(GlobError {
            message: "the bracket [ is never closed",
            hint: "path patterns know only *, ** and ?; brackets stand for themselves and come in pairs",
        });
    }
    let trimmed = if pattern.len() > 1 {
        pattern.trim_end_matches('/')
    } else {
        pattern
    };
    let (body, with_dir) = match trimmed.strip_suffix("/**") {
        Some(body) => (body, true),
        None => (trimmed, false),
    };
    let mut out = String::from("(?s)^");
    let mut chars = body.chars().peekable();
    while let Some(ch) = chars.next() {
        match ch {
            '*' if chars.next_if_eq(&'*').is_some() => {
                // `/**/` also matches no directory at all, as gitignore has it.
                if out.ends_with('/') && chars.next_if_eq(&'/').is_some() {
                    out.push_str("(?:.*/)?");
                } else {
                    out.push_str(".*");
                }
            }
            '*' => out.push_str("[^/]*"),
            '?' => out.push_str("[^/]"),
            ch => push_literal(&mut out, ch),
        }
    }
    out.push_str(if with_dir { "(?:/.*)?$" } else { "$" });
    Ok(out)
}

/// Whether a pattern has no wildcard.
#[must_use]
pub fn is_literal(pattern: &str) -> bool {
    !pattern.contains(['*', '?', '['])
}

fn check(pattern: &str) -> Result<(), GlobError> {
    if pattern.trim().is_empty() {
        return Err(GlobError {
            message: "the pattern is empty",
            hint: "write a name, or * for any",
        });
    }
    if pattern.len() > PATTERN_BYTES_MAX {
        return Err(GlobError {
            message: "the pattern is longer than 1,024 bytes",
            hint: "split it into several",
        });
    }
    Ok(())
}

fn push_literal(out: &mut String, ch: char) {
    let mut buffer = [0; 4];
    out.push_str(&regex::escape(ch.encode_utf8(&mut buffer)));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(regex: &str, text: &str) -> bool {
        regex::Regex::new(regex).unwrap().is_match(text)
    }

    #[test]
    fn path_globs() {
        let cases = [
            ("/tmp/**", "/tmp/a/b", true),
            ("/tmp/**", "/tmp", true),
            ("/tmp/**", "/tmpx", false),
            ("/tmp/*", "/tmp/a", true),
            ("/tmp/*", "/tmp/a/b", false),
            ("/tmp/?", "/tmp/é", true),
            ("/tmp/?", "/tmp//", false),
            ("**/*.pem", "/a/b.pem", true),
            ("/**/x", "/x", true),
            ("/a/**/x", "/a/x", true),
            ("/a/**/x", "/a/b/c/x", true),
            ("/a/**/x", "/ax", false),
            ("/Tmp/*", "/tmp/a", false),
            ("/tmp/", "/tmp", true),
            ("/", "/", true),
            ("/**", "/anything", true),
            ("/a.b", "/axb", false),
            ("/a[1]", "/a[1]", true),
        ];
        for (pattern, text, expect) in cases {
            assert_eq!(
                matches(&path(pattern).unwrap(), text),
                expect,
                "{pattern} on {text}"
            );
        }
        for bad in ["", " ", "/a/***", "/tmp/[a", &"x".repeat(2_000)] {
            assert!(path(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn shell_globs() {
        let cases = [
            ("read_*", "READ_FILE", true),
            ("*", "", true),
            ("[rw]*", "write", true),
            ("[!rw]*", "write", false),
            ("[]]x", "]x", true),
            ("a?c", "abc", true),
            ("a.c", "abc", false),
        ];
        for (pattern, text, expect) in cases {
            assert_eq!(
                matches(&shell(pattern, true).unwrap(), text),
                expect,
                "{pattern} on {text}"
            );
        }
        assert!(!matches(&shell("tools/*", false).unwrap(), "Tools/call"));
        for bad in ["[", "a[b", "[!", "[z-a]", ""] {
            assert!(shell(bad, true).is_err(), "{bad}");
        }
    }
}
