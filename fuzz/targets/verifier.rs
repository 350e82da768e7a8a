//! A journal with one file changed in any way through the verifier: no panic, and never sound unless nothing was changed.
#![no_main]

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use gate::journal::audit::{Anchors, Verdict, verify_against};
use gate::journal::{
    Decision, HEAD_FILE, Journal, JournalOptions, Keys, OpId, PublicKey, Record, SyncPolicy,
};
use libfuzzer_sys::fuzz_target;

const NOW_MS: i64 = 1_795_232_289_123;

/// Changes to one file, at most.
const EDITS_MAX: usize = 16;

struct Scene {
    journal: PathBuf,
    head: PathBuf,
    /// The files, as they were written.
    files: Vec<(PathBuf, Vec<u8>)>,
    key: PublicKey,
}

/// Two closed segments, the second behind the first, and their head.
fn scene() -> &'static Scene {
    static SCENE: OnceLock<Scene> = OnceLock::new();
    SCENE.get_or_init(|| {
        let root = std::env::temp_dir().join(format!("fuzz-verifier-{}", std::process::id()));
        drop(fs::remove_dir_all(&root));
        fs::create_dir_all(&root).expect("a directory");
        let (journal, directory) = (root.join("journal"), root.join("keys"));
        let mut byte = 0_u8;
        let mut random = |bytes: &mut [u8]| {
            byte += 1;
            bytes.fill(byte);
        };
        let keys = Keys::open(&directory, &mut random).expect("keys");
        let options = JournalOptions {
            sync: SyncPolicy::Never,
            ..JournalOptions::default()
        };
        for start in 0..2 {
            let now_ms = NOW_MS + start * 1_000;
            let opened = Journal::open(&journal, &keys, options, [1; 16], now_ms, &mut random);
            let open = opened.expect("a journal");
            for op in 0..3 {
                let decision = Decision {
                    op: OpId(op),
                    path: Some("/tmp/a"),
                    ..Decision::default()
                };
                open.append(now_ms, &Record::Decision(&decision))
                    .expect("a record");
            }
            open.close(now_ms, "stopped").expect("an end");
        }
        let head = directory.join(HEAD_FILE);
        let mut paths: Vec<PathBuf> = fs::read_dir(&journal)
            .expect("the journal")
            .map(|entry| entry.expect("an entry").path())
            .filter(|path| path.extension().is_some_and(|of| of == "jsonl"))
            .collect();
        paths.sort();
        paths.push(head.clone());
        let read = |path: PathBuf| {
            let bytes = fs::read(&path).expect("a file");
            (path, bytes)
        };
        Scene {
            journal,
            head,
            files: paths.into_iter().map(read).collect(),
            key: keys.public(),
        }
    })
}

/// Each four bytes are an edit: where, and what to do there.
fn changed(original: &[u8], edits: &[u8]) -> Vec<u8> {
    let mut bytes = original.to_vec();
    for edit in edits.chunks_exact(4).take(EDITS_MAX) {
        let at = usize::from(u16::from_le_bytes([edit[0], edit[1]])) % bytes.len().max(1);
        match edit[2] % 4 {
            0 if at < bytes.len() => bytes[at] = edit[3],
            1 => bytes.insert(at, edit[3]),
            2 => bytes.truncate(at),
            _ => drop(bytes.drain(at..(at + usize::from(edit[3])).min(bytes.len()))),
        }
    }
    bytes
}

fn verdict(scene: &Scene, head: &Path) -> Option<Verdict> {
    let anchors = Anchors {
        head: Some(head),
        witness: None,
    };
    let report = verify_against(&scene.journal, &[scene.key], &anchors).ok()?;
    Some(report.verdict())
}

fuzz_target!(|input: (u8, bool, &[u8])| {
    let (which, anew, data) = input;
    let scene = scene();
    let (path, original) = &scene.files[usize::from(which) % scene.files.len()];
    let bytes = if anew {
        data.to_vec()
    } else {
        changed(original, data)
    };
    fs::write(path, &bytes).expect("the change");
    let found = verdict(scene, &scene.head);
    // The line feed behind the head is not part of it.
    let same = bytes.trim_ascii_end() == original.trim_ascii_end() && *path == scene.head
        || bytes == *original;
    fs::write(path, original).expect("the original");
    assert!(
        same || found != Some(Verdict::Sound),
        "a change was called sound"
    );
    assert!(
        !same || found == Some(Verdict::Sound),
        "nothing was changed"
    );
});
