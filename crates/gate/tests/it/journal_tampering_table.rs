//! Kinds of tampering, one a row: each changes a copy of one journal with its head and witness, as somebody without the key
//! can, and has to be found under its name. What the key, or everything at once, lets somebody do without being found is
//! shown at the end.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::journal_support::forging::{bodies, edit, lines, replace, rewrite, segment, write};
use crate::journal_support::{NOW_MS, Place, calls, forge, random};
use ed25519_dalek::{Signer as _, SigningKey};
use gate::journal::audit::{Anchors, Unproven, Verdict, VerifyReport, verify_against};
use gate::journal::{
    CHECKPOINT_KEY_FILE, EntryHash, FileWitness, HEAD_FILE, Journal, Keys, Line, PublicKey,
    Surroundings,
};

/// A journal with its keys, its head and a witness, in one directory.
struct Scene {
    root: PathBuf,
    public: PublicKey,
}

/// The journal of the table, oldest first: `CLOSED` is continued by `ADOPTED`, whose writer was killed; `NEXT` states its end
/// and is continued by `TWIN`, which ran beside `LAST`; both are closed. `KILLED` continues `LAST` and has no end.
const CLOSED: usize = 0;
const ADOPTED: usize = 1;
const NEXT: usize = 2;
const TWIN: usize = 3;
const LAST: usize = 4;
const KILLED: usize = 5;

impl Scene {
    fn empty(name: &str) -> Scene {
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let pid = std::process::id();
        let root = std::env::temp_dir().join(format!("journal-table-{name}-{pid}-{number}"));
        let _ = fs::remove_dir_all(&root);
        fs::create_dir(&root).unwrap();
        let keys = Keys::open(&root.join("keys"), &mut random()).unwrap();
        Scene {
            root,
            public: keys.public(),
        }
    }

    fn journal(&self) -> PathBuf {
        self.root.join("journal")
    }

    fn head(&self) -> PathBuf {
        self.root.join("keys").join(HEAD_FILE)
    }

    fn witness(&self) -> PathBuf {
        self.root.join("witness")
    }

    fn open(&self, later_ms: i64) -> Journal {
        let keys = Keys::open(&self.root.join("keys"), &mut random()).unwrap();
        let surroundings = Surroundings {
            random: &mut random(),
            waiting: &mut |_| {},
            witness: Some(Arc::new(FileWitness::new(&self.witness()))),
            steps: None,
        };
        let own = ([7; 16], NOW_MS + later_ms);
        Journal::open_in(&self.journal(), &keys, Place::options(), own, surroundings).unwrap()
    }

    fn whole() -> Scene {
        let scene = Scene::empty("whole");
        let run = |later_ms, killed: bool| {
            let journal = scene.open(later_ms);
            calls(&journal, 1..4);
            journal.settle(NOW_MS + later_ms + 500).unwrap();
            if !killed {
                journal.close(NOW_MS + later_ms + 600, "stopped").unwrap();
            }
        };
        run(0, false);
        run(1_000, true);
        run(2_000, false);
        let (twin, last) = (scene.open(3_000), scene.open(4_000));
        calls(&twin, 1..3);
        calls(&last, 1..3);
        twin.close(NOW_MS + 5_000, "stopped").unwrap();
        last.close(NOW_MS + 5_001, "stopped").unwrap();
        scene.keep_head("before");
        run(6_000, true);
        scene
    }

    /// Puts the present head aside, for a row that puts it back.
    fn keep_head(&self, name: &str) {
        fs::copy(self.head(), self.root.join(name)).unwrap();
    }

    fn copy(&self, name: &str) -> Scene {
        let root = self.root.with_extension(name.replace(' ', "-"));
        copy_all(&self.root, &root);
        Scene {
            root,
            public: self.public,
        }
    }

    fn files(&self) -> Vec<PathBuf> {
        let mut files: Vec<_> = fs::read_dir(self.journal())
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.extension().is_some_and(|of| of == "jsonl"))
            .collect();
        files.sort();
        files
    }

    fn file(&self, at: usize) -> PathBuf {
        self.files().remove(at)
    }

    fn verify(&self, witness: bool) -> VerifyReport {
        let (head, file) = (self.head(), self.witness());
        let anchors = Anchors {
            head: Some(&head),
            witness: witness.then_some(&file),
        };
        verify_against(&self.journal(), &[self.public], &anchors).unwrap()
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.root);
    }
}

