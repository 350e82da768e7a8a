//! As much of SFTP (version 3) as it takes to ask where paths lead.

use std::collections::HashMap;
use std::fmt;
use std::io;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::connection::Channel;

const INIT: u8 = 1;
const VERSION: u8 = 2;
const REALPATH: u8 = 16;
const STATUS: u8 = 101;
const NAME: u8 = 104;
/// The version of the protocol.
const OURS: u32 = 3;
/// Longest answer that is read, in bytes.
const ANSWER_BYTES_MAX: u32 = 256 * 1024;

type Stream = russh::ChannelStream<russh::client::Msg>;

/// A channel on which a host's SFTP server answers.
pub(crate) struct Sftp {
    stream: Stream,
    next: u32,
}

impl fmt::Debug for Sftp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Sftp")
    }
}

/// Where a path leads, or what the host says against it.
pub(crate) type Led = Result<String, String>;

impl Sftp {
    /// Begins the protocol on a channel.
    ///
    /// # Errors
    /// Where the host has no SFTP server, or the connection is lost.
    pub async fn begin(channel: Channel) -> io::Result<Self> {
        let mut channel = channel.0;
        let failed = |_| io::Error::from(io::ErrorKind::BrokenPipe);
        channel
            .request_subsystem(true, "sftp")
            .await
            .map_err(failed)?;
        // The answer to that comes before anything else.
        loop {
            match channel.wait().await {
                Some(russh::ChannelMsg::Success) => break,
                Some(russh::ChannelMsg::WindowAdjusted { .. }) => {}
                _ => return Err(io::ErrorKind::Unsupported.into()),
            }
        }
        let mut sftp = Self {
            stream: channel.into_stream(),
            next: 0,
        };
        let mut hello = vec![INIT];
        hello.extend(OURS.to_be_bytes());
        sftp.send(&hello).await?;
        let answer = sftp.receive().await?;
        match answer.first() {
            Some(&VERSION) => Ok(sftp),
            _ => Err(io::ErrorKind::InvalidData.into()),
        }
    }

    /// Where these paths lead, all asked at once.
    ///
    /// # Errors
    /// Where the connection is lost or the answers cannot be read; the channel is then of no more use.
    pub async fn lead(&mut self, paths: &[&str]) -> io::Result<Vec<Led>> {
        let mut asked = HashMap::new();
        for (at, path) in paths.iter().enumerate() {
            let id = self.next;
            self.next = self.next.wrapping_add(1);
            asked.insert(id, at);
            let mut request = vec![REALPATH];
            request.extend(id.to_be_bytes());
            request.extend(length(path.len())?.to_be_bytes());
            request.extend(path.as_bytes());
            self.send(&request).await?;
        }
        let mut led: Vec<Led> = vec![Err(String::new()); paths.len()];
        while !asked.is_empty() {
            let answer = self.receive().await?;
            let mut reading = Reading(&answer);
            let kind = reading.byte()?;
            let place = asked
                .remove(&reading.number()?)
                .and_then(|at| led.get_mut(at));
            let Some(place) = place else {
                return Err(io::ErrorKind::InvalidData.into());
            };
            *place = match kind {
                NAME => {
                    reading.number()?;
                    String::from_utf8(reading.bytes()?.to_vec())
                        .map_err(|_| "it leads to a name that is no UTF-8".to_owned())
                }
                STATUS => {
                    reading.number()?;
                    Err(String::from_utf8_lossy(reading.bytes()?).into_owned())
                }
                _ => return Err(io::ErrorKind::InvalidData.into()),
            };
        }
        Ok(led)
    }

    async fn send(&mut self, packet: &[u8]) -> io::Result<()> {
        let mut framed = length(packet.len())?.to_be_bytes().to_vec();
        framed.extend(packet);
        self.stream.write_all(&framed).await
    }

    async fn receive(&mut self) -> io::Result<Vec<u8>> {
        let length = self.stream.read_u32().await?;
        if length > ANSWER_BYTES_MAX {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let mut packet = vec![0; usize::try_from(length).unwrap_or(0)];
        self.stream.read_exact(&mut packet).await?;
        Ok(packet)
    }
}

fn length(length: usize) -> io::Result<u32> {
    u32::try_from(length).map_err(|_| io::ErrorKind::InvalidInput.into())
}

/// What is left of an answer.
struct Reading<'a>(&'a [u8]);

impl<'a> Reading<'a> {
    fn take(&mut self, count: usize) -> io::Result<&'a [u8]> {
        let (taken, rest) = self
            .0
            .split_at_checked(count)
            .ok_or(io::ErrorKind::InvalidData)?;
        self.0 = rest;
        Ok(taken)
    }

    fn byte(&mut self) -> io::Result<u8> {
        self.take(1)?
            .first()
            .copied()
            .ok_or_else(|| io::ErrorKind::InvalidData.into())
    }

    fn number(&mut self) -> io::Result<u32> {
        let bytes: [u8; 4] = self
            .take(4)?
            .try_into()
            .map_err(|_| io::ErrorKind::InvalidData)?;
        Ok(u32::from_be_bytes(bytes))
    }

    fn bytes(&mut self) -> io::Result<&'a [u8]> {
        let length = usize::try_from(self.number()?).map_err(|_| io::ErrorKind::InvalidData)?;
        self.take(length)
    }
}
