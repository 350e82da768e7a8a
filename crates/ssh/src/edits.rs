//! Changing a text file at a host by replacing texts in it: what a person is shown is what is done, or nothing is.

use toolkit::server::Failure;

use crate::files::hexadecimal_of;
use crate::random;
use crate::transfers::{at_host, no_file, plain};
use crate::upstream::{Opening, Sftp, Sink};

/// Longest file that is changed, in bytes.
pub(crate) const FILE_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// A text that takes the place of another one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Edit {
    pub old: String,
    pub new: String,
}

/// A file that was changed.
#[derive(Debug)]
pub(crate) struct Edited {
    pub bytes: usize,
    /// SHA-256 of what it was, and of what it is.
    pub sha256: [String; 2],
}

/// The text after these edits, one after the other.
///
/// # Errors
/// Where an old text does not stand there exactly once.
pub(crate) fn edited(text: &str, edits: &[Edit]) -> Result<String, Failure> {
    let mut text = text.to_owned();
    for (at, edit) in edits.iter().enumerate() {
        let found = text.matches(edit.old.as_str()).take(2).count();
        if edit.old.is_empty() || found != 1 {
            let number = at + 1;
            let wrong = match found {
                0 => format!(
                    "the old text of edit {number} does not stand in the file; read it again"
                ),
                _ => format!(
                    "the old text of edit {number} stands there more than once; give more of what is around it"
                ),
            };
            return Err(Failure::new("old_text", wrong).with("edit", number));
        }
        text = text.replacen(edit.old.as_str(), &edit.new, 1);
    }
    Ok(text)
}

impl Sink for Vec<u8> {
    async fn push(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.extend_from_slice(bytes);
        Ok(())
    }
}

/// Changes a file. The new text is written beside it and takes its place whole, with its mode.
pub(crate) async fn edit(sftp: &mut Sftp, path: &str, edits: &[Edit]) -> Result<Edited, Failure> {
    let there = |error| at_host(path, &error);
    plain(sftp, path).await?;
    let handle = sftp.open(path, Opening::Read).await.map_err(there)?;
    let told = sftp.told(&handle).await.map_err(there)?;
    if told.kind() != "file" {
        return Err(no_file(path, told));
    }
    let bytes = told.bytes.unwrap_or(0);
    if bytes > FILE_BYTES_MAX {
        let wrong =
            format!("{path} has {bytes} bytes; files of {FILE_BYTES_MAX} are changed at most");
        return Err(Failure::new("too_long", wrong));
    }
    let mut old = Vec::new();
    let most = FILE_BYTES_MAX + 1;
    sftp.read_into(&handle, 0, most, &mut old)
        .await
        .map_err(there)?;
    sftp.close(handle).await.map_err(there)?;
    let Ok(text) = std::str::from_utf8(&old) else {
        return Err(Failure::new(
            "no_text",
            format!("{path} is not text in UTF-8"),
        ));
    };
    let new = edited(text, edits)?;
    // Of no part of the file's own name, which may be as long as names may be.
    let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
    let beside = random::name(&format!("{folder}/.durward-"));
    let beside = beside
        .ok_or_else(|| Failure::new("no_randomness", "the system gives no random numbers"))?;
    let written = write(sftp, &beside, told.mode, new.as_bytes()).await;
    let written = match written {
        Ok(()) => sftp.replace(&beside, path).await,
        Err(error) => Err(error),
    };
    if let Err(error) = written {
        let _ = sftp.remove(&beside).await;
        return Err(at_host(path, &error));
    }
    Ok(Edited {
        bytes: new.len(),
        sha256: [hexadecimal_of(&old), hexadecimal_of(new.as_bytes())],
    })
}

async fn write(
    sftp: &mut Sftp,
    path: &str,
    mode: Option<u32>,
    bytes: &[u8],
) -> std::io::Result<()> {
    let handle = sftp.open(path, Opening::New).await?;
    if let Some(mode) = mode {
        sftp.set_mode(&handle, mode & 0o7777).await?;
    }
    let mut rest = bytes;
    sftp.write_from(&handle, 0, &mut rest).await?;
    sftp.close(handle).await
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edits(all: &[(&str, &str)]) -> Vec<Edit> {
        let all = all.iter().map(|(old, new)| Edit {
            old: (*old).to_owned(),
            new: (*new).to_owned(),
        });
        all.collect()
    }

    #[test]
    fn each_old_text_stands_there_exactly_once() {
        let done = edited("a = 1\nb = 2\n", &edits(&[("1", "3"), ("3\nb", "3\nc")]));
        assert_eq!(done.unwrap(), "a = 3\nc = 2\n");
        for (all, said) in [
            (vec![("x", "y")], "edit 1 does not stand"),
            (vec![("=", "y")], "edit 1 stands there more than once"),
            (vec![("1", "2"), ("1", "2")], "edit 2 does not stand"),
            (vec![("", "y")], "edit 1"),
        ] {
            let failure = edited("a = 1\nb = 2\n", &edits(&all)).unwrap_err();
            assert!(failure.message.contains(said), "{failure}");
        }
    }
}
