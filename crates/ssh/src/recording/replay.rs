//! Reading a recording: whether it is as it was written, and what it shows.

use std::fmt;
use std::time::Duration;

use gate::journal::{EntryHash, SegmentId};
use serde::Deserialize;

use super::{Chain, END, HASH, OUTPUT, VERSION, hash_line};

/// Longest line of a recording, in bytes.
const LINE_BYTES_MAX: usize = 1 << 20;

/// What a terminal showed at a time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// Since the beginning.
    pub at: Duration,
    /// Output, with its control sequences.
    pub text: String,
}

/// Where a recording is not as it was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The line, from 1.
    pub line: usize,
    /// What is wrong, lowercase.
    pub wrong: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.wrong)
    }
}

/// A recording, read up to its end or to the first finding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recording {
    /// The host and the program.
    pub title: String,
    /// What it shows as far as it is as it was written.
    pub events: Vec<Event>,
    /// How the program ended; none where the recording has no end.
    pub end: Option<String>,
    /// The last hash that is right.
    pub hash: EntryHash,
    /// Where it is not as it was written, if anywhere.
    pub finding: Option<Finding>,
}

#[derive(Deserialize)]
struct Header {
    version: u64,
    #[serde(default)]
    title: String,
    durward: Option<Own>,
}

#[derive(Deserialize)]
struct Own {
    chain: String,
    segment: SegmentId,
}

/// Reads a recording.
///
/// # Errors
/// Where the first line is no header of a recording of ours: there is nothing to check then.
pub fn read(text: &str) -> Result<Recording, String> {
    let first = text.lines().next().unwrap_or_default();
    let header: Header = serde_json::from_str(first)
        .map_err(|error| format!("the first line is not a header of asciicast: {error}"))?;
    if header.version != VERSION {
        return Err(format!(
            "asciicast {} is not read; version 2 is",
            header.version
        ));
    }
    let own = header
        .durward
        .ok_or("the recording has no chain of hashes; it was not made here")?;
    if own.chain != gate::journal::FORMAT {
        return Err(format!("the chain \"{}\" is not known here", own.chain));
    }
    let chain = Chain::new(own.segment, first);
    let mut recording = Recording {
        title: header.title,
        events: Vec::new(),
        end: None,
        hash: chain.last,
        finding: None,
    };
    recording.finding = recording.check(text, chain).err();
    Ok(recording)
}

impl Recording {
    /// Takes in what stands behind the header as long as it is right.
    fn check(&mut self, text: &str, mut chain: Chain) -> Result<(), Finding> {
        let found = |line: usize, wrong: &str| Finding {
            line,
            wrong: wrong.to_owned(),
        };
        let mut last = 1;
        let mut lines = text.split_inclusive('\n').zip(1..).skip(1);
        while let Some((line, number)) = lines.next() {
            if self.end.is_some() {
                return Err(found(number, "there is something behind the end"));
            }
            let (at, code, data) = event(line).map_err(|wrong| found(number, wrong))?;
            let Some((hash_below, below)) = lines.next() else {
                return Err(found(
                    number,
                    "its hash is missing: the recording was cut here",
                ));
            };
            last = below;
            let (_, hash_code, hash) = event(hash_below).map_err(|wrong| found(below, wrong))?;
            if hash_code != HASH {
                return Err(found(
                    below,
                    "is not a hash: a line was taken away or put in",
                ));
            }
            let line = line.trim_end_matches('\n');
            let right = chain.push(line);
            if EntryHash::parse(&hash) != Some(right) {
                let wrong = "is not the line that was recorded here, or a line before it was changed, taken away or put in";
                return Err(found(number, wrong));
            }
            if hash_below.trim_end_matches('\n') != hash_line(line, right) {
                return Err(found(below, "is not the line that was recorded here"));
            }
            self.hash = chain.last;
            match code.as_str() {
                OUTPUT => self.events.push(Event { at, text: data }),
                END => self.end = Some(data),
                _ => return Err(found(number, "has a code that no recording has")),
            }
        }
        match self.end {
            Some(_) => Ok(()),
            None => Err(found(
                last,
                "is the last, and not the end: the recording was cut, or its terminal still runs",
            )),
        }
    }
}

