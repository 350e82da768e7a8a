//! Reading a file: the command, and how its bytes are shown.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;
use toolkit::server::{Answer, Args, Content, Failure, Unfit};

use super::run::answer;
use crate::end::{End, Missing};
use crate::upstream::Ended;

/// How much is looked at to tell text from other bytes.
const LOOKED_AT_BYTES: usize = 1_024;

/// What is asked for.
pub(crate) struct FileAsked<'a> {
    pub path: &'a str,
    encoding: &'a str,
    /// Most bytes.
    pub most: u64,
}

impl<'a> FileAsked<'a> {
    pub fn read(args: Args<'a>) -> Result<Self, Unfit> {
        let path = args.text("path")?;
        if !path.starts_with('/') {
            return Err(Unfit::member(
                "path",
                "must be a whole path, beginning with /",
            ));
        }
        Ok(Self {
            path,
            encoding: args.text("encoding")?,
            most: args.count("max_size")?,
        })
    }

    /// One byte more than wanted tells whether there is more.
    pub fn bytes_read(&self) -> u64 {
        self.most.saturating_add(1)
    }

    /// The command.
    pub fn argv(&self) -> Vec<String> {
        let most = self.bytes_read().to_string();
        ["head", "-c", &most, "--", self.path]
            .map(str::to_owned)
            .to_vec()
    }
}

/// The answer for a file that was read at this place.
pub(crate) fn of_file(
    asked: &FileAsked<'_>,
    place: &str,
    ended: &Ended,
) -> Result<Answer, Failure> {
    answer(ended)?;
    if ended.end != End::Exited(0) {
        let told = String::from_utf8_lossy(&ended.stderr.bytes);
        let told = told.trim().strip_prefix("head: ").unwrap_or(told.trim());
        return Err(Failure::new(
            "unreadable",
            format!("{} cannot be read: {told}", asked.path),
        ));
    }
    let most = usize::try_from(asked.most).unwrap_or(usize::MAX);
    let is_cut = ended.stdout.length > asked.most;
    let bytes = ended
        .stdout
        .bytes
        .get(..most)
        .unwrap_or(&ended.stdout.bytes);
    let (encoding, content) = match asked.encoding {
        "text" => ("text", String::from_utf8_lossy(bytes).into_owned()),
        "auto" if let Some(text) = text(bytes, is_cut) => ("text", text.to_owned()),
        _ => ("base64", STANDARD.encode(bytes)),
    };
    let data = json!({"encoding": encoding, "content": content, "bytes": bytes.len(), "path": normalised(place), "truncated": is_cut, "output_incomplete": ended.missing.is_some(), "output_incomplete_reason": ended.missing.map(Missing::label)});
    Ok(Answer {
        content: vec![Content::Text(content)],
        ..Answer::data(data)
    })
}

/// The bytes as text, where they look like it. Where they were cut, the last character may be half there.
fn text(bytes: &[u8], is_cut: bool) -> Option<&str> {
    let looked_at = bytes.get(..LOOKED_AT_BYTES).unwrap_or(bytes);
    let odd = looked_at
        .iter()
        .filter(|byte| !matches!(byte, 9..=13 | 32..=126 | 128..))
        .count();
    if bytes.contains(&0) || odd * 10 > looked_at.len() {
        return None;
    }
    match std::str::from_utf8(bytes) {
        Ok(text) => Some(text),
        Err(error) if is_cut && error.error_len().is_none() => {
            std::str::from_utf8(bytes.get(..error.valid_up_to())?).ok()
        }
        Err(_) => None,
    }
}

/// A path without empty parts, `.` and `..`, as it is written: links are not followed.
pub(crate) fn normalised(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    format!("/{}", parts.join("/"))
}
