//! Times as the journal writes them: ISO 8601, milliseconds, UTC. The journal has no clock; callers pass milliseconds since
//! 1970-01-01T00:00:00Z.

use std::cell::Cell;

const DAY_MS: i64 = 86_400_000;

/// 0000-01-01 and the last millisecond of 9999: what the four-digit form can carry. Others are clamped.
const EARLIEST_MS: i64 = -62_167_219_200_000;
const LATEST_MS: i64 = 253_402_300_799_999;

/// `2026-11-21T03:38:09.123Z`
pub(super) const LENGTH: usize = 24;

/// A second and its spelling up to the point.
type Spelt = (i64, [u8; LENGTH - 4]);

thread_local! {
    /// The second that was spelt last: records come many to a second.
    static LATEST: Cell<Option<Spelt>> = const { Cell::new(None) };
}

/// Appends `2026-11-21T03:38:09.123Z`.
pub(super) fn push(out: &mut Vec<u8>, ms: i64) {
    let ms = ms.clamp(EARLIEST_MS, LATEST_MS);
    let (second, of_second) = (ms.div_euclid(1_000), ms.rem_euclid(1_000));
    let spelt = match LATEST.get() {
        Some((latest, spelt)) if latest == second => spelt,
        _ => {
            let spelt = spelt(second);
            LATEST.set(Some((second, spelt)));
            spelt
        }
    };
    out.extend_from_slice(&spelt);
    out.extend_from_slice(&[
        digit(of_second / 100),
        digit(of_second / 10 % 10),
        digit(of_second % 10),
        b'Z',
    ]);
}

/// `2026-11-21T03:38:09.`
fn spelt(second: i64) -> [u8; LENGTH - 4] {
    const DAY_S: i64 = DAY_MS / 1_000;
    let (days, of_day) = (second.div_euclid(DAY_S), second.rem_euclid(DAY_S));
    let (year, month, day) = civil(days);
    let [y0, y1] = two(year / 100);
    let [y2, y3] = two(year % 100);
    let ([m0, m1], [d0, d1]) = (two(month), two(day));
    let [h0, h1] = two(of_day / 3_600);
    let [n0, n1] = two(of_day / 60 % 60);
    let [s0, s1] = two(of_day % 60);
    [
        y0, y1, y2, y3, b'-', m0, m1, b'-', d0, d1, b'T', h0, h1, b':', n0, n1, b':', s0, s1, b'.',
    ]
}

/// `20261121T033809123Z`, which sorts as the time does and suits a file name.
pub(super) fn compact(ms: i64) -> String {
    let mut out = Vec::with_capacity(LENGTH);
    push(&mut out, ms);
    out.retain(|byte| !matches!(byte, b'-' | b':' | b'.'));
    String::from_utf8(out).unwrap_or_default()
}

/// Reads the compact form.
pub(super) fn parse_compact(text: &str) -> Option<i64> {
    let part = |from: usize, to: usize| text.get(from..to);
    let (date, time) = (
        [part(0, 4)?, part(4, 6)?, part(6, 8)?].join("-"),
        [part(9, 11)?, part(11, 13)?, part(13, 15)?].join(":"),
    );
    let spelt = format!("{date}T{time}.{}Z", part(15, 18)?);
    let ms = parse_utc(&spelt)?;
    (compact(ms) == text).then_some(ms)
}

/// Text of a time, for messages.
#[must_use]
pub fn format_utc(ms: i64) -> String {
    let mut out = Vec::with_capacity(LENGTH);
    push(&mut out, ms);
    String::from_utf8(out).unwrap_or_default()
}

/// Reads `2026-11-21T03:38:09.123Z` (seconds' fraction, or the whole time of day, may be missing) as milliseconds since 1970.
#[must_use]
pub fn parse_utc(text: &str) -> Option<i64> {
    let (date, time) = match text.strip_suffix('Z').unwrap_or(text).split_once('T') {
        Some((date, time)) => (date, time),
        None => (text, "00:00:00"),
    };
    let mut parts = date.splitn(3, '-');
    let (year, month, day) = (
        digits(parts.next()?, 4)?,
        digits(parts.next()?, 2)?,
        digits(parts.next()?, 2)?,
    );
    let (clock, fraction) = time.split_once('.').unwrap_or((time, "0"));
    let mut parts = clock.splitn(3, ':');
    let (hour, minute, second) = (
        digits(parts.next()?, 2)?,
        digits(parts.next()?, 2)?,
        digits(parts.next()?, 2)?,
    );
    if fraction.is_empty() || fraction.len() > 3 {
        return None;
    }
    let ms = (0..3_usize.checked_sub(fraction.len())?)
        .fold(digits(fraction, fraction.len())?, |ms, _| ms * 10);
    let days = days_of(year, month, day);
    // The round trip refuses the 31st of February.
    if civil(days) != (year, month, day) || hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    Some(days * DAY_MS + hour * 3_600_000 + minute * 60_000 + second * 1_000 + ms)
}

fn digits(text: &str, width: usize) -> Option<i64> {
    let all = text.len() == width && text.bytes().all(|byte| byte.is_ascii_digit());
    if all { text.parse().ok() } else { None }
}

fn two(number: i64) -> [u8; 2] {
    [digit(number / 10), digit(number % 10)]
}

fn digit(value: i64) -> u8 {
    b'0'.saturating_add(u8::try_from(value).unwrap_or(0))
}

/// Year, month and day of a day counted from 1970-01-01 in the proleptic Gregorian calendar. Years are counted from March, so
/// that the leap day ends a year; 400 years are 146,097 days.
fn civil(days: i64) -> (i64, i64, i64) {
    let shifted = days + 719_468;
    let (era, of_era) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let march_month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * march_month + 2) / 5 + 1;
    let month = if march_month < 10 {
        march_month + 3
    } else {
        march_month - 9
    };
    (year_of_era + era * 400 + i64::from(month <= 2), month, day)
}

fn days_of(year: i64, month: i64, day: i64) -> i64 {
    let year = year - i64::from(month <= 2);
    let (era, year_of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let march_month = (month + 9) % 12;
    let of_year = (153 * march_month + 2) / 5 + day - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + of_year - 719_468
}

#[cfg(test)]
mod tests;
