//! Address of a server, and the connection to it.

use crate::error::LabError;
use std::fmt;
use std::io;
use std::net::{TcpStream, ToSocketAddrs};
use std::str::FromStr;
use std::time::Duration;

/// The longest single read: between two of them it is looked whether an end was asked for.
const READ_ROUND: Duration = Duration::from_millis(500);

/// An `http://` address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct HttpUrl {
    authority: String,
    path: String,
}

impl FromStr for HttpUrl {
    type Err = LabError;

    fn from_str(text: &str) -> Result<Self, LabError> {
        let wrong = |what: &str| LabError::Usage(format!("{text} cannot be called: {what}"));
        let rest = text
            .strip_prefix("http://")
            .ok_or_else(|| wrong("the lab speaks http:// only"))?;
        let (authority, path) = match rest.find(['/', '?']) {
            Some(at) => rest.split_at(at),
            None => (rest, "/"),
        };
        let plain = |c: char| c.is_ascii_graphic() && c != '#';
        if authority.is_empty() || authority.contains('@') || !text.chars().all(plain) {
            return Err(wrong(
                "it is not an address of the form http://host:port/path",
            ));
        }
        let path = if path.starts_with('?') {
            format!("/{path}")
        } else {
            path.to_owned()
        };
        Ok(Self {
            authority: authority.to_owned(),
            path,
        })
    }
}

impl fmt::Display for HttpUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "http://{}{}", self.authority, self.path)
    }
}

impl HttpUrl {
    /// Host and port as they were given.
    pub(crate) fn authority(&self) -> &str {
        &self.authority
    }

    /// Returns the same server at another path, which begins with a slash.
    pub(crate) fn at(&self, path: &str) -> Self {
        Self {
            authority: self.authority.clone(),
            path: path.to_owned(),
        }
    }

    /// Returns the head of a request but for its last lines.
    pub(crate) fn head(&self, method: &str, headers: &[String]) -> Vec<u8> {
        let mut head = format!(
            "{method} {} HTTP/1.1\r\nhost: {}\r\nuser-agent: durward-lab\r\n",
            self.path, self.authority
        );
        for header in headers {
            head.push_str(header);
            head.push_str("\r\n");
        }
        head.into_bytes()
    }

    pub(crate) fn connect(&self, timeout: Duration) -> io::Result<TcpStream> {
        let with_port = match self.authority.rsplit_once(':') {
            Some((_, port)) if port.parse::<u16>().is_ok() => self.authority.clone(),
            _ => format!("{}:80", self.authority),
        };
        let mut last = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
        for address in with_port.to_socket_addrs()? {
            match TcpStream::connect_timeout(&address, timeout) {
                Ok(stream) => {
                    stream.set_nodelay(true)?;
                    stream.set_read_timeout(Some(timeout.min(READ_ROUND)))?;
                    stream.set_write_timeout(Some(timeout))?;
                    return Ok(stream);
                }
                Err(error) => last = error,
            }
        }
        Err(last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses() {
        let url: HttpUrl = "http://localhost:80/a?b=c".parse().unwrap();
        assert_eq!(
            (url.authority.as_str(), url.path.as_str()),
            ("localhost:80", "/a?b=c")
        );
        let url: HttpUrl = "http://h?x".parse().unwrap();
        assert_eq!(url.path, "/?x");
        for text in [
            "https://h",
            "http://",
            "http://u:p@h/",
            "http://h/ x",
            "http://h/\r\nx",
            "h",
        ] {
            assert!(text.parse::<HttpUrl>().is_err(), "{text}");
        }
    }
}
