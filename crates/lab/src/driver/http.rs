//! A blocking HTTP/1.1 client on the timed path: one kept connection, one request at a time. Only `http://`.
//!
//! It follows no redirect, keeps no cookie and decodes no compression: what the server does is measured,
//! not repaired.

use super::answer::{Answer, Envelope};
use crate::error::LabError;
use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::str::FromStr;
use std::time::{Duration, Instant};

/// The largest answer, head and body, in bytes.
const ANSWER_BYTES_MAX: usize = 64 * 1024 * 1024;
/// The largest head, in bytes.
const HEAD_BYTES_MAX: usize = 64 * 1024;
/// How much one read asks for, in bytes.
const PIECE_BYTES: usize = 64 * 1024;
/// How long a session's name may be, in bytes.
const SESSION_BYTES_MAX: usize = 1_024;

/// An `http://` address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Url {
    authority: String,
    path: String,
}

impl FromStr for Url {
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
            return Err(wrong("it is no address of the form http://host:port/path"));
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

impl Url {
    /// The head of a request but for its last lines.
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

    fn connect(&self, timeout: Duration) -> io::Result<TcpStream> {
        let with_port = match self.authority.rsplit_once(':') {
            Some((_, port)) if port.parse::<u16>().is_ok() => self.authority.clone(),
            _ => format!("{}:80", self.authority),
        };
        let mut last = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
        for address in with_port.to_socket_addrs()? {
            match TcpStream::connect_timeout(&address, timeout) {
                Ok(stream) => {
                    stream.set_nodelay(true)?;
                    stream.set_read_timeout(Some(timeout))?;
                    stream.set_write_timeout(Some(timeout))?;
                    return Ok(stream);
                }
                Err(error) => last = error,
            }
        }
        Err(last)
    }
}

/// What is known of an answer; its body waits in [`HttpConnection::body`].
#[derive(Debug, Clone, Copy)]
pub(crate) struct HttpReply {
    pub(crate) status: u16,
    /// From before the write to the last byte.
    pub(crate) elapsed_ns: u64,
    /// The same to the first byte behind the head.
    pub(crate) first_ns: u64,
    /// Bytes of the whole answer.
    pub(crate) bytes: usize,
    /// Whether it is a stream of server-sent events.
    pub(crate) is_stream: bool,
}

/// A kept connection.
#[derive(Debug)]
pub(crate) struct HttpConnection {
    stream: TcpStream,
    buffer: Vec<u8>,
    filled: usize,
    body: Vec<u8>,
    session: Option<String>,
    timeout: Duration,
    url: Url,
    /// The server said that it closes.
    closed: bool,
}

/// How the end of a body is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Length {
    Bytes(usize),
    Chunked,
    UntilClosed,
}

#[derive(Debug)]
struct Head {
    status: u16,
    length: Length,
    is_stream: bool,
    session: Option<String>,
    /// Whether the server closes behind it.
    closes: bool,
    /// Where the body begins.
    size: usize,
}

impl HttpConnection {
    /// Connects.
    pub(crate) fn open(url: &Url, timeout_ms: u64) -> Result<Self, LabError> {
        let timeout = Duration::from_millis(timeout_ms);
        Ok(Self {
            stream: url.connect(timeout).map_err(|error| LabError::Broken {
                arm: "target".into(),
                what: format!("cannot connect to {}: {error}", url.authority),
            })?,
            buffer: vec![0; PIECE_BYTES],
            filled: 0,
            body: Vec::new(),
            session: None,
            timeout,
            url: url.clone(),
            closed: false,
        })
    }

    /// The body of the last answer.
    pub(crate) fn body(&self) -> &[u8] {
        &self.body
    }

    /// The session that the server named, if it did.
    pub(crate) fn session(&self) -> Option<&str> {
        self.session.as_deref()
    }

    /// One timed exchange, with a new connection where the server closed the last one; an error comes with the nanoseconds until then.
    pub(crate) fn exchange(&mut self, request: &[u8]) -> Result<HttpReply, (u64, io::Error)> {
        let start = Instant::now();
        self.filled = 0;
        let reply = self.send(request).and_then(|()| self.read(start));
        reply.map_err(|error| (nanoseconds(start), error))
    }

    fn send(&mut self, request: &[u8]) -> io::Result<()> {
        if std::mem::take(&mut self.closed) {
            self.stream = self.url.connect(self.timeout)?;
        }
        self.stream.write_all(request)
    }

