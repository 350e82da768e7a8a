//! A file in blocks, read or written and digested by another thread while those before and after are on their way.

use std::fs::File;
use std::io::{self, Read as _, Write as _};

use ring::digest::{Context, SHA256};
use tokio::task::{JoinHandle, spawn_blocking};

/// Bytes of a block.
const BLOCK_BYTES: usize = 512 * 1024;

/// A file, and the digest of what was read from it or written to it so far.
pub(super) struct Digested {
    pub file: File,
    pub hash: Context,
}

type Done = (Digested, Vec<u8>, io::Result<()>);

/// Where the next block is.
enum State {
    /// Nobody works at it.
    Rests(Digested),
    /// A thread does.
    Works(JoinHandle<Done>),
    /// There is none: all was read, or something went wrong.
    Over(Option<Context>),
}

impl State {
    /// Waits for the thread; gives the file back, and the block.
    async fn rested(&mut self) -> io::Result<(Digested, Option<Vec<u8>>)> {
        match std::mem::replace(self, Self::Over(None)) {
            Self::Rests(digested) => Ok((digested, None)),
            Self::Works(work) => {
                let (digested, block, done) = work.await.map_err(io::Error::other)?;
                done?;
                Ok((digested, Some(block)))
            }
            Self::Over(_) => Err(io::Error::other("the file is no longer there")),
        }
    }
}

/// Reads a file from where it stands, a block ahead of whoever asks.
pub(super) struct Ahead {
    state: State,
    block: Vec<u8>,
    at: usize,
}

impl Ahead {
    pub fn of(file: File) -> Self {
        let hash = Context::new(&SHA256);
        Self {
            state: State::Rests(Digested { file, hash }),
            block: Vec::new(),
            at: 0,
        }
    }

    /// Bytes that are here already.
    pub fn held(bytes: Vec<u8>) -> Self {
        let mut hash = Context::new(&SHA256);
        hash.update(&bytes);
        Self {
            state: State::Over(Some(hash)),
            block: bytes,
            at: 0,
        }
    }

    /// The next bytes, at most so many; none at the end.
    pub async fn next(&mut self, most: usize) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::with_capacity(most.min(BLOCK_BYTES));
        while bytes.len() < most {
            if self.at == self.block.len() && !self.fill().await? {
                break;
            }
            let rest = self.block.get(self.at..).unwrap_or_default();
            let some = rest.get(..most - bytes.len()).unwrap_or(rest);
            bytes.extend_from_slice(some);
            self.at += some.len();
        }
        Ok(bytes)
    }

    /// Takes the next block, and has the one after it read; says whether there is one.
    async fn fill(&mut self) -> io::Result<bool> {
        if let State::Over(Some(_)) = self.state {
            return Ok(false);
        }
        let mut spare = std::mem::take(&mut self.block);
        self.at = 0;
        let (digested, block) = match self.state.rested().await? {
            (digested, Some(block)) => (digested, block),
            (digested, None) => {
                // The first one.
                self.state = read(digested, Vec::new());
                let (digested, block) = self.state.rested().await?;
                (digested, block.unwrap_or_default())
            }
        };
        if block.is_empty() {
            self.state = State::Over(Some(digested.hash));
            return Ok(false);
        }
        spare.clear();
        self.block = block;
        self.state = read(digested, spare);
        Ok(true)
    }

    /// The digest of the whole file; what was not asked for is read.
    pub async fn digest(mut self) -> io::Result<Context> {
        self.at = self.block.len();
        while self.fill().await? {
            self.at = self.block.len();
        }
        match self.state {
            State::Over(Some(hash)) => Ok(hash),
            _ => Err(io::Error::other("the file is no longer there")),
        }
    }
}

fn read(mut digested: Digested, mut block: Vec<u8>) -> State {
    State::Works(spawn_blocking(move || {
        let most = u64::try_from(BLOCK_BYTES).unwrap_or(u64::MAX);
        let read = (&digested.file).take(most).read_to_end(&mut block);
        digested.hash.update(&block);
        (digested, block, read.map(drop))
    }))
}

/// Writes to a file from where it stands, a block behind whoever gives the bytes.
pub(super) struct Behind {
    state: State,
    block: Vec<u8>,
}

impl Behind {
    pub fn of(digested: Digested) -> Self {
        Self {
            state: State::Rests(digested),
            block: Vec::with_capacity(BLOCK_BYTES),
        }
    }

