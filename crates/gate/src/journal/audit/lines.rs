//! Lines of a file, each bounded.

use std::io::{self, BufRead};

use crate::journal::LINE_BYTES_MAX;

/// How a line ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::journal) enum Ended {
    /// With a line feed, which is not part of the line.
    Whole,
    /// With the file.
    Torn,
    /// Not within [`LINE_BYTES_MAX`]; the rest was skipped, up to the next line feed or the end of the file.
    TooLong,
}

pub(in crate::journal) struct Lines<R> {
    source: R,
    /// Bytes taken from the source, line feeds included.
    pub(in crate::journal) taken_bytes: u64,
}

impl<R: BufRead> Lines<R> {
    pub(in crate::journal) fn new(source: R) -> Self {
        Lines {
            source,
            taken_bytes: 0,
        }
    }

    /// Reads the next line into `line`; `None` at the end of the file.
    pub(in crate::journal) fn next(&mut self, line: &mut Vec<u8>) -> io::Result<Option<Ended>> {
        line.clear();
        let mut too_long = false;
        loop {
            let chunk = match self.source.fill_buf() {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                other => other?,
            };
            if chunk.is_empty() {
                return Ok(match (too_long, line.is_empty()) {
                    (true, _) => Some(Ended::TooLong),
                    (false, true) => None,
                    (false, false) => Some(Ended::Torn),
                });
            }
            let (part, used, ends) = match chunk.iter().position(|byte| *byte == b'\n') {
                Some(end) => (
                    chunk.get(..end).unwrap_or(chunk),
                    end.saturating_add(1),
                    true,
                ),
                None => (chunk, chunk.len(), false),
            };
            too_long |= line.len().saturating_add(part.len()) > LINE_BYTES_MAX;
            if !too_long {
                line.extend_from_slice(part);
            }
            self.source.consume(used);
            self.taken_bytes = self.taken_bytes.saturating_add(used as u64);
            if ends {
                return Ok(Some(if too_long {
                    Ended::TooLong
                } else {
                    Ended::Whole
                }));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(bytes: &[u8]) -> Vec<(usize, Ended)> {
        let mut lines = Lines::new(io::BufReader::with_capacity(7, bytes));
        let (mut line, mut found) = (Vec::new(), Vec::new());
        while let Some(ended) = lines.next(&mut line).unwrap() {
            found.push((line.len(), ended));
        }
        found
    }

    #[test]
    fn lines_end_whole_torn_or_too_long() {
        assert_eq!(all(b""), []);
        assert_eq!(all(b"\n"), [(0, Ended::Whole)]);
        assert_eq!(
            all(b"0123456789\nab"),
            [(10, Ended::Whole), (2, Ended::Torn)]
        );
        let mut long = vec![b'x'; LINE_BYTES_MAX];
        assert_eq!(all(&long), [(LINE_BYTES_MAX, Ended::Torn)]);
        long.extend_from_slice(b"x\nok\n");
        let found = all(&long);
        assert_eq!(
            found.iter().map(|(_, ended)| *ended).collect::<Vec<_>>(),
            [Ended::TooLong, Ended::Whole]
        );
    }
}
