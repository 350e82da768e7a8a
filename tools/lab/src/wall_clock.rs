//! Wall-clock time in names and records, and waiting.

use crate::interrupt;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// The longest nap between two looks at Ctrl-C.
const NAP_MAX: Duration = Duration::from_millis(100);

/// Waits so long, or until an end is asked for.
pub(crate) fn pause(long: Duration) {
    let start = Instant::now();
    while let Some(rest) = long.checked_sub(start.elapsed()).filter(|r| !r.is_zero()) {
        if interrupt::is_asked() {
            return;
        }
        std::thread::park_timeout(rest.min(NAP_MAX));
    }
}

/// Returns the time now as `20261121T052900Z`, in UTC.
pub(crate) fn compact() -> String {
    let (date, time) = render(now_ms() / 1_000);
    format!("{}T{}Z", date.replace('-', ""), time.replace(':', ""))
}

/// Returns a time as `2026-11-21T05:29:00.123Z`.
pub(crate) fn iso(unix_ms: u64) -> String {
    let (date, time) = render(unix_ms / 1_000);
    format!("{date}T{time}.{:03}Z", unix_ms % 1_000)
}

/// Milliseconds since 1970; 0 for a clock before that.
pub(crate) fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |d| u64::try_from(d.as_millis()).unwrap_or(u64::MAX))
}

/// Date and time of a count of seconds since 1970, by Hinnant's days-from-civil, inverted.
fn render(seconds: u64) -> (String, String) {
    let (days, rest) = (seconds / 86_400 + 719_468, seconds % 86_400);
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    // Months counted from March, so that the leap day is the last of the year.
    let shifted = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 {
        shifted + 3
    } else {
        shifted - 9
    };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    (
        format!("{year:04}-{month:02}-{day:02}"),
        format!(
            "{:02}:{:02}:{:02}",
            rest / 3_600,
            rest % 3_600 / 60,
            rest % 60
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_with_and_without_a_leap_day() {
        for (unix_ms, expect) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_400_005, "2000-02-29T00:00:00.005Z"),
            (1_709_251_199_999, "2024-02-29T23:59:59.999Z"),
            (1_735_689_599_000, "2024-12-31T23:59:59.000Z"),
        ] {
            assert_eq!(iso(unix_ms), expect);
        }
        assert_eq!(compact().len(), "20240229T235959Z".len());
    }
}
