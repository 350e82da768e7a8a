//! Files between this machine and a host, over SFTP.

use std::io;
use std::path::PathBuf;

use gate::approval::change::FILE_BYTES_MAX;
use toolkit::server::Failure;

use crate::files::{Source, Target};
use crate::upstream::{Attributes, Handle, Opening, Sftp, Sink};

/// Behind the name of a file at the host until it is whole.
const PART: &str = ".durward-part";
/// How much of the name stands before that, in bytes: most file systems take 255 in all.
const STEM_BYTES_MAX: usize = 200;

/// A transfer, its places judged.
pub(crate) struct Transfer<'a> {
    /// At the host.
    pub path: &'a str,
    /// Here.
    pub local: PathBuf,
    pub overwrite: bool,
    pub resume: bool,
    /// The mode that a sent file gets at the host; without one it keeps that of the file it replaces, or else its own.
    pub mode: Option<u32>,
    /// Most bytes of a file.
    pub most: u64,
    /// The SHA-256 of the file here, where a person was shown it: another one is not sent.
    pub shown: Option<&'a str>,
}

/// A transfer that is over.
#[derive(Debug)]
pub(crate) struct Moved {
    pub bytes: u64,
    /// How much was there before.
    pub resumed: u64,
    pub sha256: String,
}

/// What a file here has to begin with.
struct Same<'s>(&'s mut Source);

impl Sink for Same<'_> {
    async fn push(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.0.next(bytes.len()).await? == bytes {
            Ok(())
        } else {
            Err(io::ErrorKind::InvalidData.into())
        }
    }
}

impl Sink for Target {
    async fn push(&mut self, bytes: &[u8]) -> io::Result<()> {
        Self::push(self, bytes).await
    }
}

/// What is known of a plain file; none where nothing is there. Anything else is not opened: a pipe would be waited for.
pub(crate) async fn plain(sftp: &mut Sftp, path: &str) -> Result<Option<Attributes>, Failure> {
    let told = sftp.look(path).await;
    match told.map_err(|error| at_host(path, &error))? {
        Some(told) if told.kind() != "file" => Err(no_file(path, told)),
        told => Ok(told),
    }
}

pub(crate) fn no_file(path: &str, told: Attributes) -> Failure {
    let wrong = match told.kind() {
        "other" | "unknown" => format!("{path} is not a plain file"),
        kind => format!("{path} is a {kind}, not a plain file"),
    };
    Failure::new("no_file", wrong)
}

/// Fetches a file. What came before an error stays for another time.
pub(crate) async fn get(sftp: &mut Sftp, of: Transfer<'_>) -> Result<Moved, Failure> {
    let there = |error| at_host(of.path, &error);
    let here = |error| at_home(&of.local, &error);
    plain(sftp, of.path).await?;
    let handle = sftp.open(of.path, Opening::Read).await.map_err(there)?;
    let told = sftp.told(&handle).await.map_err(there)?;
    if told.kind() != "file" {
        return Err(no_file(of.path, told));
    }
    let bytes = told.bytes.unwrap_or(0);
    if bytes > of.most {
        return Err(too_long(of.path, bytes, of.most));
    }
    let target = Target::begin(of.local.clone(), of.overwrite, of.resume);
    let mut target = target.await.map_err(here)?;
    if target.resumed > bytes {
        target = target.anew().await.map_err(here)?;
    }
    let from = target.resumed;
    // A file of the kernel's, as those of /proc, does not say how long it is.
    let most = match bytes {
        0 => of.most.saturating_add(1),
        bytes => bytes - from,
    };
    let read = sftp.read_into(&handle, from, most, &mut target);
    let got = match read.await {
        Ok(got) => got,
        Err(error) if target.is_broken() => return Err(here(error).with("kept", true)),
        Err(error) => {
            target.pause().await.map_err(here)?;
            return Err(there(error).with("kept", true));
        }
    };
    let mut is_whole = from + got == bytes || bytes == 0;
    if !is_whole && of.path.starts_with("/sys/") {
        // A file there says that it is longer than it is, and still says so.
        is_whole = sftp.told(&handle).await.map_err(there)?.bytes == Some(bytes);
    }
    let _ = sftp.close(handle).await;
    if from + got > of.most {
        target.pause().await.map_err(here)?;
        return Err(too_long(of.path, from + got, of.most));
    }
    if !is_whole {
        target.pause().await.map_err(here)?;
        let wrong = format!("{} became shorter while it was read", of.path);
        return Err(Failure::new("changed", wrong).retryable());
    }
    let sha256 = target.finish(of.overwrite).await.map_err(here)?;
    Ok(Moved {
        bytes: from + got,
        resumed: from,
        sha256,
    })
}

