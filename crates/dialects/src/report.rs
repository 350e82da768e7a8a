//! Reads an error of a provider, in any form.

use std::borrow::Cow;

use super::error::message_of;
use super::json::{self, member};
use wire::scan::Member;

/// Most codes that are kept of one error.
const CODES_MAX: usize = 32;
/// Longest sentence that is made of a text or a page, in characters.
const TEXT_CHARS_MAX: usize = 300;
/// How deep an error may hold another provider's error.
const DEPTH_MAX: usize = 3;

/// Error of a provider, or of what is in front of it.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct ErrorReport {
    /// Its sentence; of a page, the title.
    pub message: Option<String>,
    /// Its codes, types, states and reasons, in lower case.
    pub codes: Vec<String>,
    /// The status that the body itself names.
    pub status: Option<u16>,
    /// How long the body asks to wait, in milliseconds.
    pub retry_after_ms: Option<u64>,
    /// Whether it is a page for a browser: no provider's own.
    pub is_page: bool,
}

impl ErrorReport {
    /// Reads any body.
    #[must_use]
    pub fn read(body: &str) -> Self {
        let mut report = Self::default();
        let text = body.trim_start_matches('\u{feff}').trim();
        if text.starts_with('<') {
            report.is_page = true;
            report.message = title(text);
            return report;
        }
        if !text.starts_with(['{', '[']) {
            let plain = shorten_text(text);
            report.message = Some(plain).filter(|plain| !plain.is_empty());
            return report;
        }
        // Google's servers of other dialects wrap the error in a list.
        let first = json::elements(text).first().copied();
        report.add(first.unwrap_or(text), 0);
        let wait = report.message.as_deref().and_then(wait_of);
        report.retry_after_ms = report.retry_after_ms.or(wait);
        report
    }

    /// Returns whether it has one of these codes.
    #[must_use]
    pub fn has_code(&self, code: &str) -> bool {
        self.codes.iter().any(|own| own == code)
    }

    fn add(&mut self, body: &str, depth: usize) {
        let own = json::members(body);
        if self.message.is_none() {
            self.message = message_of(body);
        }
        self.codes(&own);
        let error = member(&own, "error").unwrap_or_default();
        let error = json::members(error);
        self.codes(&error);
        for name in ["innererror", "metadata"] {
            self.codes(&json::members(member(&error, name).unwrap_or_default()));
        }
        for raw in json::elements(member(&error, "details").unwrap_or_default()) {
            let detail = json::members(raw);
            self.codes(&detail);
            let wait = member(&detail, "retryDelay").and_then(json::text);
            self.retry_after_ms = self.retry_after_ms.or(wait.as_deref().and_then(duration));
        }
        // A gateway quotes the error of the provider behind it.
        let metadata = json::members(member(&error, "metadata").unwrap_or_default());
        let Some(quoted) = member(&metadata, "raw").and_then(json::text) else {
            return;
        };
        if depth + 1 < DEPTH_MAX {
            let mut inner = Self::default();
            match quoted.trim_start().starts_with('{') {
                true => inner.add(quoted.trim(), depth + 1),
                false => inner.message = Some(shorten_text(&quoted)),
            }
            self.codes.append(&mut inner.codes);
            self.codes.truncate(CODES_MAX);
            if let Some(said) = inner.message.filter(|said| !said.is_empty()) {
                self.message = Some(match self.message.take() {
                    Some(own) => format!("{own}: {said}"),
                    None => said,
                });
            }
        }
    }

