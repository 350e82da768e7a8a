//! The limits as flags.

use gate::limits::{LimitError, Limits, Rate, Then};

use crate::config::values::Size;

/// How much callers may. Every flag left out keeps what it was.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct LimitArgs {
    /// Calls and lists of one caller, as 10/s or 600/m [default: 50/s]
    #[arg(help_heading = "Limits", long = "limit-requests", value_name = "RATE", value_parser = rate)]
    requests: Option<Rate>,
    /// How many may come at once [default: 200]
    #[arg(help_heading = "Limits", long = "limit-burst", value_name = "N")]
    burst: Option<u32>,
    /// Calls of one tool by one caller within the window [default: 600]
    #[arg(help_heading = "Limits", long = "limit-tool-calls", value_name = "N")]
    tool_calls: Option<u32>,
    /// The window, in seconds [default: 60]
    #[arg(
        help_heading = "Limits",
        long = "limit-tool-window",
        value_name = "SECONDS"
    )]
    tool_window: Option<u64>,
    /// What to do with a call beyond that: ask a person, or refuse it [default: hitl]
    #[arg(help_heading = "Limits", long = "limit-then", value_name = "hitl|refuse", value_parser = then)]
    then: Option<Then>,
    /// Concurrent calls of one caller [default: 256]
    #[arg(help_heading = "Limits", long = "limit-concurrency", value_name = "N")]
    concurrency: Option<u32>,
    /// The same, per tool [default: no bound of its own]
    #[arg(
        help_heading = "Limits",
        long = "limit-tool-concurrency",
        value_name = "N"
    )]
    tool_concurrency: Option<u32>,
    /// Longest reply that is passed on, as 65536, 64KiB or 1MiB [default: 16MiB]
    #[arg(
        help_heading = "Limits",
        long = "limit-response-bytes",
        value_name = "SIZE"
    )]
    response_bytes: Option<Size>,
    /// Longest message of a client that is accepted [default: 16MiB]
    #[arg(
        help_heading = "Limits",
        long = "limit-request-bytes",
        value_name = "SIZE"
    )]
    request_bytes: Option<Size>,
    /// Journal records that one caller may cause in a minute [default: 16MiB, or 4KiB for each call of --limit-requests]
    #[arg(
        help_heading = "Limits",
        long = "limit-journal-bytes",
        value_name = "SIZE"
    )]
    journal_bytes: Option<Size>,
}

impl LimitArgs {
    /// The limits with what the flags change.
    ///
    /// # Errors
    /// The flag whose value is out of bounds, and what it can be.
    pub fn over(&self, base: Limits) -> Result<Limits, String> {
        let limits = Limits {
            requests: self.requests.unwrap_or(base.requests),
            requests_burst: self.burst.unwrap_or(base.requests_burst),
            tool_calls_max: self.tool_calls.unwrap_or(base.tool_calls_max),
            tool_window_ms: self
                .tool_window
                .map_or(base.tool_window_ms, |s| s.saturating_mul(1_000)),
            tool_then: self.then.unwrap_or(base.tool_then),
            under_way_max: self.concurrency.unwrap_or(base.under_way_max),
            tool_under_way_max: self.tool_concurrency.or(base.tool_under_way_max),
            response_bytes_max: self
                .response_bytes
                .map_or(base.response_bytes_max, |size| size.0),
            request_bytes_max: self
                .request_bytes
                .map_or(base.request_bytes_max, |size| size.0),
            journal_bytes_max: self
                .journal_bytes
                .map(|size| size.0)
                .or(base.journal_bytes_max),
        };
        limits
            .check()
            .map(|()| limits)
            .map_err(|error| in_the_words_of_the_flags(&error))
    }
}

fn in_the_words_of_the_flags(error: &LimitError) -> String {
    let LimitError {
        setting,
        least,
        most,
    } = *error;
    let (flag, least, most) = match setting {
        "requests_burst" => ("--limit-burst", least, most),
        "tool_calls_max" => ("--limit-tool-calls", least, most),
        "tool_window_ms" => (
            "--limit-tool-window",
            least.div_ceil(1_000).max(1),
            most / 1_000,
        ),
        "under_way_max" => ("--limit-concurrency", least, most),
        "tool_under_way_max" => ("--limit-tool-concurrency", least, most),
        "response_bytes_max" => ("--limit-response-bytes", least, most),
        "request_bytes_max" => ("--limit-request-bytes", least, most),
        "journal_bytes_max" => ("--limit-journal-bytes", least, most),
        other => (other, least, most),
    };
    format!("{flag} is out of bounds; it can be {least} to {most}")
}

/// Reads a rate; a bare number is by the second.
fn rate(text: &str) -> Result<Rate, String> {
    if text.contains('/') {
        text.parse()
    } else {
        format!("{text}/s").parse()
    }
}

fn then(text: &str) -> Result<Then, String> {
    Then::ALL
        .into_iter()
        .find(|then| then.label() == text)
        .ok_or_else(|| format!("write {}", Then::ALL.map(Then::label).join(" or ")))
}

#[cfg(test)]
mod tests;
