//! So many calls in a time.

use std::fmt;
use std::str::FromStr;

/// Most calls a minute that can be configured.
const PER_MINUTE_MAX: u32 = 60_000_000;

/// A rate of calls, at least one a minute and at most a million a second.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate {
    per_minute: u32,
}

impl Rate {
    /// So many calls a second; 0 counts as one a minute, more than a million as a million.
    #[must_use]
    pub fn per_second(calls: u32) -> Self {
        Self::per_minute(calls.saturating_mul(60))
    }

    /// So many calls a minute, brought into bounds.
    #[must_use]
    pub fn per_minute(calls: u32) -> Self {
        Self {
            per_minute: calls.clamp(1, PER_MINUTE_MAX),
        }
    }

    /// Calls a minute.
    #[must_use]
    pub fn calls_per_minute(self) -> u32 {
        self.per_minute
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.per_minute.is_multiple_of(60) {
            write!(f, "{}/s", self.per_minute / 60)
        } else {
            write!(f, "{}/m", self.per_minute)
        }
    }
}

impl FromStr for Rate {
    type Err = String;

    /// Reads `10/s`, `600/m`, or `10`, which is by the second.
    fn from_str(text: &str) -> Result<Self, String> {
        let (number, unit) = text.split_once('/').unwrap_or((text, "s"));
        let in_a_minute = match unit.trim() {
            "s" | "sec" | "second" => 60,
            "m" | "min" | "minute" => 1,
            other => return Err(format!("unknown unit \"{other}\"; write 10/s or 600/m")),
        };
        let number = number.trim();
        let calls: u32 = number
            .parse()
            .map_err(|_| format!("\"{number}\" is not a whole number; write 10/s or 600/m"))?;
        calls
            .checked_mul(in_a_minute)
            .filter(|calls| (1..=PER_MINUTE_MAX).contains(calls))
            .map(|per_minute| Self { per_minute })
            .ok_or_else(|| format!("{text} is out of bounds; it can be 1/m to 1000000/s"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_read_and_shown() {
        let cases = [
            ("10/s", Ok("10/s")),
            ("10", Ok("10/s")),
            (" 600 / m ", Ok("10/s")),
            ("90/m", Ok("90/m")),
            ("1/minute", Ok("1/m")),
            ("1000000/s", Ok("1000000/s")),
            ("0", Err("0 is out of bounds; it can be 1/m to 1000000/s")),
            (
                "1000001/s",
                Err("1000001/s is out of bounds; it can be 1/m to 1000000/s"),
            ),
            (
                "99999999999/s",
                Err("\"99999999999\" is not a whole number; write 10/s or 600/m"),
            ),
            (
                "-1/s",
                Err("\"-1\" is not a whole number; write 10/s or 600/m"),
            ),
            (
                "1.5/s",
                Err("\"1.5\" is not a whole number; write 10/s or 600/m"),
            ),
            ("10/h", Err("unknown unit \"h\"; write 10/s or 600/m")),
            ("", Err("\"\" is not a whole number; write 10/s or 600/m")),
        ];
        for (text, expected) in cases {
            let read = text.parse::<Rate>().map(|rate| rate.to_string());
            assert_eq!(
                read.as_deref().map_err(String::as_str),
                expected,
                "{text:?}"
            );
        }
    }
}
