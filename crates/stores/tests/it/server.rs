//! Helpers of tests on real servers.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use mocks::redis_server::RedisProcess;

/// Directory that is removed with the test.
pub struct TestDirectory(pub PathBuf);

impl TestDirectory {
    pub fn new(name: &str) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("stores-{name}-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }
}

impl Drop for TestDirectory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Starts a Redis server; `None`, with a printed reason, if there is none. A failure with `CI=true`.
pub fn redis() -> Option<RedisProcess> {
    let cache = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.cache");
    let started = RedisProcess::start(&cache, &[]).unwrap();
    if started.is_none() {
        assert!(
            std::env::var_os("CI").is_none(),
            "redis-server is missing: run scripts/setup-tests"
        );
        eprintln!("skipped: redis-server is missing: run scripts/setup-tests");
    }
    started
}
