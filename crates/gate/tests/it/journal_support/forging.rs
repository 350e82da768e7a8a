//! Changing a journal as somebody without its key can.

use std::fs;
use std::path::Path;

use gate::journal::{Line, SegmentId};

use super::forge;

pub(crate) fn lines(path: &Path) -> Vec<Vec<u8>> {
    let bytes = fs::read(path).unwrap();
    bytes
        .split_inclusive(|byte| *byte == b'\n')
        .map(<[u8]>::to_vec)
        .collect()
}

pub(crate) fn edit(path: &Path, change: impl FnOnce(&mut Vec<Vec<u8>>)) {
    let mut lines = lines(path);
    change(&mut lines);
    fs::write(path, lines.concat()).unwrap();
}

pub(crate) fn replace(line: &mut Vec<u8>, from: &str, to: &str) {
    let text = String::from_utf8(line.clone()).unwrap();
    assert!(text.contains(from), "{text}");
    *line = text.replacen(from, to, 1).into_bytes();
}

pub(crate) fn segment(path: &Path) -> SegmentId {
    let header = lines(path).remove(0);
    let text = String::from_utf8(header).unwrap();
    let at = text.find("\"segment\":\"").unwrap() + 11;
    SegmentId::parse(&text[at..at + 32]).unwrap()
}

pub(crate) fn bodies(path: &Path) -> Vec<String> {
    let body = |line: &Vec<u8>| {
        String::from_utf8(Line::parse(line.trim_ascii_end()).unwrap().body.to_vec()).unwrap()
    };
    lines(path).iter().map(body).collect()
}

/// Writes a file anew with right hashes throughout, as somebody without the key can.
pub(crate) fn write(path: &Path, bodies: &[String]) {
    let id = segment(path);
    let mut previous = Line::parse(lines(path)[0].trim_ascii_end())
        .unwrap()
        .previous;
    let mut out = Vec::new();
    for (sequence, body) in bodies.iter().enumerate() {
        let line = forge(id, sequence as u64, previous, body.as_bytes());
        previous = Line::parse(line.trim_ascii_end()).unwrap().entry;
        out.extend(line);
    }
    fs::write(path, out).unwrap();
}

pub(crate) fn rewrite(path: &Path, change: impl Fn(u64, &mut String)) {
    let mut bodies = bodies(path);
    for (sequence, body) in bodies.iter_mut().enumerate() {
        change(sequence as u64, body);
    }
    write(path, &bodies);
}
