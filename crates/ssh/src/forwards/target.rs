//! `HOST:PORT`: where a connection of a forward leads.

use std::net::IpAddr;

/// Longest name of a host, in characters.
const HOST_CHARS_MAX: usize = 253;

/// The one spelling of a host, so that a rule about it meets every spelling: an address as it is usually written, an
/// IPv4 address never as an IPv6 one, a name in lower case and without the dot of the root.
fn canonical(host: &str) -> Result<String, &'static str> {
    let host = host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase();
    if let Ok(address) = host.parse::<IpAddr>() {
        let address = address.to_canonical();
        return match address.is_unspecified() {
            true => Err("the unspecified address leads to no host; name one"),
            false => Ok(address.to_string()),
        };
    }
    // What a resolver reads as an IPv4 address although it is not written as one: 127.1, 2130706433, 0x7f.0.0.1.
    let last = host.rsplit('.').next().unwrap_or_default();
    let digits = last.strip_prefix("0x");
    let is_number = match digits {
        Some(digits) => digits.bytes().all(|byte| byte.is_ascii_hexdigit()),
        None => !last.is_empty() && last.bytes().all(|byte| byte.is_ascii_digit()),
    };
    match is_number {
        true => Err("write an IPv4 address as four decimal numbers"),
        false if host.is_empty() => Err("a host has a name"),
        false => Ok(host),
    }
}

/// Where a connection leads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Target {
    /// A name or an address, lower case, without brackets.
    pub host: String,
    pub port: u16,
}

impl Target {
    /// Reads `HOST:PORT` or `[ADDRESS]:PORT`.
    ///
    /// # Errors
    /// What is wrong, in words.
    pub fn read(text: &str) -> Result<Self, String> {
        let wrong = || format!("\"{text}\" is not HOST:PORT; write an IPv6 address in brackets");
        let (host, port) = text.rsplit_once(':').ok_or_else(wrong)?;
        let bare = host.strip_prefix('[').map(|host| host.strip_suffix(']'));
        let host = match bare {
            Some(Some(host)) if host.parse::<std::net::Ipv6Addr>().is_ok() => host,
            Some(_) => return Err(wrong()),
            None => host,
        };
        let is_address = bare.is_some();
        let fits = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
        if !is_address && (host.is_empty() || host.starts_with('-') || !host.chars().all(fits)) {
            return Err(wrong());
        }
        let is_number = !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
        let port = port.parse().ok().filter(|port| *port > 0 && is_number);
        let port = port.ok_or_else(wrong)?;
        if host.len() > HOST_CHARS_MAX {
            return Err(format!("a host is longer than {HOST_CHARS_MAX} characters"));
        }
        let host = canonical(host).map_err(|wrong| format!("\"{text}\": {wrong}"))?;
        Ok(Self { host, port })
    }

    /// The target of a client's own request; none where it is spelled as no target can be.
    pub fn asked(host: &str, port: u16) -> Option<Self> {
        let host = canonical(host).ok()?;
        Some(Self { host, port })
    }

    /// As rules and records have it.
    pub fn text(&self) -> String {
        if self.host.contains(':') {
            format!("[{}]:{}", self.host, self.port)
        } else {
            format!("{}:{}", self.host, self.port)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_a_host_and_a_port_and_nothing_else() {
        for (text, as_read) in [
            ("DB.example.com:5432", "db.example.com:5432"),
            ("10.0.0.1:80", "10.0.0.1:80"),
            ("[::1]:80", "[::1]:80"),
            // Each spelling of one host is one target.
            ("[::ffff:127.0.0.1]:22", "127.0.0.1:22"),
            ("[::FFFF:a9fe:a9fe]:80", "169.254.169.254:80"),
            ("[0:0:0:0:0:0:0:1]:80", "[::1]:80"),
            ("db.example.com.:5432", "db.example.com:5432"),
        ] {
            assert_eq!(Target::read(text).unwrap().text(), as_read);
        }
        for text in [
            "",
            "a",
            ":80",
            "a:",
            "a:0",
            "a:65536",
            "a:+1",
            "a b:1",
            "-a:1",
            "::1:80",
            "[x]:1",
            "[::1:1",
            "a:1:2",
            "user@a:1",
            "a/b:1",
            "ä:1",
            "127.1:22",
            "2130706433:22",
            "0x7f000001:22",
            "0x7F.0.0.1:22",
            "0177.0.0.1:22",
            "127.0.0.01:22",
            "1.2.3.4.5:1",
            "0.0.0.0:22",
            "[::]:22",
            "[::ffff:0.0.0.0]:22",
            ".:1",
            "0x:1",
        ] {
            assert!(Target::read(text).is_err(), "{text}");
        }
    }
}
