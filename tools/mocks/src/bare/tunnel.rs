//! HTTP to HTTP: copies bytes from one connection to another and back, without a look at them.

use super::accept;
use crate::MockError;
use rustix::event::{PollFd, PollFlags, poll};
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::time::Duration;

/// How much one read moves, in bytes.
const PIECE_BYTES: usize = 64 * 1024;
/// How long connecting may take.
const CONNECT_MAX: Duration = Duration::from_secs(10);

/// Relays every connection at `address` to the host of `url`, and prints the path of `url` as its own.
pub(crate) fn run(address: SocketAddr, url: &str) -> Result<u8, MockError> {
    let (host, path) = net::blocking::split_url(url).ok_or_else(|| {
        MockError::Usage(format!(
            "{url} is not a URL of the form http://HOST:PORT/PATH"
        ))
    })?;
    let to = host
        .to_socket_addrs()
        .map_err(MockError::Stdio)?
        .next()
        .ok_or_else(|| MockError::Usage(format!("{host} has no address")))?;
    accept(address, path, move |near| {
        let far = TcpStream::connect_timeout(&to, CONNECT_MAX)?;
        far.set_nodelay(true)?;
        relay(&near, &far)
    })
}

/// Moves bytes both ways on one thread until one side ends.
fn relay(near: &TcpStream, far: &TcpStream) -> io::Result<()> {
    let mut piece = vec![0; PIECE_BYTES];
    loop {
        let mut fds = [
            PollFd::new(near, PollFlags::IN),
            PollFd::new(far, PollFlags::IN),
        ];
        match poll(&mut fds, None) {
            Err(rustix::io::Errno::INTR) => continue,
            other => other?,
        };
        let [near_told, far_told] = fds.each_ref().map(|fd| !fd.revents().is_empty());
        for (told, mut from, mut to) in [(near_told, near, far), (far_told, far, near)] {
            if told {
                let read = from.read(&mut piece)?;
                if read == 0 {
                    return Ok(());
                }
                to.write_all(piece.get(..read).unwrap_or_default())?;
            }
        }
    }
}
