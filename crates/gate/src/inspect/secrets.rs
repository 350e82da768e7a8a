//! Secrets by their looks: those that issuers mark, and values of high entropy beside a word that says
//! what they are.

use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

/// A kind of secret.
#[derive(Debug)]
pub struct Secret {
    /// Its name in the configuration.
    pub name: &'static str,
    /// What it is, for the reference page.
    pub about: &'static str,
    pattern: &'static LazyLock<Option<Regex>>,
    /// Whether the match is the first group, and has to look random.
    needs_entropy: bool,
}

/// Shortest value that is looked at for its entropy, in bytes; shorter ones are words as often as secrets.
const RANDOM_BYTES_MIN: usize = 16;
/// Longest, in bytes.
const RANDOM_BYTES_MAX: usize = 512;
/// Least entropy of such a value, in bits a byte: a hexadecimal text has at most 4, English words about 3.
const ENTROPY_MIN: f64 = 3.3;

macro_rules! secrets {
    ($($id:ident $name:literal $needs_entropy:literal $pattern:literal $about:literal;)*) => {
        $(static $id: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new($pattern).ok());)*

        /// Every kind, in the order of the reference page.
        pub static SECRETS: &[Secret] = &[$(Secret {
            name: $name,
            about: $about,
            pattern: &$id,
            needs_entropy: $needs_entropy,
        },)*];
    };
}

secrets! {
    AWS "aws" false
        r"(?-u:\b)(?:AKIA|ASIA|ABIA|ACCA)[A-Z2-7]{16}(?-u:\b)"
        "access key ids of AWS";
    GITHUB "github" false
        r"(?-u:\b)(?:gh[pousr]_[A-Za-z0-9]{36,255}|github_pat_[A-Za-z0-9_]{22,255})"
        "tokens of GitHub";
    GITLAB "gitlab" false
        r"(?-u:\b)gl(?:pat|dt|ptt|rt|cbt|soat)-[A-Za-z0-9_\-]{20,255}"
        "tokens of GitLab";
    SLACK "slack" false
        r"(?-u:\b)(?:xox[abeoprs]-[A-Za-z0-9-]{10,255}|xapp-[0-9]-[A-Za-z0-9-]{10,255}|hooks\.slack\.com/(?:services|workflows)/[A-Za-z0-9/]{20,255})"
        "tokens and webhooks of Slack";
    MODELS "model_keys" false
        r"(?-u:\b)(?:sk-(?:ant-|proj-|svcacct-|or-v1-)?[A-Za-z0-9_\-]{20,255}|AIza[A-Za-z0-9_\-]{35}|hf_[A-Za-z0-9]{30,64})"
        "keys of OpenAI, Anthropic, Google and Hugging Face";
    STRIPE "stripe" false
        r"(?-u:\b)(?:[rs]k_(?:live|test)|whsec)_[A-Za-z0-9]{16,255}"
        "keys of Stripe";
    NPM "npm" false
        r"(?-u:\b)npm_[A-Za-z0-9]{36}"
        "tokens of npm";
    PRIVATE_KEY "private_key" false
        r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----(?:(?:[^-]|-[^-])*-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----|[A-Za-z0-9+/=:,. \r\n\t\\-]*)"
        "private key blocks, also ones that are cut";
    JWT "jwt" false
        r"(?-u:\b)eyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}"
        "JSON web tokens";
    URL "url_password" false
        r"(?i)(?-u:\b)[a-z][a-z0-9+.-]{1,20}://[^\s/:@\x22']{0,128}:[^\s/@\x22']{3,256}@"
        "passwords in URLs";
    ASSIGNED "assigned" true
        r#"(?i)(?:key|token|secret|passw(?:or)?d|passphrase|pwd|credentials?|authorization|bearer)[a-z0-9_.-]{0,20}["'`]?[ \t]{0,4}(?:=>|:=|[:=]|[ \t])[ \t]{0,4}(?:bearer |basic |token )?["'`]?([a-z0-9+/=_.~$!@#%^&*-]{16,512})"#
        "values of high entropy beside a word like key, token or password";
}

/// Words of member names whose values are held to be secrets where they look random.
static NAMES: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"(?i)(?:key|token|secret|passw(?:or)?d|passphrase|pwd|credential|authorization)")
        .ok()
});

/// The kind of this name.
#[must_use]
pub fn named(name: &str) -> Option<&'static Secret> {
    SECRETS.iter().find(|kind| kind.name == name)
}

/// Returns where a text holds secrets by their looks, of every kind.
#[must_use]
pub fn all(text: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    for kind in SECRETS {
        find(kind, None, text, &mut |range| {
            found.push(range);
            true
        });
    }
    found
}

/// Hands over each secret of a kind; `false` where no more were wanted. `key` is the name of the member that
/// the text is the value of.
pub(super) fn find(
    kind: &Secret,
    key: Option<&str>,
    text: &str,
    take: &mut impl FnMut(Range<usize>) -> bool,
) -> bool {
    let Some(pattern) = kind.pattern.as_ref() else {
        return true;
    };
    if !kind.needs_entropy {
        return pattern.find_iter(text).all(|found| take(found.range()));
    }
    let names_secret = |key: &str| NAMES.as_ref().is_some_and(|names| names.is_match(key));
    if key.is_some_and(names_secret) && looks_random(text) {
        return take(0..text.len());
    }
    pattern
        .captures_iter(text)
        .filter_map(|found| found.get(1))
        .filter(|value| looks_random(value.as_str()))
        .all(|value| take(value.range()))
}

/// Whether a text is one word that a person would not have chosen.
fn looks_random(text: &str) -> bool {
    let length = text.len();
    if !(RANDOM_BYTES_MIN..=RANDOM_BYTES_MAX).contains(&length) {
        return false;
    }
    let mut counts = [0_u32; 256];
    let (mut digits, mut upper, mut lower) = (0, 0, 0);
    for byte in text.bytes() {
        if byte.is_ascii_whitespace() || !byte.is_ascii_graphic() {
            return false;
        }
        digits += usize::from(byte.is_ascii_digit());
        upper += usize::from(byte.is_ascii_uppercase());
        lower += usize::from(byte.is_ascii_lowercase());
        if let Some(count) = counts.get_mut(usize::from(byte)) {
            *count += 1;
        }
    }
    let mixed = digits >= 1 && upper >= 1 && lower >= 1;
    if !mixed && (digits < 2 || upper + lower < 2) {
        return false;
    }
    #[expect(clippy::cast_precision_loss, reason = "at most 512")]
    let total = length as f64;
    let entropy: f64 = counts
        .iter()
        .filter(|count| **count > 0)
        .map(|count| {
            let share = f64::from(*count) / total;
            -share * share.log2()
        })
        .sum();
    entropy >= ENTROPY_MIN
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pattern_compiles_and_no_name_stands_twice() {
        for (at, kind) in SECRETS.iter().enumerate() {
            assert!(kind.pattern.is_some(), "{}", kind.name);
            assert!(
                !SECRETS[at + 1..]
                    .iter()
                    .any(|other| other.name == kind.name)
            );
        }
        assert!(NAMES.is_some());
    }
}