fn copy_all(from: &Path, to: &Path) {
    let _ = fs::remove_dir_all(to);
    fs::create_dir_all(to).unwrap();
    fs::set_permissions(to, fs::Permissions::from_mode(0o700)).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let beside = to.join(path.file_name().unwrap());
        if path.is_dir() {
            copy_all(&path, &beside);
        } else {
            fs::copy(&path, beside).unwrap();
        }
    }
}

fn labels(report: &VerifyReport) -> Vec<String> {
    let label = |problem| {
        let value = serde_json::to_value(problem).unwrap();
        value["problem"].as_str().unwrap().to_owned()
    };
    report
        .findings
        .iter()
        .map(|of| label(&of.problem))
        .collect()
}

/// Cuts a file behind this many lines.
fn keep(path: &Path, count: usize) {
    edit(path, |lines| lines.truncate(count));
}

fn flip(path: &Path, at: impl FnOnce(&[u8]) -> usize) {
    let mut bytes = fs::read(path).unwrap();
    let at = at(&bytes);
    bytes[at] = if bytes[at] == b'0' { b'1' } else { b'0' };
    fs::write(path, bytes).unwrap();
}

fn rename(path: &Path, name: &str) {
    fs::rename(path, path.with_file_name(name)).unwrap();
}

fn id(path: &Path) -> String {
    segment(path).to_string()
}

fn swap(one: &Path, other: &Path) {
    let (first, second) = (fs::read(one).unwrap(), fs::read(other).unwrap());
    fs::write(one, second).unwrap();
    fs::write(other, first).unwrap();
}

/// Continues a file with lines of right hashes and these bodies.
fn extend(path: &Path, more: &[&str]) {
    let all = lines(path);
    let last = Line::parse(all.last().unwrap().trim_ascii_end()).unwrap();
    let (mut sequence, mut previous, id) = (last.sequence, last.entry, segment(path));
    let mut out = fs::read(path).unwrap();
    for body in more {
        sequence += 1;
        let line = forge(id, sequence, previous, body.as_bytes());
        previous = Line::parse(line.trim_ascii_end()).unwrap().entry;
        out.extend(line);
    }
    fs::write(path, out).unwrap();
}

const FORGED: &str = r#"{"time":"2026-11-21T03:38:16.000Z","kind":"system","event":"forged"}"#;

type Row = (&'static str, &'static str, fn(&Scene));

/// What is taken away, moved, or put in the place of something else.
const WHOLE_FILES: &[Row] = &[
    (
        "the last closed segment deleted",
        "continued_missing",
        |of| fs::remove_file(of.file(LAST)).unwrap(),
    ),
    (
        "a closed end that nothing continues deleted",
        "segment_missing",
        |of| fs::remove_file(of.file(TWIN)).unwrap(),
    ),
    ("a closed end renamed away", "segment_missing", |of| {
        rename(&of.file(TWIN), "old.bak")
    }),
    (
        "a closed end moved into a directory",
        "segment_missing",
        |of| {
            let aside = of.journal().join("aside");
            fs::create_dir(&aside).unwrap();
            fs::rename(of.file(TWIN), aside.join("x")).unwrap();
        },
    ),
    ("a segment renamed to another id", "misnamed", |of| {
        let name = format!("20261121T033812123Z-{}.jsonl", "ab".repeat(16));
        rename(&of.file(TWIN), &name);
    }),
    ("a segment renamed to another time", "redated", |of| {
        let path = of.file(TWIN);
        let name = format!("20250101T000000000Z-{}.jsonl", id(&path));
        rename(&path, &name);
    }),
    ("a closed end emptied", "cut", |of| {
        fs::write(of.file(TWIN), b"").unwrap()
    }),
    ("the running segment deleted", "segment_missing", |of| {
        fs::remove_file(of.file(KILLED)).unwrap()
    }),
    ("the running segment emptied", "cut", |of| {
        fs::write(of.file(KILLED), b"").unwrap()
    }),
    ("the directory emptied", "segment_missing", |of| {
        of.files()
            .iter()
            .for_each(|path| fs::remove_file(path).unwrap())
    }),
    ("the directory removed", "segment_missing", |of| {
        fs::remove_dir_all(of.journal()).unwrap()
    }),
    ("a whole chain removed", "segment_missing", |of| {
        for at in [TWIN, NEXT] {
            fs::remove_file(of.file(at)).unwrap();
        }
    }),
    ("the first segment removed", "continued_missing", |of| {
        fs::remove_file(of.file(CLOSED)).unwrap()
    }),
    ("an adopted segment removed", "segment_missing", |of| {
        fs::remove_file(of.file(ADOPTED)).unwrap()
    }),
    ("two segments exchanged", "misnamed", |of| {
        swap(&of.file(TWIN), &of.file(LAST))
    }),
    ("a segment copied", "duplicate", |of| {
        let path = of.file(TWIN);
        let name = format!("20991121T000000000Z-{}.jsonl", id(&path));
        fs::copy(&path, path.with_file_name(name)).unwrap();
    }),
    ("a segment of another key put in", "key_untrusted", |of| {
        let other = Place::new("foreign");
        other.open().close(NOW_MS, "stopped").unwrap();
        let path = other.files().remove(0);
        fs::copy(&path, of.journal().join(path.file_name().unwrap())).unwrap();
    }),
    (
        "a segment of another journal under the same key put in",
        "segment_unknown",
        |of| {
            let other = of.copy("other");
            fs::remove_dir_all(other.journal()).unwrap();
            fs::copy(of.root.join("fresh"), other.head()).unwrap();
            other.open(9_000).close(NOW_MS + 9_000, "stopped").unwrap();
            let path = other.file(0);
            fs::copy(&path, of.journal().join(path.file_name().unwrap())).unwrap();
        },
    ),
];

