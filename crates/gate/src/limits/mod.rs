//! How much a caller may, over all of its sessions: calls by time, calls by tool, calls under way. And how many
//! bytes may come back.
//!
//! [`Limits`] are settings and belong to the [`crate::World`], so that a reload replaces them; what has
//! been counted belongs to the [`crate::Gate`] and survives a reload. Time is passed in; a clock that is
//! set back neither refunds a call nor blocks one. Nothing here grows with the number of calls.

mod byte_bucket;
mod counters;

use std::fmt;

pub use state::rate::CallRate as Rate;

pub(crate) use counters::{Counted, Counters, Lane, Slot, Standing, Stop, Who};

/// Names the decision where a tool was called too often and a person has to say whether it may go on.
pub const BREACH_RULE: &str = "rate_limit_breach";

/// Largest burst and most calls a window that can be configured.
pub const CALLS_MAX: u32 = 1_000_000;
/// Most calls under way that can be configured: what the table of one session holds.
pub const UNDER_WAY_MAX: u32 = 1_024;
/// Longest window, in milliseconds: a day.
pub const WINDOW_MS_MAX: u64 = 86_400_000;
/// Shortest window, in milliseconds.
pub const WINDOW_MS_MIN: u64 = 1_000;
/// Longest reply that is passed on unless it is configured otherwise, in bytes.
pub const RESPONSE_BYTES: u64 = 16 * 1024 * 1024;
/// Largest reply that can be configured, in bytes. A reply is held in memory as a whole.
pub const RESPONSE_BYTES_MAX: u64 = 256 * 1024 * 1024;
/// Smallest reply bound that can be configured, in bytes: errors and handshakes find room in it.
pub const RESPONSE_BYTES_MIN: u64 = 1_024;
/// Longest message of a client that is accepted, unless configured otherwise, in bytes.
pub const REQUEST_BYTES: u64 = 16 * 1024 * 1024;
/// The most that it can be.
pub const REQUEST_BYTES_MAX: u64 = 128 * 1024 * 1024;
/// The least that it can be: an `initialize` of any client is shorter.
pub const REQUEST_BYTES_MIN: u64 = 64 * 1024;

/// Time in which a caller may cause [`Limits::journal_bytes`] of records, in milliseconds.
pub const JOURNAL_WINDOW_MS: u64 = 60_000;
/// Bytes of journal records that one caller may cause per window, unless more calls are configured.
pub const JOURNAL_BYTES: u64 = 16 * 1024 * 1024;
/// Bytes of records per call that [`Limits::requests`] allows, where that is more.
pub const JOURNAL_BYTES_PER_CALL: u64 = 4 * 1024;
/// Most that can be configured.
pub const JOURNAL_BYTES_MAX: u64 = 1024 * 1024 * 1024 * 1024;
/// Least that can be configured: a few of the longest records.
pub const JOURNAL_BYTES_MIN: u64 = 256 * 1024;

/// What happens to a call beyond a tool's window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Then {
    /// A person is asked, as by a hitl rule named [`BREACH_RULE`].
    #[default]
    Hitl,
    /// It is refused.
    Refuse,
}

impl Then {
    /// All, in order.
    pub const ALL: [Self; 2] = [Self::Hitl, Self::Refuse];

    /// The word used in configuration.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::Hitl => "hitl",
            Self::Refuse => "refuse",
        }
    }
}

/// The limits in force. None can be switched off; what has to run faster raises them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Judged calls and lists of one caller, over all of its sessions: how many in a time.
    pub requests: Rate,
    /// How many may come at once.
    pub requests_burst: u32,
    /// Calls of one tool by one caller within a window.
    pub tool_calls_max: u32,
    /// The window, in milliseconds.
    pub tool_window_ms: u64,
    /// What happens to a call beyond that.
    pub tool_then: Then,
    /// Calls under way at once, per caller.
    pub under_way_max: u32,
    /// The same, per tool; `None`: no bound of its own.
    pub tool_under_way_max: Option<u32>,
    /// Longest reply that is passed on, in bytes.
    pub response_bytes_max: u64,
    /// Longest message of a client that is accepted, in bytes.
    pub request_bytes_max: u64,
    /// Bytes of journal records that one caller may cause per [`JOURNAL_WINDOW_MS`]; `None`: as [`Limits::journal_bytes`] derives.
    pub journal_bytes_max: Option<u64>,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            // Beyond what an agent does that is not out of control: hundreds of calls in a minute, lists in parallel.
            requests: Rate::per_second(50),
            requests_burst: 200,
            tool_calls_max: 600,
            tool_window_ms: 60_000,
            tool_then: Then::Hitl,
            under_way_max: 256,
            tool_under_way_max: None,
            response_bytes_max: RESPONSE_BYTES,
            request_bytes_max: REQUEST_BYTES,
            journal_bytes_max: None,
        }
    }
}

