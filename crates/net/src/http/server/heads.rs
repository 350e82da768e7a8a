//! Where one request ends and the next begins, read as strictly as the parser behind is lenient.
//!
//! A line that ends in LF alone, and a length beside `Transfer-Encoding`, are read in two ways by different programs:
//! what one takes for a body another takes for a request (smuggling). Such a head is made unreadable on its way to
//! the parser, which then answers 400 and closes the connection. Of a body that is cut into chunks the parser passes over
//! what it does not know, so that there the connection breaks instead. Either way nothing more is read from it.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Longest line of a head whose meaning is looked at, in bytes. The parser takes no longer head.
const LINE_BYTES_MAX: usize = 512;
/// What no head can hold.
const UNREADABLE: u8 = 0;

/// Follows the bytes of a connection.
#[derive(Debug, Default)]
struct Heads {
    at: At,
    /// The beginning of the line under way.
    line: Vec<u8>,
    /// Whether the byte before was a CR.
    after_cr: bool,
    /// Whether the head has its first line.
    begun: bool,
    length: Option<u64>,
    chunked: bool,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum At {
    #[default]
    Head,
    /// So many bytes to the next head.
    Body(u64),
    Size,
    /// So many bytes to the next size, with the end of line behind them.
    Chunk(u64),
    Trailer,
    /// Something was made unreadable; nothing more is read.
    Over,
    /// The same where the parser would read on.
    Broken,
}

/// A line that two readers may read in two ways.
#[derive(Debug, PartialEq, Eq)]
struct Ambiguous;

impl Heads {
    /// Looks at the next bytes of the connection.
    fn see(&mut self, bytes: &mut [u8]) {
        let mut rest = bytes;
        while !rest.is_empty() {
            let skipped = match &mut self.at {
                At::Over | At::Broken => return,
                At::Body(left) | At::Chunk(left) => {
                    let skipped = usize::try_from(*left).map_or(rest.len(), |n| n.min(rest.len()));
                    *left -= skipped as u64;
                    skipped
                }
                At::Head | At::Size | At::Trailer => {
                    let end = memchr::memchr(b'\n', rest);
                    self.in_line(rest.get_mut(..end.map_or(rest.len(), |at| at + 1)))
                }
            };
            match self.at {
                At::Body(0) => self.at = At::Head,
                At::Chunk(0) => self.at = At::Size,
                _ => {}
            }
            rest = rest.get_mut(skipped..).unwrap_or_default();
        }
    }

    /// Takes a line, or a part of one that ends with the bytes that have come; how many bytes that are.
    fn in_line(&mut self, part: Option<&mut [u8]>) -> usize {
        let Some(part) = part else {
            return 0;
        };
        let taken = part.len();
        let Some((last, before)) = part.split_last_mut() else {
            return 0;
        };
        let cr_before = before.last().map_or(self.after_cr, |byte| *byte == b'\r');
        if *last == b'\n' && self.line.is_empty() {
            // Most lines come in one piece, and need not be kept.
            self.after_cr = false;
            let line = before.get(..LINE_BYTES_MAX).unwrap_or(before);
            let read = match cr_before {
                true => self.ended(line.strip_suffix(b"\r").unwrap_or(line)),
                false => Err(Ambiguous),
            };
            self.judged(read, last);
            return taken;
        }
        let room = LINE_BYTES_MAX.saturating_sub(self.line.len());
        self.line.extend(before.iter().take(room));
        if *last != b'\n' {
            if self.line.len() < LINE_BYTES_MAX {
                self.line.push(*last);
            }
            self.after_cr = *last == b'\r';
            return taken;
        }
        self.after_cr = false;
        if self.line.last() == Some(&b'\r') {
            self.line.pop();
        }
        let line = std::mem::take(&mut self.line);
        let read = match cr_before {
            true => self.ended(&line),
            false => Err(Ambiguous),
        };
        self.judged(read, last);
        self.line = line;
        self.line.clear();
        taken
    }

    /// A line that is ambiguous is made unreadable, and the last one.
    fn judged(&mut self, read: Result<(), Ambiguous>, last: &mut u8) {
        if read.is_err() {
            *last = UNREADABLE;
            self.at = match self.at {
                At::Head => At::Over,
                _ => At::Broken,
            };
        }
    }

