//! One URL, read as different libraries read it: by the WHATWG's rules (browsers, undici), and by RFC 3986 as urllib,
//! httpx, Go and curl apply it.

use super::host::hosts;
use super::path::readings as paths;
use super::{UrlArgument, UrlPosition, UrlReading};

/// Longest URL that is read, in bytes.
pub(super) const URL_BYTES_MAX: usize = 8 * 1024;
/// Most readings of one URL.
const READINGS_MAX: usize = 32;

/// Returns the port that a scheme has by default.
#[must_use]
pub fn default_port(scheme: &str) -> Option<u16> {
    Some(match scheme {
        "http" | "ws" => 80,
        "https" | "wss" => 443,
        "ftp" => 21,
        "ftps" => 990,
        "ssh" | "sftp" => 22,
        "gopher" => 70,
        "ldap" => 389,
        "ldaps" => 636,
        "redis" => 6379,
        "postgres" | "postgresql" => 5432,
        "mysql" => 3306,
        "mongodb" => 27017,
        "amqp" => 5672,
        _ => return None,
    })
}

/// Returns whether the WHATWG's rules treat a scheme as one of a host, whatever slashes follow it.
pub(super) fn is_special(scheme: &str) -> bool {
    matches!(scheme, "http" | "https" | "ws" | "wss" | "ftp")
}

/// Splits a text at the colon behind its scheme.
pub(super) fn split_scheme(text: &str) -> Option<(String, &str)> {
    let (scheme, rest) = text.split_once(':')?;
    let starts = scheme.starts_with(|c: char| c.is_ascii_alphabetic());
    let is_scheme = starts && scheme.len() > 1 && scheme.bytes().all(is_scheme_byte);
    is_scheme.then(|| (scheme.to_ascii_lowercase(), rest))
}

pub(super) fn is_scheme_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"+-.".contains(&byte)
}

/// Returns whether a text begins as a URL that has a host or is a file's.
pub(super) fn begins_url(text: &str) -> bool {
    split_scheme(text).is_some_and(|(scheme, rest)| {
        rest.starts_with("//") || ((is_special(&scheme) || scheme == "file") && !rest.is_empty())
    })
}

/// Reads a URL; absent where the text is none.
pub(super) fn read(text: &str, position: UrlPosition) -> Option<UrlArgument> {
    let cut = floor(text, URL_BYTES_MAX);
    let is_cut = cut.len() < text.len();
    let plain: String = cut
        .chars()
        .filter(|c| !matches!(c, '\t' | '\n' | '\r'))
        .collect();
    let (scheme, rest) = split_scheme(&plain)?;
    let mut reader = UrlReader {
        scheme,
        out: UrlArgument {
            position,
            readings: Vec::new(),
            uncertain: is_cut,
            ambiguous: false,
        },
    };
    reader.by_whatwg(&plain);
    reader.by_rfc(rest);
    if reader.scheme == "file" && reader.out.readings.is_empty() {
        reader.file(rest);
    }
    reader.out.uncertain |= reader.out.readings.is_empty();
    Some(reader.out)
}

/// Returns the beginning of a text, at most so many bytes.
pub(super) fn floor(text: &str, bytes: usize) -> &str {
    let mut end = bytes.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.get(..end).unwrap_or_default()
}

struct UrlReader {
    scheme: String,
    out: UrlArgument,
}

impl UrlReader {
    fn by_whatwg(&mut self, text: &str) {
        if !is_special(&self.scheme) {
            return;
        }
        let Ok(url) = url::Url::parse(text) else {
            return;
        };
        let Some(host) = url.host_str() else { return };
        let has_userinfo = !url.username().is_empty() || url.password().is_some();
        self.add(host, url.port_or_known_default(), url.path(), has_userinfo);
    }

    fn by_rfc(&mut self, rest: &str) {
        let slashes = rest.trim_start_matches(['/', '\\']);
        let behind = match rest.strip_prefix("//") {
            Some(behind) => behind,
            // curl takes one slash, or none, for two.
            None if is_special(&self.scheme) => slashes,
            None => return,
        };
        if self.scheme == "file" {
            self.file(rest);
            return;
        }
        let behind = match behind.starts_with('/') && is_special(&self.scheme) {
            true => slashes,
            false => behind,
        };
        let end = behind.find(['/', '?', '#']).unwrap_or(behind.len());
        self.with_authority(behind, end);
        // Some readers look for the end of the authority by its slash alone.
        let slash = behind.find('/').unwrap_or(behind.len());
        let more = behind.get(end..slash).unwrap_or_default();
        if more.contains('@') {
            self.with_authority(behind, slash);
        }
    }

