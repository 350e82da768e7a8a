//! Files of this machine that transfers may read and write: plain files of folders that the operator has named.
//!
//! A call names `FOLDER/FILE`. There are no folders below a folder, links are not followed, and what is there is
//! only replaced where the call says so.

mod blocks;

use std::collections::BTreeMap;
use std::io;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use ring::digest::{Context, SHA256};
use tokio::fs::{self, File, OpenOptions};
use tokio::io::{AsyncReadExt as _, AsyncSeekExt as _};

use blocks::{Ahead, Behind, Digested};

/// Longest name of a file, in bytes.
const NAME_BYTES_MAX: usize = 200;
/// How much is read at once.
const CHUNK_BYTES: usize = 256 * 1024;
/// What a file is called until it is whole.
const PART: &str = ".part";

/// The folders, by name.
pub type Folders = BTreeMap<String, PathBuf>;

/// Where a call's file is.
///
/// # Errors
/// A folder that is not named, or a name that is none of a plain file.
pub fn place(folders: &Folders, text: &str) -> Result<PathBuf, String> {
    let known = || {
        let names: Vec<&str> = folders.keys().map(String::as_str).collect();
        match names.as_slice() {
            [] => "the operator has named no local_folders".to_owned(),
            names => format!("the folders are {}", names.join(", ")),
        }
    };
    let Some((folder, name)) = text.split_once('/') else {
        return Err(format!("\"{text}\" is not FOLDER/FILE; {}", known()));
    };
    let Some(folder) = folders.get(folder) else {
        return Err(format!("there is no folder \"{folder}\"; {}", known()));
    };
    let is_odd = |c: char| c == '/' || c == '\\' || c.is_control();
    if name.is_empty()
        || name.starts_with('.')
        || name.ends_with(PART)
        || name.len() > NAME_BYTES_MAX
        || name.contains(is_odd)
    {
        return Err(format!(
            "\"{name}\" is not a name of a plain file: no /, no dot in front, not {PART} at the end"
        ));
    }
    Ok(folder.join(name))
}

/// A file that is read from here.
pub struct Source {
    bytes: Ahead,
    /// Its length when it was opened.
    pub length: u64,
    /// Its permission bits.
    pub mode: u32,
}

impl Source {
    /// Opens a plain file.
    ///
    /// # Errors
    /// Where it is none, or cannot be read.
    pub async fn open(path: &Path) -> io::Result<Self> {
        let named = fs::symlink_metadata(path).await?;
        let mut options = std::fs::OpenOptions::new();
        // A pipe that nobody writes to holds up nobody.
        let nonblock = rustix::fs::OFlags::NONBLOCK | rustix::fs::OFlags::NOFOLLOW;
        options
            .read(true)
            .custom_flags(i32::try_from(nonblock.bits()).unwrap_or(0));
        let file = OpenOptions::from(options).open(path).await?;
        let told = file.metadata().await?;
        if !told.is_file() || (named.dev(), named.ino()) != (told.dev(), told.ino()) {
            return Err(io::Error::other("it is not a plain file"));
        }
        Ok(Self {
            bytes: Ahead::of(file.into_std().await),
            length: told.len(),
            mode: told.mode() & 0o777,
        })
    }

    /// The same bytes, whatever is written to the file from now on, where it has at most so many and this SHA-256 (in
    /// hexadecimal). Nothing may have been read of it.
    ///
    /// # Errors
    /// What the file system says.
    pub async fn held(mut self, most: usize, sha256: &str) -> io::Result<Option<Self>> {
        let bytes = self.next(most.saturating_add(1)).await?;
        let is_same = bytes.len() <= most && hexadecimal_of(&bytes) == sha256;
        Ok(is_same.then(|| Self {
            length: u64::try_from(bytes.len()).unwrap_or(u64::MAX),
            bytes: Ahead::held(bytes),
            mode: self.mode,
        }))
    }

    /// The next bytes, at most so many; none at the end.
    ///
    /// # Errors
    /// What the file system says.
    pub async fn next(&mut self, most: usize) -> io::Result<Vec<u8>> {
        self.bytes.next(most).await
    }