fn event(line: &str) -> Result<(Duration, String, String), &'static str> {
    let line = line
        .strip_suffix('\n')
        .ok_or("has no line end: it was cut")?;
    if line.len() > LINE_BYTES_MAX {
        return Err("is longer than any line of a recording");
    }
    let (at, code, data): (f64, String, String) =
        serde_json::from_str(line).map_err(|_| "is not an event of asciicast")?;
    let at = Duration::try_from_secs_f64(at).map_err(|_| "has no time")?;
    Ok((at, code, data))
}

#[cfg(test)]
mod tests {
    use super::super::OpenRecordings;
    use super::*;
    use crate::size::Size;

    async fn recorded() -> String {
        // Tests run beside each other.
        static NUMBER: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let name = format!("recording-{}-{number}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&folder).unwrap();
        let size = Size {
            columns: 80,
            rows: 24,
        };
        let open = OpenRecordings::default();
        let begun = open.start(&folder, ("web", "top"), size, 100_000).await;
        let (mut recorder, name) = begun.unwrap();
        for part in [
            b"one\r\n".as_slice(),
            b"tw\xc3",
            b"\xa9\xff\r\n",
            b"\x1b[0mthree",
        ] {
            recorder.output(part).await.unwrap();
        }
        let hash = recorder.finish("exit code 0").await.unwrap();
        let text = std::fs::read_to_string(folder.join(&name)).unwrap();
        let _ = std::fs::remove_dir_all(folder);
        assert_eq!(read(&text).unwrap().hash.to_string(), hash);
        text
    }

    #[tokio::test]
    async fn a_recording_is_read_as_it_was_written() {
        let read = read(&recorded().await).unwrap();
        assert_eq!((read.finding, read.title.as_str()), (None, "web: top"));
        assert_eq!(read.end.as_deref(), Some("exit code 0"));
        let shown: String = read
            .events
            .iter()
            .map(|event| event.text.as_str())
            .collect();
        assert_eq!(shown, "one\r\ntwé\u{fffd}\r\n\u{1b}[0mthree");
    }

    #[tokio::test]
    async fn every_line_that_is_changed_taken_away_put_in_or_moved_is_told() {
        let text = recorded().await;
        let lines: Vec<&str> = text.lines().collect();
        let joined = |lines: &[&str]| {
            lines
                .iter()
                .map(|line| format!("{line}\n"))
                .collect::<String>()
        };
        for at in 1..lines.len() {
            let finding = |lines: &[&str]| read(&joined(lines)).unwrap().finding;
            let mut without = lines.clone();
            without.remove(at);
            assert!(finding(&without).is_some(), "without {at}");
            let mut twice = lines.clone();
            twice.insert(at, lines[at]);
            assert!(finding(&twice).is_some(), "twice {at}");
            assert!(finding(&lines[..at]).is_some(), "cut at {at}");
            let changed = lines[at].replacen(['e', '0', '1'], "9", 1);
            let mut other = lines.clone();
            other[at] = &changed;
            let found = finding(&other).unwrap();
            assert!(found.line == at + 1 || found.line == at, "{at}: {found}");
            if at + 3 < lines.len() && at % 2 == 1 {
                let mut moved = lines.clone();
                moved.swap(at, at + 2);
                moved.swap(at + 1, at + 3);
                assert_eq!(finding(&moved).unwrap().line, at + 1, "moved {at}");
            }
        }
        let header = text.replacen("top", "cat", 1);
        assert_eq!(read(&header).unwrap().finding.unwrap().line, 2);
    }

    #[test]
    fn what_is_no_recording_is_said() {
        for (text, wrong) in [
            ("", "not a header"),
            ("{}\n", "not a header"),
            ("{\"version\":3}\n", "asciicast 3"),
            ("{\"version\":2}\n", "no chain"),
            (
                "{\"version\":2,\"durward\":{\"chain\":\"x\",\"segment\":\"00000000000000000000000000000000\"}}\n",
                "not known",
            ),
            (
                "{\"version\":2,\"durward\":{\"chain\":\"dwj1\",\"segment\":\"0\"}}\n",
                "not a header",
            ),
        ] {
            let told = read(text).unwrap_err();
            assert!(told.contains(wrong), "{text}: {told}");
        }
    }
}
