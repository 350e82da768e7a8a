//! `HOST:PORT`: where a connection of a forward leads.

/// Longest name of a host, in characters.
const HOST_CHARS_MAX: usize = 253;

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
        Ok(Self {
            host: host.to_ascii_lowercase(),
            port,
        })
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
        ] {
            assert_eq!(Target::read(text).unwrap().text(), as_read);
        }
        for text in [
            "", "a", ":80", "a:", "a:0", "a:65536", "a:+1", "a b:1", "-a:1", "::1:80", "[x]:1",
            "[::1:1", "a:1:2", "user@a:1", "a/b:1", "ä:1",
        ] {
            assert!(Target::read(text).is_err(), "{text}");
        }
    }
}
