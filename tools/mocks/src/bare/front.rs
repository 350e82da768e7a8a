//! A front over HTTP with nothing but what a call needs: a head that is scanned for its length, a body, an answer as
//! JSON. Its backend is the pipes of a child, one child a connection, or a machine that all connections share.

use super::accept;
use crate::server::{MachineAction, ProtocolMachine};
use crate::{FRAME_BYTES_MAX, Line, Lines, MockError};
use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Mutex, PoisonError};

/// Path of the endpoint.
const PATH: &str = "/mcp";
/// The longest head of a request, in bytes.
const HEAD_BYTES_MAX: usize = 64 * 1024;
/// How much one read asks for, in bytes.
const READ_BYTES: usize = 64 * 1024;
/// How many lines of a child that answer nothing one request may bring.
const STRAY_LINES_MAX: usize = 10_000;

/// What answers behind the front.
trait FrontBackend {
    /// The answer to a frame that wants one, appended to `into`.
    fn ask(&mut self, frame: &[u8], into: &mut Vec<u8>) -> io::Result<()>;

    /// Hands on a frame that wants none.
    fn tell(&mut self, frame: &[u8]) -> io::Result<()>;
}

/// Serves a command: each connection has a child of its own.
pub(crate) fn relay(address: SocketAddr, command: Vec<OsString>) -> Result<u8, MockError> {
    if command.is_empty() {
        return Err(MockError::Usage("name a command to run after --".into()));
    }
    accept(address, PATH, move |stream| {
        let mut pipes = ChildPipes::spawn(&command)?;
        serve(stream, &mut pipes)
    })
}

/// Serves one machine to all connections: without sessions a handshake belongs to no connection.
pub(crate) fn host(
    address: SocketAddr,
    machine: impl ProtocolMachine + 'static,
) -> Result<u8, MockError> {
    let machine = Mutex::new(machine);
    accept(address, PATH, move |stream| {
        let mut hosted = HostedMachine {
            machine: &machine,
            actions: Vec::new(),
        };
        serve(stream, &mut hosted)
    })
}

