//! Starting mocks, and directories that go when the test goes.

use mcp::client::{Client, Era};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// The example that runs one mock; `cargo test` builds it beside the tests.
pub(crate) fn mock_path() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let path = test
        .parent()
        .unwrap()
        .parent()
        .unwrap()
        .join("examples/mock");
    assert!(
        path.exists(),
        "build the example first: cargo build -p mocks --examples"
    );
    path
}

pub(crate) fn mock(args: &[&str]) -> Client {
    Client::spawn(mock_path(), args).unwrap()
}

/// A mock with the handshake done.
pub(crate) fn ready(args: &[&str], era: Era) -> Client {
    let mut client = mock(args);
    client.handshake(era).unwrap();
    client
}

pub(crate) struct Directory(PathBuf);

impl Directory {
    pub(crate) fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!(
            "mocks-test-{}-{}",
            std::process::id(),
            NEXT.fetch_add(1, Ordering::Relaxed)
        );
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).unwrap();
        Self(path.canonicalize().unwrap())
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    pub(crate) fn text(&self) -> &str {
        self.0.to_str().unwrap()
    }

    pub(crate) fn join(&self, name: &str) -> String {
        self.0.join(name).to_str().unwrap().to_owned()
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
