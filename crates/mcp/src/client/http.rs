//! A raw MCP client over Streamable HTTP, on one kept connection: it sends what it is told to send and checks
//! the status, the form and the id of what comes. It retries nothing; after a failure the next request opens a
//! new connection.

use super::handshake::{dress, initialize_params, settled_on};
use super::{ASIDE_MAX, ClientError, Era, Message, Reply};
use net::blocking::{Connection, excerpt, split_url};
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::fmt::Write as _;
use std::net::{SocketAddr, ToSocketAddrs};
use std::time::Duration;
use wire::SseParser;
use wire::header::encode;

/// Where a server is, and how long to wait for it.
#[derive(Debug, Clone)]
pub struct HttpOptions {
    /// The longest wait for a connection, for each part of a response, and for the server to take a request.
    pub timeout: Duration,
    /// The longest body to read, in bytes.
    pub body_bytes_max: u64,
    /// Headers to send with every request, beside those of the protocol.
    pub headers: Vec<(String, String)>,
}

impl Default for HttpOptions {
    fn default() -> Self {
        Self {
            timeout: Duration::from_secs(20),
            body_bytes_max: 64 * 1024 * 1024,
            headers: Vec::new(),
        }
    }
}

/// A response as it came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// The status.
    pub status: u16,
    /// The type of the body, as the header says; empty where there is none.
    pub content_type: String,
    /// The whole body.
    pub body: Vec<u8>,
}

/// A client of one endpoint.
#[derive(Debug)]
pub struct HttpClient {
    address: SocketAddr,
    host: String,
    path: String,
    options: HttpOptions,
    connection: Option<Connection>,
    era: Option<Era>,
    session: Option<String>,
    next_id: u64,
    /// The request being built.
    out: Vec<u8>,
    /// The body being read.
    body: Vec<u8>,
    aside: VecDeque<Message>,
}

impl HttpClient {
    /// A client of `url`, which is `http://HOST:PORT/PATH`. Nothing is sent yet.
    ///
    /// # Errors
    /// When the URL has another form, or its host no address.
    pub fn new(url: &str, options: HttpOptions) -> Result<Self, ClientError> {
        let wrong = || ClientError::NotHttp {
            reason: format!("{url} is not a URL of the form http://HOST:PORT/PATH"),
        };
        let (host, path) = split_url(url).ok_or_else(wrong)?;
        let address = host.to_socket_addrs()?.next().ok_or_else(wrong)?;
        Ok(Self {
            address,
            host: host.to_owned(),
            path: path.to_owned(),
            options,
            connection: None,
            era: None,
            session: None,
            next_id: 1,
            out: Vec::new(),
            body: Vec::new(),
            aside: VecDeque::new(),
        })
    }

    /// The session that the server opened, in the Legacy era.
    #[must_use]
    pub fn session(&self) -> Option<&str> {
        self.session.as_deref()
    }

    /// Begins in an era, as [`super::Client::handshake`] does.
    ///
    /// # Errors
    /// When the server refuses, settles on another revision, or the exchange fails.
    pub fn handshake(&mut self, era: Era) -> Result<Reply, ClientError> {
        self.session = None;
        // A Legacy revision is named in headers only once it is settled.
        self.era = (era == Era::Modern).then_some(era);
        let reply = match era {
            Era::Modern => self.request("server/discover", json!({}))?,
            Era::Legacy(version) => self.request("initialize", initialize_params(version))?,
        };
        self.era = Some(era);
        settled_on(&reply, era)?;
        if era != Era::Modern {
            let session = self.connection.as_ref();
            let session = session.and_then(|connection| connection.header("mcp-session-id"));
            self.session = session.map(str::to_owned);
            self.notify("notifications/initialized", &json!({}))?;
        }
        Ok(reply)
    }