/// Answers requests until the client ends.
fn serve(mut stream: TcpStream, back: &mut dyn FrontBackend) -> io::Result<()> {
    let mut buffer = vec![0; READ_BYTES];
    let mut filled = 0;
    let (mut reply, mut body) = (Vec::new(), Vec::new());
    loop {
        let seen = buffer.get(..filled).unwrap_or_default();
        let Some((head, length)) = measure(seen)? else {
            if !more(&mut stream, &mut buffer, &mut filled)? {
                return Ok(());
            }
            continue;
        };
        let end = head + length;
        while filled < end {
            if !more(&mut stream, &mut buffer, &mut filled)? {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        let request = buffer.get(..head).unwrap_or_default();
        let frame = buffer.get(head..end).unwrap_or_default();
        reply.clear();
        body.clear();
        match (request.starts_with(b"POST "), wants_answer(frame)) {
            (true, Some(true)) => {
                back.ask(frame, &mut body)?;
                // Writing to a vector does not fail.
                let _ = write!(
                    reply,
                    "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
                    body.len()
                );
                reply.extend_from_slice(&body);
            }
            (true, Some(false)) => {
                back.tell(frame)?;
                reply.extend_from_slice(b"HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n");
            }
            (true, None) => {
                reply.extend_from_slice(b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n");
            }
            (false, _) => {
                reply.extend_from_slice(
                    b"HTTP/1.1 405 Method Not Allowed\r\ncontent-length: 0\r\n\r\n",
                );
            }
        }
        stream.write_all(&reply)?;
        buffer.copy_within(end..filled, 0);
        filled -= end;
    }
}

/// Reads once; false at the end.
fn more(stream: &mut TcpStream, buffer: &mut Vec<u8>, filled: &mut usize) -> io::Result<bool> {
    if buffer.len() - *filled < READ_BYTES / 2 {
        buffer.resize(buffer.len() * 2, 0);
    }
    let read = stream.read(buffer.get_mut(*filled..).unwrap_or_default())?;
    *filled += read;
    Ok(read > 0)
}

/// Returns the lengths of a request's head and body, once all of the head is there.
fn measure(seen: &[u8]) -> io::Result<Option<(usize, usize)>> {
    let Some(end) = memchr::memmem::find(seen, b"\r\n\r\n") else {
        if seen.len() > HEAD_BYTES_MAX {
            return Err(io::Error::other("a head longer than 64 KiB"));
        }
        return Ok(None);
    };
    let head = seen.get(..end).unwrap_or_default();
    let mut length = 0;
    for line in head.split(|byte| *byte == b'\n') {
        let Some(colon) = memchr::memchr(b':', line) else {
            continue;
        };
        let (name, value) = line.split_at(colon);
        if name.eq_ignore_ascii_case(b"content-length") {
            length = std::str::from_utf8(value.get(1..).unwrap_or_default())
                .ok()
                .and_then(|text| text.trim().parse().ok())
                .filter(|length| *length <= FRAME_BYTES_MAX)
                .ok_or_else(|| io::Error::other("a length that is none, or beyond the bound"))?;
        } else if name.eq_ignore_ascii_case(b"transfer-encoding") {
            return Err(io::Error::other("a body without a length"));
        }
    }
    Ok(Some((end + 4, length)))
}

/// Returns whether a frame is a request; nothing if it is no message.
fn wants_answer(frame: &[u8]) -> Option<bool> {
    let message = super::bridge::BridgeMessage::read(frame)?;
    Some(message.is_request())
}

/// A child's pipes.
struct ChildPipes {
    child: Child,
    input: ChildStdin,
    output: ChildStdout,
    lines: Lines,
}

impl ChildPipes {
    fn spawn(command: &[OsString]) -> io::Result<Self> {
        let (program, args) = command.split_first().ok_or(io::ErrorKind::InvalidInput)?;
        let mut child = Command::new(program)
            .args(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(io::ErrorKind::BrokenPipe.into());
        };
        Ok(Self {
            child,
            input,
            output,
            lines: Lines::new(FRAME_BYTES_MAX),
        })
    }
}

impl Drop for ChildPipes {
    fn drop(&mut self) {
        // It was served to one connection, which is gone.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl FrontBackend for ChildPipes {
    fn ask(&mut self, frame: &[u8], into: &mut Vec<u8>) -> io::Result<()> {
        self.tell(frame)?;
        for _ in 0..STRAY_LINES_MAX {
            loop {
                match self.lines.next_line() {
                    Line::Frame(line) => {
                        into.clear();
                        into.extend_from_slice(line);
                        break;
                    }
                    Line::TooLong => return Err(io::Error::other("a line beyond the bound")),
                    Line::Incomplete => {}
                }
                if self.lines.fill(&mut self.output)? == 0 {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
            }
            if super::bridge::BridgeMessage::read(into).is_some_and(|message| message.is_answer()) {
                return Ok(());
            }
        }
        Err(io::Error::other("too many lines that answer nothing"))
    }

    fn tell(&mut self, frame: &[u8]) -> io::Result<()> {
        let mut line = Vec::with_capacity(frame.len() + 1);
        line.extend_from_slice(frame.trim_ascii_end());
        line.push(b'\n');
        self.input.write_all(&line)
    }
}

/// A machine in this process.
struct HostedMachine<'a, M> {
    machine: &'a Mutex<M>,
    actions: Vec<MachineAction>,
}

impl<M: ProtocolMachine> HostedMachine<'_, M> {
    fn handle(&mut self, frame: &[u8]) {
        let mut machine = self.machine.lock().unwrap_or_else(PoisonError::into_inner);
        machine.handle(frame, &mut self.actions);
    }
}

impl<M: ProtocolMachine> FrontBackend for HostedMachine<'_, M> {
    fn ask(&mut self, frame: &[u8], into: &mut Vec<u8>) -> io::Result<()> {
        self.handle(frame);
        for action in self.actions.drain(..) {
            match action {
                MachineAction::Send(frame) => into.extend_from_slice(&frame),
                MachineAction::SendLater { after, frame, .. } => {
                    net::blocking::pause(Some(after))?;
                    into.extend_from_slice(&frame);
                }
                // Nothing else belongs to an answer.
                _ => {}
            }
        }
        match into.is_empty() {
            true => Err(io::Error::other("no answer")),
            false => Ok(()),
        }
    }

    fn tell(&mut self, frame: &[u8]) -> io::Result<()> {
        self.handle(frame);
        self.actions.clear();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_tell_how_long_a_request_is() {
        let check = |head: &[u8], expect| assert_eq!(measure(head).unwrap(), expect);
        check(b"POST / HTTP/1.1\r\nContent-Length: 5", None);
        check(
            b"POST / HTTP/1.1\r\nContent-Length: 5\r\n\r\nab",
            Some((38, 5)),
        );
        check(b"GET / HTTP/1.1\r\n\r\n", Some((18, 0)));
        for wrong in [
            "POST / HTTP/1.1\r\ncontent-length: x\r\n\r\n",
            "POST / HTTP/1.1\r\ncontent-length: 99999999999\r\n\r\n",
            "POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n",
        ] {
            assert!(measure(wrong.as_bytes()).is_err(), "{wrong}");
        }
        assert!(measure(&vec![b'a'; HEAD_BYTES_MAX + 1]).is_err());
    }
}
