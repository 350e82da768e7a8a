//! `durward audit` over true and changed journals, called as the binary calls it.

use std::fs;
use std::path::PathBuf;

use clap::Parser;
use gate::effect::Effect;
use gate::journal::{
    Decision, Journal, JournalOptions, Keys, OpId, Operation, Record, Status, SyncPolicy,
};

/// 2026-11-21T03:38:09.123Z
const NOW_MS: i64 = 1_795_232_289_123;

#[derive(Parser)]
struct Cli {
    #[command(flatten)]
    audit: super::AuditArgs,
}

struct Place(PathBuf);

impl Place {
    /// Six calls, ten minutes apart: the third refused, the fourth without an outcome.
    fn new(name: &str) -> Place {
        let place =
            Place(std::env::temp_dir().join(format!("audit-{name}-{}", std::process::id())));
        let _ = fs::remove_dir_all(&place.0);
        let mut byte = 0_u8;
        let mut random = |bytes: &mut [u8]| {
            bytes.fill({
                byte += 1;
                byte
            })
        };
        let keys = Keys::open(&place.0.join("keys"), &mut random).unwrap();
        let options = JournalOptions {
            sync: SyncPolicy::Never,
            ..JournalOptions::default()
        };
        let journal = Journal::open(
            &place.journal(),
            &keys,
            options,
            [9; 16],
            NOW_MS,
            &mut random,
        )
        .unwrap();
        for at in 1..=6_u8 {
            let (op, now_ms) = (OpId(u128::from(at)), NOW_MS + i64::from(at) * 600_000);
            let decision = if at == 3 { Effect::Deny } else { Effect::Allow };
            let tool_name = Some(if at == 5 {
                "bad\u{1b}[31mtool"
            } else {
                "read_file"
            });
            let record = Decision {
                op,
                decision,
                tool_name,
                ..Decision::default()
            };
            journal.append(now_ms, &Record::Decision(&record)).unwrap();
            if at != 3 && at != 4 {
                let record = Operation {
                    op,
                    status: Status::Success,
                    ..Operation::default()
                };
                journal.append(now_ms, &Record::Operation(&record)).unwrap();
            }
        }
        journal.close(NOW_MS + 4_000_000, "stopped").unwrap();
        place
    }

    fn journal(&self) -> PathBuf {
        self.0.join("journal")
    }

    fn segment(&self) -> PathBuf {
        let mut entries = fs::read_dir(self.journal())
            .unwrap()
            .map(|entry| entry.unwrap().path());
        entries
            .find(|path| {
                path.extension()
                    .is_some_and(|extension| extension == "jsonl")
            })
            .unwrap()
    }

    fn paths(&self) -> admin::StatePaths {
        admin::StatePaths {
            state: self.0.clone(),
            ..admin::StatePaths::default()
        }
    }