    /// Sends a request with the next integer id and reads the response to its end.
    ///
    /// # Errors
    /// When nothing comes in time, the server is gone, the status is no success and the body no response,
    /// a response names another id, or there are two.
    pub fn request(&mut self, method: &str, params: Value) -> Result<Reply, ClientError> {
        let id = self.next_id;
        self.next_id += 1;
        let params = dress(self.era, params);
        let name = match method {
            "tools/call" | "prompts/get" => params.get("name"),
            "resources/read" => params.get("uri"),
            _ => None,
        };
        let name = name.and_then(Value::as_str).map(str::to_owned);
        let method_text = Value::from(method);
        let body =
            format!(r#"{{"jsonrpc":"2.0","id":{id},"method":{method_text},"params":{params}}}"#);
        self.exchange(method, name.as_deref(), body.as_bytes(), &id.to_string())
    }

    /// Calls a tool and waits for its response.
    ///
    /// # Errors
    /// As [`HttpClient::request`].
    pub fn call_tool(&mut self, name: &str, arguments: Value) -> Result<Reply, ClientError> {
        self.request("tools/call", json!({"name": name, "arguments": arguments}))
    }

    /// Sends a body that is a request with this method, name and id (raw JSON) and reads its response.
    ///
    /// # Errors
    /// As [`HttpClient::request`].
    pub fn exchange(
        &mut self,
        method: &str,
        name: Option<&str>,
        body: &[u8],
        id: &str,
    ) -> Result<Reply, ClientError> {
        let result = self
            .begin(method, name, body)
            .and_then(|status| self.response(status, id));
        self.finish(result)
    }

    /// Sends a notification, which is to be accepted without a body.
    ///
    /// # Errors
    /// When it is not accepted, or the exchange fails.
    pub fn notify(&mut self, method: &str, params: &Value) -> Result<(), ClientError> {
        let params = dress(self.era, params.clone());
        let method_text = Value::from(method);
        let body = format!(r#"{{"jsonrpc":"2.0","method":{method_text},"params":{params}}}"#);
        let result = self
            .begin(method, None, body.as_bytes())
            .and_then(|status| self.whole(status));
        let answer = self.finish(result)?;
        match answer.status {
            202 => Ok(()),
            _ => Err(answer.into_error()),
        }
    }

    /// Ends the session, where there is one; returns the status.
    ///
    /// # Errors
    /// When the exchange fails.
    pub fn end_session(&mut self) -> Result<u16, ClientError> {
        let head = self.head("DELETE", None, None, 0);
        let answer = self.send_raw(head.as_bytes())?;
        self.session = None;
        Ok(answer.status)
    }

    /// Sends bytes as they are, a whole request, and reads the response to its end.
    ///
    /// # Errors
    /// When the exchange fails.
    pub fn send_raw(&mut self, request: &[u8]) -> Result<Answer, ClientError> {
        let result = self.send(request).and_then(|status| self.whole(status));
        self.finish(result)
    }

    /// The oldest notification or request of the server that came on the way to a response.
    pub fn next_aside(&mut self) -> Option<Message> {
        self.aside.pop_front()
    }

    /// The head of a request with the headers that era and session ask for, up to its blank line.
    #[must_use]
    pub fn head(
        &self,
        verb: &str,
        method: Option<&str>,
        name: Option<&str>,
        length: usize,
    ) -> String {
        let Self { host, path, .. } = self;
        let mut head = format!(
            "{verb} {path} HTTP/1.1\r\nhost: {host}\r\ncontent-type: application/json\r\naccept: application/json, text/event-stream\r\ncontent-length: {length}\r\n"
        );
        // Writing to a string cannot fail.
        if let Some(era) = self.era {
            let _ = write!(head, "mcp-protocol-version: {}\r\n", era.version());
        }
        if let Some(session) = &self.session {
            let _ = write!(head, "mcp-session-id: {session}\r\n");
        }
        if self.era == Some(Era::Modern)
            && let Some(method) = method
        {
            let _ = write!(head, "mcp-method: {}\r\n", encode(method));
            if let Some(name) = name {
                let _ = write!(head, "mcp-name: {}\r\n", encode(name));
            }
        }
        for (name, value) in &self.options.headers {
            let _ = write!(head, "{name}: {value}\r\n");
        }
        head.push_str("\r\n");
        head
    }

    fn begin(&mut self, method: &str, name: Option<&str>, body: &[u8]) -> Result<u16, ClientError> {
        let head = self.head("POST", Some(method), name, body.len());
        let mut out = std::mem::take(&mut self.out);
        out.clear();
        out.extend_from_slice(head.as_bytes());
        out.extend_from_slice(body);
        let status = self.send(&out);
        self.out = out;
        status
    }

    fn send(&mut self, request: &[u8]) -> Result<u16, ClientError> {
        let connection = match self.connection.take() {
            Some(connection) => connection,
            None => Connection::open(
                self.address,
                self.options.timeout,
                self.options.body_bytes_max,
            )?,
        };
        let connection = self.connection.insert(connection);
        connection.send(request)?;
        Ok(connection.read_head()?)
    }

    /// Keeps the connection for the next request, where that is possible.
    fn finish<T>(&mut self, result: Result<T, ClientError>) -> Result<T, ClientError> {
        let sound = matches!(
            result,
            Ok(_) | Err(ClientError::Status { .. } | ClientError::WrongId { .. })
        );
        let kept = self.connection.as_ref().is_some_and(Connection::is_kept);
        if !(sound && kept) {
            self.connection = None;
        }
        result
    }

    fn connection(&mut self) -> Result<&mut Connection, ClientError> {
        self.connection.as_mut().ok_or(ClientError::NotHttp {
            reason: "there is no connection".into(),
        })
    }

    fn whole(&mut self, status: u16) -> Result<Answer, ClientError> {
        let connection = self.connection()?;
        let content_type = connection.header("content-type").unwrap_or_default();
        let content_type = content_type.to_owned();
        let mut body = Vec::new();
        connection.read_body(&mut body)?;
        Ok(Answer {
            status,
            content_type,
            body,
        })
    }

    fn response(&mut self, status: u16, id: &str) -> Result<Reply, ClientError> {
        let kind = self.connection()?.header("content-type");
        if kind.is_some_and(|kind| kind.starts_with("text/event-stream")) {
            return self.among_events(id);
        }
        let mut body = std::mem::take(&mut self.body);
        body.clear();
        self.connection()?.read_body(&mut body)?;
        match Message::read(body.clone()) {
            // Refused before its id was read: the status says it all.
            Ok(Message::Response(reply)) if status < 400 || reply.id() != "null" => {
                self.body = body;
                check(reply, id)
            }
            Ok(_) | Err(_) => Err(Answer {
                status,
                content_type: String::new(),
                body,
            }
            .into_error()),
        }
    }

    /// The response among the events of a stream, which is read to its end.
    fn among_events(&mut self, id: &str) -> Result<Reply, ClientError> {
        let bytes_max = usize::try_from(self.options.body_bytes_max).unwrap_or(usize::MAX);
        let mut parser = SseParser::new(bytes_max);
        let mut found = None;
        let mut part = Vec::new();
        while self.connection()?.read_part(&mut part)? {
            parser.push(&part);
            part.clear();
            loop {
                let too_long = |_| ClientError::LineTooLong { bytes_max };
                let Some(event) = parser.next().map_err(too_long)? else {
                    break;
                };
                if event.data.is_empty() {
                    continue; // it only carries an id
                }
                match Message::read(event.data.to_vec())? {
                    Message::Response(reply) if found.is_none() => found = Some(check(reply, id)?),
                    Message::Response(reply) => {
                        return Err(ClientError::Twice {
                            line: reply.line().to_owned(),
                        });
                    }
                    other if self.aside.len() < ASIDE_MAX => self.aside.push_back(other),
                    _ => {
                        return Err(ClientError::Flooded {
                            messages: ASIDE_MAX,
                        });
                    }
                }
            }
        }
        found.ok_or_else(|| ClientError::NotHttp {
            reason: "the stream ended without a response".into(),
        })
    }
}

fn check(reply: Reply, id: &str) -> Result<Reply, ClientError> {
    if reply.id() == id {
        return Ok(reply);
    }
    Err(ClientError::WrongId {
        expected: id.into(),
        received: reply.id().into(),
        line: reply.line().to_owned(),
    })
}

impl Answer {
    fn into_error(self) -> ClientError {
        ClientError::Status {
            status: self.status,
            body: excerpt(&self.body, 200),
        }
    }
}