    fn codes(&mut self, own: &[Member<'_>]) {
        const NAMES: [&str; 10] = [
            "code",
            "type",
            "status",
            "reason",
            "__type",
            "error_code",
            "error_type",
            "errorCode",
            "statusCode",
            "kind",
        ];
        for name in NAMES {
            let Some(raw) = member(own, name) else {
                continue;
            };
            let word = json::text(raw).unwrap_or(Cow::Borrowed(raw.trim()));
            let is_code = !word.is_empty() && word.len() <= 128 && !word.starts_with(['{', '[']);
            if is_code && self.codes.len() < CODES_MAX {
                let status = word.parse().ok().filter(|own| (400..600).contains(own));
                self.status = self.status.or(status);
                self.codes.push(word.to_ascii_lowercase());
            }
        }
    }
}

/// Returns the title of a page.
fn title(page: &str) -> Option<String> {
    let lower = page.to_ascii_lowercase();
    let from = lower.find("<title")?;
    let from = from + lower.get(from..)?.find('>')? + 1;
    let to = from + lower.get(from..)?.find("</title")?;
    let title = shorten_text(page.get(from..to)?);
    (!title.is_empty()).then_some(title)
}

/// Returns the text on one line, cut if it is long.
fn shorten_text(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().take(TEXT_CHARS_MAX).collect();
    words.join(" ").chars().take(TEXT_CHARS_MAX).collect()
}

/// Returns the wait that a sentence asks for: `Please try again in 1m30.5s`, `retry in 34.07s`, `Try again in 60
/// seconds`.
fn wait_of(message: &str) -> Option<u64> {
    let lower = message.to_ascii_lowercase();
    ["try again in ", "retry in ", "retry after "]
        .into_iter()
        .find_map(|words| {
            let from = lower.find(words)? + words.len();
            duration(lower.get(from..)?)
        })
}

/// Reads a duration at the head of a text, such as `34s`, `1m30.5s`, `250ms` and `60 seconds`, in milliseconds.
fn duration(text: &str) -> Option<u64> {
    const UNITS: [(&str, f64); 10] = [
        ("milliseconds", 1.0),
        ("ms", 1.0),
        ("seconds", 1_000.0),
        ("second", 1_000.0),
        ("minutes", 60_000.0),
        ("minute", 60_000.0),
        ("hours", 3_600_000.0),
        ("s", 1_000.0),
        ("m", 60_000.0),
        ("h", 3_600_000.0),
    ];
    let (mut rest, mut ms) = (text.trim_start(), None::<f64>);
    loop {
        let digits = rest
            .find(|c: char| !c.is_ascii_digit() && c != '.')
            .unwrap_or(rest.len());
        let (number, behind) = rest.split_at(digits);
        let Ok(number) = number.trim_end_matches('.').parse::<f64>() else {
            break;
        };
        let behind = behind.trim_start();
        let unit = UNITS.iter().find(|(name, _)| behind.starts_with(name));
        let Some((name, size)) = unit else { break };
        ms = Some(ms.unwrap_or(0.0) + number * size);
        rest = behind.get(name.len()..).unwrap_or_default();
    }
    let ms = ms.filter(|ms| (0.0..1.0e12).contains(ms))?;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "it is within 0 and 10^12"
    )]
    Some(ms.ceil() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_of_every_form_are_found() {
        let cases = [
            (
                r#"{"error":{"code":403,"message":"m","status":"PERMISSION_DENIED","details":[{"reason":"SERVICE_DISABLED"}]}}"#,
                "service_disabled",
                Some(403),
            ),
            (
                r#"{"error":{"code":"content_filter","message":"m","innererror":{"code":"ResponsibleAIPolicyViolation"}}}"#,
                "responsibleaipolicyviolation",
                None,
            ),
            (
                r#"{"object":"error","message":"m","type":"invalid_model","code":"1500"}"#,
                "1500",
                None,
            ),
            (
                r#"[{"error":{"code":429,"message":"m","status":"RESOURCE_EXHAUSTED"}}]"#,
                "resource_exhausted",
                Some(429),
            ),
            (
                r#"{"__type":"ThrottlingException","message":"m"}"#,
                "throttlingexception",
                None,
            ),
        ];
        for (body, code, status) in cases {
            let report = ErrorReport::read(body);
            assert!(report.has_code(code), "{body} {report:?}");
            assert_eq!(
                (report.status, report.message.as_deref()),
                (status, Some("m")),
                "{body}"
            );
        }
    }

    #[test]
    fn an_error_within_an_error_is_read_as_well() {
        let raw = r#"{"error":{"message":"Provider returned error","code":400,"metadata":{"raw":"{\"error\":{\"message\":\"too long\",\"code\":\"context_length_exceeded\"}}","provider_name":"X"}}}"#;
        let report = ErrorReport::read(raw);
        assert!(report.has_code("context_length_exceeded"));
        assert_eq!(
            report.message.as_deref(),
            Some("Provider returned error: too long")
        );
    }

    #[test]
    fn pages_and_plain_texts_have_a_sentence() {
        let page = "<!DOCTYPE html>\n<html><head><TITLE>Attention Required! |\n Cloudflare</TITLE></head></html>";
        let report = ErrorReport::read(page);
        assert_eq!(
            report.message.as_deref(),
            Some("Attention Required! | Cloudflare")
        );
        assert!(report.is_page);
        let plain = ErrorReport::read("no healthy upstream\n");
        assert_eq!(plain.message.as_deref(), Some("no healthy upstream"));
        assert!(!plain.is_page);
        for empty in ["", " ", "{}", "[]", "{oops", "<html>"] {
            assert_eq!(ErrorReport::read(empty).message, None, "{empty}");
        }
    }

    #[test]
    fn waits_are_read_from_details_and_sentences() {
        let cases = [
            (
                r#"{"error":{"message":"m","details":[{"@type":"x/RetryInfo","retryDelay":"34.5s"}]}}"#,
                Some(34_500),
            ),
            (
                r#"{"error":{"message":"Rate limit reached. Please try again in 1m30.5s. Visit"}}"#,
                Some(90_500),
            ),
            (
                r#"{"error":{"message":"Please try again in 250ms."}}"#,
                Some(250),
            ),
            (
                r#"{"error":{"message":"No deployments available, Try again in 60 seconds"}}"#,
                Some(60_000),
            ),
            (
                r#"{"error":{"message":"Please retry in 6h0m0s"}}"#,
                Some(21_600_000),
            ),
            (r#"{"error":{"message":"try again in a while"}}"#, None),
        ];
        for (body, expect) in cases {
            assert_eq!(ErrorReport::read(body).retry_after_ms, expect, "{body}");
        }
    }
}
