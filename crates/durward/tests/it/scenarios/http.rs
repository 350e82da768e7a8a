//! The edge over HTTP: `durward serve`, with a connection for each message, as clients have them.

use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

use mcp::client::{Connection, HttpClient, HttpOptions, Process};
use rustix::process::Signal;
use serde_json::Value;
use wire::SseParser;

use super::cell::{Cell, Era};
use super::edge::{Behind, Driver, Finish, era, exit};
use super::row::Row;
use crate::support::guarded::{PATIENCE, Place, binary};
use crate::support::raised;

/// Most bytes of one body or event.
const BODY_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Most frames that wait to be looked at.
const FRAMES_MAX: usize = 10_000;

pub(crate) struct Http {
    process: Process,
    /// Knows the headers of era and session.
    client: HttpClient,
    address: SocketAddr,
    modern: bool,
    gone: bool,
    tell: SyncSender<String>,
    inbox: Receiver<String>,
    exchanges: Vec<Exchange>,
    /// The stream of a Legacy session that belongs to no request.
    news: Option<Exchange>,
}

/// One message on its way, and what comes back.
struct Exchange {
    /// The id of a request, as spelled.
    id: Option<String>,
    socket: TcpStream,
    /// Gives the status.
    thread: JoinHandle<Option<u16>>,
}

impl Http {
    pub(crate) fn open(place: &Place, row: &Row, cell: Cell, behind: &Behind<'_>) -> Self {
        let server = match behind {
            Behind::Command(words) => {
                vec!["--server".to_owned(), format!("peer={}", words.join(" "))]
            }
            Behind::Url(url) => vec!["--server".to_owned(), format!("peer={url}")],
            Behind::Configuration(_) => Vec::new(),
        };
        let configuration = match behind {
            Behind::Configuration(file) => vec!["--config", file],
            Behind::Command(_) | Behind::Url(_) => vec!["--no-config"],
        };
        let fixed = [
            "--state-dir",
            "state",
            "serve",
            "--listen",
            "127.0.0.1:0",
            "--policy",
            "policy.json",
        ];
        let server: Vec<&str> = server.iter().map(String::as_str).collect();
        let args = [
            &configuration[..],
            &fixed,
            &server,
            &raised::RAISED_LIMITS,
            row.flags,
        ]
        .concat();
        let mut process = Process::spawn(binary().as_ref(), args, &place.options()).unwrap();
        let line = String::from_utf8(process.read_line().unwrap()).unwrap();
        let (_, url) = line.split_once("listening at ").unwrap();
        let address = url.trim().strip_prefix("http://").unwrap().parse().unwrap();
        let options = HttpOptions {
            timeout: PATIENCE,
            ..HttpOptions::default()
        };
        let mut client = HttpClient::new(&format!("{}/mcp/peer", url.trim()), options).unwrap();
        client.handshake(era(row, cell)).unwrap();
        let (tell, inbox) = sync_channel(FRAMES_MAX);
        let mut http = Self {
            process,
            client,
            address,
            modern: cell.era == Era::Modern,
            gone: false,
            tell,
            inbox,
            exchanges: Vec::new(),
            news: None,
        };
        if !http.modern {
            let mut connection = http.connect();
            let head = http.client.head("GET", None, None, 0);
            connection.send(head.as_bytes()).unwrap();
            assert_eq!(connection.read_head().unwrap(), 200, "the GET stream");
            http.news = Some(http.follow(None, connection, |connection, tell| {
                read_events(connection, tell);
                None
            }));
        }
        http
    }

    fn connect(&self) -> Connection {
        Connection::open(self.address, PATIENCE, BODY_BYTES_MAX as u64).unwrap()
    }

    fn follow(
        &self,
        id: Option<String>,
        connection: Connection,
        read: fn(&mut Connection, &SyncSender<String>) -> Option<u16>,
    ) -> Exchange {
        let socket = connection.socket().unwrap();
        let tell = self.tell.clone();
        let thread = std::thread::spawn(move || {
            let mut connection = connection;
            read(&mut connection, &tell)
        });
        Exchange { id, socket, thread }
    }

