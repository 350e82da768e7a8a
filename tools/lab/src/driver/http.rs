//! A blocking HTTP/1.1 client on the timed path: one kept connection, one request at a time. Only `http://`.
//!
//! It follows no redirect, keeps no cookie and decodes no compression: the server's behaviour is measured, not
//! repaired.

use super::answer::RpcEnvelope;
use super::nanoseconds;
use crate::interrupt;
use crate::url::HttpUrl;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::ops::Range;
use std::time::{Duration, Instant};

/// The largest answer, head and body, in bytes.
const ANSWER_BYTES_MAX: usize = 64 * 1024 * 1024;
/// The largest head, in bytes.
const HEAD_BYTES_MAX: usize = 64 * 1024;
/// How much one read asks for, in bytes.
const PIECE_BYTES: usize = 64 * 1024;
/// How long a session's name may be, in bytes.
const SESSION_BYTES_MAX: usize = 1_024;

/// Status and times of an answer; its body is in [`HttpConnection::body`].
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
    /// Where in the buffer a body of known length lies.
    plain: Range<usize>,
    /// A body that was joined from chunks.
    joined: Option<Vec<u8>>,
    /// The head of the answer that comes, once it is there.
    head: Option<ResponseHead>,
    start: Instant,
    first_ns: Option<u64>,
    session: Option<String>,
    timeout: Duration,
    url: HttpUrl,
    /// The server said that it closes.
    closed: bool,
}

/// How the end of a body is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BodyLength {
    Bytes(usize),
    Chunked,
    UntilClosed,
}

#[derive(Debug, Clone)]
struct ResponseHead {
    status: u16,
    length: BodyLength,
    is_stream: bool,
    session: Option<String>,
    /// Whether the server closes behind it.
    closes: bool,
    /// Offset of the body.
    size: usize,
}

impl HttpConnection {
    /// Connects.
    pub(crate) fn open(url: &HttpUrl, timeout_ms: u64) -> io::Result<Self> {
        let timeout = Duration::from_millis(timeout_ms);
        let cannot = |error: io::Error| {
            let what = format!("cannot connect to {}: {error}", url.authority());
            io::Error::new(error.kind(), what)
        };
        Ok(Self {
            stream: url.connect(timeout).map_err(cannot)?,
            buffer: vec![0; PIECE_BYTES],
            filled: 0,
            plain: 0..0,
            joined: None,
            head: None,
            start: Instant::now(),
            first_ns: None,
            session: None,
            timeout,
            url: url.clone(),
            closed: false,
        })
    }

    /// Returns the body of the last answer.
    pub(crate) fn body(&self) -> &[u8] {
        match &self.joined {
            Some(joined) => joined,
            None => self.buffer.get(self.plain.clone()).unwrap_or_default(),
        }
    }

    /// Returns the session that the server named, if it did.
    pub(crate) fn session(&self) -> Option<&str> {
        self.session.as_deref()
    }

    /// Returns the socket, to wait for several of them at once.
    pub(super) fn stream(&self) -> &TcpStream {
        &self.stream
    }

    /// Returns whether the server said that it closes behind the last answer.
    pub(super) fn is_closed(&self) -> bool {
        self.closed
    }

    /// When the exchange under way began.
    pub(super) fn exchange_start(&self) -> Instant {
        self.start
    }

    /// One timed exchange, with a new connection if the server closed the last one; an error comes with the nanoseconds
    /// until then.
    pub(crate) fn exchange(&mut self, request: &[u8]) -> Result<HttpReply, (u64, io::Error)> {
        let done = self.begin(request).and_then(|()| {
            loop {
                if let Some(reply) = self.advance()? {
                    return Ok(reply);
                }
            }
        });
        done.map_err(|error| (nanoseconds(self.start), error))
    }

    /// Starts the watch and sends a request.
    pub(super) fn begin(&mut self, request: &[u8]) -> io::Result<()> {
        self.start = Instant::now();
        self.filled = 0;
        self.joined = None;
        self.head = None;
        self.first_ns = None;
        if std::mem::take(&mut self.closed) {
            self.stream = self.url.connect(self.timeout)?;
        }
        self.stream.write_all(request)
    }

