//! Whose process is at the other end of a connection.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

use tokio::sync::{OnceCell, Semaphore};

use super::listen::Peer;

/// The kernel's tables of TCP sockets in our network namespace.
const TABLES: [&str; 2] = ["/proc/net/tcp", "/proc/net/tcp6"];
/// Most bytes that are read of a table: several hundred thousand sockets.
const TABLE_BYTES_MAX: u64 = 64 * 1024 * 1024;
/// How often the tables are read: a row may be missed while others come and go.
const ATTEMPTS: usize = 3;
/// Tables that are read at once, for all connections.
pub(super) const READERS: usize = 2;
/// The user as whom a user namespace shows all that it does not know.
const UNMAPPED: u32 = 65_534;

/// Both ends of a connection, and the user at the other one as soon as somebody asks.
#[derive(Debug)]
pub(super) struct Ends {
    peer: Peer,
    local: Option<SocketAddr>,
    readers: Arc<Semaphore>,
    user: OnceCell<Option<u32>>,
}

impl Ends {
    /// A connection over TCP.
    pub fn tcp(peer: Peer, local: Option<SocketAddr>, readers: &Arc<Semaphore>) -> Self {
        Self {
            peer,
            local,
            readers: Arc::clone(readers),
            user: OnceCell::new(),
        }
    }

    /// A connection over a socket in the file system, whose user the kernel tells.
    pub fn socket(peer: Peer, user: Option<u32>, readers: &Arc<Semaphore>) -> Self {
        Self {
            user: OnceCell::new_with(Some(user)),
            ..Self::tcp(peer, None, readers)
        }
    }

    pub fn peer(&self) -> Peer {
        self.peer
    }

    /// The user, where it can be known; found out once for a connection.
    pub async fn user(&self) -> Option<u32> {
        *self.user.get_or_init(|| self.find()).await
    }

    async fn find(&self) -> Option<u32> {
        let (Peer::Address(peer), Some(local)) = (self.peer, self.local) else {
            return None;
        };
        if !peer.ip().to_canonical().is_loopback() {
            return None;
        }
        let _turn = self.readers.acquire().await.ok()?;
        let found = tokio::task::spawn_blocking(move || {
            (0..ATTEMPTS).find_map(|_| TABLES.iter().find_map(|table| look(table, peer, local)))
        });
        found.await.ok().flatten()
    }
}

/// Whether this machine says whose sockets are whose.
#[must_use]
pub fn users_can_be_known() -> bool {
    File::open(TABLES[0]).is_ok()
}

/// The user in a table whose socket is the other end of ours.
fn look(table: &str, peer: SocketAddr, local: SocketAddr) -> Option<u32> {
    let file = File::open(table).ok()?.take(TABLE_BYTES_MAX);
    let mut lines = BufReader::new(file);
    let mut line = String::new();
    while lines.read_line(&mut line).ok()? > 0 {
        if let Some(user) = Row::of(&line).and_then(|row| row.user_between(peer, local)) {
            return (user != UNMAPPED || sees_all_users()).then_some(user);
        }
        line.clear();
    }
    None
}

/// Whether every user of the machine has a number of its own here.
fn sees_all_users() -> bool {
    let map = std::fs::read_to_string("/proc/self/uid_map").unwrap_or_default();
    map.split_whitespace().eq(["0", "0", "4294967295"])
}

/// A socket as the kernel's table has it.
#[derive(Debug, PartialEq, Eq)]
struct Row {
    own: (IpAddr, u16),
    other: (IpAddr, u16),
    user: u32,
    inode: u64,
}

impl Row {
    /// Reads a line of `/proc/net/tcp` or `tcp6`.
    fn of(line: &str) -> Option<Self> {
        let mut words = line.split_ascii_whitespace().skip(1);
        let (own, other) = (address(words.next()?)?, address(words.next()?)?);
        // State, queues, timer, retransmissions; behind the user the timeout.
        let user = words.nth(4)?.parse().ok()?;
        let inode = words.nth(1)?.parse().ok()?;
        Some(Self {
            own,
            other,
            user,
            inode,
        })
    }

    /// The user, where this socket talks to `local` from `peer`. One that its process has closed belongs to nobody,
    /// and is shown as the superuser's.
    fn user_between(&self, peer: SocketAddr, local: SocketAddr) -> Option<u32> {
        let plain = |address: SocketAddr| (address.ip().to_canonical(), address.port());
        let is_it = self.own == plain(peer) && self.other == plain(local) && self.inode != 0;
        is_it.then_some(self.user)
    }
}

/// `0100007F:1F90`: words in the machine's order of bytes.
fn address(text: &str) -> Option<(IpAddr, u16)> {
    let (ip, port) = text.split_once(':')?;
    let port = u16::from_str_radix(port, 16).ok()?;
    let word = |at: usize| {
        let digits = ip.get(at..at + 8)?;
        Some(u32::from_str_radix(digits, 16).ok()?.to_ne_bytes())
    };
    let ip = match ip.len() {
        8 => IpAddr::from(Ipv4Addr::from(word(0)?)),
        32 => {
            let words = [word(0)?, word(8)?, word(16)?, word(24)?];
            let mut bytes = [0; 16];
            for (to, from) in bytes.iter_mut().zip(words.as_flattened()) {
                *to = *from;
            }
            IpAddr::from(Ipv6Addr::from(bytes)).to_canonical()
        }
        _ => return None,
    };
    Some((ip, port))
}

#[cfg(test)]
#[cfg(target_endian = "little")]
mod tests {
    use super::*;

    const CLIENT: &str = "  12: 0100007F:C350 0100007F:1F90 01 00000000:00000000 00:00000000 00000000  1001        0 778899 1 0000000000000000 20 4 0 10 -1";

    fn at(text: &str) -> SocketAddr {
        text.parse().unwrap()
    }

    #[test]
    fn the_row_of_the_other_end_names_the_user() {
        let row = Row::of(CLIENT).unwrap();
        let (client, server) = (at("127.0.0.1:50000"), at("127.0.0.1:8080"));
        assert_eq!(row.user_between(client, server), Some(1001));
        // Our own end, and another connection.
        assert_eq!(row.user_between(server, client), None);
        assert_eq!(row.user_between(at("127.0.0.1:50001"), server), None);
        let mapped = at("[::ffff:127.0.0.1]:50000");
        assert_eq!(row.user_between(mapped, server), Some(1001));
    }

    #[test]
    fn a_socket_that_was_closed_is_nobodys() {
        let closed = CLIENT.replace("1001        0 778899", "   0        0 0");
        let row = Row::of(&closed).unwrap();
        assert_eq!(
            row.user_between(at("127.0.0.1:50000"), at("127.0.0.1:8080")),
            None
        );
    }

    #[test]
    fn addresses_of_both_families_are_read() {
        let mapped = "0000000000000000FFFF00000100007F:C350";
        let v6 = "00000000000000000000000001000000:1F90";
        assert_eq!(
            address(mapped),
            Some((Ipv4Addr::LOCALHOST.into(), 0xC350)),
            "a v6 socket that speaks v4"
        );
        assert_eq!(address(v6), Some((Ipv6Addr::LOCALHOST.into(), 0x1F90)));
        for bad in [
            "",
            "0100007F",
            "0100007F:",
            "0100007G:1F90",
            "01:1",
            "é100007F:1",
        ] {
            assert_eq!(address(bad), None, "{bad}");
        }
        for bad in ["", "sl local_address rem_address st", "1: a b c"] {
            assert_eq!(Row::of(bad), None, "{bad}");
        }
    }
}