/// What is done to records.
const RECORDS: &[Row] = &[
    ("a closed end cut at its closing record", "cut", |of| {
        let path = of.file(TWIN);
        keep(&path, lines(&path).len() - 1);
    }),
    ("a closed end cut in the middle of a line", "cut", |of| {
        let path = of.file(TWIN);
        let bytes = fs::read(&path).unwrap();
        fs::write(&path, &bytes[..bytes.len() - 9]).unwrap();
    }),
    ("a continued segment cut", "continued_differs", |of| {
        keep(&of.file(CLOSED), 4)
    }),
    ("the running segment cut at a covered record", "cut", |of| {
        keep(&of.file(KILLED), 6)
    }),
    ("the running segment cut to its header", "cut", |of| {
        keep(&of.file(KILLED), 1)
    }),
    (
        "covered records of a killed session written anew",
        "rewritten",
        |of| {
            rewrite(&of.file(KILLED), |_, body| {
                *body = body.replace("/tmp/a", "/tmp/b")
            })
        },
    ),
    (
        "a covered record taken out and the rest renumbered",
        "rewritten",
        |of| {
            let path = of.file(KILLED);
            let mut kept = bodies(&path);
            kept.remove(4);
            kept.push(FORGED.to_owned());
            write(&path, &kept);
        },
    ),
    ("a record edited in place", "changed", |of| {
        edit(&of.file(KILLED), |lines| {
            replace(&mut lines[4], "/tmp/a", "/tmp/b")
        })
    }),
    ("a bit of a hash changed", "changed", |of| {
        flip(&of.file(TWIN), |bytes| {
            bytes
                .windows(13)
                .position(|of| of == b"\"entry_hash\":")
                .unwrap()
                + 20
        })
    }),
    ("a closing record forged", "signature_bad", |of| {
        let signature = "ab".repeat(64);
        let body = format!(
            r#"{{"time":"2026-11-21T03:38:16.000Z","kind":"system","event":"segment_closed","reason":"x","signature":"{signature}"}}"#
        );
        extend(&of.file(KILLED), &[&body]);
    }),
    ("a checkpoint passed off as an end", "signature_bad", |of| {
        let path = of.file(KILLED);
        let mut all = bodies(&path);
        all[1] = all[1].replace("\"checkpoint\"", "\"segment_closed\",\"reason\":\"x\"");
        write(&path, &all);
    }),
    (
        "a checkpoint of another segment put in",
        "signature_bad",
        |of| {
            let stolen = bodies(&of.file(TWIN)).remove(1);
            extend(&of.file(KILLED), &[&stolen]);
        },
    ),
    ("an adopted segment cut", "cut", |of| {
        keep(&of.file(ADOPTED), 5)
    }),
    ("an adopted segment continued", "rewritten", |of| {
        extend(&of.file(ADOPTED), &[FORGED])
    }),
    ("an adopted segment written anew", "rewritten", |of| {
        rewrite(&of.file(ADOPTED), |_, body| {
            *body = body.replace("/tmp/a", "/tmp/b")
        })
    }),
    ("an adoption taken out", "deleted", |of| {
        edit(&of.file(NEXT), |lines| {
            lines.retain(|line| !String::from_utf8_lossy(line).contains("segment_abandoned"))
        })
    }),
    (
        "an adoption taken out and the rest renumbered",
        "signature_bad",
        |of| {
            let path = of.file(NEXT);
            let mut kept = bodies(&path);
            kept.retain(|body| !body.contains("segment_abandoned"));
            write(&path, &kept);
        },
    ),
    ("records deleted", "deleted", |of| {
        edit(&of.file(LAST), |lines| drop(lines.drain(3..5)))
    }),
    ("records exchanged", "reordered", |of| {
        edit(&of.file(LAST), |lines| lines.swap(3, 4))
    }),
    ("a record repeated", "inserted", |of| {
        edit(&of.file(LAST), |lines| lines.insert(4, lines[3].clone()))
    }),
    ("a closed segment written anew", "signature_bad", |of| {
        rewrite(&of.file(LAST), |_, body| {
            *body = body.replace("/tmp/a", "/tmp/b")
        })
    }),
    ("a verdict turned and nothing else", "changed", |of| {
        edit(&of.file(CLOSED), |lines| {
            replace(
                &mut lines[2],
                "\"decision\":\"allow\"",
                "\"decision\":\"deny\"",
            )
        })
    }),
    ("the header changed", "changed", |of| {
        edit(&of.file(LAST), |lines| {
            replace(&mut lines[0], "\"version\":\"", "\"version\":\"9")
        })
    }),
    ("the header taken out", "header_unreadable", |of| {
        edit(&of.file(LAST), |lines| lines[0] = b"{}\n".to_vec())
    }),
    (
        "the first checkpoint taken out",
        "checkpoint_missing",
        |of| {
            let path = of.file(KILLED);
            let mut kept = bodies(&path);
            kept.remove(1);
            write(&path, &kept);
        },
    ),
    ("something added behind the end", "after_close", |of| {
        extend(&of.file(TWIN), &[FORGED])
    }),
];