    fn ended(&mut self, line: &[u8]) -> Result<(), Ambiguous> {
        match self.at {
            At::Size => {
                if line.len() >= LINE_BYTES_MAX {
                    // Its number may be longer than what was kept of it.
                    return Err(Ambiguous);
                }
                let digits = line.split(|byte| !byte.is_ascii_hexdigit()).next();
                let digits = digits.and_then(|digits| std::str::from_utf8(digits).ok());
                let size = digits.and_then(|digits| u64::from_str_radix(digits, 16).ok());
                self.at = match size.ok_or(Ambiguous)? {
                    0 => At::Trailer,
                    size => At::Chunk(size.checked_add(2).ok_or(Ambiguous)?),
                };
                Ok(())
            }
            At::Trailer => {
                if line.is_empty() {
                    self.at = At::Head;
                }
                Ok(())
            }
            At::Head if line.is_empty() => self.head_ended(),
            At::Head if !self.begun => {
                self.begun = true;
                Ok(())
            }
            At::Head => self.header(line),
            At::Body(_) | At::Chunk(_) | At::Over | At::Broken => Ok(()),
        }
    }

    fn header(&mut self, line: &[u8]) -> Result<(), Ambiguous> {
        if line.starts_with(b" ") || line.starts_with(b"\t") {
            // The line before goes on, for some.
            return Err(Ambiguous);
        }
        let says_no_length = |first: &u8| {
            first.is_ascii_alphabetic() && !matches!(first.to_ascii_lowercase(), b'c' | b't')
        };
        if line.first().is_some_and(says_no_length) {
            return Ok(());
        }
        let colon = line.iter().position(|byte| *byte == b':');
        let (name, value) = line.split_at(colon.unwrap_or(line.len()));
        let value = value.get(1..).unwrap_or_default().trim_ascii();
        if name.trim_ascii().eq_ignore_ascii_case(b"content-length") {
            let plain = !value.is_empty() && value.iter().all(u8::is_ascii_digit);
            let digits = std::str::from_utf8(value).map_err(|_| Ambiguous)?;
            let length = digits.parse().map_err(|_| Ambiguous)?;
            if !plain || self.length.replace(length).is_some() {
                return Err(Ambiguous);
            }
        } else if name.trim_ascii().eq_ignore_ascii_case(b"transfer-encoding") {
            if !value.eq_ignore_ascii_case(b"chunked") || self.chunked {
                return Err(Ambiguous);
            }
            self.chunked = true;
        }
        Ok(())
    }

    fn head_ended(&mut self) -> Result<(), Ambiguous> {
        if !std::mem::take(&mut self.begun) {
            // Empty lines before a request are skipped by everybody.
            return Ok(());
        }
        let (length, chunked) = (self.length.take(), std::mem::take(&mut self.chunked));
        self.at = match (length, chunked) {
            (Some(_), true) => return Err(Ambiguous),
            (None, true) => At::Size,
            (Some(length), false) if length > 0 => At::Body(length),
            (Some(_) | None, false) => At::Head,
        };
        Ok(())
    }
}

/// A connection's stream, of which nothing ambiguous is read.
pub(super) struct Strict<S> {
    stream: S,
    heads: Heads,
}

impl<S> Strict<S> {
    pub fn new(stream: S) -> Self {
        Self {
            stream,
            heads: Heads::default(),
        }
    }

    /// What it was made of.
    pub fn into_inner(self) -> S {
        self.stream
    }

    /// Whether all that was read are whole requests.
    pub fn is_between(&self) -> bool {
        self.heads.at == At::Head && !self.heads.begun && self.heads.line.is_empty()
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Strict<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.heads.at == At::Over {
            return Poll::Ready(Ok(()));
        }
        let before = buffer.filled().len();
        let read = match self.heads.at {
            At::Broken => Ok(()),
            _ => ready!(Pin::new(&mut self.stream).poll_read(cx, buffer)),
        };
        if let Some(come) = buffer.filled_mut().get_mut(before..) {
            self.heads.see(come);
        }
        if self.heads.at == At::Broken {
            buffer.set_filled(before);
            return Poll::Ready(Err(io::ErrorKind::InvalidData.into()));
        }
        Poll::Ready(read)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Strict<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, parts)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether the bytes pass as they are, however they come.
    #[track_caller]
    fn passes(text: &str) -> bool {
        let mut verdicts = Vec::new();
        for step in [1, 2, 7, text.len().max(1)] {
            let mut heads = Heads::default();
            let mut bytes = text.as_bytes().to_vec();
            bytes.chunks_mut(step).for_each(|part| heads.see(part));
            verdicts.push(bytes == text.as_bytes());
        }
        assert!(verdicts.windows(2).all(|two| two[0] == two[1]), "{text:?}");
        verdicts[0]
    }