/// What a file is called until it is whole. The name is cut where it would be longer than names may be.
fn part_of(path: &str) -> String {
    let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
    let mut end = name.len().min(STEM_BYTES_MAX);
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    format!("{folder}/{}{PART}", name.get(..end).unwrap_or(name))
}

/// Where a file is written at the host.
struct Place {
    name: String,
    how: Opening,
    /// What the whole file takes the place of; `None` where it is written in its place.
    old: Option<Option<Attributes>>,
}

impl Place {
    /// Beside its place, so that there is never a part of a file there, unless a file that is there is gone on with.
    async fn of(sftp: &mut Sftp, of: &Transfer<'_>) -> Result<Self, Failure> {
        let there = |error| at_host(of.path, &error);
        let old = plain(sftp, of.path).await?;
        let name = part_of(of.path);
        let part = sftp.look_itself(&name).await.map_err(there)?;
        if old.is_some() && !of.overwrite && (!of.resume || part.is_some()) {
            let wrong = format!(
                "{} is there already; set overwrite, or choose another name",
                of.path
            );
            return Err(Failure::new("not_written", wrong));
        }
        let how = match part {
            Some(part) if part.kind() != "file" => return Err(no_file(&name, part)),
            Some(_) if of.resume => Opening::GoOn,
            Some(_) => {
                sftp.remove(&name).await.map_err(there)?;
                Opening::New
            }
            None if of.resume && old.is_some() => {
                let (name, how) = (of.path.to_owned(), Opening::GoOn);
                return Ok(Self {
                    name,
                    how,
                    old: None,
                });
            }
            None => Opening::New,
        };
        let old = Some(old);
        Ok(Self { name, how, old })
    }

    /// Opens the file that is written, and sets its mode: the one that is asked for, that of the file it replaces, or that of
    /// the file here (`own_mode`).
    async fn open(
        &mut self,
        sftp: &mut Sftp,
        of: &Transfer<'_>,
        own_mode: u32,
    ) -> io::Result<Handle> {
        let opened = sftp.open(&self.name, self.how).await;
        let handle = match (opened, &self.old) {
            // If no file can be made there, the one that is there is written.
            (Err(error), Some(Some(_))) if error.kind() == io::ErrorKind::PermissionDenied => {
                self.old = None;
                sftp.open(of.path, Opening::Replace).await?
            }
            (opened, _) => opened?,
        };
        let mode = match (of.mode, &self.old) {
            (Some(mode), _) => Some(mode),
            // What is written in its place keeps its mode.
            (None, None) => None,
            (None, Some(Some(old))) => old.mode.map(|mode| mode & 0o7777),
            (None, Some(None)) => Some(own_mode),
        };
        if let Some(mode) = mode {
            sftp.set_mode(&handle, mode).await?;
        }
        Ok(handle)
    }