/// What is done to bytes.
const BYTES: &[Row] = &[
    ("a line that is none", "malformed", |of| {
        edit(&of.file(LAST), |lines| {
            lines[4] = b"\xff\xfe none\n".to_vec()
        })
    }),
    ("a line beyond the bound", "line_too_long", |of| {
        edit(&of.file(LAST), |lines| {
            lines[4] = vec![b'x'; gate::journal::LINE_BYTES_MAX + 2];
            lines[4].push(b'\n');
        })
    }),
    ("a line end overwritten", "malformed", |of| {
        edit(&of.file(KILLED), |lines| {
            *lines.last_mut().unwrap().last_mut().unwrap() = b' '
        })
    }),
    ("carriage returns", "malformed", |of| {
        edit(&of.file(LAST), |lines| {
            let end = lines[3].len() - 1;
            lines[3].insert(end, b'\r');
        })
    }),
    ("nulls", "malformed", |of| {
        edit(&of.file(LAST), |lines| lines[3].fill(0))
    }),
    ("a space", "malformed", |of| {
        edit(&of.file(LAST), |lines| {
            replace(&mut lines[3], ",\"prev_hash\"", ", \"prev_hash\"")
        })
    }),
    ("a leading zero", "malformed", |of| {
        edit(&of.file(LAST), |lines| {
            replace(&mut lines[3], ":3,", ":03,")
        })
    }),
    ("upper-case digits", "malformed", |of| {
        edit(&of.file(LAST), |lines| {
            lines[3][30..80].make_ascii_uppercase()
        })
    }),
    ("an empty line", "malformed", |of| {
        edit(&of.file(LAST), |lines| lines.insert(3, b"\n".to_vec()))
    }),
];

