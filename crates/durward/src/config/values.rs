//! What the words of a configuration mean: spans of time, sizes, choices.

use std::fmt;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::str::FromStr;

use gate::limits::Then;

use crate::verify::Verify;

/// Where to listen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Listen {
    /// At an address.
    Address(SocketAddr),
    /// At a socket in the file system.
    Socket(PathBuf),
}

impl Listen {
    /// Whether nobody on another machine reaches it.
    pub fn is_local(&self) -> bool {
        match self {
            Self::Address(address) => address.ip().is_loopback(),
            Self::Socket(_) => true,
        }
    }
}

impl Default for Listen {
    fn default() -> Self {
        Self::Address((Ipv4Addr::LOCALHOST, 8765).into())
    }
}

impl FromStr for Listen {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || {
            "is not an address with a port; write 127.0.0.1:8765, [::1]:8765, localhost:8765 or unix:/run/durward.sock"
                .to_owned()
        };
        if let Some(path) = text.strip_prefix("unix:") {
            return match path.starts_with('/') {
                true => Ok(Self::Socket(path.into())),
                false => Err("is not an absolute path; write unix:/run/durward.sock".to_owned()),
            };
        }
        if let Some(port) = text.strip_prefix("localhost:") {
            let port = port.parse().map_err(|_| wrong())?;
            return Ok(Self::Address((Ipv4Addr::LOCALHOST, port).into()));
        }
        text.parse().map(Self::Address).map_err(|_| wrong())
    }
}

impl fmt::Display for Listen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address(address) => address.fmt(f),
            Self::Socket(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

/// A span of time, in milliseconds: `500ms`, `60s`, `10m`, `2h`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Span(pub u64);

/// The units of a span, longest first, in milliseconds.
const SPAN_UNITS: [(&str, u64); 4] = [("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)];

/// Read as well; what is written has hours.
const DAY: (&str, u64) = ("d", 86_400_000);

impl FromStr for Span {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || "is not a span of time; write 500ms, 60s, 10m, 2h or 30d".to_owned();
        let (number, unit) = split(text).ok_or_else(wrong)?;
        if unit.is_empty() {
            return Err(format!("has no unit; write {number}s for seconds"));
        }
        let (_, unit_ms) = SPAN_UNITS
            .iter()
            .chain(&[DAY])
            .find(|(name, _)| *name == unit)
            .ok_or_else(wrong)?;
        number
            .checked_mul(*unit_ms)
            .map(Self)
            .ok_or_else(|| "is too long".to_owned())
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The largest unit that loses nothing; minutes and hours only where there is more than one.
        let fits =
            |unit_ms: u64| self.0.is_multiple_of(unit_ms) && (unit_ms <= 1_000 || self.0 > unit_ms);
        match SPAN_UNITS.iter().find(|(_, unit_ms)| fits(*unit_ms)) {
            Some((unit, unit_ms)) => write!(f, "{}{unit}", self.0 / unit_ms),
            None => write!(f, "{}ms", self.0),
        }
    }
}

/// A size in bytes: `4096`, `64KiB`, `1MiB`, `2GiB`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Size(pub u64);

/// What is said of a text that is no size.
const SIZES: &str = "is not a size; write 4096 (bytes), 64KiB, 1MiB or 2GiB";

/// The units of a size, largest first, in bytes.
const SIZE_UNITS: [(&str, u64); 4] = [
    ("GiB", 1 << 30),
    ("MiB", 1 << 20),
    ("KiB", 1 << 10),
    ("B", 1),
];

impl FromStr for Size {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || SIZES.to_owned();
        let (number, unit) = split(text).ok_or_else(wrong)?;
        let unit = if unit.is_empty() { "B" } else { unit };
        let (_, unit_bytes) = SIZE_UNITS
            .iter()
            .find(|(name, _)| name.eq_ignore_ascii_case(unit))
            .ok_or_else(wrong)?;
        number
            .checked_mul(*unit_bytes)
            .map(Self)
            .ok_or_else(|| "is too large".to_owned())
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fits = |unit_bytes: &u64| self.0 >= *unit_bytes && self.0.is_multiple_of(*unit_bytes);
        match SIZE_UNITS
            .iter()
            .find(|(_, bytes)| *bytes > 1 && fits(bytes))
        {
            Some((unit, unit_bytes)) => write!(f, "{}{unit}", self.0 / unit_bytes),
            None => write!(f, "{}B", self.0),
        }
    }
}

/// `64KiB` into 64 and `KiB`.
fn split(text: &str) -> Option<(u64, &str)> {
    let text = text.trim();
    let end = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    Some((digits(number)?, unit.trim_start()))
}

/// Digits only: no sign, no underscore, no other base.
pub fn digits(text: &str) -> Option<u64> {
    let plain = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    plain.then(|| text.parse().ok()).flatten()
}

/// A closed set of words.
pub trait Choice: Copy + 'static {
    /// The words and what they mean.
    const WORDS: &'static [(&'static str, Self)];
}

