//! One kept HTTP/1.1 connection: what is told is sent, what comes is read within its bounds.

use super::{ExchangeError, excerpt};
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

/// The longest head of a response, in bytes.
const HEAD_BYTES_MAX: usize = 64 * 1024;
/// How much one read asks for, in bytes.
const READ_BYTES: usize = 64 * 1024;

/// A connection. It reads nothing ahead of what it is asked for, apart from one buffer.
#[derive(Debug)]
pub struct Connection {
    stream: TcpStream,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    /// The head of the last response.
    head: Vec<u8>,
    /// What is left of the last response's body.
    body: Body,
    timeout: Duration,
    body_bytes_max: u64,
}

/// Returns host and path of `http://HOST:PORT/PATH`.
#[must_use]
pub fn split_url(url: &str) -> Option<(&str, &str)> {
    let rest = url.strip_prefix("http://")?;
    let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let path = if path.is_empty() { "/" } else { path };
    (!host.is_empty()).then_some((host, path))
}

/// What is left of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Body {
    Done,
    Length(u64),
    /// Bytes left of the current chunk; the line end behind it included.
    Chunk(u64),
    /// The size line of a chunk comes next.
    ChunkHead,
    UntilClose,
}

impl Connection {
    /// Connects, with one time limit for connecting and for each wait.
    ///
    /// # Errors
    /// When nobody answers at the address.
    pub fn open(
        address: SocketAddr,
        timeout: Duration,
        body_bytes_max: u64,
    ) -> Result<Self, ExchangeError> {
        let stream = TcpStream::connect_timeout(&address, timeout)?;
        stream.set_nodelay(true)?;
        stream.set_write_timeout(Some(timeout))?;
        stream.set_read_timeout(Some(timeout))?;
        Ok(Self {
            stream,
            buffer: vec![0; READ_BYTES],
            start: 0,
            end: 0,
            head: Vec::new(),
            body: Body::Done,
            timeout,
            body_bytes_max,
        })
    }

    /// The socket, to close it while another thread reads.
    ///
    /// # Errors
    /// When the system gives no second handle.
    pub fn socket(&self) -> io::Result<TcpStream> {
        self.stream.try_clone()
    }

    /// Sends bytes as they are.
    ///
    /// # Errors
    /// When the server does not take them in time, or is gone.
    pub fn send(&mut self, bytes: &[u8]) -> Result<(), ExchangeError> {
        self.stream
            .write_all(bytes)
            .map_err(|error| self.failed(error, "room in the connection"))
    }

    /// Reads the head of a response; returns its status. Interim responses are passed over.
    ///
    /// # Errors
    /// When none comes in time, the server is gone, or it is no head.
    pub fn read_head(&mut self) -> Result<u16, ExchangeError> {
        loop {
            self.read_head_text()?;
            let status = self.status()?;
            if (100..200).contains(&status) {
                continue;
            }
            self.body = self.framing(status)?;
            return Ok(status);
        }
    }

    fn read_head_text(&mut self) -> Result<(), ExchangeError> {
        self.head.clear();
        loop {
            let from = self.head.len().saturating_sub(3);
            let unread = self.buffer.get(self.start..self.end).unwrap_or_default();
            self.head.extend_from_slice(unread);
            let tail = self.head.get(from..).unwrap_or_default();
            if let Some(place) = memchr::memmem::find(tail, b"\r\n\r\n") {
                let head = from + place + 4;
                self.start = self.end - (self.head.len() - head);
                self.head.truncate(head);
                return Ok(());
            }
            self.start = self.end;
            if self.head.len() > HEAD_BYTES_MAX {
                return Err(ExchangeError::NotHttp {
                    reason: format!("a head of more than {HEAD_BYTES_MAX} bytes"),
                });
            }
            if self.fill("the head of a response")? == 0 {
                return Err(self.closed());
            }
        }
    }

    fn status(&self) -> Result<u16, ExchangeError> {
        let line = self.head.strip_prefix(b"HTTP/1.1 ").unwrap_or_default();
        let digits = line
            .get(..3)
            .and_then(|text| std::str::from_utf8(text).ok());
        digits
            .and_then(|text| text.parse().ok())
            .ok_or_else(|| ExchangeError::NotHttp {
                reason: format!("no status line: {}", excerpt(&self.head, 60)),
            })
    }

    fn framing(&self, status: u16) -> Result<Body, ExchangeError> {
        if matches!(status, 204 | 304) {
            return Ok(Body::Done);
        }
        if self
            .header("transfer-encoding")
            .is_some_and(|coding| coding.eq_ignore_ascii_case("chunked"))
        {
            return Ok(Body::ChunkHead);
        }
        let Some(length) = self.header("content-length") else {
            return Ok(Body::UntilClose);
        };
        let length = length.parse().map_err(|_| ExchangeError::NotHttp {
            reason: format!("content-length {length}"),
        })?;
        self.bounded(length)?;
        Ok(Body::Length(length))
    }

    fn bounded(&self, bytes: u64) -> Result<(), ExchangeError> {
        if bytes <= self.body_bytes_max {
            return Ok(());
        }
        Err(ExchangeError::TooLong {
            bytes_max: usize::try_from(self.body_bytes_max).unwrap_or(usize::MAX),
        })
    }

