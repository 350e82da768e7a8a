//! URLs in the strings of a call, and the addresses that they lead to.
//!
//! Readers of URLs disagree: one takes `\` for a slash, another for a letter; one reads `0127` as octal, another as
//! decimal. A URL therefore has several readings. Rules that refuse or ask match if any reading matches; a rule that
//! allows needs all of them. What a name resolves to is known to the server alone, when it asks.

mod find;
mod host;
mod path;
mod read;

pub(crate) use find::is_url;
pub(crate) use host::one_host;
pub use host::{AddressClass, host_aliases};
pub(crate) use path::spellings;
pub use read::default_port;

/// Where a URL stands in a string.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UrlPosition {
    /// It is all of the string.
    Whole,
    /// It is a part of the string.
    Part,
    /// It is inside another URL, or shows only after decoding: allow rules ignore it.
    Nested,
}

/// One way to read a URL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UrlReading {
    /// The scheme, lower case.
    pub scheme: String,
    /// The host in canonical form: IPv4 as four decimals, IPv6 in brackets, names in ASCII; empty for `file:`.
    pub host: String,
    /// The class of the host's address; absent without a host.
    pub class: Option<AddressClass>,
    /// The port, that of the scheme by default.
    pub port: Option<u16>,
    /// The path as servers may read it: decoded or not, dot segments resolved or not.
    pub paths: Vec<String>,
    /// It carries a user name or a password. Neither is kept.
    pub has_userinfo: bool,
}

impl UrlReading {
    /// Returns the canonical texts without userinfo, query and fragment, one for each path.
    pub fn texts(&self) -> impl Iterator<Item = String> {
        let host = &self.host;
        self.paths
            .iter()
            .map(move |path| self.with_host(host, path))
    }

    /// Returns the canonical text with another host in place of its own.
    pub(crate) fn with_host(&self, host: &str, path: &str) -> String {
        let scheme = &self.scheme;
        match self.port {
            Some(port) if default_port(scheme) != Some(port) => {
                format!("{scheme}://{host}:{port}{path}")
            }
            Some(_) | None => format!("{scheme}://{host}{path}"),
        }
    }
}

/// A URL of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UrlArgument {
    /// Where it stands.
    pub position: UrlPosition,
    /// Every reading known, each once.
    pub readings: Vec<UrlReading>,
    /// Some reader may go where no reading here leads.
    pub uncertain: bool,
    /// Servers may resolve its path to different places: no allow rule counts on it.
    pub ambiguous: bool,
}

/// The URLs of a call.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CallUrls {
    list: Vec<UrlArgument>,
    unread: bool,
    bytes_read: usize,
}

impl CallUrls {
    /// Returns the URLs in the order in which they were found.
    #[must_use]
    pub fn list(&self) -> &[UrlArgument] {
        &self.list
    }

    /// Returns whether there is no URL, as far as strings were read.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.list.is_empty() && !self.unread
    }

    /// Returns whether there are more URLs than were read.
    #[must_use]
    pub fn is_unread(&self) -> bool {
        self.unread
    }

    /// Marks the URLs as known in part.
    pub fn mark_unread(&mut self) {
        self.unread = true;
    }

    /// Returns the readings that a rule compares: all for one that refuses or asks, none that is nested for one that
    /// allows.
    pub fn readings(&self, with_nested: bool) -> impl Iterator<Item = &UrlReading> {
        let counted = move |url: &&UrlArgument| with_nested || url.position != UrlPosition::Nested;
        self.list
            .iter()
            .filter(counted)
            .flat_map(|url| &url.readings)
    }

    /// Returns the size in memory, about, in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        const ENTRY_BYTES: usize = 160;
        let of_reading = |reading: &UrlReading| {
            let paths: usize = reading.paths.iter().map(|path| 32 + path.len()).sum();
            ENTRY_BYTES + reading.host.len() + paths
        };
        let readings = self.list.iter().flat_map(|url| &url.readings);
        ENTRY_BYTES * self.list.len() + readings.map(of_reading).sum::<usize>()
    }
}

#[cfg(test)]
mod tests;
