//! Writing a recording while its terminal runs.

use std::io;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use gate::journal::{SegmentId, format_utc};
use serde_json::json;
use tokio::fs::{File, OpenOptions};
use tokio::io::AsyncWriteExt as _;
use tokio::time::Instant;

use super::{Chain, END, OUTPUT, VERSION, hash_line};
use crate::random;
use crate::size::Size;

/// A recording that is written.
#[derive(Debug)]
pub(crate) struct Recorder {
    file: File,
    chain: Chain,
    began: Instant,
    /// Bytes that do not make a character yet.
    rest: Vec<u8>,
    /// Room that is left, in bytes.
    room: u64,
}

impl Recorder {
    /// Begins a recording in this folder; gives the name of its file too.
    ///
    /// # Errors
    /// What the file system says.
    pub async fn begin(
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
        let path: PathBuf = folder.join(&name);
        let mut options = OpenOptions::new();
        let file = options.write(true).create_new(true).mode(0o600).open(&path);
        let mut file = file.await?;
        let header = json!({
            "version": VERSION, "width": size.columns, "height": size.rows, "timestamp": now_ms / 1000,
            "title": format!("{host}: {program}"), "durward": {"chain": gate::journal::FORMAT, "segment": segment},
        })
        .to_string();
        file.write_all(header.as_bytes()).await?;
        file.write_all(b"\n").await?;
        let recorder = Self {
            file,
            chain: Chain::new(segment, &header),
            began: Instant::now(),
            rest: Vec::new(),
            room: bytes_max,
        };
        Ok((recorder, name))
    }

    /// Records output.
    ///
    /// # Errors
    /// Where it cannot be written, or there is no more room.
    pub async fn output(&mut self, data: &[u8]) -> io::Result<()> {
        self.rest.extend_from_slice(data);
        let whole = match std::str::from_utf8(&self.rest) {
            Ok(_) => self.rest.len(),
            // What may still become a character waits; what never will is marked.
            Err(error) if error.error_len().is_none() => error.valid_up_to(),
            Err(_) => self.rest.len(),
        };
        let text: Vec<u8> = self.rest.drain(..whole).collect();
        if text.is_empty() {
            return Ok(());
        }
        let text = String::from_utf8_lossy(&text).into_owned();
        self.line(OUTPUT, &text).await
    }

    /// Ends it with how the program ended; gives the last hash.
    ///
    /// # Errors
    /// Where it cannot be written.
    pub async fn finish(mut self, how: &str) -> io::Result<String> {
        // The end fits always.
        self.room = u64::MAX;
        if !self.rest.is_empty() {
            let rest = std::mem::take(&mut self.rest);
            let text = String::from_utf8_lossy(&rest).into_owned();
            self.line(OUTPUT, &text).await?;
        }
        self.line(END, how).await?;
        self.file.flush().await?;
        self.file.sync_all().await?;
        Ok(self.chain.last.to_string())
    }

    async fn line(&mut self, code: &str, text: &str) -> io::Result<()> {
        let micros = u64::try_from(self.began.elapsed().as_micros()).unwrap_or(u64::MAX);
        let time = format!("{}.{:06}", micros / 1_000_000, micros % 1_000_000);
        let line = format!("[{time}, {}, {}]", json!(code), json!(text));
        let mut chain = self.chain;
        let hash = chain.push(&line);
        let both = format!("{line}\n{}\n", hash_line(&line, hash));
        let bytes = both.len() as u64;
        if bytes > self.room {
            return Err(io::Error::other("the recording is as long as it may be"));
        }
        self.file.write_all(both.as_bytes()).await?;
        self.room -= bytes;
        self.chain = chain;
        Ok(())
    }
}
