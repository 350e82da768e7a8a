//! What `ssh_put` would write, for the person who is asked: the file here beside the one at the host.
//!
//! What was shown is what is sent: a file that is another one by then is not sent.

use std::path::Path;

use gate::approval::change::{FILE_BYTES_MAX, Seen};
use gate::paths::view::FileText;
use toolkit::cancel::Cancel;
use toolkit::server::{Args, SessionRef};

use super::Ssh;
use super::run::To;
use crate::files::{self, Source, hexadecimal_of};
use crate::tools::{self, normalised};
use crate::upstream::{Opening, Sftp};

/// The first bytes of a file here, one more than are shown.
async fn beginning(local: &Path) -> std::io::Result<Vec<u8>> {
    Source::open(local).await?.next(FILE_BYTES_MAX + 1).await
}

impl Ssh {
    /// What a call would write.
    pub(super) async fn put_seen(&self, args: Args<'_>, by: &SessionRef) -> Option<Seen> {
        let asked = tools::Asked::read(args).ok()?;
        let session = args.text("session_id").ok()?;
        let session = self.sessions.take(session, by, self.limits()).ok()?;
        let local = files::place(&self.hosts.local_folders, asked.local).ok()?;
        let (new, digest) = match beginning(&local).await {
            Ok(bytes) => {
                let digest = (bytes.len() <= FILE_BYTES_MAX).then(|| hexadecimal_of(&bytes));
                (FileText::of(bytes, FILE_BYTES_MAX), digest)
            }
            Err(_) => (FileText::Unreadable, None),
        };
        let old = match &new {
            // Alone, it would tell nothing.
            FileText::Text(_) => self.text_at(&To::from(&*session), args, asked.path).await,
            _ => FileText::Unreadable,
        };
        let place = asked.path.to_owned();
        Some(Seen {
            place,
            old,
            new,
            digest,
        })
    }

    /// What stands at a host, where the path leads to itself: a link was judged by nobody yet.
    async fn text_at(&self, to: &To, args: Args<'_>, path: &str) -> FileText {
        let led = self.asking(to, args).led(&[path], &Cancel::default()).await;
        if !led.is_ok_and(|places| {
            places
                .first()
                .is_some_and(|place| place.as_ref().is_ok_and(|place| *place == normalised(path)))
        }) {
            return FileText::Unreadable;
        }
        let Ok(slot) = self.slot(to).await else {
            return FileText::Unreadable;
        };
        let Some((channel, _taken)) = slot.take() else {
            return FileText::Unreadable;
        };
        let Ok(mut sftp) = Sftp::begin(channel).await else {
            return FileText::Unreadable;
        };
        match sftp.look(path).await {
            Ok(None) => return FileText::Missing,
            // A pipe would be waited for.
            Ok(Some(told)) if told.kind() != "file" => return FileText::NotAFile,
            Ok(Some(_)) | Err(_) => {}
        }
        let handle = match sftp.open(path, Opening::Read).await {
            Ok(handle) => handle,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return FileText::Missing,
            Err(_) => return FileText::Unreadable,
        };
        match sftp.told(&handle).await {
            Ok(told) if told.kind() == "file" => {}
            Ok(_) => return FileText::NotAFile,
            Err(_) => return FileText::Unreadable,
        }
        let mut bytes = Vec::new();
        let most = u64::try_from(FILE_BYTES_MAX + 1).unwrap_or(u64::MAX);
        match sftp.read_into(&handle, 0, most, &mut bytes).await {
            Ok(_) => FileText::of(bytes, FILE_BYTES_MAX),
            Err(_) => FileText::Unreadable,
        }
    }
}
