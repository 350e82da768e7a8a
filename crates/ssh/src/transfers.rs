//! Files between this machine and a host, over SFTP.

use std::io;
use std::path::PathBuf;

use gate::approval::change::FILE_BYTES_MAX;
use toolkit::server::Failure;

use crate::files::{Source, Target};
use crate::upstream::{Opening, Sftp, Sink};

/// A transfer, its places judged.
pub(crate) struct Transfer<'a> {
    /// At the host.
    pub path: &'a str,
    /// Here.
    pub local: PathBuf,
    pub overwrite: bool,
    pub resume: bool,
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

/// Fetches a file. What came before an error stays for another time.
pub(crate) async fn get(sftp: &mut Sftp, of: Transfer<'_>) -> Result<Moved, Failure> {
    let there = |error| at_host(of.path, &error);
    let here = |error| at_home(&of.local, &error);
    let handle = sftp.open(of.path, Opening::Read).await.map_err(there)?;
    let told = sftp.told(&handle).await.map_err(there)?;
    if told.kind() != "file" {
        let wrong = format!("{} is a {}, not a plain file", of.path, told.kind());
        return Err(Failure::new("no_file", wrong));
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
    let read = sftp.read_into(&handle, from, bytes - from, &mut target);
    let got = match read.await {
        Ok(got) => got,
        Err(error) if target.is_broken() => return Err(here(error).with("kept", true)),
        Err(error) => {
            target.pause().await.map_err(here)?;
            return Err(there(error).with("kept", true));
        }
    };
    let _ = sftp.close(handle).await;
    if from + got != bytes {
        target.pause().await.map_err(here)?;
        let wrong = format!("{} became shorter while it was read", of.path);
        return Err(Failure::new("changed", wrong).retryable());
    }
    let sha256 = target.finish(of.overwrite).await.map_err(here)?;
    Ok(Moved {
        bytes,
        resumed: from,
        sha256,
    })
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
    let how = match (of.resume, of.overwrite) {
        (true, _) => Opening::GoOn,
        (false, true) => Opening::Replace,
        (false, false) => Opening::New,
    };
    let opened = sftp.open(of.path, how).await;
    let handle = opened.map_err(|error| match how {
        // The server's own word for it is "failure".
        Opening::New if error.kind() == io::ErrorKind::Other => {
            let wrong = format!("{} cannot be made, or is there already: {error}", of.path);
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
        io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied | io::ErrorKind::Other => {
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
