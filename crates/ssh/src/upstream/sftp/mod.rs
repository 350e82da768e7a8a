//! SFTP (version 3): where paths lead, what is in a directory, and files in both directions.

use std::collections::HashMap;
use std::fmt;
use std::io;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::connection::Channel;
pub(crate) use files::{Attributes, Entry, Handle, Opening};
use packet::Reading;
pub(crate) use transfer::Sink;

mod files;
mod packet;
mod transfer;

const INIT: u8 = 1;
const VERSION: u8 = 2;
const REALPATH: u8 = 16;
const STATUS: u8 = 101;
const NAME: u8 = 104;
/// The kind of an answer and its number, in bytes.
const HEAD_BYTES: usize = 5;
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
                        .map_err(|_| "it leads to a name that is not UTF-8".to_owned())
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

    /// Sends a request and gives its number; more than one may be under way.
    async fn ask(&mut self, kind: u8, fields: &[&[u8]]) -> io::Result<u32> {
        let id = self.next;
        self.next = self.next.wrapping_add(1);
        let mut request = vec![kind];
        request.extend(id.to_be_bytes());
        for field in fields {
            request.extend(*field);
        }
        self.send(&request).await?;
        Ok(id)
    }

    /// Sends a request and gives its answer: the kind, and what follows the number.
    async fn asked(&mut self, kind: u8, fields: &[&[u8]]) -> io::Result<(u8, Vec<u8>)> {
        let id = self.ask(kind, fields).await?;
        let (kind, of, rest) = self.answer().await?;
        if of == id {
            Ok((kind, rest))
        } else {
            Err(io::ErrorKind::InvalidData.into())
        }
    }

    /// The next answer: its kind, its number, and what follows.
    async fn answer(&mut self) -> io::Result<(u8, u32, Vec<u8>)> {
        let mut packet = self.receive().await?;
        let mut reading = Reading(&packet);
        let (kind, id) = (reading.byte()?, reading.number()?);
        packet.drain(..HEAD_BYTES);
        Ok((kind, id, packet))
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
