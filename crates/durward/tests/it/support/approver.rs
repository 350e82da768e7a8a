//! Somebody who answers: speaks to the control sockets of a runtime folder as the command line does.

use std::collections::HashSet;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use serde_json::{Value, json};

/// Says no to everything, as soon as it is asked, in every instance that appears. Ends when dropped.
pub struct Denier {
    ends: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Denier {
    /// Watches the instances below a runtime folder.
    pub fn start(runtime: &Path) -> Self {
        let ends = Arc::new(AtomicBool::new(false));
        let (folder, end) = (runtime.join("durward"), Arc::clone(&ends));
        let thread = std::thread::spawn(move || {
            let mut watched = HashSet::new();
            while !end.load(Ordering::Relaxed) {
                for socket in sockets(&folder) {
                    if watched.insert(socket.clone()) {
                        let end = Arc::clone(&end);
                        std::thread::spawn(move || deny_all(&socket, &end));
                    }
                }
                std::thread::park_timeout(Duration::from_millis(5));
            }
        });
        Self {
            ends,
            thread: Some(thread),
        }
    }
}

impl Drop for Denier {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap();
        }
    }
}

/// The control sockets in a folder.
pub fn sockets(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return Vec::new();
    };
    entries
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|e| e == "sock"))
        .collect()
}

fn deny_all(socket: &Path, end: &AtomicBool) {
    // An instance that ends takes its socket with it: nobody is left to be answered.
    let Ok(mut stream) = UnixStream::connect(socket) else {
        return;
    };
    if writeln!(stream, "{}", json!({ "do": "watch_approvals" })).is_err() {
        return;
    }
    for line in BufReader::new(stream).lines() {
        let Ok(line) = line else { return };
        if end.load(Ordering::Relaxed) {
            return;
        }
        let news: Value = serde_json::from_str(&line).unwrap();
        if let Some(id) = news.pointer("/item/asked/id").and_then(Value::as_str) {
            let _ = ask(
                socket,
                &json!({ "do": "answer", "id": id, "answer": "deny" }),
            );
        }
    }
}

/// The calls that wait at an instance.
pub fn waiting(socket: &Path) -> std::io::Result<Vec<String>> {
    let mut stream = UnixStream::connect(socket)?;
    writeln!(stream, "{}", json!({ "do": "approvals" }))?;
    let mut ids = Vec::new();
    for line in BufReader::new(stream).lines() {
        let line: Value = serde_json::from_str(&line?)?;
        match line.pointer("/item/id").and_then(Value::as_str) {
            Some(id) => ids.push(id.to_owned()),
            None => return Ok(ids),
        }
    }
    Err(std::io::ErrorKind::UnexpectedEof.into())
}

/// One request to an instance: the last line of its answer.
pub fn ask(socket: &Path, request: &Value) -> std::io::Result<Value> {
    let mut stream = UnixStream::connect(socket)?;
    writeln!(stream, "{request}")?;
    for line in BufReader::new(stream).lines() {
        let line: Value = serde_json::from_str(&line?)?;
        if line.get("item").is_none() {
            return Ok(line);
        }
    }
    Err(std::io::ErrorKind::UnexpectedEof.into())
}
