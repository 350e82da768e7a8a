//! The numbers of a chunk as they are kept: whole or in part, at once or piece by piece.

use bytes::Bytes;
use http::header::{ACCEPT_RANGES, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE};
use http::{HeaderName, HeaderValue, StatusCode};
use net::http::server::{Response, ResponseBody, stream};
use toolkit::outputs::OutputReader;
use toolkit::results::{ByteRange, Ranges};

use super::streams::attach;
use crate::population::{CONTENT_TYPE as COLUMNS, PopulationChunk};

/// Most pieces of a chunk that wait for the client to read them.
const PIECES_MAX: usize = 4;
/// Length of a piece of a chunk, in bytes.
const PIECE_BYTES: u64 = 256 << 10;
/// So much is read at once, before the answer begins: no thread has to be waited for between its pieces.
const WHOLE_BYTES_MAX: u64 = 1 << 20;
static DIGEST: HeaderName = HeaderName::from_static("x-content-sha256");

/// The bytes as they are kept, whole or in part.
pub(super) struct ColumnBytes {
    reader: OutputReader,
    chunk: PopulationChunk,
    length: u64,
    part: BytePart,
    /// The bytes, if they are few.
    bytes: Option<Vec<u8>>,
}

/// Which part of the bytes is asked for.
enum BytePart {
    Whole(Option<ByteRange>),
    One(ByteRange),
    Unsatisfiable,
}

impl BytePart {
    fn range(&self) -> Option<ByteRange> {
        match self {
            Self::Whole(range) => *range,
            Self::One(range) => Some(*range),
            Self::Unsatisfiable => None,
        }
    }
}

impl ColumnBytes {
    /// Blocks for as long as it takes to read what is sent at once.
    pub fn open(reader: OutputReader, chunk: PopulationChunk, range: Option<&str>) -> Self {
        let length = reader.length();
        let part = match range.map_or(Ranges::Whole, |header| Ranges::read(header, length)) {
            Ranges::Parts(parts) if parts.len() == 1 => parts
                .first()
                .copied()
                .map_or(BytePart::Unsatisfiable, BytePart::One),
            Ranges::Unsatisfiable => BytePart::Unsatisfiable,
            // Several parts at once are sent as the whole, which the standard allows.
            Ranges::Whole | Ranges::Parts(_) => BytePart::Whole(ByteRange::new(0, length)),
        };
        let small = part
            .range()
            .filter(|range| range.length() <= WHOLE_BYTES_MAX);
        // What cannot be read here is tried once more piece by piece, and its end is seen by its length.
        let bytes = small.and_then(|range| {
            let read = reader.range(range).ok()?;
            (read.len() as u64 == range.length()).then_some(read)
        });
        Self {
            reader,
            chunk,
            length,
            part,
            bytes,
        }
    }

    pub fn into_response(self) -> Response {
        if let BytePart::Unsatisfiable = self.part {
            let mut response = http::Response::new(ResponseBody::default());
            *response.status_mut() = StatusCode::RANGE_NOT_SATISFIABLE;
            let value = HeaderValue::from_str(&format!("bytes */{}", self.length));
            if let Ok(value) = value {
                response.headers_mut().insert(CONTENT_RANGE, value);
            }
            return response;
        }
        let range = self.part.range();
        let (start, end) = range.map_or((0, 0), |range| (range.start(), range.end()));
        let body = match self.bytes {
            Some(bytes) => ResponseBody::from(bytes),
            None => in_pieces(self.reader, start, end),
        };
        let mut response = http::Response::new(body);
        if let BytePart::One(range) = self.part {
            *response.status_mut() = StatusCode::PARTIAL_CONTENT;
            if let Ok(value) = HeaderValue::from_str(&range.content_range(self.length)) {
                response.headers_mut().insert(CONTENT_RANGE, value);
            }
        }
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(COLUMNS));
        headers.insert(ACCEPT_RANGES, HeaderValue::from_static("bytes"));
        headers.insert(CONTENT_LENGTH, HeaderValue::from(end - start));
        if let Ok(value) = HeaderValue::from_str(&self.chunk.sha256) {
            headers.insert(&DIGEST, value);
        }
        attach(headers, &format!("{}.columns", self.chunk.chunk_id));
        response
    }
}

/// Reads a few pieces ahead of the client.
fn in_pieces(reader: OutputReader, start: u64, end: u64) -> ResponseBody {
    let (sender, body) = stream(PIECES_MAX);
    let runtime = tokio::runtime::Handle::current();
    tokio::task::spawn_blocking(move || {
        let mut at = start;
        while let Some(piece) = ByteRange::new(at, end.min(at.saturating_add(PIECE_BYTES))) {
            // A body that ends early is seen by its length.
            let Ok(bytes) = reader.range(piece) else {
                return;
            };
            if bytes.is_empty() || runtime.block_on(sender.send(Bytes::from(bytes))).is_err() {
                return;
            }
            at = piece.end();
        }
    });
    body
}