    /// Reads what stands before `end` as user, host and port.
    fn with_authority(&mut self, behind: &str, end: usize) {
        let (authority, rest) = behind.split_at_checked(end).unwrap_or((behind, ""));
        let path = rest.split(['?', '#']).next().unwrap_or_default();
        let path = if path.is_empty() { "/" } else { path };
        // Most readers take the last `@`, some the first one.
        let splits = [authority.rsplit_once('@'), authority.split_once('@')];
        let mut done: Vec<&str> = Vec::new();
        for split in splits {
            let (user, behind) = split.unwrap_or(("", authority));
            let host_and_port = behind.split('@').next().unwrap_or_default();
            if done.contains(&host_and_port) {
                continue;
            }
            done.push(host_and_port);
            let has_userinfo = !user.is_empty();
            for (host, port) in self.split_port(host_and_port) {
                self.add(&host, port, path, has_userinfo);
            }
        }
    }

    /// Returns the hosts and ports that a text of both may be.
    fn split_port(&mut self, text: &str) -> Vec<(String, Option<u16>)> {
        let default = default_port(&self.scheme);
        if text.contains('\\') {
            // The WHATWG's reading ends before it; for the others it is in no name.
            return Vec::new();
        }
        if text.starts_with('[') {
            let Some((inside, behind)) = text.split_once(']') else {
                self.out.uncertain = true;
                return Vec::new();
            };
            let port = self.port(behind.strip_prefix(':').unwrap_or_default());
            return vec![(format!("{inside}]"), port.or(default))];
        }
        if text.matches(':').count() > 1 {
            self.out.uncertain = true;
            let mut out = Vec::new();
            if text.parse::<std::net::Ipv6Addr>().is_ok() {
                out.push((format!("[{text}]"), default));
            }
            for split in [text.split_once(':'), text.rsplit_once(':')]
                .into_iter()
                .flatten()
            {
                let port = split.1.split(':').next().unwrap_or_default();
                let port = self.port(port);
                if !split.0.contains(':') {
                    out.push((split.0.to_owned(), port.or(default)));
                }
            }
            return out;
        }
        match text.split_once(':') {
            Some((host, port)) => {
                let port = self.port(port);
                vec![(host.to_owned(), port.or(default))]
            }
            None => vec![(text.to_owned(), default)],
        }
    }

    /// Reads a port as lenient readers do: signs, blanks, underscores and digits of other scripts count.
    fn port(&mut self, text: &str) -> Option<u16> {
        use unicode_normalization::UnicodeNormalization as _;
        let plain: String = text
            .nfkc()
            .filter(|c| !c.is_whitespace() && *c != '_')
            .collect();
        let plain = percent_encoding::percent_decode_str(&plain).decode_utf8_lossy();
        let digits = plain.trim_start_matches('+');
        if digits.is_empty() {
            return None;
        }
        let digits = match digits.trim_start_matches('0') {
            "" => "0",
            digits => digits,
        };
        if !digits.bytes().all(|b| b.is_ascii_digit()) {
            self.out.uncertain = true;
            return None;
        }
        match digits.parse::<u16>() {
            Ok(port) => Some(port),
            Err(_) => {
                self.out.uncertain = true;
                let wide = digits.parse::<u128>().unwrap_or_default();
                u16::try_from(wide & 0xffff).ok()
            }
        }
    }

    /// Reads a `file:` URL; its host matters to few readers.
    fn file(&mut self, rest: &str) {
        let plain = rest.replace('\\', "/");
        let behind = plain.strip_prefix("//");
        let (host, path) = match behind {
            Some(behind) => behind.split_at(behind.find('/').unwrap_or(behind.len())),
            None => ("", plain.as_str()),
        };
        let path = path.split(['?', '#']).next().unwrap_or_default();
        if host.is_empty() {
            self.push(UrlReading {
                scheme: self.scheme.clone(),
                host: String::new(),
                class: None,
                port: None,
                paths: paths(path).0,
                has_userinfo: false,
            });
        } else {
            self.add(host, None, path, false);
        }
    }

    fn add(&mut self, host: &str, port: Option<u16>, path: &str, has_userinfo: bool) {
        let (paths, has_dots) = paths(path);
        let found = hosts(host);
        self.out.uncertain |= found.uncertain;
        self.out.ambiguous |= has_dots;
        for host in found.hosts {
            self.push(UrlReading {
                scheme: self.scheme.clone(),
                host: host.text,
                class: Some(host.class),
                port,
                paths: paths.clone(),
                has_userinfo,
            });
        }
    }

    fn push(&mut self, reading: UrlReading) {
        if self.out.readings.contains(&reading) {
            return;
        }
        if self.out.readings.len() < READINGS_MAX {
            self.out.readings.push(reading);
        } else {
            self.out.uncertain = true;
        }
    }
}