/// The value of a word.
pub fn of_word<T: Choice>(word: &str) -> Option<T> {
    let found = T::WORDS.iter().find(|(known, _)| *known == word);
    found.map(|(_, value)| *value)
}

/// The word for a value.
pub fn word<T: Choice + PartialEq>(value: T) -> &'static str {
    T::WORDS
        .iter()
        .find(|(_, meant)| *meant == value)
        .map_or("?", |(word, _)| word)
}

/// A set of words with what they mean.
macro_rules! choice {
    ($(#[$about:meta])* $name:ident { $($(#[$inner:meta])* $variant:ident = $word:literal),+ $(,)? }) => {
        $(#[$about])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum $name { $($(#[$inner])* $variant),+ }
        impl Choice for $name {
            const WORDS: &'static [(&'static str, Self)] = &[$(($word, Self::$variant)),+];
        }
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(word(*self))
            }
        }
    };
}

choice! {
    /// How a server is reached.
    Transport {
        /// HTTP first where there is a URL, else standard streams.
        Auto = "auto",
        /// Its standard streams.
        Stdio = "stdio",
        /// Streamable HTTP.
        Http = "http",
        /// It is in this process.
        Builtin = "builtin",
    }
}

choice! {
    /// What a tool's changed definition leads to.
    Pin {
        /// Nothing.
        Off = "off",
        /// A warning.
        Warn = "warn",
        /// The tool is refused until a person approves of the new definition.
        Enforce = "enforce",
    }
}

impl Choice for Then {
    const WORDS: &'static [(&'static str, Self)] =
        &[("hitl", Self::Hitl), ("refuse", Self::Refuse)];
}

choice! {
    /// Whose API a model provider speaks.
    ProviderKind {
        /// OpenAI's, as many others do.
        Openai = "openai",
        /// Anthropic's.
        Anthropic = "anthropic",
        /// Gemini's.
        Google = "google",
        /// OpenAI's models on Azure.
        Azure = "azure",
        /// Anthropic's models at Amazon Bedrock.
        Bedrock = "bedrock",
        /// Google's and Anthropic's models at Google Vertex.
        Vertex = "vertex",
        /// Like OpenAI's, at Mistral.
        Mistral = "mistral",
        /// Like OpenAI's, at DeepSeek.
        Deepseek = "deepseek",
        /// Like OpenAI's, at Groq.
        Groq = "groq",
        /// Like OpenAI's, at Cerebras.
        Cerebras = "cerebras",
        /// Like OpenAI's, at SambaNova.
        Sambanova = "sambanova",
        /// Like OpenAI's, at Cohere.
        Cohere = "cohere",
        /// Like OpenAI's, on this machine.
        Local = "local",
        /// None: it answers by a script.
        Mock = "mock",
    }
}

choice! {
    /// Who may make an account.
    Registration {
        /// Administrators only.
        Closed = "closed",
        /// Whoever reaches the server.
        Open = "open",
    }
}

impl Choice for models::Per {
    const WORDS: &'static [(&'static str, Self)] = &[
        ("caller", Self::Caller),
        ("group", Self::Group),
        ("all", Self::All),
    ];
}

impl Choice for models::upstream::UnsupportedMembers {
    const WORDS: &'static [(&'static str, Self)] =
        &[("refuse", Self::Refuse), ("drop", Self::Drop)];
}

impl Choice for models::CachePer {
    const WORDS: &'static [(&'static str, Self)] =
        &[("caller", Self::Caller), ("tenant", Self::Tenant)];
}