    fn run(&self, arguments: &[&str]) -> (u8, String, String) {
        let cli = Cli::try_parse_from([&["audit"], arguments].concat()).unwrap();
        let context = super::Context {
            paths: self.paths(),
            journal: self.journal(),
            now_ms: NOW_MS + 3_600_000,
        };
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let code = super::run(&cli.audit, &context, &mut out, &mut err);
        (
            code,
            String::from_utf8(out).unwrap(),
            String::from_utf8(err).unwrap(),
        )
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn a_sound_journal_is_exit_0() {
    let place = Place::new("sound");
    let (code, out, err) = place.run(&["verify"]);
    assert_eq!((code, err.as_str()), (0, ""));
    assert!(out.starts_with("sound: 1 segment, "), "{out}");
    assert!(out.contains(
        "note: missing outcome: 1 permitted call has no outcome: 00000000000000000000000000000004"
    ));
    let (code, out, _) = place.run(&["verify", "--json"]);
    let report: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!(
        (code, report["status"].as_str(), report["segments"].as_u64()),
        (0, Some("sound"), Some(1))
    );
    assert_eq!(report["notes"][0]["note"], "missing_outcome");
}

#[test]
fn a_changed_journal_is_exit_1() {
    let place = Place::new("changed");
    let path = place.segment();
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replacen("read_file", "read_fily", 1)).unwrap();
    let (code, out, _) = place.run(&["verify"]);
    assert_eq!(code, 1);
    let file = path.file_name().unwrap().to_str().unwrap();
    assert!(out.starts_with("tampered: "), "{out}");
    assert!(
        out.contains(&format!(
            "finding: {file}:3: record 2 was changed: its hash does not match"
        )),
        "{out}"
    );
    let (code, out, _) = place.run(&["verify", "--json", "--dir", path.to_str().unwrap()]);
    let report: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!(code, 1);
    assert_eq!(report["findings"][0]["problem"], "changed");
    assert_eq!(report["findings"][0]["sequence"], 2);
}

#[test]
fn a_last_segment_that_was_taken_away_is_exit_1() {
    for emptied in [false, true] {
        let place = Place::new(if emptied { "emptied" } else { "last" });
        let file = place.segment();
        if emptied {
            fs::remove_dir_all(place.journal()).unwrap();
        } else {
            fs::remove_file(&file).unwrap();
        }
        let (code, out, err) = place.run(&["verify"]);
        assert_eq!((code, err.as_str()), (1, ""), "{out}");
        assert!(
            out.contains("finding: head.json: segment ")
                && out.contains(" is missing: the head names its record "),
            "{out}"
        );
    }
}

#[test]
fn an_end_that_cannot_be_proven_is_exit_3() {
    let place = Place::new("open");
    let path = place.segment();
    let text = fs::read_to_string(&path).unwrap();
    // Without a head, nothing says that this is all.
    let elsewhere = place.0.join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    fs::copy(&path, elsewhere.join(path.file_name().unwrap())).unwrap();
    let dir = elsewhere.to_str().unwrap();
    let (code, out, _) = place.run(&["verify", "--dir", dir]);
    assert_eq!(code, 3, "{out}");
    assert!(out.contains("open: no head was compared"), "{out}");
    let head = place.0.join("keys/head.json");
    let head = head.to_str().unwrap();
    assert_eq!(place.run(&["verify", "--dir", dir, "--head", head]).0, 0);
    // A killed instance: its last two records are under no signature.
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    fs::write(
        elsewhere.join(path.file_name().unwrap()),
        lines[..lines.len() - 1].concat(),
    )
    .unwrap();
    let (code, out, _) = place.run(&["verify", "--dir", dir]);
    assert_eq!(code, 3, "{out}");
    let segment = segment_id(&place);
    assert!(
        out.starts_with("open: ")
            && out.contains(&format!(
                " records of segment {segment} are not yet covered by a signature; whether one of them was changed, or more were cut off behind them, cannot be told\n"
            )),
        "{out}"
    );
    let (code, out, _) = place.run(&["verify", "--json", "--dir", dir]);
    let report: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!((code, report["status"].as_str()), (3, Some("open")));
    assert_eq!(report["unproven"][1]["open"], "tail", "{report}");
    // The head knows that there was more.
    assert_eq!(place.run(&["verify", "--dir", dir, "--head", head]).0, 1);
}

#[test]
fn a_file_that_is_no_head_of_this_journal_says_nothing_of_it() {
    let (place, other) = (Place::new("head"), Place::new("other-head"));
    let dir = place.journal();
    let verified = |head: &PathBuf| {
        let (dir, head) = (dir.to_str().unwrap(), head.to_str().unwrap());
        place.run(&["verify", "--dir", dir, "--head", head])
    };
    let own = place.0.join("keys/head.json");
    assert_eq!(verified(&own).0, 0);
    let (cut, forged) = (place.0.join("cut"), place.0.join("forged"));
    let text = fs::read_to_string(&own).unwrap();
    fs::write(&cut, &text[..text.len() - 9]).unwrap();
    fs::write(&forged, text.replacen("\"serial\":", "\"serial\":1", 1)).unwrap();
    for changed in [cut, forged] {
        let (code, out, _) = verified(&changed);
        assert_eq!(code, 1, "{out}");
    }
    let (empty, theirs) = (place.0.join("empty"), other.0.join("keys/head.json"));
    fs::write(&empty, "").unwrap();
    // Both places draw the same keys and names; with another name it is another journal's.
    let text = fs::read_to_string(&theirs).unwrap();
    let changed = text.replace(segment_id(&other).as_str(), &"7".repeat(32));
    fs::write(&theirs, changed).unwrap();
    for none in [empty, theirs, place.0.join("keys/checkpoint.pub")] {
        let (code, out, err) = verified(&none);
        assert_eq!((code, out.as_str()), (2, ""), "{err}");
        assert!(err.contains("is not a head of this journal"), "{err}");
    }
    let (code, out, err) = verified(&place.0.join("nowhere"));
    assert_eq!((code, out.as_str()), (2, ""));
    assert!(err.contains("cannot read "), "{err}");
}

fn segment_id(of: &Place) -> String {
    let path = of.segment();
    let stem = path.file_stem().unwrap().to_str().unwrap();
    stem.rsplit('-').next().unwrap().to_owned()
}

#[test]
fn what_cannot_be_verified_is_exit_2() {
    let place = Place::new("cannot");
    let (code, out, err) = place.run(&["verify", "--key", "/nowhere/key"]);
    assert_eq!((code, out.as_str()), (2, ""));
    assert!(
        err.contains("cannot read /nowhere/key") && err.contains("--key FILE"),
        "{err}"
    );
    let (code, _, err) = place.run(&["verify", "--dir", "/nowhere"]);
    assert_eq!(
        (code, err.as_str()),
        (
            2,
            "error: cannot read /nowhere: No such file or directory (os error 2)\n"
        )
    );
    let empty = place.0.join("empty");
    fs::create_dir(&empty).unwrap();
    let (code, _, err) = place.run(&["verify", "--dir", empty.to_str().unwrap()]);
    assert!(
        code == 2 && err.contains("holds no journal segment"),
        "{err}"
    );
    let (code, _, err) = place.run(&["show", "--dir", "/nowhere"]);
    assert!(
        code == 2 && err.starts_with("error: cannot read /nowhere"),
        "{err}"
    );
}

#[test]
fn records_are_selected() {
    let place = Place::new("select");
    for (arguments, lines) in [
        (&["show"][..], 18),
        (&["show", "--limit", "4"], 4),
        (&["show", "--kind", "decision"], 6),
        (&["show", "--kind", "operation"], 4),
        (&["show", "--decision", "deny"], 1),
        (&["show", "--since", "25m", "--kind", "decision"], 3),
        (
            &[
                "show",
                "--since",
                "2026-11-21T04:30:00Z",
                "--kind",
                "decision",
            ],
            1,
        ),
        (&["show", "--op", "00000000000000000000000000000002"], 2),
        (&["tail", "--limit", "2"], 2),
        (&["tail", "--kind", "auth"], 0),
    ] {
        let (code, out, err) = place.run(arguments);
        assert_eq!(
            (code, err.as_str(), out.lines().count()),
            (0, "", lines),
            "{arguments:?}\n{out}"
        );
    }
}

#[test]
fn records_are_printed_plain_and_as_written() {
    let place = Place::new("print");
    let (_, out, _) = place.run(&["show", "--decision", "deny"]);
    assert_eq!(
        out,
        "2026-11-21T04:08:09.123Z  decision  policy_decision  decision=deny  op=00000000000000000000000000000003  tool_name=read_file\n"
    );
    let (_, out, _) = place.run(&["tail", "--json", "--decision", "deny"]);
    assert_eq!(
        out,
        "{\"time\":\"2026-11-21T04:08:09.123Z\",\"kind\":\"decision\",\"event\":\"policy_decision\",\"op\":\"00000000000000000000000000000003\",\"decision\":\"deny\",\"tool_name\":\"read_file\"}\n"
    );
    let (_, out, _) = place.run(&["show", "--op", "00000000000000000000000000000005"]);
    assert!(
        !out.contains('\u{1b}') && out.contains("tool_name=bad\\u{1b}[31mtool"),
        "{out}"
    );
}

#[test]
fn lines_that_are_no_records_are_told() {
    let place = Place::new("lines");
    let path = place.segment();
    fs::write(
        &path,
        [fs::read(&path).unwrap(), b"\xff\xff\n".to_vec()].concat(),
    )
    .unwrap();
    let (code, _, err) = place.run(&["show"]);
    assert_eq!(
        (code, err.as_str()),
        (
            0,
            "warning: 1 lines cannot be read as records; run durward audit verify\n"
        )
    );
}

#[test]
fn wrong_arguments_are_refused() {
    for arguments in [
        &["show", "--limit", "0"][..],
        &["show", "--kind", "other"],
        &["show", "--decision", "perhaps"],
        &["show", "--since", "soon"],
        &["verify", "--follow"],
        &["forget"],
    ] {
        assert!(
            Cli::try_parse_from([&["audit"], arguments].concat()).is_err(),
            "{arguments:?}"
        );
    }
}

/// A reader that goes away after the first line, as `head` does.
struct Gone(usize);

impl std::io::Write for Gone {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0 += bytes.iter().filter(|byte| **byte == b'\n').count();
        if self.0 > 1 {
            Err(std::io::ErrorKind::BrokenPipe.into())
        } else {
            Ok(bytes.len())
        }
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_reader_that_goes_away_ends_following_with_success() {
    let place = Place::new("gone");
    let cli = Cli::try_parse_from(["audit", "tail", "--follow"]).unwrap();
    let context = super::Context {
        paths: place.paths(),
        journal: place.journal(),
        now_ms: NOW_MS,
    };
    assert_eq!(
        super::run(&cli.audit, &context, &mut Gone(0), &mut Vec::new()),
        0
    );
}
