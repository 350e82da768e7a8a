//! What work wrote, kept for its caller and read in parts: the streams of a command, the chunks of a
//! simulation.
//!
//! An output is bytes, whatever they mean; it is bounded, and what is beyond the bound is counted instead of
//! kept. A caller reaches it by a handle, and it goes when the handle ends. Calls here block on the disk.

mod grep;
mod read;

use std::collections::HashMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use state::{KvError, Spool, SpoolError, directory, spool};

use crate::results::{HandleBounds, HandleError, Handles, Target};
use crate::store::Store;
pub use grep::{CONTEXT_MAX, Found, Grep, GrepFault, LINE_BYTES_MAX, Line, MATCHES_MAX, Position};
pub use read::{PAGE_BYTES_MAX, Page, Preview, Shown, shown};

/// Most streams of one output.
pub const STREAMS_MAX: usize = 4;
/// The kind of the handles to outputs.
const KIND: &str = "output";

/// How much is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OutputBounds {
    /// Longest stream, in bytes.
    pub stream_bytes_max: u64,
    /// All streams of all outputs, in bytes.
    pub bytes_max: u64,
    /// All streams of one caller's outputs, in bytes.
    pub caller_bytes_max: u64,
    /// How many outputs a caller has, and for how long.
    pub handles: HandleBounds,
}

impl Default for OutputBounds {
    fn default() -> Self {
        Self {
            stream_bytes_max: 1024 * 1024 * 1024,
            bytes_max: 8 * 1024 * 1024 * 1024,
            caller_bytes_max: u64::MAX,
            handles: HandleBounds::default(),
        }
    }
}

/// Why an output cannot be written or read.
#[derive(Debug)]
pub enum OutputError {
    /// The handle leads to none.
    Handle(HandleError),
    /// It has no such stream.
    NoStream,
    /// More than [`STREAMS_MAX`] streams.
    TooManyStreams,
    /// The file.
    File(SpoolError),
    /// The database, or the directory.
    Store(KvError),
}

impl fmt::Display for OutputError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Handle(error) => error.fmt(f),
            Self::NoStream => f.write_str("the output has no such stream"),
            Self::TooManyStreams => write!(f, "an output has at most {STREAMS_MAX} streams"),
            Self::File(error) => error.fmt(f),
            Self::Store(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for OutputError {}

impl From<HandleError> for OutputError {
    fn from(error: HandleError) -> Self {
        Self::Handle(error)
    }
}

impl From<SpoolError> for OutputError {
    fn from(error: SpoolError) -> Self {
        Self::File(error)
    }
}

/// All outputs of a store.
#[derive(Debug)]
pub struct Outputs {
    store: Arc<Store>,
    handles: Handles,
    bounds: OutputBounds,
    directory: PathBuf,
    /// Bytes of all streams together.
    kept: Arc<Counted>,
    /// The outputs that are being written, by name; those whose writers are gone stay until they are removed.
    written: Mutex<HashMap<String, Weak<Mutex<Ledger>>>>,
}

/// Bytes of all streams together, and of each caller's.
#[derive(Debug, Default)]
struct Counted(Mutex<(u64, HashMap<Arc<str>, u64>)>);

impl Counted {
    fn locked(&self) -> MutexGuard<'_, (u64, HashMap<Arc<str>, u64>)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn more(&self, caller: &str, bytes: u64) {
        let mut counted = self.locked();
        counted.0 += bytes;
        match counted.1.get_mut(caller) {
            Some(own) => *own += bytes,
            None => drop(counted.1.insert(caller.into(), bytes)),
        }
    }

    fn less(&self, caller: &str, bytes: u64) {
        let mut counted = self.locked();
        counted.0 = counted.0.saturating_sub(bytes);
        if let Some(own) = counted.1.get_mut(caller) {
            *own = own.saturating_sub(bytes);
            if *own == 0 {
                counted.1.remove(caller);
            }
        }
    }

    /// How many bytes more a caller may have.
    fn left(&self, caller: &str, bounds: &OutputBounds) -> u64 {
        let counted = self.locked();
        let own = counted.1.get(caller).copied().unwrap_or_default();
        let all_left = bounds.bytes_max.saturating_sub(counted.0);
        all_left.min(bounds.caller_bytes_max.saturating_sub(own))
    }

    fn all(&self) -> u64 {
        self.locked().0
    }
}