    fn read(&mut self, start: Instant) -> io::Result<HttpReply> {
        let head = loop {
            self.more(start)?;
            let seen = self.buffer.get(..self.filled).unwrap_or_default();
            if let Some(head) = Head::read(seen).map_err(io::Error::other)? {
                break head;
            }
            if self.filled > HEAD_BYTES_MAX {
                return Err(io::Error::other("a head longer than 64 KiB"));
            }
        };
        let mut first_ns = (self.filled > head.size).then(|| nanoseconds(start));
        while !self.is_whole(&head).map_err(io::Error::other)? {
            if self.filled - head.size > ANSWER_BYTES_MAX {
                return Err(io::Error::other("an answer longer than 64 MiB"));
            }
            match self.more(start) {
                Err(error)
                    if head.length == Length::UntilClosed
                        && error.kind() == io::ErrorKind::UnexpectedEof =>
                {
                    break;
                }
                other => other?,
            }
            first_ns.get_or_insert_with(|| nanoseconds(start));
        }
        let elapsed_ns = nanoseconds(start);
        self.closed = head.closes;
        if head.session.is_some() {
            self.session.clone_from(&head.session);
        }
        Ok(HttpReply {
            status: head.status,
            elapsed_ns,
            first_ns: first_ns.unwrap_or(elapsed_ns),
            bytes: self.filled,
            is_stream: head.is_stream,
        })
    }

    /// Reads what is there; waits for something.
    fn more(&mut self, start: Instant) -> io::Result<()> {
        if start.elapsed() > self.timeout {
            return Err(io::ErrorKind::TimedOut.into());
        }
        if self.buffer.len() - self.filled < PIECE_BYTES / 2 {
            self.buffer.resize(self.buffer.len() * 2, 0);
        }
        let free = self.buffer.get_mut(self.filled..).unwrap_or_default();
        match self.stream.read(free)? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            read => {
                self.filled += read;
                Ok(())
            }
        }
    }

    /// Whether the whole body is there, which then is in `body`.
    fn is_whole(&mut self, head: &Head) -> Result<bool, String> {
        let there = self.buffer.get(head.size..self.filled).unwrap_or_default();
        self.body.clear();
        match head.length {
            Length::Bytes(length) => {
                let Some(body) = there.get(..length) else {
                    return Ok(false);
                };
                self.body.extend_from_slice(body);
                Ok(true)
            }
            Length::Chunked => chunks(there, &mut self.body),
            Length::UntilClosed => {
                self.body.extend_from_slice(there);
                Ok(false)
            }
        }
    }
}

impl Head {
    /// The head of an answer, once all of it is there.
    fn read(bytes: &[u8]) -> Result<Option<Self>, String> {
        let Some(end) = memchr::memmem::find(bytes, b"\r\n\r\n") else {
            return Ok(None);
        };
        let text = std::str::from_utf8(bytes.get(..end).unwrap_or_default())
            .map_err(|_| "a head that is no text")?;
        let mut lines = text.split("\r\n");
        let status = lines
            .next()
            .and_then(|line| line.strip_prefix("HTTP/1."))
            .and_then(|rest| rest.split(' ').nth(1)?.parse().ok())
            .ok_or("what came is no HTTP/1.1 answer")?;
        let bodiless = matches!(status, 204 | 304);
        let mut head = Self {
            status,
            length: if bodiless {
                Length::Bytes(0)
            } else {
                Length::UntilClosed
            },
            is_stream: false,
            session: None,
            closes: text.starts_with("HTTP/1.0"),
            size: end + 4,
        };
        for (name, value) in lines.filter_map(|line| line.split_once(':')) {
            let value = value.trim();
            if name.eq_ignore_ascii_case("content-length") && head.length != Length::Chunked {
                let length = value
                    .parse()
                    .map_err(|_| "a content-length that is no number")?;
                head.length = Length::Bytes(length);
            } else if name.eq_ignore_ascii_case("transfer-encoding") {
                head.length = Length::Chunked;
            } else if name.eq_ignore_ascii_case("connection") {
                head.closes = !value.eq_ignore_ascii_case("keep-alive");
            } else if name.eq_ignore_ascii_case("content-type") {
                head.is_stream = value.starts_with("text/event-stream");
            } else if name.eq_ignore_ascii_case("mcp-session-id")
                && value.len() <= SESSION_BYTES_MAX
                && value.bytes().all(|b| b.is_ascii_graphic())
            {
                head.session = Some(value.to_owned());
            }
        }
        head.closes |= head.length == Length::UntilClosed;
        Ok(Some(head))
    }
}

