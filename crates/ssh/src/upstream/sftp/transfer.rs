//! Files in both directions, many requests under way at once.

use std::collections::{BTreeMap, HashMap};
use std::io;

use super::files::{Handle, OK, refused};
use super::packet::{Reading, field};
use super::{STATUS, Sftp};
use crate::files::Source;

/// Where what is written comes from, in order.
pub(crate) trait Feed: Send {
    /// The next bytes, at most so many; none at the end.
    fn next(&mut self, most: usize) -> impl Future<Output = io::Result<Vec<u8>>> + Send;
}

impl Feed for Source {
    async fn next(&mut self, most: usize) -> io::Result<Vec<u8>> {
        Self::next(self, most).await
    }
}

impl Feed for &[u8] {
    async fn next(&mut self, most: usize) -> io::Result<Vec<u8>> {
        let (next, rest) = self.split_at(most.min(self.len()));
        *self = rest;
        Ok(next.to_vec())
    }
}

const READ: u8 = 5;
const WRITE: u8 = 6;
const DATA: u8 = 103;
/// How many requests are under way at once.
pub(crate) const REQUESTS: usize = 64;
/// How much one request is about, in bytes: what every server takes.
const CHUNK_BYTES: u32 = 32 * 1024;
/// A status: there is no more.
const END: u32 = 1;

/// Where what is read goes, in order.
pub(crate) trait Sink: Send {
    /// Takes the next bytes.
    fn push(&mut self, bytes: &[u8]) -> impl Future<Output = io::Result<()>> + Send;
}

/// A read that is under way.
struct Asked {
    from: u64,
    bytes: u32,
}

impl Sftp {
    /// Reads a file from a place in it to its end, at most so many bytes; gives how many there were.
    pub async fn read_into(
        &mut self,
        handle: &Handle,
        from: u64,
        most: u64,
        sink: &mut impl Sink,
    ) -> io::Result<u64> {
        let named = field(&handle.0)?;
        let mut reading = InOrder::new(from);
        let mut under_way: HashMap<u32, Asked> = HashMap::new();
        let (mut next, mut is_over) = (from, false);
        let end = from.saturating_add(most);
        loop {
            while !is_over && under_way.len() < REQUESTS && next < end {
                let left = u32::try_from(end - next).unwrap_or(u32::MAX);
                let bytes = left.min(CHUNK_BYTES);
                self.ask_for(&named, next, bytes, &mut under_way).await?;
                next += u64::from(bytes);
            }
            if under_way.is_empty() {
                return Ok(reading.next - from);
            }
            let (kind, id, rest) = self.answer().await?;
            let asked = under_way.remove(&id).ok_or(io::ErrorKind::InvalidData)?;
            let mut answer = Reading(&rest);
            match kind {
                DATA => {
                    let data = answer.bytes()?;
                    let got = u32::try_from(data.len()).unwrap_or(u32::MAX);
                    if got == 0 || got > asked.bytes {
                        return Err(io::ErrorKind::InvalidData.into());
                    }
                    if got < asked.bytes {
                        // A server may give less than it was asked for.
                        let from = asked.from + u64::from(got);
                        self.ask_for(&named, from, asked.bytes - got, &mut under_way)
                            .await?;
                    }
                    reading.put(asked.from, data.to_vec());
                    while let Some(bytes) = reading.take() {
                        sink.push(&bytes).await?;
                    }
                }
                STATUS if answer.number()? == END => is_over = true,
                _ => return Err(refused(&rest)),
            }
        }
    }

    async fn ask_for(
        &mut self,
        named: &[u8],
        from: u64,
        bytes: u32,
        under_way: &mut HashMap<u32, Asked>,
    ) -> io::Result<()> {
        let fields: [&[u8]; 3] = [named, &from.to_be_bytes(), &bytes.to_be_bytes()];
        let id = self.ask(READ, &fields).await?;
        under_way.insert(id, Asked { from, bytes });
        Ok(())
    }

    /// Writes a file from a place in it on; gives how many bytes.
    pub async fn write_from(
        &mut self,
        handle: &Handle,
        from: u64,
        source: &mut impl Feed,
    ) -> io::Result<u64> {
        let named = field(&handle.0)?;
        let (mut next, mut under_way, mut is_over) = (from, 0_usize, false);
        loop {
            while !is_over && under_way < REQUESTS {
                let chunk = source
                    .next(usize::try_from(CHUNK_BYTES).unwrap_or(0))
                    .await?;
                if chunk.is_empty() {
                    is_over = true;
                    break;
                }
                let data = field(&chunk)?;
                self.ask(WRITE, &[&named, &next.to_be_bytes(), &data])
                    .await?;
                next += u64::try_from(chunk.len()).unwrap_or(0);
                under_way += 1;
            }
            if under_way == 0 {
                return Ok(next - from);
            }
            let (_, _, rest) = self.answer().await?;
            under_way -= 1;
            if Reading(&rest).number()? != OK {
                return Err(refused(&rest));
            }
        }
    }
}

/// Pieces that come in any order, given in the right one. There are no more than requests under way.
struct InOrder {
    next: u64,
    waiting: BTreeMap<u64, Vec<u8>>,
}

impl InOrder {
    fn new(next: u64) -> Self {
        Self {
            next,
            waiting: BTreeMap::new(),
        }
    }

    fn put(&mut self, from: u64, bytes: Vec<u8>) {
        self.waiting.insert(from, bytes);
    }

    fn take(&mut self) -> Option<Vec<u8>> {
        let bytes = self.waiting.remove(&self.next)?;
        self.next += u64::try_from(bytes.len()).unwrap_or(0);
        Some(bytes)
    }
}