/// What of an output is counted in the bytes of all.
#[derive(Debug, Default)]
struct Ledger {
    bytes: u64,
    /// It was removed: nothing more of it is kept.
    is_over: bool,
}

/// The writing end of one output.
#[derive(Debug)]
pub struct OutputWriter {
    streams: Vec<Stream>,
    bounds: OutputBounds,
    caller: Arc<str>,
    kept: Arc<Counted>,
    ledger: Arc<Mutex<Ledger>>,
}

#[derive(Debug)]
struct Stream {
    spool: Spool,
    dropped: u64,
}

/// What became of bytes that were written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Written {
    /// Bytes of the stream that are kept.
    pub kept: u64,
    /// Bytes of the stream that came after and are not.
    pub dropped: u64,
}

/// The reading end of one stream.
#[derive(Debug)]
pub struct OutputReader {
    spool: Spool,
}

impl Outputs {
    /// The outputs of this store. Files that no handle leads to any more are removed.
    ///
    /// # Errors
    /// [`OutputError::Store`] or [`OutputError::File`].
    pub fn open(store: &Arc<Store>, bounds: OutputBounds) -> Result<Self, OutputError> {
        let directory = store.directory().join("outputs");
        directory::create_private(&directory)
            .map_err(|error| OutputError::Store(KvError::from(error)))?;
        let outputs = Self {
            store: Arc::clone(store),
            handles: Handles::new(store, bounds.handles),
            bounds,
            directory,
            kept: Arc::default(),
            written: Mutex::default(),
        };
        outputs.tidy()?;
        Ok(outputs)
    }

    /// Makes an output with so many streams, and the caller's handle to it.
    ///
    /// # Errors
    /// [`OutputError`].
    pub fn create(
        &self,
        caller: &str,
        streams: usize,
        now_ms: i64,
    ) -> Result<(String, OutputWriter), OutputError> {
        if streams > STREAMS_MAX {
            return Err(OutputError::TooManyStreams);
        }
        let name = self.store.name("o");
        // The handle first: a file without one is removed at the next start.
        let (handle, displaced) = self.handles.grant(caller, KIND, &name, now_ms)?;
        self.remove(&displaced)?;
        let streams: Result<Vec<Stream>, SpoolError> = (0..streams)
            .map(|number| {
                let spool = Spool::create(&self.path(&name, number))?;
                Ok(Stream { spool, dropped: 0 })
            })
            .collect();
        let ledger = Arc::new(Mutex::new(Ledger::default()));
        let streams = streams?;
        self.written().insert(name, Arc::downgrade(&ledger));
        let writer = OutputWriter {
            ledger,
            streams,
            bounds: self.bounds,
            caller: caller.into(),
            kept: Arc::clone(&self.kept),
        };
        Ok((handle, writer))
    }