/// Joins the chunks of a body; whether its end is there.
fn chunks(mut there: &[u8], body: &mut Vec<u8>) -> Result<bool, String> {
    loop {
        let Some(end) = memchr::memmem::find(there, b"\r\n") else {
            return Ok(false);
        };
        let line = there.get(..end).unwrap_or_default();
        let digits = line.split(|b| *b == b';').next().unwrap_or_default();
        let size = std::str::from_utf8(digits)
            .ok()
            .and_then(|digits| usize::from_str_radix(digits.trim(), 16).ok())
            .filter(|size| *size <= ANSWER_BYTES_MAX)
            .ok_or("a chunk whose size is no number")?;
        let begin = end + 2;
        let Some(piece) = there.get(begin..begin + size) else {
            return Ok(false);
        };
        let Some(rest) = there.get(begin + size..).filter(|rest| rest.len() >= 2) else {
            return Ok(false);
        };
        // Behind the last chunk may stand trailers; nobody here asks for them.
        if size == 0 {
            return Ok(rest.ends_with(b"\r\n"));
        }
        body.extend_from_slice(piece);
        there = rest.get(2..).unwrap_or_default();
    }
}

/// The answer to request `id` in a body: the body itself, or the event of a stream that answers it.
pub(crate) fn read_answer<T>(
    body: &[u8],
    is_stream: bool,
    id: u64,
    take: impl FnOnce(&Answer<'_>) -> T,
) -> Result<T, String> {
    if !is_stream {
        let envelope = Envelope::read(body)?;
        if !envelope.answers(id) {
            return Err(format!("the answer is not the one to id {id}"));
        }
        return Ok(take(&envelope.answer()?));
    }
    for line in body.split(|b| *b == b'\n') {
        let Some(data) = line.strip_prefix(b"data:") else {
            continue;
        };
        let data = data.trim_ascii();
        if data.is_empty() {
            continue;
        }
        let envelope = Envelope::read(data)?;
        if envelope.answers(id) {
            return Ok(take(&envelope.answer()?));
        }
    }
    Err(format!("no event of the stream answers id {id}"))
}

fn nanoseconds(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses() {
        let url: Url = "http://localhost:80/a?b=c".parse().unwrap();
        assert_eq!(
            (url.authority.as_str(), url.path.as_str()),
            ("localhost:80", "/a?b=c")
        );
        let url: Url = "http://h?x".parse().unwrap();
        assert_eq!(url.path, "/?x");
        for text in [
            "https://h",
            "http://",
            "http://u:p@h/",
            "http://h/ x",
            "http://h/\r\nx",
            "h",
        ] {
            assert!(text.parse::<Url>().is_err(), "{text}");
        }
    }

    #[test]
    fn heads_and_chunks() {
        let head =
            Head::read(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nMcp-Session-Id: s1\r\n\r\nhello");
        let head = head.unwrap().unwrap();
        assert_eq!((head.status, head.length), (200, Length::Bytes(5)));
        assert_eq!(head.session.as_deref(), Some("s1"));
        assert!(Head::read(b"HTTP/1.1 200 OK\r\nA: b").unwrap().is_none());
        assert!(Head::read(b"SSH-2.0-x\r\n\r\n").is_err());
        assert!(Head::read(b"HTTP/1.1 200 OK\r\ncontent-length: x\r\n\r\n").is_err());
        let whole = b"3\r\nabc\r\n2;x=y\r\nde\r\n0\r\n\r\n";
        for cut in 0..whole.len() {
            let mut body = Vec::new();
            assert_eq!(chunks(&whole[..cut], &mut body), Ok(false), "{cut}");
        }
        let mut body = Vec::new();
        assert_eq!(chunks(whole, &mut body), Ok(true));
        assert_eq!(body, b"abcde");
        assert!(chunks(b"zz\r\n", &mut body).is_err());
        assert!(chunks(b"ffffffffffffffff\r\n", &mut body).is_err());
    }

    #[test]
    fn answers_plain_and_in_streams() {
        let say = |answer: &Answer<'_>| matches!(answer, Answer::Result(_));
        let plain = br#"{"jsonrpc":"2.0","id":3,"result":{}}"#;
        assert_eq!(read_answer(plain, false, 3, say), Ok(true));
        assert!(read_answer(plain, false, 4, say).is_err());
        let stream = b"event: message\ndata: {\"method\":\"notifications/x\"}\n\n\
data: {\"id\":3,\"error\":{\"code\":1,\"message\":\"no\"}}\r\n\r\n";
        assert_eq!(read_answer(stream, true, 3, say), Ok(false));
        assert!(read_answer(b": nothing\n", true, 3, say).is_err());
    }
}
