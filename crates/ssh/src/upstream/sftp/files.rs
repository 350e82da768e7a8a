//! Opening, closing, and what is known of a file or is in a directory.

use std::io;

use super::packet::{Reading, field};
use super::{NAME, STATUS, Sftp};

const OPEN: u8 = 3;
const CLOSE: u8 = 4;
const LSTAT: u8 = 7;
const FSTAT: u8 = 8;
const FSETSTAT: u8 = 10;
const OPENDIR: u8 = 11;
const READDIR: u8 = 12;
const REMOVE: u8 = 13;
const STAT: u8 = 17;
const RENAME: u8 = 18;
const EXTENDED: u8 = 200;
/// OpenSSH's way to put a file in the place of another one at once.
const POSIX_RENAME: &[u8] = b"posix-rename@openssh.com";
const HANDLE: u8 = 102;
const ATTRS: u8 = 105;
/// A status: there is no more.
const END: u32 = 1;
/// The number of a status that means success.
pub(super) const OK: u32 = 0;

const HAS_SIZE: u32 = 1;
const HAS_OWNER: u32 = 2;
const HAS_MODE: u32 = 4;
const HAS_TIMES: u32 = 8;
const HAS_MORE: u32 = 0x8000_0000;

/// The mode of a file that is made.
const NEW_MODE: u32 = 0o600;

/// How a file is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Opening {
    Read,
    /// It must not be there; a link in its place is not followed.
    New,
    /// What is there is cut to nothing.
    Replace,
    /// What is there stays.
    GoOn,
}

impl Opening {
    fn flags(self) -> u32 {
        const READ: u32 = 1;
        const WRITE: u32 = 2;
        const CREATE: u32 = 8;
        const TRUNCATE: u32 = 16;
        const EXCLUSIVE: u32 = 32;
        match self {
            Self::Read => READ,
            Self::New => WRITE | CREATE | EXCLUSIVE,
            Self::Replace => WRITE | CREATE | TRUNCATE,
            Self::GoOn => READ | WRITE | CREATE,
        }
    }
}

/// A file that is open at the host.
#[derive(Debug, Clone)]
pub(crate) struct Handle(pub(super) Vec<u8>);

/// What is known of a file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Attributes {
    pub bytes: Option<u64>,
    pub mode: Option<u32>,
    /// Seconds since 1970.
    pub modified: Option<u32>,
}

impl Attributes {
    /// What kind of file it is.
    pub fn kind(self) -> &'static str {
        match self.mode.map(|mode| mode & 0o170_000) {
            Some(0o100_000) => "file",
            Some(0o040_000) => "directory",
            Some(0o120_000) => "link",
            Some(_) => "other",
            None => "unknown",
        }
    }
}

/// What is in a directory.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    pub name: String,
    pub attributes: Attributes,
}

/// What a server says instead of an answer.
pub(super) fn refused(rest: &[u8]) -> io::Error {
    let mut reading = Reading(rest);
    let told = reading
        .number()
        .and_then(|code| Ok((code, reading.text()?)));
    match told {
        Ok((2, _)) => io::Error::new(io::ErrorKind::NotFound, "there is no such file"),
        Ok((3, _)) => io::Error::new(io::ErrorKind::PermissionDenied, "permission denied"),
        // The protocol has no word of its own for a full disk.
        Ok((4, text)) => io::Error::other(format!(
            "the SFTP server says only \"{text}\"; its disk or the user's quota may be full"
        )),
        Ok((8, _)) => io::Error::new(io::ErrorKind::Unsupported, "the SFTP server cannot do that"),
        Ok((_, text)) => io::Error::other(text),
        Err(_) => io::ErrorKind::InvalidData.into(),
    }
}

fn attributes(reading: &mut Reading<'_>) -> io::Result<Attributes> {
    let flags = reading.number()?;
    let mut told = Attributes::default();
    if flags & HAS_SIZE != 0 {
        told.bytes = Some(reading.long()?);
    }
    if flags & HAS_OWNER != 0 {
        reading.long()?;
    }
    if flags & HAS_MODE != 0 {
        told.mode = Some(reading.number()?);
    }
    if flags & HAS_TIMES != 0 {
        reading.number()?;
        told.modified = Some(reading.number()?);
    }
    if flags & HAS_MORE != 0 {
        for _ in 0..reading.number()? {
            reading.bytes()?;
            reading.bytes()?;
        }
    }
    Ok(told)
}

