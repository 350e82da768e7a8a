//! Writing a recording while its terminal runs.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use gate::journal::{SegmentId, format_utc};
use serde_json::json;

use super::{Chain, END, OUTPUT, VERSION, hash_line};
use crate::random;
use crate::size::Size;

/// End of a recording that was dropped before its program had ended.
const DROPPED: &str = "unknown: Durward stopped while the program ran";

/// A recording in progress. Dropped before [`Recorder::finish`], it ends with [`DROPPED`].
///
/// Each write runs on the blocking pool, so that a slow disk does not stall other calls.
#[derive(Debug)]
pub(crate) struct Recorder {
    file: Arc<RecordingFile>,
}

/// Recordings in progress, so that a process that ends can complete them.
#[derive(Debug, Default)]
pub(crate) struct OpenRecordings(Mutex<Vec<Weak<RecordingFile>>>);

/// The file of a recording; empty after its end line.
#[derive(Debug)]
struct RecordingFile(Mutex<Option<RecordingWriter>>);

/// Appends chained lines to a file.
#[derive(Debug)]
struct RecordingWriter {
    file: File,
    chain: Chain,
    start: Instant,
    /// Bytes of an incomplete character.
    rest: Vec<u8>,
    /// Bytes that may still be written.
    budget: u64,
}

impl OpenRecordings {
    /// Starts a recording in this folder; returns the name of its file too.
    ///
    /// # Errors
    /// Fails if the file cannot be created or written.
    pub async fn start(
        &self,
        folder: &Path,
        (host, program): (&str, &str),
        size: Size,
        bytes_max: u64,
    ) -> io::Result<(Recorder, String)> {
        let (folder, host, program) = (folder.to_owned(), host.to_owned(), program.to_owned());
        let create = move || RecordingWriter::create(&folder, (&host, &program), size, bytes_max);
        let (writer, name) = run_blocking(create).await?;
        let file = Arc::new(RecordingFile(Mutex::new(Some(writer))));
        let mut open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        open.retain(|file| file.strong_count() > 0);
        open.push(Arc::downgrade(&file));
        Ok((Recorder { file }, name))
    }

    /// Ends every recording in progress; output that follows is refused, which stops its terminal.
    pub fn finish_all(&self) {
        let open = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        open.iter()
            .filter_map(Weak::upgrade)
            .for_each(|file| file.finish_dropped());
    }
}

impl Recorder {
    /// Records output.
    ///
    /// # Errors
    /// Fails if it cannot be written, if the recording is at its bound, or if it has ended.
    pub async fn output(&mut self, data: &[u8]) -> io::Result<()> {
        let (file, data) = (Arc::clone(&self.file), data.to_vec());
        run_blocking(move || match file.lock().as_mut() {
            Some(writer) => writer.output(&data),
            None => Err(io::Error::other("the recording has ended")),
        })
        .await
    }

    /// Ends it with the end of its program; returns the last hash.
    ///
    /// # Errors
    /// Fails if it cannot be written, or if it has ended.
    pub async fn finish(self, end: &str) -> io::Result<String> {
        let (file, end) = (Arc::clone(&self.file), end.to_owned());
        run_blocking(move || {
            let writer = file.lock().take();
            let writer = writer.ok_or_else(|| io::Error::other("the recording has ended"))?;
            writer.finish(&end)
        })
        .await
    }
}

impl RecordingFile {
    fn lock(&self) -> MutexGuard<'_, Option<RecordingWriter>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn finish_dropped(&self) {
        if let Some(writer) = self.lock().take()
            && let Err(error) = writer.finish(DROPPED)
        {
            tracing::warn!(%error, "a recording has no end");
        }
    }
}

impl Drop for RecordingFile {
    fn drop(&mut self) {
        self.finish_dropped();
    }
}

impl RecordingWriter {
    fn create(
        folder: &Path,
        (host, program): (&str, &str),
        size: Size,
        bytes_max: u64,
    ) -> io::Result<(Self, String)> {
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        let now_ms = since.map_or(0, |since| i64::try_from(since.as_millis()).unwrap_or(0));
        let mut id = [0_u8; 16];
        random::fill(&mut id);
        let segment = SegmentId(id);
        let stamp: String = format_utc(now_ms)
            .chars()
            .filter(char::is_ascii_alphanumeric)
            .collect();
        let name = format!("{stamp}-{host}-{segment}.cast");
        let mut options = OpenOptions::new();
        options.write(true).create_new(true).mode(0o600);
        let mut file = options.open(folder.join(&name))?;
        let header = json!({
            "version": VERSION, "width": size.columns, "height": size.rows, "timestamp": now_ms / 1000,
            "title": format!("{host}: {program}"), "durward": {"chain": gate::journal::FORMAT, "segment": segment},
        })
        .to_string();
        file.write_all(format!("{header}\n").as_bytes())?;
        let writer = Self {
            file,
            chain: Chain::new(segment, &header),
            start: Instant::now(),
            rest: Vec::new(),
            budget: bytes_max,
        };
        Ok((writer, name))
    }

    fn output(&mut self, data: &[u8]) -> io::Result<()> {
        self.rest.extend_from_slice(data);
        let whole = match std::str::from_utf8(&self.rest) {
            Ok(_) => self.rest.len(),
            // An incomplete character waits for its other bytes; an invalid one is replaced.
            Err(error) if error.error_len().is_none() => error.valid_up_to(),
            Err(_) => self.rest.len(),
        };
        let text: Vec<u8> = self.rest.drain(..whole).collect();
        if text.is_empty() {
            return Ok(());
        }
        let text = String::from_utf8_lossy(&text).into_owned();
        self.line(OUTPUT, &text)
    }

    fn finish(mut self, end: &str) -> io::Result<String> {
        // The end is written beyond the bound.
        self.budget = u64::MAX;
        if !self.rest.is_empty() {
            let rest = std::mem::take(&mut self.rest);
            let text = String::from_utf8_lossy(&rest).into_owned();
            self.line(OUTPUT, &text)?;
        }
        self.line(END, end)?;
        self.file.sync_all()?;
        Ok(self.chain.last.to_string())
    }

    fn line(&mut self, code: &str, text: &str) -> io::Result<()> {
        let micros = u64::try_from(self.start.elapsed().as_micros()).unwrap_or(u64::MAX);
        let time = format!("{}.{:06}", micros / 1_000_000, micros % 1_000_000);
        let line = format!("[{time}, {}, {}]", json!(code), json!(text));
        let mut chain = self.chain;
        let hash = chain.push(&line);
        let both = format!("{line}\n{}\n", hash_line(&line, hash));
        let bytes = both.len() as u64;
        if bytes > self.budget {
            return Err(io::Error::other("the recording is as long as it may be"));
        }
        self.file.write_all(both.as_bytes())?;
        self.budget -= bytes;
        self.chain = chain;
        Ok(())
    }
}

/// Runs `work` on the blocking pool.
async fn run_blocking<T: Send + 'static>(
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    tokio::task::spawn_blocking(work)
        .await
        .map_err(io::Error::other)?
}
