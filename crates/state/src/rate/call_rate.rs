//! Rates of calls.

use std::fmt;
use std::str::FromStr;

const MINUTES: u64 = 60;
const SECONDS: u64 = 3_600;
/// Most calls an hour that can be configured: a million a second.
const PER_HOUR_MAX: u64 = 1_000_000 * SECONDS;

/// Rate of calls, from one an hour to a million a second.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallRate {
    per_hour: u64,
}

impl CallRate {
    /// Returns a rate of calls a second, limited to its bounds.
    #[must_use]
    pub fn per_second(calls: u64) -> Self {
        Self::per_hour(calls.saturating_mul(SECONDS))
    }

    /// Returns a rate of calls a minute, limited to its bounds.
    #[must_use]
    pub fn per_minute(calls: u64) -> Self {
        Self::per_hour(calls.saturating_mul(MINUTES))
    }

    /// Returns a rate of calls an hour, limited to its bounds.
    #[must_use]
    pub fn per_hour(calls: u64) -> Self {
        Self {
            per_hour: calls.clamp(1, PER_HOUR_MAX),
        }
    }

    /// Returns the calls an hour.
    #[must_use]
    pub fn calls_per_hour(self) -> u64 {
        self.per_hour
    }
}

impl fmt::Display for CallRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (calls, unit) = [(SECONDS, "s"), (MINUTES, "m"), (1, "h")]
            .into_iter()
            .find(|(in_an_hour, _)| self.per_hour.is_multiple_of(*in_an_hour))
            .unwrap_or((1, "h"));
        write!(f, "{}/{unit}", self.per_hour / calls)
    }
}

impl FromStr for CallRate {
    type Err = String;

    /// Parses `10/s`, `600/m` or `5000/h`. The error continues a sentence that begins with the text.
    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || "is not a rate; write 10/s, 600/m or 5000/h".to_owned();
        let (number, unit) = text.split_once('/').ok_or_else(wrong)?;
        let in_an_hour = match unit.trim() {
            "s" => SECONDS,
            "m" => MINUTES,
            "h" => 1,
            _ => return Err(wrong()),
        };
        let number = number.trim();
        if number.is_empty() || !number.bytes().all(|b| b.is_ascii_digit()) {
            return Err(wrong());
        }
        let per_hour = number
            .parse::<u64>()
            .ok()
            .and_then(|calls| calls.checked_mul(in_an_hour));
        match per_hour {
            Some(0) => Err("lets nothing through; write at least 1/h".into()),
            Some(per_hour) if per_hour <= PER_HOUR_MAX => Ok(Self { per_hour }),
            Some(_) | None => Err("is too much; write at most 1000000/s".into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_parsed_and_printed() {
        const WRONG: Result<&str, &str> = Err("is not a rate; write 10/s, 600/m or 5000/h");
        const TOO_MUCH: Result<&str, &str> = Err("is too much; write at most 1000000/s");
        let cases = [
            ("10/s", Ok("10/s")),
            ("600/m", Ok("10/s")),
            (" 90 / m ", Ok("90/m")),
            ("5000 / h", Ok("5000/h")),
            ("1/h", Ok("1/h")),
            ("1000000/s", Ok("1000000/s")),
            ("0/s", Err("lets nothing through; write at least 1/h")),
            ("1000001/s", TOO_MUCH),
            ("99999999999999999999/s", TOO_MUCH),
            ("10", WRONG),
            ("10/d", WRONG),
            ("/s", WRONG),
            ("1.5/s", WRONG),
            ("-1/s", WRONG),
            ("+1/s", WRONG),
            ("", WRONG),
        ];
        for (text, expected) in cases {
            let read = text.parse::<CallRate>().map(|rate| rate.to_string());
            assert_eq!(
                read.as_deref().map_err(String::as_str),
                expected,
                "{text:?}"
            );
        }
    }
}