    /// Reads once, waiting for something to come; gives the answer when all of it is there.
    pub(super) fn advance(&mut self) -> io::Result<Option<HttpReply>> {
        match self.more() {
            Err(error)
                if error.kind() == io::ErrorKind::UnexpectedEof
                    && self.head.as_ref().map(|h| h.length) == Some(BodyLength::UntilClosed) =>
            {
                self.plain.end = self.filled;
                return Ok(self.take_reply());
            }
            other => other?,
        }
        if self.head.is_none() {
            self.find_head()?;
        }
        let Some(head) = &self.head else {
            return Ok(None);
        };
        if self.filled > head.size && self.first_ns.is_none() {
            self.first_ns = Some(nanoseconds(self.start));
        }
        if self.filled - head.size > ANSWER_BYTES_MAX {
            return Err(io::Error::other("an answer longer than 64 MiB"));
        }
        let (size, length) = (head.size, head.length);
        let there = self.buffer.get(size..self.filled).unwrap_or_default();
        match length {
            BodyLength::Bytes(length) if there.len() < length => return Ok(None),
            BodyLength::Bytes(length) => self.plain = size..size + length,
            BodyLength::Chunked => {
                // Cheap to restart: measured servers send few chunks.
                let mut body = Vec::new();
                if !chunks(there, &mut body).map_err(io::Error::other)? {
                    return Ok(None);
                }
                self.joined = Some(body);
            }
            BodyLength::UntilClosed => {
                self.plain = size..self.filled;
                return Ok(None);
            }
        }
        Ok(self.take_reply())
    }

    /// The head of the answer, where all of it is there.
    fn find_head(&mut self) -> io::Result<()> {
        let seen = self.buffer.get(..self.filled).unwrap_or_default();
        let Some(end) = memchr::memmem::find(seen, b"\r\n\r\n") else {
            if self.filled > HEAD_BYTES_MAX {
                return Err(io::Error::other("a head longer than 64 KiB"));
            }
            return Ok(());
        };
        let text = seen.get(..end).unwrap_or_default();
        let head = ResponseHead::read(text).map_err(io::Error::other)?;
        self.head = Some(head);
        Ok(())
    }

    /// Returns the complete answer, if there is one.
    fn take_reply(&mut self) -> Option<HttpReply> {
        let elapsed_ns = nanoseconds(self.start);
        let head = self.head.as_ref()?;
        self.closed = head.closes;
        if head.session.is_some() {
            self.session.clone_from(&head.session);
        }
        Some(HttpReply {
            status: head.status,
            elapsed_ns,
            first_ns: self.first_ns.unwrap_or(elapsed_ns),
            bytes: self.filled,
            is_stream: head.is_stream,
        })
    }

    /// Reads what is there; waits for something.
    fn more(&mut self) -> io::Result<()> {
        if self.buffer.len() - self.filled < PIECE_BYTES / 2 {
            self.buffer.resize(self.buffer.len() * 2, 0);
        }
        let free = self.buffer.get_mut(self.filled..).unwrap_or_default();
        loop {
            match self.stream.read(free) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(read) if self.start.elapsed() <= self.timeout => {
                    self.filled += read;
                    return Ok(());
                }
                // A server that keeps on sending, and never comes to an end, is too slow as well.
                Ok(_) => return Err(io::ErrorKind::TimedOut.into()),
                Err(error) if is_round(&error) && self.start.elapsed() < self.timeout => {
                    if interrupt::is_asked() {
                        return Err(io::ErrorKind::TimedOut.into());
                    }
                }
                Err(error) => return Err(error),
            }
        }
    }
}

/// Returns whether a read ended because its round did.
fn is_round(error: &io::Error) -> bool {
    use io::ErrorKind::{Interrupted, TimedOut, WouldBlock};
    matches!(error.kind(), Interrupted | TimedOut | WouldBlock)
}

