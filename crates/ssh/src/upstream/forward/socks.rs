//! SOCKS 5 (RFC 1928), as far as a forward speaks it: no authentication, CONNECT alone, and only to the targets
//! that were judged.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr};

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};

use crate::forwards::Target;

const VERSION: u8 = 5;
const NO_AUTHENTICATION: u8 = 0;
const NO_METHOD: u8 = 0xff;
const CONNECT: u8 = 1;
const SUCCEEDED: u8 = 0;
const NOT_ALLOWED: u8 = 2;
const REFUSED: u8 = 5;
const NO_COMMAND: u8 = 7;
const NO_ADDRESS: u8 = 8;

/// Where a client wants to go.
///
/// # Errors
/// Of kind [`io::ErrorKind::PermissionDenied`] where that is none of `targets`; the client was told then.
pub(super) async fn asked<S>(socket: &mut S, targets: &[Target]) -> io::Result<Target>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    if socket.read_u8().await? != VERSION {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut methods = vec![0; usize::from(socket.read_u8().await?)];
    socket.read_exact(&mut methods).await?;
    if !methods.contains(&NO_AUTHENTICATION) {
        socket.write_all(&[VERSION, NO_METHOD]).await?;
        return Err(io::ErrorKind::Unsupported.into());
    }
    socket.write_all(&[VERSION, NO_AUTHENTICATION]).await?;
    let mut head = [0_u8; 4];
    socket.read_exact(&mut head).await?;
    let [version, command, _, kind] = head;
    if version != VERSION {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let host = match kind {
        1 => Ipv4Addr::from(socket.read_u32().await?).to_string(),
        4 => Ipv6Addr::from(socket.read_u128().await?).to_string(),
        3 => {
            let mut name = vec![0; usize::from(socket.read_u8().await?)];
            socket.read_exact(&mut name).await?;
            String::from_utf8(name).map_err(|_| io::ErrorKind::InvalidData)?
        }
        _ => return refused(socket, NO_ADDRESS).await,
    };
    let wanted = Target::asked(&host, socket.read_u16().await?);
    if command != CONNECT {
        return refused(socket, NO_COMMAND).await;
    }
    match wanted.filter(|wanted| targets.contains(wanted)) {
        Some(wanted) => Ok(wanted),
        None => refused(socket, NOT_ALLOWED).await,
    }
}

async fn refused<S: AsyncWrite + Unpin>(socket: &mut S, code: u8) -> io::Result<Target> {
    told(socket, code).await?;
    Err(io::ErrorKind::PermissionDenied.into())
}

/// Tells a client whether its target was reached.
pub(super) async fn answer<S: AsyncWrite + Unpin>(
    socket: &mut S,
    is_there: bool,
) -> io::Result<()> {
    told(socket, if is_there { SUCCEEDED } else { REFUSED }).await
}

async fn told<S: AsyncWrite + Unpin>(socket: &mut S, code: u8) -> io::Result<()> {
    // The address from which it goes on is the host's, and not told.
    let nowhere = [VERSION, code, 0, 1, 0, 0, 0, 0, 0, 0];
    socket.write_all(&nowhere).await?;
    socket.flush().await
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn told_of(request: &[u8]) -> (io::Result<Target>, Vec<u8>) {
        let targets = [
            Target::read("db:5432").unwrap(),
            Target::read("[::1]:80").unwrap(),
        ];
        let (mut client, mut server) = tokio::io::duplex(1024);
        client.write_all(request).await.unwrap();
        client.shutdown().await.unwrap();
        let asked = asked(&mut server, &targets).await;
        drop(server);
        let mut answer = Vec::new();
        client.read_to_end(&mut answer).await.unwrap();
        (asked, answer)
    }

    #[tokio::test]
    async fn only_targets_that_were_judged_are_reached() {
        let (asked, said) = told_of(b"\x05\x01\x00\x05\x01\x00\x03\x02DB\x15\x38").await;
        assert_eq!(asked.unwrap().text(), "db:5432");
        assert_eq!(said, [5, 0]);
        let six = [
            b"\x05\x02\x02\x00\x05\x01\x00\x04".as_slice(),
            &[0; 15],
            &[1, 0, 80],
        ]
        .concat();
        assert_eq!(told_of(&six).await.0.unwrap().text(), "[::1]:80");
        for (request, code) in [
            (
                b"\x05\x01\x00\x05\x01\x00\x03\x02db\x15\x39".as_slice(),
                NOT_ALLOWED,
            ),
            (
                b"\x05\x01\x00\x05\x01\x00\x01\x7f\x00\x00\x01\x00\x16",
                NOT_ALLOWED,
            ),
            (b"\x05\x01\x00\x05\x02\x00\x03\x02db\x15\x38", NO_COMMAND),
            (b"\x05\x01\x00\x05\x01\x00\x09", NO_ADDRESS),
        ] {
            let (asked, said) = told_of(request).await;
            assert_eq!(asked.unwrap_err().kind(), io::ErrorKind::PermissionDenied);
            assert_eq!(said[..4], [5, 0, 5, code], "{request:?}");
        }
    }

    #[tokio::test]
    async fn what_is_no_socks_is_an_error() {
        for request in [
            b"".as_slice(),
            b"\x04\x01\x00\x50\x7f\x00\x00\x01\x00",
            b"GET / HTTP/1.1\r\n\r\n",
            b"\x05\x01\x02",
            b"\x05\x00",
            b"\x05\x01\x00\x04\x01\x00\x01",
            b"\x05\x01\x00\x05\x01\x00\x03\x02\xff\xfe\x00\x01",
            b"\x05\x01\x00\x05\x01\x00\x03\xff",
        ] {
            assert!(told_of(request).await.0.is_err(), "{request:?}");
        }
    }
}