    /// A header of the last response, by its name in lower case; the first, where it is doubled.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.head
            .split(|byte| *byte == b'\n')
            .skip(1)
            .find_map(|line| {
                let colon = memchr::memchr(b':', line)?;
                let (given, value) = line.split_at(colon);
                if !given.eq_ignore_ascii_case(name.as_bytes()) {
                    return None;
                }
                std::str::from_utf8(value.get(1..)?).ok().map(str::trim)
            })
    }

    /// Appends the next part of the body to `into`; false at its end.
    ///
    /// # Errors
    /// When nothing comes in time, the server is gone before the end, or the chunks are broken.
    pub fn read_part(&mut self, into: &mut Vec<u8>) -> Result<bool, ExchangeError> {
        loop {
            match self.body {
                Body::Done => return Ok(false),
                Body::ChunkHead => self.read_chunk_head()?,
                Body::Length(0) => self.body = Body::Done,
                Body::Length(left) => {
                    let taken = self.take(left, into)?;
                    self.body = Body::Length(left - taken);
                    return Ok(true);
                }
                Body::Chunk(2) => {
                    self.skip_line_end()?;
                    self.body = Body::ChunkHead;
                }
                Body::Chunk(left) => {
                    let taken = self.take(left - 2, into)?;
                    self.body = Body::Chunk(left - taken);
                    return Ok(true);
                }
                Body::UntilClose => {
                    if self.start == self.end && self.fill("the body")? == 0 {
                        self.body = Body::Done;
                        return Ok(false);
                    }
                    self.take(u64::MAX, into)?;
                    return Ok(true);
                }
            }
        }
    }

    /// Reads the rest of the body into `into`.
    ///
    /// # Errors
    /// As [`Connection::read_part`]; also when it is longer than the bound.
    pub fn read_body(&mut self, into: &mut Vec<u8>) -> Result<(), ExchangeError> {
        while self.read_part(into)? {
            self.bounded(into.len() as u64)?;
        }
        Ok(())
    }

    /// Whether the last response was read to its end and the server keeps the connection.
    #[must_use]
    pub fn is_kept(&self) -> bool {
        let closes = self
            .header("connection")
            .is_some_and(|value| value.eq_ignore_ascii_case("close"));
        self.body == Body::Done && !closes
    }

    /// Moves at most `most` bytes that were read to `into`, reading first where there are none.
    fn take(&mut self, most: u64, into: &mut Vec<u8>) -> Result<u64, ExchangeError> {
        if self.start == self.end && self.fill("the body")? == 0 {
            return Err(self.closed());
        }
        let there = self.buffer.get(self.start..self.end).unwrap_or_default();
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        let taken = there.get(..most).unwrap_or(there);
        into.extend_from_slice(taken);
        let count = taken.len();
        self.start += count;
        Ok(count as u64)
    }

    fn read_chunk_head(&mut self) -> Result<(), ExchangeError> {
        let line = self.read_line()?;
        let size = line.split(';').next().unwrap_or_default().trim();
        let size = u64::from_str_radix(size, 16).map_err(|_| ExchangeError::NotHttp {
            reason: format!("a chunk of size {size:?}"),
        })?;
        if size > 0 {
            self.body = Body::Chunk(size.saturating_add(2));
            return Ok(());
        }
        while !self.read_line()?.is_empty() {}
        self.body = Body::Done;
        Ok(())
    }

    fn skip_line_end(&mut self) -> Result<(), ExchangeError> {
        match self.read_line()?.as_str() {
            "" => Ok(()),
            line => Err(ExchangeError::NotHttp {
                reason: format!("a chunk that ends with {line:?}"),
            }),
        }
    }

    fn read_line(&mut self) -> Result<String, ExchangeError> {
        let mut line = Vec::new();
        while line.len() < 1024 {
            if self.start == self.end && self.fill("a chunk")? == 0 {
                return Err(self.closed());
            }
            let byte = self.buffer.get(self.start).copied().unwrap_or_default();
            self.start += 1;
            match byte {
                b'\n' => {
                    let text = String::from_utf8_lossy(&line);
                    return Ok(text.trim_end_matches('\r').to_owned());
                }
                byte => line.push(byte),
            }
        }
        Err(ExchangeError::NotHttp {
            reason: "a chunk's size line of more than 1024 bytes".into(),
        })
    }

    fn fill(&mut self, waiting_for: &str) -> Result<usize, ExchangeError> {
        (self.start, self.end) = (0, 0);
        let deadline = Instant::now() + self.timeout;
        loop {
            match self.stream.read(&mut self.buffer) {
                Ok(read) => {
                    self.end = read;
                    return Ok(read);
                }
                Err(error)
                    if error.kind() == io::ErrorKind::Interrupted && Instant::now() < deadline => {}
                Err(error) => return Err(self.failed(error, waiting_for)),
            }
        }
    }

    fn failed(&self, error: io::Error, waiting_for: &str) -> ExchangeError {
        match error.kind() {
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => ExchangeError::Timeout {
                waiting_for: waiting_for.into(),
                after: self.timeout,
            },
            _ => ExchangeError::Io(error),
        }
    }

    fn closed(&self) -> ExchangeError {
        ExchangeError::Closed {
            rest: excerpt(&self.head, 200),
        }
    }
}