    /// A stream of a caller's output, finished or not.
    ///
    /// # Errors
    /// [`OutputError::Handle`], [`OutputError::NoStream`] or [`OutputError::File`].
    pub fn stream(
        &self,
        caller: &str,
        handle: &str,
        stream: usize,
        now_ms: i64,
    ) -> Result<OutputReader, OutputError> {
        let target = self.handles.resolve(caller, handle, now_ms)?;
        if target.kind != KIND {
            return Err(HandleError::Unknown.into());
        }
        let path = self.path(&target.name, stream);
        match Spool::open(&path) {
            Ok(spool) => Ok(OutputReader { spool }),
            Err(error) if error.error.kind() == std::io::ErrorKind::NotFound => {
                Err(OutputError::NoStream)
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Removes a caller's output before its time.
    ///
    /// # Errors
    /// [`OutputError`].
    pub fn forget(&self, caller: &str, handle: &str, now_ms: i64) -> Result<(), OutputError> {
        let target = self.handles.revoke(caller, handle, now_ms)?;
        self.remove(&[target])
    }

    /// Removes outputs whose handles have ended; gives how many. To be called now and then.
    ///
    /// # Errors
    /// [`OutputError`].
    pub fn sweep(&self, now_ms: i64) -> Result<usize, OutputError> {
        let ended = self.handles.sweep(now_ms)?;
        self.remove(&ended)?;
        Ok(ended.len())
    }

    /// Bytes that are kept, of all outputs.
    #[must_use]
    pub fn bytes_kept(&self) -> u64 {
        self.kept.all()
    }

    fn path(&self, name: &str, stream: usize) -> PathBuf {
        self.directory.join(format!("{name}.{stream}"))
    }

    fn remove(&self, ended: &[Target]) -> Result<(), OutputError> {
        for target in ended.iter().filter(|target| target.kind == KIND) {
            let ledger = self.written().remove(&target.name);
            if let Some(ledger) = ledger.and_then(|ledger| ledger.upgrade()) {
                self.remove_while_written(target, &mut locked(&ledger))?;
                continue;
            }
            for stream in 0..STREAMS_MAX {
                let path = self.path(&target.name, stream);
                let bytes = std::fs::metadata(&path).map_or(0, |found| found.len());
                spool::remove(&path)?;
                self.kept.less(&target.caller, bytes);
            }
        }
        Ok(())
    }

    /// What its writer adds from now on is dropped.
    fn remove_while_written(
        &self,
        target: &Target,
        ledger: &mut Ledger,
    ) -> Result<(), OutputError> {
        ledger.is_over = true;
        let bytes = std::mem::take(&mut ledger.bytes);
        self.kept.less(&target.caller, bytes);
        for stream in 0..STREAMS_MAX {
            spool::remove(&self.path(&target.name, stream))?;
        }
        Ok(())
    }

    fn written(&self) -> MutexGuard<'_, HashMap<String, Weak<Mutex<Ledger>>>> {
        self.written.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts what is there, and removes what a crash left without a handle.
    fn tidy(&self) -> Result<(), OutputError> {
        let targets = self.handles.targets(KIND)?.into_iter();
        let known: HashMap<String, String> =
            targets.map(|target| (target.name, target.caller)).collect();
        let listed = std::fs::read_dir(&self.directory).and_then(Iterator::collect);
        let listed: Vec<std::fs::DirEntry> = listed.map_err(|error| {
            OutputError::Store(KvError::Io {
                action: "list the outputs of",
                error,
            })
        })?;
        for entry in listed {
            let file = entry.file_name().to_string_lossy().into_owned();
            let name = file.rsplit_once('.').map_or("", |(name, _)| name);
            match known.get(name) {
                Some(caller) => {
                    let bytes = entry.metadata().map_or(0, |found| found.len());
                    self.kept.more(caller, bytes);
                }
                None => spool::remove(&entry.path())?,
            }
        }
        Ok(())
    }
}

fn locked(ledger: &Mutex<Ledger>) -> MutexGuard<'_, Ledger> {
    ledger.lock().unwrap_or_else(PoisonError::into_inner)
}

impl OutputWriter {
    /// Appends bytes to a stream; what is beyond a bound is counted instead of kept.
    ///
    /// # Errors
    /// [`OutputError::NoStream`] or [`OutputError::File`].
    pub fn append(&mut self, stream: usize, bytes: &[u8]) -> Result<Written, OutputError> {
        // Held while it is written, so that it is not removed meanwhile.
        let mut ledger = locked(&self.ledger);
        let all_left = self.kept.left(&self.caller, &self.bounds);
        let stream = self.streams.get_mut(stream).ok_or(OutputError::NoStream)?;
        let left = self
            .bounds
            .stream_bytes_max
            .saturating_sub(stream.spool.length());
        // Once something was dropped nothing is kept: an output has no gaps.
        let left = if stream.dropped > 0 || ledger.is_over {
            0
        } else {
            left.min(all_left)
        };
        let fits = usize::try_from(left).unwrap_or(usize::MAX).min(bytes.len());
        let (kept, dropped) = bytes.split_at(fits);
        if !kept.is_empty() {
            stream.spool.append(kept)?;
            ledger.bytes += kept.len() as u64;
            self.kept.more(&self.caller, kept.len() as u64);
        }
        stream.dropped += dropped.len() as u64;
        Ok(Written {
            kept: stream.spool.length(),
            dropped: stream.dropped,
        })
    }

    /// Forces everything to the disk; gives what became of each stream.
    ///
    /// # Errors
    /// [`OutputError::File`].
    pub fn finish(self) -> Result<Vec<Written>, OutputError> {
        let mut written = Vec::new();
        for stream in &self.streams {
            stream.spool.sync()?;
            written.push(Written {
                kept: stream.spool.length(),
                dropped: stream.dropped,
            });
        }
        Ok(written)
    }
}

#[cfg(test)]
mod tests;
