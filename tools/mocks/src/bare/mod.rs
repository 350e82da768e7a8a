//! Minimal processes in the middle, to measure the cost of a hop over HTTP without judgement, storage or repair.
//! Blocking calls and one thread a connection; no pool, no retry, no session of their own.

pub(crate) mod bridge;
pub(crate) mod front;
pub(crate) mod tunnel;

use crate::MockError;
use std::io::{self, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// How many connections are served at once; further ones are closed.
const CONNECTIONS_MAX: usize = 256;

/// Accepts connections for ever and lets `serve` have each on a thread of its own; prints `http://ADDRESS` and
/// `path` first. A connection that fails ends alone.
fn accept(
    address: SocketAddr,
    path: &str,
    serve: impl Fn(TcpStream) -> io::Result<()> + Send + Sync + 'static,
) -> Result<u8, MockError> {
    let cannot = |source| MockError::Listen { address, source };
    let listener = TcpListener::bind(address).map_err(cannot)?;
    let local = listener.local_addr().map_err(cannot)?;
    let mut output = io::stdout();
    writeln!(output, "http://{local}{path}")
        .and_then(|()| output.flush())
        .map_err(MockError::Stdio)?;
    let (serve, open) = (Arc::new(serve), Arc::new(AtomicUsize::new(0)));
    loop {
        let (stream, _) = listener.accept().map_err(cannot)?;
        if open.fetch_add(1, Ordering::Relaxed) >= CONNECTIONS_MAX {
            open.fetch_sub(1, Ordering::Relaxed);
            continue;
        }
        let (serve, open) = (Arc::clone(&serve), Arc::clone(&open));
        std::thread::spawn(move || {
            // The client sees the end of the connection.
            let _ = stream.set_nodelay(true).and_then(|()| serve(stream));
            open.fetch_sub(1, Ordering::Relaxed);
        });
    }
}