    /// Adds bytes. What goes wrong with them may be told later.
    pub async fn push(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            let room = BLOCK_BYTES.saturating_sub(self.block.len());
            let (some, rest) = bytes.split_at_checked(room).unwrap_or((bytes, &[]));
            self.block.extend_from_slice(some);
            bytes = rest;
            if self.block.len() >= BLOCK_BYTES {
                self.drain().await?;
            }
        }
        Ok(())
    }

    /// Has the block written.
    async fn drain(&mut self) -> io::Result<()> {
        let (mut digested, spare) = self.state.rested().await?;
        let mut spare = spare.unwrap_or_else(|| Vec::with_capacity(BLOCK_BYTES));
        spare.clear();
        let block = std::mem::replace(&mut self.block, spare);
        self.state = State::Works(spawn_blocking(move || {
            digested.hash.update(&block);
            let written = digested.file.write_all(&block);
            (digested, block, written)
        }));
        Ok(())
    }

    /// Whether bytes could not be written.
    pub fn is_broken(&self) -> bool {
        matches!(self.state, State::Over(_))
    }

    /// Waits until all is written.
    pub async fn rested(mut self) -> io::Result<Digested> {
        self.drain().await?;
        Ok(self.state.rested().await?.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bytes of no pattern that a block would have, too.
    fn bytes(length: usize) -> Vec<u8> {
        (0..length)
            .map(|at| u8::try_from(at * 31 % 251).unwrap())
            .collect()
    }

    fn place(name: &str) -> std::path::PathBuf {
        let name = format!("durward-blocks-{}-{name}", std::process::id());
        std::env::temp_dir().join(name)
    }

    fn digest_of(bytes: &[u8]) -> Vec<u8> {
        ring::digest::digest(&SHA256, bytes).as_ref().to_vec()
    }

    #[tokio::test]
    async fn a_file_is_read_in_pieces_of_any_length_and_digested_whole() {
        let path = place("read");
        for length in [0, 1, BLOCK_BYTES, BLOCK_BYTES + 1, 3 * BLOCK_BYTES + 7] {
            let whole = bytes(length);
            std::fs::write(&path, &whole).unwrap();
            for piece in [1000, 32 * 1024, 2 * BLOCK_BYTES] {
                let mut ahead = Ahead::of(File::open(&path).unwrap());
                let mut read = Vec::new();
                loop {
                    let some = ahead.next(piece).await.unwrap();
                    assert!(some.len() <= piece);
                    if some.is_empty() {
                        break;
                    }
                    read.extend(some);
                }
                assert!(read == whole, "{length} by {piece}");
                let digest = ahead.digest().await.unwrap().finish();
                assert_eq!(digest.as_ref(), digest_of(&whole));
            }
            // Read to its end for the digest.
            let mut ahead = Ahead::of(File::open(&path).unwrap());
            ahead.next(10).await.unwrap();
            let digest = ahead.digest().await.unwrap().finish();
            assert_eq!(digest.as_ref(), digest_of(&whole));
        }
        std::fs::remove_file(&path).unwrap();
    }

    #[tokio::test]
    async fn a_file_is_written_in_pieces_of_any_length_and_digested() {
        let path = place("written");
        for length in [0, 1, BLOCK_BYTES, 2 * BLOCK_BYTES + 7] {
            let whole = bytes(length);
            for piece in [1000, BLOCK_BYTES + 3] {
                let file = File::create(&path).unwrap();
                let hash = Context::new(&SHA256);
                let mut behind = Behind::of(Digested { file, hash });
                for some in whole.chunks(piece) {
                    behind.push(some).await.unwrap();
                }
                let digest = behind.rested().await.unwrap().hash.finish();
                assert!(
                    std::fs::read(&path).unwrap() == whole,
                    "{length} by {piece}"
                );
                assert_eq!(digest.as_ref(), digest_of(&whole));
            }
        }
        std::fs::remove_file(&path).unwrap();
    }

    #[tokio::test]
    async fn a_full_disk_is_told_with_a_later_block_at_the_latest() {
        let file = File::options().write(true).open("/dev/full").unwrap();
        let hash = Context::new(&SHA256);
        let mut behind = Behind::of(Digested { file, hash });
        let block = bytes(BLOCK_BYTES);
        behind.push(&block).await.unwrap();
        let wrong = behind.push(&block).await.unwrap_err();
        assert_eq!(wrong.kind(), io::ErrorKind::StorageFull);
        assert!(behind.is_broken());
        assert!(behind.rested().await.is_err());
    }
}