impl Sftp {
    /// Opens a file.
    pub async fn open(&mut self, path: &str, how: Opening) -> io::Result<Handle> {
        let path = field(path.as_bytes())?;
        // A new file is its user's alone until it gets the mode that it is to have.
        let attributes: Vec<u8> = match how {
            Opening::New => [HAS_MODE.to_be_bytes(), NEW_MODE.to_be_bytes()].concat(),
            Opening::Read | Opening::Replace | Opening::GoOn => 0_u32.to_be_bytes().to_vec(),
        };
        let fields: [&[u8]; 3] = [&path, &how.flags().to_be_bytes(), &attributes];
        self.handle(OPEN, &fields).await
    }

    async fn handle(&mut self, kind: u8, fields: &[&[u8]]) -> io::Result<Handle> {
        match self.asked(kind, fields).await? {
            (HANDLE, rest) => Ok(Handle(Reading(&rest).bytes()?.to_vec())),
            (_, rest) => Err(refused(&rest)),
        }
    }

    /// What is known of what a path leads to; none where nothing is there.
    pub async fn look(&mut self, path: &str) -> io::Result<Option<Attributes>> {
        self.looked(STAT, path).await
    }

    /// The same of the path itself, where that is a link.
    pub async fn look_itself(&mut self, path: &str) -> io::Result<Option<Attributes>> {
        self.looked(LSTAT, path).await
    }

    async fn looked(&mut self, how: u8, path: &str) -> io::Result<Option<Attributes>> {
        match self.asked(how, &[&field(path.as_bytes())?]).await? {
            (ATTRS, rest) => attributes(&mut Reading(&rest)).map(Some),
            (_, rest) => match refused(&rest) {
                error if error.kind() == io::ErrorKind::NotFound => Ok(None),
                error => Err(error),
            },
        }
    }

    /// What is known of an open file.
    pub async fn told(&mut self, handle: &Handle) -> io::Result<Attributes> {
        match self.asked(FSTAT, &[&field(&handle.0)?]).await? {
            (ATTRS, rest) => attributes(&mut Reading(&rest)),
            (_, rest) => Err(refused(&rest)),
        }
    }

    /// Closes a file; what was written is then there.
    pub async fn close(&mut self, handle: Handle) -> io::Result<()> {
        self.done(CLOSE, &[&field(&handle.0)?]).await
    }

    /// Sets the mode of an open file.
    pub async fn set_mode(&mut self, handle: &Handle, mode: u32) -> io::Result<()> {
        let named = field(&handle.0)?;
        let fields: [&[u8]; 3] = [&named, &HAS_MODE.to_be_bytes(), &mode.to_be_bytes()];
        self.done(FSETSTAT, &fields).await
    }

    /// Puts a file in the place of another one.
    pub async fn replace(&mut self, from: &str, to: &str) -> io::Result<()> {
        let fields = [
            field(POSIX_RENAME)?,
            field(from.as_bytes())?,
            field(to.as_bytes())?,
        ];
        let fields: Vec<&[u8]> = fields.iter().map(Vec::as_slice).collect();
        self.done(EXTENDED, &fields).await
    }

    /// Gives a file another name, under which nothing may be.
    pub async fn rename(&mut self, from: &str, to: &str) -> io::Result<()> {
        let fields = [field(from.as_bytes())?, field(to.as_bytes())?];
        let fields: Vec<&[u8]> = fields.iter().map(Vec::as_slice).collect();
        self.done(RENAME, &fields).await
    }

    /// Removes a file.
    pub async fn remove(&mut self, path: &str) -> io::Result<()> {
        self.done(REMOVE, &[&field(path.as_bytes())?]).await
    }

    async fn done(&mut self, kind: u8, fields: &[&[u8]]) -> io::Result<()> {
        let (_, rest) = self.asked(kind, fields).await?;
        match Reading(&rest).number()? {
            OK => Ok(()),
            _ => Err(refused(&rest)),
        }
    }

    /// What is in a directory, at most so much; whether that is all.
    pub async fn list(&mut self, path: &str, most: usize) -> io::Result<(Vec<Entry>, bool)> {
        let handle = self.handle(OPENDIR, &[&field(path.as_bytes())?]).await?;
        let named = field(&handle.0)?;
        let mut entries = Vec::new();
        let is_all = loop {
            let (kind, rest) = self.asked(READDIR, &[&named]).await?;
            let mut reading = Reading(&rest);
            match kind {
                NAME => {
                    for _ in 0..reading.number()? {
                        let name = reading.text()?;
                        reading.bytes()?;
                        let attributes = attributes(&mut reading)?;
                        if name != "." && name != ".." {
                            entries.push(Entry { name, attributes });
                        }
                    }
                    if entries.len() > most {
                        entries.truncate(most);
                        break false;
                    }
                }
                STATUS if reading.number()? == END => break true,
                _ => return Err(refused(&rest)),
            }
        };
        self.close(handle).await?;
        Ok((entries, is_all))
    }
}