/// What is done to the head.
const HEADS: &[Row] = &[
    ("the head removed", "head_missing", |of| {
        fs::remove_file(of.head()).unwrap()
    }),
    ("the head emptied", "head_damaged", |of| {
        fs::write(of.head(), b"").unwrap()
    }),
    ("the head overwritten", "head_damaged", |of| {
        fs::write(of.head(), [0; 900]).unwrap()
    }),
    ("the head cut", "head_damaged", |of| {
        let bytes = fs::read(of.head()).unwrap();
        fs::write(of.head(), &bytes[..bytes.len() - 20]).unwrap();
    }),
    ("a byte of the head changed", "head_unsigned", |of| {
        flip(&of.head(), |bytes| {
            bytes.windows(8).position(|of| of == b"\"serial\"").unwrap() + 9
        })
    }),
    ("an end taken out of the head", "head_unsigned", |of| {
        let text = fs::read_to_string(of.head()).unwrap();
        let (before, rest) = text.split_once("\"ends\":[").unwrap();
        let (_, after) = rest.split_once("},").unwrap();
        fs::write(of.head(), format!("{before}\"ends\":[{after}")).unwrap();
    }),
    ("the head of another installation", "head_unsigned", |of| {
        let other = Scene::empty("elsewhere");
        fs::copy(other.head(), of.head()).unwrap();
    }),
    ("the head put back", "head_rolled_back", |of| {
        fs::copy(of.root.join("before"), of.head()).unwrap();
    }),
    ("the head put back to the first", "head_rolled_back", |of| {
        fs::copy(of.root.join("fresh"), of.head()).unwrap();
    }),
];

/// What the witness finds besides.
const WITNESSED: &[Row] = &[
    ("a line of the witness changed", "witness_forged", |of| {
        flip(&of.witness(), |bytes| {
            bytes.windows(8).position(|of| of == b"\"serial\"").unwrap() + 9
        })
    }),
    ("a line of the witness made up", "witness_forged", |of| {
        let text = fs::read_to_string(of.witness()).unwrap();
        fs::write(of.witness(), format!("{{}}\n{text}")).unwrap();
    }),
    (
        "journal and head put back together",
        "head_rolled_back",
        |of| {
            put_back(of);
        },
    ),
    (
        "journal and keys removed and begun anew",
        "segment_missing",
        |of| {
            fs::remove_dir_all(of.journal()).unwrap();
            fs::copy(of.root.join("fresh"), of.head()).unwrap();
            of.open(9_000).close(NOW_MS + 9_000, "stopped").unwrap();
        },
    ),
];

/// Journal and head as they were before the last start.
fn put_back(of: &Scene) {
    fs::remove_file(of.file(KILLED)).unwrap();
    fs::copy(of.root.join("before"), of.head()).unwrap();
}

