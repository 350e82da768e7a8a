//! What browsers and other clients over HTTP send, and where we may listen.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Stdio};

use super::Need;
use crate::support::guarded::{Place, binary};
use crate::support::serving::{Answer, Served, call};

const ORIGIN: &str = "https://app.example";
const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#;

fn served() -> Served {
    Served::start(&["--allow-origin", ORIGIN])
}

fn preflight(served: &Served, origin: &str) -> Answer {
    let headers = [
        ("origin", origin),
        ("access-control-request-method", "POST"),
        (
            "access-control-request-headers",
            "content-type,mcp-protocol-version,mcp-session-id",
        ),
    ];
    served.send("OPTIONS", "/mcp/echo", &headers, "")
}

/// Whether a header lists this word, in any case.
fn lists(answer: &Answer, name: &str, word: &str) -> Need {
    let value = answer.header(name).unwrap_or_default().to_ascii_lowercase();
    let words = value.split(',').map(str::trim);
    if words.clone().any(|w| w == word) {
        return Ok(());
    }
    Err(format!("{name} does not list {word}: {answer:?}"))
}

pub(super) fn w6_a_browser_may_ask_before_it_calls() -> Need {
    let answer = preflight(&served(), ORIGIN);
    if answer.status != 204 {
        return Err(format!("status {}: {answer:?}", answer.status));
    }
    lists(&answer, "access-control-allow-origin", ORIGIN)?;
    lists(&answer, "access-control-allow-methods", "post")?;
    for header in ["content-type", "mcp-protocol-version", "mcp-session-id"] {
        lists(&answer, "access-control-allow-headers", header)?;
    }
    lists(&answer, "vary", "origin")
}

pub(super) fn w6_a_page_of_an_allowed_origin_may_read_its_session() -> Need {
    let answer = served().send("POST", "/mcp/echo", &[("origin", ORIGIN)], INITIALIZE);
    assert_eq!(answer.status, 200, "{answer:?}");
    lists(&answer, "access-control-allow-origin", ORIGIN)?;
    lists(&answer, "access-control-expose-headers", "mcp-session-id")?;
    lists(&answer, "vary", "origin")
}

pub(super) fn a_page_of_another_origin_may_not() -> Need {
    let served = served();
    let other = "https://evil.example";
    for answer in [
        preflight(&served, other),
        served.send("POST", "/mcp/echo", &[("origin", other)], INITIALIZE),
    ] {
        if answer.status < 400 || answer.header("access-control-allow-origin").is_some() {
            return Err(format!("another origin is answered: {answer:?}"));
        }
    }
    Ok(())
}

pub(super) fn w8_a_slash_at_the_end_of_the_path_is_no_other_path() -> Need {
    let answer = served().send("POST", "/mcp/echo/", &[], INITIALIZE);
    match answer.status {
        200 => Ok(()),
        status => Err(format!("status {status}: {answer:?}")),
    }
}

pub(super) fn w8_a_compressed_body_is_an_unsupported_type() -> Need {
    let served = served();
    let session = served.open("2025-11-25");
    let headers = [
        ("mcp-session-id", session.as_str()),
        ("content-encoding", "gzip"),
    ];
    // The encoding is refused whatever the body is.
    let answer = served.send("POST", "/mcp/echo", &headers, "\u{1f}\u{8b}\u{8}");
    let plain = served.send("POST", "/mcp/echo", &headers, &call("7", "x"));
    for answer in [answer, plain] {
        if answer.status != 415 {
            return Err(format!("status {}: {answer:?}", answer.status));
        }
    }
    Ok(())
}

/// Starts `serve` at an address and says what it announces; ends it again.
fn listens(place: &Place, listen: &str, works: impl Fn(&str) -> Need) -> Need {
    let mock = place.mock(&["echo"]).join(" ");
    let mut process = Command::new(binary())
        .args(["--no-config", "--state-dir", "state", "serve"])
        .args(["--policy", "policy.json", "--listen", listen])
        .args(["--server", &format!("echo={mock}")])
        .current_dir(&place.dir)
        .env("XDG_RUNTIME_DIR", place.runtime())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut line = String::new();
    let stdout = process.stdout.take().unwrap();
    BufReader::new(stdout).read_line(&mut line).unwrap();
    let found = match line.is_empty() {
        true => Err(format!("it did not start at {listen}")),
        false => works(line.trim()),
    };
    let _ = process.kill();
    process.wait().unwrap();
    found
}

pub(super) fn w8_a_name_may_be_listened_at() -> Need {
    listens(&Place::new(), "localhost:0", |line| {
        let address = line.rsplit('/').next().unwrap();
        TcpStream::connect(address)
            .map(drop)
            .map_err(|error| format!("nobody is at {line}: {error}"))
    })
}

pub(super) fn w8_a_socket_in_the_file_system_may_be_listened_at() -> Need {
    let place = Place::new();
    let socket = place.path("s.sock");
    let listen = format!("unix:{}", socket.display());
    listens(&place, &listen, |line| {
        let mut stream = std::os::unix::net::UnixStream::connect(&socket)
            .map_err(|error| format!("nobody is at {line}: {error}"))?;
        let mode = std::fs::metadata(&socket).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "others may open it");
        write!(
            stream,
            "POST /mcp/echo HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-type: application/json\r\naccept: application/json, text/event-stream\r\ncontent-length: {}\r\n\r\n{INITIALIZE}",
            INITIALIZE.len()
        )
        .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        match answer.starts_with("HTTP/1.1 200")
            && answer.contains(r#""protocolVersion":"2025-11-25""#)
        {
            true => Ok(()),
            false => Err(format!("another answer: {answer}")),
        }
    })
}
