//! The bytes of a document, counted.

use std::io::{self, BufRead, Read};

use super::Limits;

/// Handed on at once, so that bounds are noticed in time even when the whole document lies in memory.
const CHUNK_BYTES: usize = 1 << 16;

/// A reader that counts lines and bytes, and stops at the bounds.
pub(super) struct Counted<R> {
    inner: R,
    line: u64,
    total: u64,
    in_tag: u64,
    limits: Limits,
    crossed: Option<(&'static str, u64)>,
}

impl<R: BufRead> Counted<R> {
    pub(super) fn new(inner: R, limits: Limits) -> Self {
        Self {
            inner,
            line: 1,
            total: 0,
            in_tag: 0,
            limits,
            crossed: None,
        }
    }

    pub(super) fn line(&self) -> u64 {
        self.line
    }

    pub(super) fn crossed(&self) -> Option<(&'static str, u64)> {
        self.crossed
    }

    pub(super) fn begin_tag(&mut self) {
        self.in_tag = 0;
    }

    fn check(&mut self) -> io::Result<()> {
        match self.crossed {
            Some(_) => Err(io::Error::other("bound crossed")),
            None => Ok(()),
        }
    }

    fn count(&mut self, bytes: u64) {
        self.total += bytes;
        self.in_tag += bytes;
        if self.total > self.limits.file_bytes_max {
            self.crossed = Some(("bytes in the file", self.limits.file_bytes_max));
        } else if self.in_tag > self.limits.tag_bytes_max {
            self.crossed = Some(("bytes in one tag", self.limits.tag_bytes_max));
        }
    }
}

impl<R: BufRead> Read for Counted<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let available = self.fill_buf()?;
        let n = available.len().min(out.len());
        for (to, from) in out.iter_mut().zip(available) {
            *to = *from;
        }
        self.consume(n);
        Ok(n)
    }
}

impl<R: BufRead> BufRead for Counted<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        self.check()?;
        let buffer = self.inner.fill_buf()?;
        Ok(buffer.get(..CHUNK_BYTES).unwrap_or(buffer))
    }

    fn consume(&mut self, amount: usize) {
        if let Ok(buffer) = self.inner.fill_buf() {
            let lines = buffer.iter().take(amount).filter(|b| **b == b'\n').count();
            self.line += lines as u64;
        }
        self.count(amount as u64);
        self.inner.consume(amount);
    }
}