    #[test]
    fn what_everybody_reads_alike_passes() {
        for text in [
            "GET / HTTP/1.1\r\nhost: a\r\n\r\n",
            "\r\n\r\nGET / HTTP/1.1\r\nhost: a\r\n\r\nGET / HTTP/1.1\r\nhost: a\r\n\r\n",
            "POST / HTTP/1.1\r\nContent-Length: 3\r\n\r\n\n\n\nGET / HTTP/1.1\r\n\r\n",
            "POST / HTTP/1.1\r\nContent-Length:0\r\n\r\nGET / HTTP/1.1\r\n\r\n",
            "POST / HTTP/1.1\r\ntransfer-encoding: Chunked\r\n\r\n3;x=1\r\n\n\n\n\r\nA\r\n0123456789\r\n0\r\nt: 1\r\n\r\nGET / HTTP/1.1\r\n\r\n",
        ] {
            assert!(passes(text), "{text:?}");
        }
    }

    #[test]
    fn j21_what_two_readers_may_read_in_two_ways_does_not() {
        for text in [
            "GET / HTTP/1.1\nhost: a\r\n\r\n",
            "GET / HTTP/1.1\r\nhost: a\n\r\n",
            "GET / HTTP/1.1\r\nhost: a\r\n\n",
            "\nGET / HTTP/1.1\r\n\r\n",
            "POST / HTTP/1.1\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n",
            "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n",
            "POST / HTTP/1.1\r\nContent-Length: 3\r\nContent-Length: 3\r\n\r\n",
            "POST / HTTP/1.1\r\nContent-Length : 3\r\nContent-Length: 4\r\n\r\n",
            "POST / HTTP/1.1\r\nContent-Length: +3\r\n\r\n",
            "POST / HTTP/1.1\r\nContent-Length: 3, 3\r\n\r\n",
            "POST / HTTP/1.1\r\nContent-Length: 99999999999999999999\r\n\r\n",
            "POST / HTTP/1.1\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
            "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n",
            "POST / HTTP/1.1\r\nhost: a\r\n Content-Length: 3\r\n\r\n",
            "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3\nabc\r\n0\r\n\r\n",
            "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n",
            "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3;a=b\nX\r\nabc\r\n0\r\n\r\n",
            "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nt: 1\n\r\n",
            "POST / HTTP/1.1\r\nContent-Length: 1\r\n\r\nxGET / HTTP/1.1\nhost: a\r\n\r\n",
        ] {
            assert!(!passes(text), "{text:?}");
        }
    }

    #[test]
    fn a_size_that_is_longer_than_what_is_kept_of_it_does_not_pass() {
        let zeros = "0".repeat(LINE_BYTES_MAX);
        let head = "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n";
        let hidden = "\r\n\r\nPOST / HTTP/1.1\r\nContent-Length: 9999\r\n\r\n";
        assert!(!passes(&format!(
            "{head}{zeros}{:x}\r\n{hidden}",
            hidden.len()
        )));
        assert!(passes(&format!(
            "{head}000{:x}\r\n{hidden}\r\n0\r\n\r\n",
            hidden.len()
        )));
    }

    #[tokio::test]
    async fn nothing_is_read_behind_what_two_readers_may_read_in_two_ways() {
        use tokio::io::AsyncReadExt as _;

        let head = "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n";
        let next = "GET / HTTP/1.1\nhost: a\n\n";
        for body in [
            "3;a=b\nX\r\nabc\r\n0\r\n\r\n",
            "3\r\nabc\r\n0\r\nt: 1\n\r\n",
        ] {
            let parts = [head, body, next].concat();
            for step in [7, parts.len()] {
                let mut connection = coming(&parts, step);
                let mut read = Vec::new();
                let end = connection.read_to_end(&mut read).await;
                assert_eq!(end.unwrap_err().kind(), io::ErrorKind::InvalidData);
                let read = String::from_utf8(read).unwrap();
                assert!(
                    parts.starts_with(&read) && !read.contains("GET"),
                    "{read:?}"
                );
                let again = connection.read_to_end(&mut Vec::new()).await;
                assert!(again.is_err(), "it stays broken");
            }
        }
    }

    /// A connection on which the text comes in pieces of so many bytes.
    fn coming(text: &str, step: usize) -> Strict<impl AsyncRead + Unpin> {
        let (mut client, server) = tokio::io::duplex(step);
        let text = text.to_owned();
        tokio::spawn(async move {
            use tokio::io::AsyncWriteExt as _;
            // The reader goes away in the middle.
            let _ = client.write_all(text.as_bytes()).await;
        });
        Strict::new(server)
    }
}
