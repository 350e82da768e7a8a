//! Addresses as they are written down: without passwords, and without what a query says beside words like key or token.

/// What stands in the place of a secret.
const LEFT: &str = "***";
/// A user's name of this many bytes, without a password beside it, is a token.
const TOKEN_BYTES_MIN: usize = 20;
/// Parts of names whose values are secrets.
const NAMES: [&str; 9] = [
    "key",
    "token",
    "secret",
    "passw",
    "passphrase",
    "pwd",
    "credential",
    "authorization",
    "signature",
];
/// Whole names whose values are secrets.
const WHOLE_NAMES: [&str; 3] = ["sig", "auth", "code"];

/// A text without the secrets of the address in it; `None` where there are none. A path may have lost one of the two
/// slashes behind its scheme.
pub(super) fn without(text: &str) -> Option<String> {
    let scheme_at = text.find(":/")?;
    let is_scheme = |b: &u8| b.is_ascii_alphanumeric() || b"+.-".contains(b);
    if !text
        .as_bytes()
        .get(..scheme_at)?
        .last()
        .is_some_and(is_scheme)
    {
        return None;
    }
    let behind = text.get(scheme_at + 1..)?;
    let start = scheme_at + 1 + (behind.len() - behind.trim_start_matches('/').len());
    let rest = text.get(start..)?;
    let length = rest.find(['/', '?', '#', '\\']).unwrap_or(rest.len());
    let (authority, query) = rest.split_at(length);
    let mut out = text.get(..start)?.to_owned();
    match authority.rsplit_once('@') {
        None => out.push_str(authority),
        Some((user, host)) => {
            match user.split_once(':') {
                Some((name, _)) => out.push_str(&format!("{name}:{LEFT}")),
                None if user.len() >= TOKEN_BYTES_MIN => out.push_str(LEFT),
                None => out.push_str(user),
            }
            out.push('@');
            out.push_str(host);
        }
    }
    let mut is_query = false;
    for part in query.split_inclusive(['?', '#', '&', ';']) {
        let pair = part.trim_end_matches(['?', '#', '&', ';']);
        match pair.split_once('=') {
            Some((name, value)) if is_query && !value.is_empty() && is_secret(name) => {
                out.push_str(&format!("{name}={LEFT}"));
                out.push_str(part.get(pair.len()..).unwrap_or_default());
            }
            _ => out.push_str(part),
        }
        is_query |= part.ends_with(['?', '#']);
    }
    (out != text).then_some(out)
}

/// Returns the password or the token in an address without a scheme (`//USER:PASSWORD@HOST`, `USER:PASSWORD@HOST/PATH`);
/// absent where there is none.
pub(super) fn secret_of(text: &str) -> Option<&str> {
    let bare = text.trim();
    let rest = bare.trim_start_matches(['/', '\\']);
    let slashes = bare.len() - rest.len();
    let length = rest.find(['/', '?', '#', '\\']).unwrap_or(rest.len());
    let (user, host) = rest.get(..length)?.rsplit_once('@')?;
    if slashes == 1 || host.is_empty() || user.contains(char::is_whitespace) {
        return None;
    }
    match user.split_once(':') {
        Some((_, secret)) if !secret.is_empty() => Some(secret),
        None if slashes > 1 && user.len() >= TOKEN_BYTES_MIN => Some(user),
        Some(_) | None => None,
    }
}

/// Returns a text with a secret before an `@` left out; absent where it does not have it.
pub(super) fn without_secret(text: &str, secret: &str) -> Option<String> {
    let whole = format!("{secret}@");
    text.contains(&whole)
        .then(|| text.replace(&whole, &format!("{LEFT}@")))
}

/// Whether a name is one of secrets: of a variable, a flag, a header, or a part of a query.
#[must_use]
pub fn is_secret(name: &str) -> bool {
    let name: String = name
        .chars()
        .filter(|c| !matches!(c, '_' | '-'))
        .map(|c| c.to_ascii_lowercase())
        .collect();
    WHOLE_NAMES.contains(&name.as_str()) || NAMES.iter().any(|part| name.contains(part))
}

#[cfg(test)]
mod tests {
    use super::{secret_of, without, without_secret};

    #[test]
    fn secrets_of_addresses_without_a_scheme_are_found() {
        for (text, secret) in [
            ("//u:SECRET@x", Some("SECRET")),
            (" //u:p@ss@x/y", Some("p@ss")),
            ("\\\\u:SECRET@x\\share", Some("SECRET")),
            ("u:SECRET@x:repo", Some("SECRET")),
            (
                "//ghp_0123456789abcdefghij@x",
                Some("ghp_0123456789abcdefghij"),
            ),
            ("//u@x", None),
            ("/srv/u:a@b", None),
            ("git@x:repo", None),
            ("C:/a@b", None),
            ("at 10:00 me@x", None),
            ("", None),
        ] {
            assert_eq!(secret_of(text), secret, "{text}");
        }
        let left = without_secret("/srv/u:SECRET@x", "SECRET");
        assert_eq!(left.as_deref(), Some("/srv/u:***@x"));
        assert_eq!(without_secret("/srv/SECRET", "SECRET"), None);
    }

    #[test]
    fn secrets_of_addresses_are_left_out_and_all_else_stays() {
        for (text, left) in [
            ("https://u:pw@h/x", "https://u:***@h/x"),
            ("postgres://u:p@ss@h:5/db", "postgres://u:***@h:5/db"),
            (
                "/srv/https:/u:pw@h/x?token=t",
                "/srv/https:/u:***@h/x?token=***",
            ),
            (
                "https://h/x?a=1&X-Amz-Signature=s&api_key=k#access_token=t&b=2",
                "https://h/x?a=1&X-Amz-Signature=***&api_key=***#access_token=***&b=2",
            ),
            ("https://ghp_0123456789abcdefghij@h/x", "https://***@h/x"),
            ("https://h?sig=s", "https://h?sig=***"),
        ] {
            assert_eq!(without(text).as_deref(), Some(left), "{text}");
        }
        for text in [
            "/srv/a@b/key=x?token=y",
            "ssh://git@h/x",
            "https://h/a:b@c?page=2&q=key",
            "https://h/key=x",
            "https://h/x?token=",
            "C:/a@b",
            "file:///srv/x",
            "",
        ] {
            assert_eq!(without(text), None, "{text}");
        }
    }
}