impl Choice for models::Rotation {
    const WORDS: &'static [(&'static str, Self)] = &[
        ("none", Self::None),
        ("round_robin", Self::RoundRobin),
        ("weighted", Self::Weighted),
        ("least_latency", Self::LeastLatency),
        ("cheapest", Self::Cheapest),
        ("least_busy", Self::LeastBusy),
    ];
}

choice! {
    /// What becomes of links in descriptions.
    Links {
        /// They stay.
        Keep = "keep",
        /// Their text stays, the target goes.
        Strip = "strip",
    }
}

choice! {
    /// Who shares a server's process.
    Share {
        /// Each session has one of its own.
        Session = "session",
        /// One per caller.
        Caller = "caller",
        /// There is one.
        All = "all",
    }
}

impl From<Share> for mcp::upstream::Share {
    fn from(share: Share) -> Self {
        match share {
            Share::Session => Self::Session,
            Share::Caller => Self::Caller,
            Share::All => Self::All,
        }
    }
}

impl Choice for bool {
    const WORDS: &'static [(&'static str, Self)] = &[("true", true), ("false", false)];
}

impl Choice for mcp::federation::Prefix {
    const WORDS: &'static [(&'static str, Self)] =
        &[("auto", Self::Auto), ("always", Self::Always)];
}

choice! {
    /// When journal records are forced to the disk.
    Sync {
        /// Once a second.
        Interval = "interval",
        /// Before each call is sent.
        Every = "every",
        /// Left to the operating system.
        Never = "never",
    }
}

impl Choice for Verify {
    const WORDS: &'static [(&'static str, Self)] = &[
        ("stop", Self::Stop),
        ("report", Self::Report),
        ("off", Self::Off),
    ];
}

/// The word of the configuration.
impl Choice for mcp::message::refusal::Refusals {
    const WORDS: &'static [(&'static str, Self)] =
        &[("result", Self::Result), ("error", Self::Error)];
}

impl Choice for net::confine::Confine {
    const WORDS: &'static [(&'static str, Self)] = &[
        ("auto", Self::Auto),
        ("require", Self::Require),
        ("off", Self::Off),
    ];
}

/// The words of `network`.
///
/// # Errors
/// A sentence where it is neither of the two.
pub fn no_network(word: &str) -> Result<bool, String> {
    match word {
        "none" => Ok(true),
        "all" => Ok(false),
        _ => Err("network is none or all".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads, writes and compares; an error is compared by its words.
    fn check<T: FromStr<Err = String> + fmt::Display>(text: &str, expect: Result<&str, &str>) {
        let read = text.parse::<T>().map(|value| value.to_string());
        assert_eq!(
            read.as_deref().map_err(String::as_str),
            expect,
            "reading {text:?}"
        );
    }

    #[test]
    fn spans_of_time_are_read_and_written() {
        const WRONG: Result<&str, &str> =
            Err("is not a span of time; write 500ms, 60s, 10m, 2h or 30d");
        for (text, expect) in [
            ("60s", Ok("60s")),
            ("90s", Ok("90s")),
            ("1s", Ok("1s")),
            ("10m", Ok("10m")),
            ("120m", Ok("2h")),
            ("1h", Ok("60m")),
            ("500ms", Ok("500ms")),
            ("0s", Ok("0s")),
            (" 5 s ", Ok("5s")),
            ("60", Err("has no unit; write 60s for seconds")),
            ("", WRONG),
            ("s", WRONG),
            ("-5s", WRONG),
            ("1.5h", WRONG),
            ("5 days", WRONG),
            ("1h30m", WRONG),
            ("99999999999999999999s", WRONG),
            ("18446744073709551615h", Err("is too long")),
        ] {
            check::<Span>(text, expect);
        }
    }

    #[test]
    fn sizes_are_read_and_written() {
        const WRONG: Result<&str, &str> = Err(SIZES);
        for (text, expect) in [
            ("4096", Ok("4KiB")),
            ("64KiB", Ok("64KiB")),
            ("64 kib", Ok("64KiB")),
            ("1MiB", Ok("1MiB")),
            ("1000", Ok("1000B")),
            ("0", Ok("0B")),
            ("16GiB", Ok("16GiB")),
            ("64KB", WRONG),
            ("64K", WRONG),
            ("1e6", WRONG),
            ("", WRONG),
            ("99999999999GiB", Err("is too large")),
        ] {
            check::<Size>(text, expect);
        }
    }
}
