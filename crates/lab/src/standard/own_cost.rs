//! What the lab itself costs: a client that is slow would be measured instead of the target.

use super::scene::{Scene, Server};
use crate::driver::{self, Connection, HttpConnection, Operation, Protocol, Url};
use crate::error::LabError;
use crate::processes;
use serde::Serialize;
use std::io::{Read, Write};
use std::net::TcpListener;

/// Calls over each transport.
const CALLS: u32 = 20_000;
/// Calls before them.
const WARMUP: u32 = 1_000;
const TIMEOUT_MS: u64 = 10_000;
/// The answer of the server that does nothing.
const ANSWER: &[u8] =
    b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}";

/// Processor time of the generator, system calls included.
#[derive(Debug, Clone, Copy, Serialize)]
pub(super) struct OwnCost {
    /// Per call of the driver over stdio, in microseconds.
    pub(super) stdio_us: f64,
    /// Requests that one core could send with the HTTP driver, per second.
    pub(super) http_per_second: f64,
}

/// Measures both drivers.
pub(super) fn measure(scene: &Scene) -> Result<OwnCost, LabError> {
    let (stdio_us, http_us) = (stdio(scene)?, http()?);
    Ok(OwnCost {
        stdio_us,
        http_per_second: 1e6 / http_us.max(1e-9),
    })
}

/// Processor time of this thread per call.
fn per_call(mut call: impl FnMut() -> Result<(), LabError>) -> Result<f64, LabError> {
    for _ in 0..WARMUP {
        call()?;
    }
    let before = processes::own_thread_cpu_us();
    for _ in 0..CALLS {
        call()?;
    }
    Ok((processes::own_thread_cpu_us() - before) / f64::from(CALLS))
}

fn stdio(scene: &Scene) -> Result<f64, LabError> {
    let arm = scene.direct(Server::Echo);
    let mut connection = Connection::new(driver::spawn(&arm, TIMEOUT_MS)?);
    connection.open(Protocol::Legacy)?;
    let question = Operation::List.question(Protocol::Legacy);
    let cost = per_call(|| connection.ask(&question).map(drop))?;
    connection.close();
    Ok(cost)
}

fn http() -> Result<f64, LabError> {
    let failed = |source| LabError::System {
        what: "serve on a loopback port",
        source,
    };
    let listener = TcpListener::bind("127.0.0.1:0").map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    let server = std::thread::spawn(move || -> std::io::Result<()> {
        let (mut stream, _) = listener.accept()?;
        stream.set_nodelay(true)?;
        let mut request = [0; 4096];
        while stream.read(&mut request)? > 0 {
            stream.write_all(ANSWER)?;
        }
        Ok(())
    });
    let url: Url = format!("http://{address}/").parse()?;
    let mut connection = HttpConnection::open(&url, TIMEOUT_MS)?;
    let mut request = url.head("GET", &[]);
    request.extend_from_slice(b"\r\n");
    let cost = per_call(|| match connection.exchange(&request) {
        Ok(_) => Ok(()),
        Err((_, source)) => Err(failed(source)),
    })?;
    drop(connection);
    // The server ends with its connection; how is of no interest any more.
    let _ = server.join();
    Ok(cost)
}
