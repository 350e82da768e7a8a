//! Writing events.

/// Writes an event. Data of several lines (whatever ends them) becomes several `data` fields, so a
/// reader sees every line end as a line feed; in JSON that is white space. An id that holds a line
/// end or NUL would break the stream, so the event goes without it.
pub fn push_event(out: &mut Vec<u8>, id: Option<&str>, data: &[u8]) {
    let fits = |id: &&str| !id.bytes().any(|b| matches!(b, b'\r' | b'\n' | 0));
    if let Some(id) = id.filter(fits) {
        push_field(out, b"id: ", id.as_bytes());
    }
    let mut rest = data;
    while let Some(at) = memchr::memchr2(b'\r', b'\n', rest) {
        let (line, tail) = rest.split_at(at);
        push_field(out, b"data: ", line);
        let end = if tail.starts_with(b"\r\n") { 2 } else { 1 };
        rest = tail.get(end..).unwrap_or_default();
    }
    push_field(out, b"data: ", rest);
    out.push(b'\n');
}

/// Writes an event with a name; one that holds a line end would break the stream, and is left out.
pub fn push_named_event(out: &mut Vec<u8>, name: &[u8], data: &[u8]) {
    if !name.is_empty() && !name.iter().any(|b| matches!(b, b'\r' | b'\n')) {
        push_field(out, b"event: ", name);
    }
    push_event(out, None, data);
}

/// Tells the reader how long to wait before it resumes a stream that ended, in milliseconds.
pub fn push_retry(out: &mut Vec<u8>, retry_ms: u64) {
    push_field(out, b"retry: ", retry_ms.to_string().as_bytes());
    out.push(b'\n');
}

/// Writes an empty comment, which keeps a silent connection open.
pub fn push_comment(out: &mut Vec<u8>) {
    out.extend_from_slice(b":\n\n");
}

/// Writes a comment, which readers of events pass over; its text has no line end.
pub fn push_remark(out: &mut Vec<u8>, text: &str) {
    push_field(out, b": ", text.as_bytes());
    out.push(b'\n');
}

fn push_field(out: &mut Vec<u8>, name: &[u8], value: &[u8]) {
    out.extend_from_slice(name);
    out.extend_from_slice(value);
    out.push(b'\n');
}

#[cfg(test)]
mod tests {
    use super::super::SseParser;
    use super::*;

    #[test]
    fn what_is_written_is_read_back() {
        let cases = [
            (Some("s1-7"), "{\"a\":1}", "{\"a\":1}", Some("s1-7")),
            (None, "", "", None),
            (Some("x\ny"), "a\nb\r\nc\rd", "a\nb\nc\nd", None),
            (Some("x\0"), " lead", " lead", None),
            (None, "end\n", "end\n", None),
        ];
        for (id, data, expect, expect_id) in cases {
            let mut out = Vec::new();
            push_comment(&mut out);
            push_retry(&mut out, 250);
            push_event(&mut out, id, data.as_bytes());
            let mut parser = SseParser::default();
            parser.push(&out);
            let seen = parser.next().unwrap().map(|e| e.data.to_vec());
            assert_eq!(seen.as_deref(), Some(expect.as_bytes()));
            assert_eq!(parser.next(), Ok(None));
            assert_eq!(parser.last_event_id(), expect_id);
            assert_eq!(parser.retry_ms(), Some(250));
        }
    }
}
