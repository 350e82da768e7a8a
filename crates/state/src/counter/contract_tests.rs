//! The embedded counters, run through the contract suite.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use super::{CounterStore, FileCounter, MemoryCounter};
use crate::contract::block_on;
use crate::contract::counter::{CounterFixture, check_counter_store, check_counter_threads};

/// Directory that is removed with the test.
struct TestDirectory(PathBuf);

impl TestDirectory {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("contract-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }
}

impl Drop for TestDirectory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn the_counter_in_memory_keeps_the_contract() {
    let make = || CounterFixture::new(Arc::new(MemoryCounter::default()));
    for seed in 0..8 {
        let report = block_on(check_counter_store(make, seed)).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(report.skipped.len(), 2, "{report:?}");
    }
    check_counter_threads(&MemoryCounter::default()).unwrap_or_else(|e| panic!("{e}"));
}

#[test]
fn the_counter_in_a_file_keeps_the_contract() {
    let directory = TestDirectory::new("file");
    let count = AtomicU32::new(0);
    let make = || {
        let number = count.fetch_add(1, Ordering::Relaxed);
        let path = directory.0.join(format!("budgets-{number}"));
        let copy = directory.0.join(format!("successor-{number}"));
        let store = Arc::new(FileCounter::open(&path).unwrap());
        let (broken, killed) = (path.clone(), path);
        CounterFixture {
            store,
            fail: Some(Box::new(move || fs::remove_file(&broken).unwrap())),
            // A copy: this process still locks the file of its open reservation.
            restart: Some(Box::new(move || {
                fs::copy(&killed, &copy).unwrap();
                Arc::new(FileCounter::open(&copy).unwrap()) as Arc<dyn CounterStore>
            })),
        }
    };
    for seed in 0..4 {
        let report = block_on(check_counter_store(make, seed)).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(report.skipped, [], "{report:?}");
    }
    let store = FileCounter::open(&directory.0.join("threads")).unwrap();
    check_counter_threads(&store).unwrap_or_else(|e| panic!("{e}"));
}
