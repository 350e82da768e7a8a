//! Path globs, translated to regular expressions that run in linear time; those of names are in
//! [`super::shell`].

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

/// Path glob: `*` any run without a slash, `**` any run, `?` one character that is no slash; a
/// trailing `/**` includes the directory itself; a trailing slash is ignored; anchored at both ends.
///
/// # Errors
/// Empty or overlong patterns, three stars in a row, an unclosed `[`.
pub fn path(pattern: &str) -> Result<String, GlobError> {
    check(pattern)?;
    if pattern.contains("***") {
        return Err(GlobError {
            message: "three stars in a row have no meaning",
            hint: "write * for one component, ** for any depth",
        });
    }
    if pattern.matches('[').count() > pattern.matches(']').count() {
        return Err(GlobError {
            message: "the bracket [ is never closed",
            hint: "path patterns know only *, ** and ?; brackets are not special and must come in pairs",
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

pub(super) fn check(pattern: &str) -> Result<(), GlobError> {
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
}