/// A setting that is out of bounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LimitError {
    /// Which setting, by its field's name.
    pub setting: &'static str,
    /// The least that it can be.
    pub least: u64,
    /// The most.
    pub most: u64,
}

impl fmt::Display for LimitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} is out of bounds; it can be {} to {}",
            self.setting, self.least, self.most
        )
    }
}

impl std::error::Error for LimitError {}

impl Limits {
    /// Returns how many bytes of journal records one caller may cause per [`JOURNAL_WINDOW_MS`]. Unless configured it grows with
    /// [`Self::requests`], so that raising that one does not make this one stop ordinary calls.
    #[must_use]
    pub fn journal_bytes(&self) -> u64 {
        self.journal_bytes_max.unwrap_or_else(|| {
            let calls = self.requests.calls_per_hour() / (3_600_000 / JOURNAL_WINDOW_MS);
            let by_calls = calls.saturating_mul(JOURNAL_BYTES_PER_CALL);
            by_calls.clamp(JOURNAL_BYTES, JOURNAL_BYTES_MAX)
        })
    }

    /// Checks every setting against its bounds.
    ///
    /// # Errors
    /// The first setting that is out of bounds, and what it can be. A limit of nothing would stop
    /// everything, and is out of bounds as well.
    pub fn check(&self) -> Result<(), LimitError> {
        let calls = u64::from(CALLS_MAX);
        let under_way = u64::from(UNDER_WAY_MAX);
        let per_tool = self.tool_under_way_max.unwrap_or(1);
        let settings = [
            ("requests_burst", u64::from(self.requests_burst), 1, calls),
            ("tool_calls_max", u64::from(self.tool_calls_max), 1, calls),
            (
                "tool_window_ms",
                self.tool_window_ms,
                WINDOW_MS_MIN,
                WINDOW_MS_MAX,
            ),
            ("under_way_max", u64::from(self.under_way_max), 1, under_way),
            ("tool_under_way_max", u64::from(per_tool), 1, under_way),
            (
                "response_bytes_max",
                self.response_bytes_max,
                RESPONSE_BYTES_MIN,
                RESPONSE_BYTES_MAX,
            ),
            (
                "request_bytes_max",
                self.request_bytes_max,
                REQUEST_BYTES_MIN,
                REQUEST_BYTES_MAX,
            ),
            (
                "journal_bytes_max",
                self.journal_bytes(),
                JOURNAL_BYTES_MIN,
                JOURNAL_BYTES_MAX,
            ),
        ];
        settings
            .into_iter()
            .find(|(_, value, least, most)| value < least || value > most)
            .map_or(Ok(()), |(setting, _, least, most)| {
                Err(LimitError {
                    setting,
                    least,
                    most,
                })
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn journal_bytes_grow_with_the_calls_unless_they_are_configured() {
        let mut limits = Limits::default();
        assert_eq!(limits.journal_bytes(), JOURNAL_BYTES);
        limits.requests = Rate::per_second(1_000);
        assert_eq!(limits.journal_bytes(), 60_000 * JOURNAL_BYTES_PER_CALL);
        limits.requests = Rate::per_second(1_000_000);
        assert_eq!(limits.check(), Ok(()));
        limits.journal_bytes_max = Some(JOURNAL_BYTES_MIN);
        assert_eq!(limits.journal_bytes(), JOURNAL_BYTES_MIN);
    }

    #[test]
    fn every_setting_has_bounds() {
        let fine = Limits::default();
        assert_eq!(fine.check(), Ok(()));
        type Break = fn(&mut Limits);
        let broken: [(&str, Break); 14] = [
            ("requests_burst", |l| l.requests_burst = 0),
            ("requests_burst", |l| l.requests_burst = CALLS_MAX + 1),
            ("tool_calls_max", |l| l.tool_calls_max = 0),
            ("tool_window_ms", |l| l.tool_window_ms = 0),
            ("tool_window_ms", |l| l.tool_window_ms = WINDOW_MS_MAX + 1),
            ("under_way_max", |l| l.under_way_max = 0),
            ("tool_under_way_max", |l| l.tool_under_way_max = Some(0)),
            ("tool_under_way_max", |l| {
                l.tool_under_way_max = Some(u32::MAX);
            }),
            ("response_bytes_max", |l| l.response_bytes_max = 0),
            ("response_bytes_max", |l| l.response_bytes_max = u64::MAX),
            ("request_bytes_max", |l| l.request_bytes_max = 1_024),
            ("request_bytes_max", |l| l.request_bytes_max = u64::MAX),
            ("journal_bytes_max", |l| l.journal_bytes_max = Some(1)),
            ("journal_bytes_max", |l| {
                l.journal_bytes_max = Some(u64::MAX);
            }),
        ];
        for (setting, break_it) in broken {
            let mut limits = fine;
            break_it(&mut limits);
            assert_eq!(limits.check().unwrap_err().setting, setting);
        }
    }
}
