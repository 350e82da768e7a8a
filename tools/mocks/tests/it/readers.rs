//! What Go and Python read in a canonical frame is what the scan of it says.
//!
//! Go decodes by struct, so that it folds names and lets the last win; Python reads in text mode, so
//! that lines end at a carriage return too.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::time::{SystemTime, UNIX_EPOCH};

use mocks::ambiguous::{AmbiguousFrame, FrameStream};
use serde_json::Value;
use wire::canonical::NameTree;
use wire::jsonrpc::{member, string};
use wire::members::Shape;
use wire::{Bounds, Canonical, Scan, scan_reply, scan_request};

/// How many frames of each seed.
const FRAMES: usize = 640;

/// The members of the params of a call that the frames play with.
const PARAMS: Shape = Shape {
    known: &["name", "arguments", "_meta", "task"],
    below: &[("_meta", &Shape::flat(&["progressToken"]))],
};

fn scripts() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/differential")
}

/// A reader of frames, or `None` with a word on standard error. Continuous integration has them all.
fn have(program: &str, ready: bool) -> Option<()> {
    if ready {
        return Some(());
    }
    assert!(
        std::env::var_os("CI").is_none(),
        "{program} is missing and CI wants it"
    );
    eprintln!("skipped: {program} is missing");
    None
}

/// Built once for all tests of this binary.
fn go_reader() -> Option<Command> {
    static BUILT: OnceLock<Option<PathBuf>> = OnceLock::new();
    BUILT
        .get_or_init(build_go_reader)
        .as_ref()
        .map(Command::new)
}

fn build_go_reader() -> Option<PathBuf> {
    let binary = Path::new(env!("CARGO_TARGET_TMPDIR")).join("go-reader");
    let found = Command::new("go").arg("version").output();
    have("go", found.is_ok_and(|output| output.status.success()))?;
    let built = Command::new("go")
        .args(["build", "-o"])
        .arg(&binary)
        .arg(scripts().join("go/reader/main.go"))
        .env("GO111MODULE", "off")
        .output()
        .unwrap();
    assert!(
        built.status.success(),
        "{}",
        String::from_utf8_lossy(&built.stderr)
    );
    Some(binary)
}

fn python_reader() -> Option<Command> {
    let found = Command::new("python3").arg("--version").output();
    have("python3", found.is_ok_and(|output| output.status.success()))?;
    let mut command = Command::new("python3");
    command.arg(scripts().join("reader.py"));
    Some(command)
}

/// What a reader reads in lines.
fn read(mut reader: Command, lines: &[&[u8]]) -> Vec<Value> {
    let mut child = reader
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let text = lines.join(&b'\n');
    let writing = std::thread::spawn(move || {
        stdin.write_all(&text).unwrap();
        stdin.write_all(b"\n").unwrap();
    });
    let output = child.wait_with_output().unwrap();
    writing.join().unwrap();
    assert!(output.status.success());
    let text = String::from_utf8(output.stdout).unwrap();
    let lines = text.lines().map(|line| serde_json::from_str(line).unwrap());
    lines.collect()
}

/// Method, tool, path and text, as the gate reads them.
fn reading(scan: &Scan<'_>) -> [String; 4] {
    let text = |raw: Option<&str>| {
        let text = raw.and_then(string);
        text.map(std::borrow::Cow::into_owned).unwrap_or_default()
    };
    let arguments = member(&scan.params, "arguments").unwrap_or("{}");
    let arguments = scan_reply(arguments.as_bytes(), &Bounds::default()).unwrap();
    [
        text(member(&scan.members, "method")),
        text(member(&scan.params, "name")),
        text(member(&arguments.members, "path")),
        text(member(&arguments.members, "text")),
    ]
}

fn read_by(line: &Value) -> [String; 4] {
    ["method", "name", "path", "text"].map(|name| {
        line.get(name)
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned()
    })
}

