//! Wall-clock time in names.

use std::time::{SystemTime, UNIX_EPOCH};

/// The time now as `20261121T052900Z`, in UTC.
pub(crate) fn compact() -> String {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    render(since.map_or(0, |d| d.as_secs()))
}

/// The civil date of a count of seconds since 1970, by Hinnant's days-from-civil, inverted.
fn render(seconds: u64) -> String {
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
    format!(
        "{year:04}{month:02}{day:02}T{:02}{:02}{:02}Z",
        rest / 3_600,
        rest / 60 % 60,
        rest % 60
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_moments() {
        for (seconds, expect) in [
            (0, "19700101T000000Z"),
            (951_782_400, "20000229T000000Z"),
            (1_000_000_000, "20010909T014640Z"),
            (1_709_251_199, "20240229T235959Z"),
            (1_735_689_599, "20241231T235959Z"),
        ] {
            assert_eq!(render(seconds), expect);
        }
    }
}