    /// The SHA-256 of the whole file, in hexadecimal.
    ///
    /// # Errors
    /// What the file system says, where it was not read to its end.
    pub async fn digest(self) -> io::Result<String> {
        Ok(hexadecimal(self.bytes.digest().await?))
    }
}

/// A file that is written here. It has its name once it is whole.
pub struct Target {
    bytes: Behind,
    part: PathBuf,
    path: PathBuf,
    /// How much of it was there already.
    pub resumed: u64,
}

impl Target {
    /// Begins a file, or goes on with one.
    ///
    /// # Errors
    /// Where the file is there and is not to be replaced, or cannot be written.
    pub async fn begin(path: PathBuf, overwrite: bool, resume: bool) -> io::Result<Self> {
        if !overwrite && fs::symlink_metadata(&path).await.is_ok() {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let mut part = path.clone().into_os_string();
        part.push(PART);
        let part = PathBuf::from(part);
        if !resume {
            match fs::remove_file(&part).await {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        let mut options = std::fs::OpenOptions::new();
        let nofollow = rustix::fs::OFlags::NONBLOCK | rustix::fs::OFlags::NOFOLLOW;
        options
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .custom_flags(i32::try_from(nofollow.bits()).unwrap_or(0));
        let mut file = OpenOptions::from(options).open(&part).await?;
        let told = file.metadata().await?;
        if !told.is_file() || told.nlink() > 1 {
            let wrong = "what is left of an earlier transfer is not a plain file of this name alone; leave out resume";
            return Err(io::Error::other(wrong));
        }
        let mut hash = Context::new(&SHA256);
        let mut resumed = 0;
        let mut buffer = vec![0; CHUNK_BYTES];
        loop {
            let count = file.read(&mut buffer).await?;
            if count == 0 {
                break;
            }
            hash.update(buffer.get(..count).unwrap_or_default());
            resumed += u64::try_from(count).unwrap_or(0);
        }
        let file = file.into_std().await;
        Ok(Self {
            bytes: Behind::of(Digested { file, hash }),
            part,
            path,
            resumed,
        })
    }

    /// What was there is of no use: it begins anew.
    ///
    /// # Errors
    /// What the file system says.
    pub async fn anew(self) -> io::Result<Self> {
        let mut file = File::from_std(self.bytes.rested().await?.file);
        file.set_len(0).await?;
        file.rewind().await?;
        let (file, hash) = (file.into_std().await, Context::new(&SHA256));
        Ok(Self {
            bytes: Behind::of(Digested { file, hash }),
            resumed: 0,
            ..self
        })
    }

    /// Adds bytes. What goes wrong with them may be told later.
    ///
    /// # Errors
    /// What the file system says.
    pub async fn push(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.bytes.push(bytes).await
    }

    /// Whether bytes could not be written.
    #[must_use]
    pub fn is_broken(&self) -> bool {
        self.bytes.is_broken()
    }

    /// Keeps what there is of it for another time.
    ///
    /// # Errors
    /// What the file system says.
    pub async fn pause(self) -> io::Result<()> {
        self.bytes.rested().await.map(drop)
    }

    /// It is whole: it gets its name. Gives its SHA-256.
    ///
    /// # Errors
    /// What the file system says; a file that came there meanwhile stays unless it may be replaced.
    pub async fn finish(self, overwrite: bool) -> io::Result<String> {
        let Digested { file, hash } = self.bytes.rested().await?;
        File::from_std(file).sync_all().await?;
        if overwrite {
            fs::rename(&self.part, &self.path).await?;
        } else {
            fs::hard_link(&self.part, &self.path).await?;
            fs::remove_file(&self.part).await?;
        }
        Ok(hexadecimal(hash))
    }
}

/// The SHA-256 of these bytes, in hexadecimal.
pub(crate) fn hexadecimal_of(bytes: &[u8]) -> String {
    let mut hash = Context::new(&SHA256);
    hash.update(bytes);
    hexadecimal(hash)
}

fn hexadecimal(hash: Context) -> String {
    let digest = hash.finish();
    let digits = digest.as_ref().iter().map(|byte| format!("{byte:02x}"));
    digits.collect()
}