/// The frame as the gate would send it, where it would.
fn sent(frame: &AmbiguousFrame) -> Option<Canonical> {
    let mut declared = NameTree::default();
    for name in ["path", "text", "count"] {
        declared.declare(name);
    }
    let canonical = Canonical::of(&frame.bytes, &Bounds::default()).ok()?;
    canonical.envelope().ok()?;
    canonical.params_are(&PARAMS).ok()?;
    canonical.arguments_are(&declared).ok()?;
    Some(canonical)
}

/// One seed that every run has, and one that none had before.
fn seeds() -> [u64; 2] {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let fresh = u64::from(now.subsec_nanos()) ^ now.as_secs() << 30;
    eprintln!("the fresh seed is {fresh}");
    [1, fresh]
}

fn reads_the_same(make: impl Fn() -> Option<Command>) {
    for seed in seeds() {
        let Some(reader) = make() else { return };
        let frames: Vec<AmbiguousFrame> = FrameStream::new(seed).take(FRAMES).collect();
        let good: Vec<(&AmbiguousFrame, Canonical)> = frames
            .iter()
            .filter_map(|frame| Some((frame, sent(frame)?)))
            .collect();
        assert!(
            good.len() > FRAMES * 3 / 10,
            "only {} frames are sent",
            good.len()
        );
        let lines: Vec<&[u8]> = good
            .iter()
            .map(|(_, frame)| frame.text().as_bytes())
            .collect();
        let seen = read(reader, &lines);
        assert_eq!(seen.len(), good.len(), "a frame is one line, seed {seed}");
        for (line, (frame, canonical)) in seen.iter().zip(&good) {
            let ours = reading(&canonical.scan());
            assert_eq!(
                read_by(line),
                ours,
                "seed {seed}, {frame:?}, {}",
                canonical.text()
            );
        }
    }
}

#[test]
fn go_reads_in_a_canonical_frame_what_the_scan_reads() {
    reads_the_same(go_reader);
}

#[test]
fn python_reads_in_a_canonical_frame_what_the_scan_reads() {
    reads_the_same(python_reader);
}

/// Whether the reader reads each frame of a form as the scan does, as it came.
fn reads_otherwise(make: impl Fn() -> Option<Command>, form: &str) {
    let frames = FrameStream::new(1).take(FRAMES);
    let frames: Vec<AmbiguousFrame> = frames.filter(|frame| frame.form == form).collect();
    assert!(frames.len() >= 4, "{form}");
    let differs = frames.iter().any(|frame| {
        let Some(reader) = make() else { return true };
        let scan = scan_request(&frame.bytes, &Bounds::default()).unwrap();
        let ours = reading(&scan);
        let seen = read(reader, &[&frame.bytes]);
        seen.iter().any(|line| read_by(line) != ours)
    });
    assert!(differs, "{form} is read as the scan reads it: {frames:?}");
}

#[test]
fn go_reads_other_things_in_frames_as_they_came() {
    for form in [
        "method beside ping",
        "params beside",
        "tool beside",
        "arguments beside",
        "path beside",
        "path only alike",
    ] {
        reads_otherwise(go_reader, form);
    }
}

#[test]
fn python_reads_other_things_in_frames_as_they_came() {
    for form in [
        "carriage returns around an inner call in a ping",
        "carriage returns around an inner call in _meta",
    ] {
        reads_otherwise(python_reader, form);
    }
}

#[test]
fn every_character_folds_at_least_as_go_folds_it() {
    let Some(mut reader) = go_reader() else {
        return;
    };
    let output = reader.arg("folds").output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let pairs: Vec<(char, char)> = text
        .lines()
        .map(|line| {
            let mut codes = line
                .split(' ')
                .map(|code| char::from_u32(code.parse().unwrap()).unwrap());
            (codes.next().unwrap(), codes.next().unwrap())
        })
        .collect();
    assert!(pairs.len() > 1000, "{}", pairs.len());
    for (a, b) in pairs {
        assert_eq!(
            wire::fold::fold_char(a),
            wire::fold::fold_char(b),
            "{a:?} {b:?}"
        );
    }
}
