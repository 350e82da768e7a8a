//! Cost of the lab itself: a slow client would be measured instead of the target.
//!
//! A driver's own cost is the processor time of its thread per call, all of it: rendering, the watch, both system
//! calls, the checks, the record. There is no deduction. Client and server share a core, as in every pinned
//! measurement: on two cores most of such a figure would be what the system pays to wake a sleeping core, which it
//! charges to the waker and which no client could avoid. Beside it is the floor: a loop that writes a prepared frame,
//! reads the answer and checks nothing, against the same server.

use super::workspace::{MockServer, StandardWorkspace};
use crate::affinity::{self, CorePin};
use crate::driver::{
    self, AnswerEquality, AnswerExpectation, HttpSession, LinkOptions, PipedChild,
    ProtocolRevision, RenderedRequest, TimedOperation, VariantLink,
};
use crate::error::LabError;
use crate::processes;
use crate::url::HttpUrl;
use serde::Serialize;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Instant;

/// Calls of a round.
const CALLS: u32 = 10_000;
/// Calls before the first round.
const WARMUP: u32 = 1_000;
/// Rounds; the least of them counts, for noise only adds.
const ROUNDS: usize = 5;
const TIMEOUT_MS: u64 = 10_000;

/// Cost of the generator.
#[derive(Debug, Clone, Copy, Serialize)]
pub(super) struct OwnCost {
    /// Processor time of the driver's thread per call over stdio, system calls included, in microseconds.
    pub(super) stdio_us: f64,
    /// The same of a loop that only writes and reads.
    pub(super) stdio_floor_us: f64,
    /// Processor time of the driver's thread per call over HTTP, system calls included, in microseconds.
    pub(super) http_us: f64,
    /// Calls a second that the HTTP driver made on one core, which it shared with the server.
    pub(super) http_per_second: f64,
}

/// Measures both drivers.
pub(super) fn measure(workspace: &StandardWorkspace) -> Result<OwnCost, LabError> {
    let _pinned = affinity::last_core().map(CorePin::to).transpose()?;
    let operation = TimedOperation::call("echo", serde_json::json!({ "text": "hello" }))?;
    let stdio_us = stdio(workspace, &operation)?;
    let stdio_floor_us = floor(workspace, &operation)?;
    let (http_us, http_per_second) = http(&operation)?;
    Ok(OwnCost {
        stdio_us,
        stdio_floor_us,
        http_us,
        http_per_second,
    })
}

/// Processor time of this thread per call, and calls a second by the watch; the best of the rounds.
fn best(mut call: impl FnMut() -> Result<(), LabError>) -> Result<(f64, f64), LabError> {
    for _ in 0..WARMUP {
        call()?;
    }
    let (mut least_us, mut most_per_second) = (f64::INFINITY, 0.0_f64);
    for _ in 0..ROUNDS {
        let (start, before) = (Instant::now(), processes::own_thread_cpu_us());
        for _ in 0..CALLS {
            call()?;
        }
        let spent = processes::own_thread_cpu_us() - before;
        least_us = least_us.min(spent / f64::from(CALLS));
        let seconds = start.elapsed().as_secs_f64().max(1e-9);
        most_per_second = most_per_second.max(f64::from(CALLS) / seconds);
    }
    Ok((least_us, most_per_second))
}

/// Returns the driver as every measurement over stdio uses it.
fn stdio(workspace: &StandardWorkspace, operation: &TimedOperation) -> Result<f64, LabError> {
    let manner = LinkOptions {
        operation,
        protocol: ProtocolRevision::Legacy,
        width: 1,
        timeout_ms: TIMEOUT_MS,
    };
    let (mut link, _) = VariantLink::open(&workspace.direct(MockServer::Echo), manner)?;
    let question = operation.question(ProtocolRevision::Legacy);
    let mut expectation = AnswerExpectation::new(AnswerEquality::Same, false);
    let mut took = Vec::with_capacity(CALLS as usize);
    let (cost, _) = best(|| {
        took.push(link.ask(&question)?);
        took.truncate(CALLS as usize - 1);
        link.check(&mut |answer| expectation.check(answer))
    })?;
    link.close();
    Ok(cost)
}

/// Returns the least that a client over pipes can do.
fn floor(workspace: &StandardWorkspace, operation: &TimedOperation) -> Result<f64, LabError> {
    let failed = |source| LabError::System {
        what: "speak to the echo server",
        source,
    };
    let PipedChild {
        process,
        mut input,
        mut output,
    } = driver::spawn(&workspace.direct(MockServer::Echo), TIMEOUT_MS)?;
    let mut frame = Vec::new();
    operation
        .question(ProtocolRevision::Modern)
        .render(1, &mut frame);
    let mut line = vec![0; 64 * 1024];
    let (cost, _) = best(|| {
        input.write_all(&frame).map_err(failed)?;
        let read = output.read(&mut line).map_err(failed)?;
        match line.get(read.saturating_sub(1)..read) {
            Some(b"\n") => Ok(()),
            _ => Err(failed(std::io::ErrorKind::InvalidData.into())),
        }
    })?;
    drop((input, output));
    process.close();
    Ok(cost)
}

/// Returns the driver as every measurement over HTTP uses it, against a server on the same core that does nothing.
fn http(operation: &TimedOperation) -> Result<(f64, f64), LabError> {
    let failed = |source| LabError::System {
        what: "serve on a loopback port",
        source,
    };
    let listener = TcpListener::bind("127.0.0.1:0").map_err(failed)?;
    let url: HttpUrl = format!("http://{}/", listener.local_addr().map_err(failed)?).parse()?;
    let server = std::thread::spawn(move || -> std::io::Result<()> {
        let (stream, _) = listener.accept()?;
        answer(stream)
    });
    let broken = |what: String| LabError::Invalid {
        arm: "the lab's own server".into(),
        what,
    };
    let session = HttpSession::open(&url, &[], operation, ProtocolRevision::Modern, TIMEOUT_MS);
    let mut session = session.map_err(broken)?;
    let question: RenderedRequest = operation.question(ProtocolRevision::Modern);
    let mut expectation = AnswerExpectation::new(AnswerEquality::Same, false);
    let cost = best(|| {
        session
            .ask(&question)
            .map_err(|(_, source)| failed(source))?;
        if !session.is_known() {
            let judged = session
                .answer()
                .and_then(|answer| expectation.check(&answer));
            judged.map_err(broken)?;
            session.confirm();
        }
        Ok(())
    })?;
    drop(session);
    // The server ends with its connection; how is of no interest any more.
    let _ = server.join();
    Ok(cost)
}

/// Answers every request that one read brings with an empty result under its id.
fn answer(mut stream: TcpStream) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let (mut request, mut reply) = (vec![0; 16 * 1024], Vec::new());
    loop {
        let read = stream.read(&mut request)?;
        let seen = request.get(..read).unwrap_or_default();
        let Some(at) = memchr::memmem::find(seen, b"\"id\":") else {
            return Ok(());
        };
        let digits = seen.get(at + 5..).unwrap_or_default();
        let digits = digits
            .split(|byte| !byte.is_ascii_digit())
            .next()
            .unwrap_or_default();
        let length = digits.len() + br#"{"jsonrpc":"2.0","id":,"result":{}}"#.len();
        reply.clear();
        write!(
            reply,
            "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{{\"jsonrpc\":\"2.0\",\"id\":"
        )?;
        reply.extend_from_slice(digits);
        reply.extend_from_slice(br#","result":{}}"#);
        stream.write_all(&reply)?;
    }
}