impl ResponseHead {
    /// Reads a head, without the empty line behind it.
    fn read(bytes: &[u8]) -> Result<Self, String> {
        let text = std::str::from_utf8(bytes).map_err(|_| "a head that is not text")?;
        let mut lines = text.split("\r\n");
        let status = lines
            .next()
            .and_then(|line| line.strip_prefix("HTTP/1."))
            .and_then(|rest| rest.split(' ').nth(1)?.parse().ok())
            .ok_or("what came is not an HTTP/1.1 answer")?;
        let bodiless = matches!(status, 204 | 304);
        let mut head = Self {
            status,
            length: if bodiless {
                BodyLength::Bytes(0)
            } else {
                BodyLength::UntilClosed
            },
            is_stream: false,
            session: None,
            closes: text.starts_with("HTTP/1.0"),
            size: bytes.len() + 4,
        };
        for (name, value) in lines.filter_map(|line| line.split_once(':')) {
            let value = value.trim();
            if name.eq_ignore_ascii_case("content-length") && head.length != BodyLength::Chunked {
                let length = value
                    .parse()
                    .map_err(|_| "a content-length that is not a number")?;
                head.length = BodyLength::Bytes(length);
            } else if name.eq_ignore_ascii_case("transfer-encoding") {
                head.length = BodyLength::Chunked;
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
        head.closes |= head.length == BodyLength::UntilClosed;
        Ok(head)
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
            .ok_or("a chunk whose size is not a number")?;
        let begin = end + 2;
        let Some(piece) = there.get(begin..begin + size) else {
            return Ok(false);
        };
        let Some(rest) = there.get(begin + size..).filter(|rest| rest.len() >= 2) else {
            return Ok(false);
        };
        // The last chunk may have trailers, which are ignored.
        if size == 0 {
            return Ok(rest.ends_with(b"\r\n"));
        }
        body.extend_from_slice(piece);
        there = rest.get(2..).unwrap_or_default();
    }
}

/// Returns the message that answers request `id`: the body itself, or an event of a stream.
pub(super) fn find_answer(body: &[u8], is_stream: bool, id: u64) -> Result<&[u8], String> {
    if !is_stream {
        return match RpcEnvelope::read(body)?.answers(id) {
            true => Ok(body),
            false => Err(format!("the answer is not the one to id {id}")),
        };
    }
    for data in events(body) {
        if RpcEnvelope::read(data)?.answers(id) {
            return Ok(data);
        }
    }
    Err(format!("no event of the stream answers id {id}"))
}

/// Returns the data of a stream's events, of those that have any.
pub(super) fn events(body: &[u8]) -> impl Iterator<Item = &[u8]> {
    body.split(|b| *b == b'\n')
        .filter_map(|line| line.strip_prefix(b"data:"))
        .map(<[u8]>::trim_ascii)
        .filter(|data| !data.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_and_chunks() {
        let head =
            ResponseHead::read(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nMcp-Session-Id: s1");
        let head = head.unwrap();
        assert_eq!((head.status, head.length), (200, BodyLength::Bytes(5)));
        assert_eq!(head.session.as_deref(), Some("s1"));
        assert!(ResponseHead::read(b"SSH-2.0-x").is_err());
        assert!(ResponseHead::read(b"HTTP/1.1 200 OK\r\ncontent-length: x").is_err());
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
        let plain = br#"{"jsonrpc":"2.0","id":3,"result":{}}"#;
        assert_eq!(find_answer(plain, false, 3), Ok(&plain[..]));
        assert!(find_answer(plain, false, 4).is_err());
        let stream = b"event: message\ndata: {\"method\":\"notifications/x\"}\n\n\
data: {\"id\":3,\"error\":{\"code\":1,\"message\":\"no\"}}\r\n\r\n";
        let found = find_answer(stream, true, 3).unwrap();
        assert!(found.starts_with(b"{\"id\":3") && found.ends_with(b"}}"));
        assert!(find_answer(b": nothing\n", true, 3).is_err());
    }
}
