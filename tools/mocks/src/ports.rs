//! Ports for programs that have to be given one, and for servers that restart at the same address.
//!
//! A port that the kernel gave out and that is free again is free for all: while another program starts, any new
//! connection may take it. Ports below the kernel's range are only taken by number.

use std::fs::{File, OpenOptions, create_dir_all, read_to_string};
use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::sync::{Mutex, PoisonError};

use rustix::fs::{FlockOperation, flock};

/// The lowest port that is tried.
const FIRST: u16 = 12_000;

/// What this process holds: the number to go on with, and the locks of the ports before.
static HELD: Mutex<(u16, Vec<File>)> = Mutex::new((0, Vec::new()));

/// Returns a port of the loopback address without a listener, which no other process that asks here gets while this one
/// runs.
///
/// # Errors
///
/// If no port is free.
pub fn reserved() -> io::Result<u16> {
    let mut held = HELD.lock().unwrap_or_else(PoisonError::into_inner);
    let count = end().saturating_sub(FIRST).max(1);
    if held.0 == 0 {
        // Processes begin at places of their own.
        let begin = std::process::id().wrapping_mul(97) % u32::from(count);
        held.0 = u16::try_from(begin).unwrap_or_default();
    }
    for _ in 0..count {
        held.0 = (held.0 + 1) % count;
        let port = FIRST + held.0;
        let Some(lock) = lock(port)? else {
            continue;
        };
        if TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok() {
            held.1.push(lock);
            return Ok(port);
        }
    }
    Err(io::Error::other("no port is free"))
}

/// Returns the lowest port that the kernel gives out by itself.
fn end() -> u16 {
    read_to_string("/proc/sys/net/ipv4/ip_local_port_range")
        .ok()
        .and_then(|range| range.split_whitespace().next()?.parse().ok())
        .unwrap_or(32_768)
}

/// Returns the lock of a port, which is held until the process ends, or `None` where another process has it.
fn lock(port: u16) -> io::Result<Option<File>> {
    let user = rustix::process::getuid().as_raw();
    let folder = std::env::temp_dir().join(format!("durward-ports-{user}"));
    create_dir_all(&folder)?;
    let file = OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .open(folder.join(port.to_string()))?;
    Ok(flock(&file, FlockOperation::NonBlockingLockExclusive)
        .is_ok()
        .then_some(file))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_is_given_once_and_the_kernel_gives_it_to_nobody() {
        let ports: Vec<u16> = (0..50).map(|_| reserved().unwrap()).collect();
        for (at, port) in ports.iter().enumerate() {
            assert!((FIRST..end()).contains(port), "{port}");
            assert!(!ports[..at].contains(port), "{port}");
            TcpListener::bind((Ipv4Addr::LOCALHOST, *port)).unwrap();
            // A second open finds the lock held.
            assert!(lock(*port).unwrap().is_none(), "{port}");
        }
    }
}