    /// The file is whole: it gets its name.
    async fn finish(self, sftp: &mut Sftp, of: &Transfer<'_>) -> Result<(), Failure> {
        let Some(old) = self.old else {
            return Ok(());
        };
        let renamed = match old {
            Some(_) => match sftp.replace(&self.name, of.path).await {
                Err(error) if error.kind() == io::ErrorKind::Unsupported => {
                    let removed = sftp.remove(of.path).await;
                    removed.map_err(|error| at_host(of.path, &error))?;
                    sftp.rename(&self.name, of.path).await
                }
                replaced => replaced,
            },
            None => sftp.rename(&self.name, of.path).await,
        };
        renamed.map_err(|error| {
            let wrong = format!("{} is whole, and did not get its name: {error}", self.name);
            Failure::new("not_written", wrong).with("kept", true)
        })
    }
}

/// Sends a file. What came before an error stays at the host.
pub(crate) async fn put(sftp: &mut Sftp, of: Transfer<'_>) -> Result<Moved, Failure> {
    let there = |error| at_host(of.path, &error);
    let here = |error| at_home(&of.local, &error);
    let mut source = Source::open(&of.local).await.map_err(here)?;
    if let Some(shown) = of.shown {
        let held = source.held(FILE_BYTES_MAX, shown).await.map_err(here)?;
        source = held.ok_or_else(|| {
            let wrong = "the file has changed since it was shown to whoever allowed the call; nothing was sent: call again";
            Failure::new("changed", wrong).retryable()
        })?;
    }
    let bytes = source.length;
    if bytes > of.most {
        return Err(too_long(&of.local.display().to_string(), bytes, of.most));
    }
    let mut place = Place::of(sftp, &of).await?;
    let opened = place.open(sftp, &of, source.mode).await;
    let handle = opened.map_err(|error| match error.kind() {
        // The server's own word for it is "failure".
        io::ErrorKind::Other => {
            let wrong = format!("{} cannot be made: {error}", of.path);
            Failure::new("not_written", wrong)
        }
        _ => there(error),
    })?;
    let mut resumed = 0;
    if of.resume {
        let told = sftp.told(&handle).await.map_err(there)?;
        resumed = told.bytes.unwrap_or(0);
        let same = if resumed > bytes {
            Err(io::ErrorKind::InvalidData.into())
        } else {
            let mut same = Same(&mut source);
            sftp.read_into(&handle, 0, resumed, &mut same).await
        };
        match same {
            Ok(read) if read == resumed => {}
            Ok(_) | Err(_) => {
                let wrong = format!("what is at {} is not the beginning of this file", of.path);
                return Err(Failure::new("differs", wrong));
            }
        }
    }
    let sent = sftp.write_from(&handle, resumed, &mut source).await;
    let sent = sent.map_err(|error| there(error).with("kept", true))?;
    sftp.close(handle).await.map_err(there)?;
    if resumed + sent != bytes {
        let wrong = format!("{} changed while it was sent", of.local.display());
        return Err(Failure::new("changed", wrong).retryable());
    }
    place.finish(sftp, &of).await?;
    Ok(Moved {
        bytes,
        resumed,
        sha256: source.digest().await.map_err(here)?,
    })
}

fn too_long(name: &str, bytes: u64, most: u64) -> Failure {
    let wrong = format!("{name} has {bytes} bytes; transfers take {most} at most");
    Failure::new("too_long", wrong)
}

/// Where something went wrong at the host.
pub(crate) fn at_host(path: &str, error: &io::Error) -> Failure {
    match error.kind() {
        io::ErrorKind::NotFound
        | io::ErrorKind::PermissionDenied
        | io::ErrorKind::Unsupported
        | io::ErrorKind::Other => {
            Failure::new("unreadable", format!("{path} at the host: {error}"))
        }
        _ => {
            let wrong = format!("the connection was lost at {path}: {error}");
            Failure::new("connection_lost", wrong).retryable()
        }
    }
}

fn at_home(path: &std::path::Path, error: &io::Error) -> Failure {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let wrong = match error.kind() {
        io::ErrorKind::AlreadyExists => {
            format!("{name} is here already; set overwrite, or choose another name")
        }
        _ => format!("{name} here: {error}"),
    };
    Failure::new("local_file", wrong)
}