#[test]
fn j15_every_kind_of_tampering_is_found() {
    let whole = Scene::whole();
    fs::write(whole.root.join("fresh"), first_head(&whole)).unwrap();
    for witness in [false, true] {
        let report = whole.verify(witness);
        assert_eq!(report.verdict(), Verdict::Open, "{report:#?}");
        assert_eq!(report.unproven.len(), 1, "{report:#?}");
    }
    let tables = [
        (WHOLE_FILES, false),
        (RECORDS, false),
        (BYTES, false),
        (HEADS, false),
        (WITNESSED, true),
    ];
    let (mut rows, mut wrong) = (0, Vec::new());
    for (table, witness) in tables {
        for (name, expected, tamper) in table {
            rows += 1;
            let scene = whole.copy("row");
            tamper(&scene);
            let report = scene.verify(witness);
            let found = labels(&report);
            let named = found.iter().any(|label| label == expected);
            if report.verdict() != Verdict::Tampered || !named {
                wrong.push(format!("{name}: expected {expected}, found {found:?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(rows >= 60, "{rows} kinds");
}

/// The first head of the scene's key, as it was before anything was written.
fn first_head(scene: &Scene) -> Vec<u8> {
    sign_head(
        scene,
        r#"{"format":"dwj1","serial":1,"time_ms":0,"begun_ms":0,"late":false,"ends":[]}"#,
    )
}

/// A head as whoever has the key can make it.
fn sign_head(scene: &Scene, body: &str) -> Vec<u8> {
    let signature = stolen(scene).sign(format!("dwj1-head{body}").as_bytes());
    let signature: String = signature
        .to_bytes()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    format!("{{\"head\":{body},\"signature\":\"{signature}\"}}\n").into_bytes()
}

fn stolen(scene: &Scene) -> SigningKey {
    let text = fs::read_to_string(scene.root.join("keys").join(CHECKPOINT_KEY_FILE)).unwrap();
    let digits = text.trim_end();
    let byte = |at: usize| u8::from_str_radix(&digits[2 * at..2 * at + 2], 16).unwrap();
    SigningKey::from_bytes(&std::array::from_fn(byte))
}

/// What `docs/journal.md` says that can no longer be proven once the key is stolen: anything, without a witness.
#[test]
fn with_the_key_everything_can_be_written_anew_and_only_a_witness_tells() {
    let scene = Scene::empty("stolen");
    let journal = scene.open(0);
    calls(&journal, 1..4);
    journal.close(NOW_MS + 600, "stopped").unwrap();
    assert_eq!(scene.verify(true).verdict(), Verdict::Sound);
    // The thief writes the one segment anew, closing signature and all.
    let (key, path) = (stolen(&scene), scene.file(0));
    let (id, mut previous, mut out) = (segment(&path), EntryHash::ZERO, Vec::new());
    for (sequence, body) in bodies(&path).iter().enumerate() {
        let sequence = sequence as u64;
        let mut body = body.replace("/tmp/a", "/tmp/b");
        for (event, domain) in [
            ("\"checkpoint\"", "dwj1-checkpoint"),
            ("\"segment_closed\"", "dwj1-closed"),
        ] {
            if body.contains(event) {
                let message = [
                    domain.as_bytes(),
                    &id.0,
                    &sequence.to_be_bytes(),
                    &previous.0,
                ]
                .concat();
                let signature: String = key
                    .sign(&message)
                    .to_bytes()
                    .iter()
                    .map(|byte| format!("{byte:02x}"))
                    .collect();
                let at = body.find("\"signature\":\"").unwrap() + 13;
                body.replace_range(at..at + 128, &signature);
            }
        }
        let line = forge(id, sequence, previous, body.as_bytes());
        previous = Line::parse(line.trim_ascii_end()).unwrap().entry;
        out.extend(line);
    }
    fs::write(&path, &out).unwrap();
    // The head still knows better, until the thief signs one that does not.
    assert_eq!(labels(&scene.verify(false)), ["rewritten"]);
    let text = fs::read_to_string(scene.head()).unwrap();
    let body = text
        .strip_prefix("{\"head\":")
        .unwrap()
        .split_once(",\"signature\"")
        .unwrap()
        .0;
    let at = body.find("\"hash\":\"").unwrap() + 8;
    let mut body = body.to_owned();
    body.replace_range(at..at + 64, &previous.to_string());
    fs::write(scene.head(), sign_head(&scene, &body)).unwrap();
    let report = scene.verify(false);
    assert_eq!(report.verdict(), Verdict::Sound, "{report:#?}");
    let found = labels(&scene.verify(true));
    assert!(found.contains(&"rewritten".to_owned()), "{found:?}");
}

/// What is not found without a witness: an older state of everything at once.
#[test]
fn an_older_state_of_journal_and_head_together_is_told_by_a_witness_alone() {
    let scene = Scene::whole();
    put_back(&scene);
    assert_eq!(scene.verify(false).verdict(), Verdict::Sound);
    assert_eq!(scene.verify(true).verdict(), Verdict::Tampered);
}

/// What no signature covers can be written anew; that it is open is said, and how much of it.
#[test]
fn what_no_signature_covers_is_open_and_counted() {
    let scene = Scene::empty("uncovered");
    let journal = scene.open(0);
    calls(&journal, 1..4);
    drop(journal);
    rewrite(&scene.file(0), |_, body| {
        *body = body.replace("/tmp/a", "/tmp/b")
    });
    let report = scene.verify(true);
    assert_eq!(report.verdict(), Verdict::Open, "{report:#?}");
    assert!(
        matches!(
            report.unproven[..],
            [Unproven::Tail {
                uncovered_records: 6,
                ..
            }]
        ),
        "{report:#?}"
    );
}