    /// Cuts all connections.
    fn cut(&mut self) {
        for exchange in self.exchanges.iter().chain(&self.news) {
            let _ = exchange.socket.shutdown(Shutdown::Both);
        }
    }
}

/// Reads one answer to its end: its status, where it came.
fn read_answer(connection: &mut Connection, tell: &SyncSender<String>) -> Option<u16> {
    let status = connection.read_head().ok()?;
    let kind = connection.header("content-type").unwrap_or_default();
    if kind.starts_with("text/event-stream") {
        read_events(connection, tell);
        return Some(status);
    }
    let mut body = Vec::new();
    connection.read_body(&mut body).ok()?;
    if !body.is_empty() {
        let _ = tell.send(String::from_utf8(body).unwrap());
    }
    Some(status)
}

/// Reads events until their stream ends.
fn read_events(connection: &mut Connection, tell: &SyncSender<String>) {
    let mut parser = SseParser::new(BODY_BYTES_MAX);
    let mut part = Vec::new();
    while matches!(connection.read_part(&mut part), Ok(true)) {
        parser.push(&part);
        part.clear();
        while let Some(event) = parser.next().unwrap() {
            if !event.data.is_empty() {
                let _ = tell.send(String::from_utf8(event.data.to_vec()).unwrap());
            }
        }
    }
}

impl Driver for Http {
    fn send(&mut self, frame: &str) {
        let message: Value = serde_json::from_str(frame).unwrap();
        let method = message["method"].as_str();
        let name = match method {
            Some("resources/read") => message["params"]["uri"].as_str(),
            _ => message["params"]["name"].as_str(),
        };
        let mut connection = self.connect();
        let head = self.client.head("POST", method, name, frame.len());
        connection
            .send(format!("{head}{frame}").as_bytes())
            .unwrap();
        // An array is a batch, which has no id of its own.
        let request = message.is_array() || (method.is_some() && message.get("id").is_some());
        let id = message.get("id").map(|_| raw_id(frame));
        let exchange = self.follow(id, connection, read_answer);
        if request {
            return self.exchanges.push(exchange);
        }
        // What follows it must not overtake it.
        while !exchange.thread.is_finished() {
            crate::support::guarded::pause(1);
        }
        self.exchanges.push(exchange);
    }

    fn receive(&mut self, longest: Duration) -> Option<String> {
        self.inbox.recv_timeout(longest).ok()
    }

    fn cancel(&mut self, id: &str) {
        if !self.modern {
            return self.send(&format!(
                r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{id}}}}}"#
            ));
        }
        let exchange = self.exchanges.iter().find(|e| e.id.as_deref() == Some(id));
        exchange.unwrap().socket.shutdown(Shutdown::Both).unwrap();
    }

    fn vanish(&mut self) {
        self.cut();
        self.gone = true;
    }

    fn finish(mut self: Box<Self>) -> Finish {
        if !self.modern && !self.gone {
            self.client.end_session().unwrap();
        }
        self.process.signal(Signal::TERM).unwrap();
        let status = self.process.wait_within(PATIENCE).unwrap();
        // Whatever is still open belongs to a server that is gone.
        self.cut();
        let statuses = self.exchanges.drain(..).map(|exchange| {
            let status = exchange.thread.join().unwrap();
            status.map_or("none".to_owned(), |status| status.to_string())
        });
        let statuses = statuses.collect();
        if let Some(news) = self.news.take() {
            news.thread.join().unwrap();
        }
        Finish {
            rest: self.inbox.try_iter().collect(),
            statuses,
            exit: status.map_or("does not end".to_owned(), exit),
        }
    }
}

/// The id of a frame of the table, as spelled.
fn raw_id(frame: &str) -> String {
    let (_, behind) = frame.split_once(r#""id":"#).unwrap();
    let end = behind.find([',', '}']).unwrap();
    behind[..end].to_owned()
}
