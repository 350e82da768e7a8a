//! A session with one server of the configuration, through `durward run`: the same engine, policy and journal as for
//! any client.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use mcp::client::{Client, ClientError, Options, Reply};
use serde_json::{Value, json};

use crate::config::Settings;
use crate::failure::{EXIT_CONFIGURATION, EXIT_JOURNAL};
use crate::places::Places;

/// The newest revision with a handshake; servers answer with the one that they speak.
const REVISION: &str = "2025-11-25";
/// Longest line of a server, in bytes.
const LINE_BYTES_MAX: usize = 128 * 1024 * 1024;
/// Most pages of a list.
const PAGES_MAX: usize = 200;
/// How long a server may take to start and to answer a list, in milliseconds.
const START_MS_MAX: u64 = 60_000;
/// How long a session may take to end, in milliseconds.
const END_MS_MAX: u64 = 15_000;

/// Most characters that are shown of an answer.
const ANSWER_CHARS_MAX: usize = 300;

/// How a session is begun.
pub(crate) struct Begin<'a> {
    pub settings: &'a Settings,
    pub places: &'a Places,
    /// The rules in place of the configuration's.
    pub policy: Option<PathBuf>,
    /// Where journal and keys are kept in place of the usual directory.
    pub state: Option<PathBuf>,
    /// Further flags of `durward run`.
    pub flags: &'a [&'a str],
}

/// A running server behind its gate.
pub(crate) struct Session {
    client: Client,
}

/// Why a server gave no answer; what the server itself said is on standard error already.
pub(crate) type Problem = String;

impl Session {
    /// Starts `durward run NAME`.
    pub fn begin(name: &str, how: &Begin<'_>) -> Result<Self, Problem> {
        let mut line: Vec<OsString> = vec!["run".into(), name.into()];
        match &how.settings.file {
            Some(file) => line.extend(["--config".into(), file.into()]),
            None => line.push("--no-config".into()),
        }
        let state = how.state.as_ref().unwrap_or(&how.places.state);
        line.extend(["--state-dir".into(), state.into()]);
        if let Some(policy) = &how.policy {
            line.extend(["--policy".into(), how.places.absolute(policy).into()]);
        }
        line.extend(how.flags.iter().map(OsString::from));
        line.push("--no-watch".into());
        Self::spawn(name, how.places, line, Vec::new())
    }

    /// Starts this program with a command line that opens a session with the server `name`, and with further variables.
    pub fn spawn(
        name: &str,
        places: &Places,
        line: Vec<OsString>,
        env: Vec<(OsString, OsString)>,
    ) -> Result<Self, Problem> {
        let options = Options {
            timeout: Duration::from_millis(START_MS_MAX),
            line_bytes_max: LINE_BYTES_MAX,
            env,
            inherit_stderr: true,
            ..Options::default()
        };
        let client = Client::spawn_with(&places.own_binary, line, &options)
            .map_err(|error| error.to_string())?;
        let mut session = Self { client };
        match session.handshake() {
            Ok(()) => Ok(session),
            Err(error) => Err(session.no_session(name, &error)),
        }
    }

    /// Why a server opens no session: most often it is none.
    fn no_session(&mut self, name: &str, error: &ClientError) -> Problem {
        let what = match error {
            ClientError::Closed { .. } | ClientError::Io(_) if self.is_ours() => {
                return format!("{name} was not started; the reason is above");
            }
            ClientError::Closed { .. } | ClientError::Io(_) => {
                "ended before it answered `initialize`; the reason is above".to_owned()
            }
            ClientError::Timeout { after, .. } => {
                format!("did not answer `initialize` within {} s", after.as_secs())
            }
            ClientError::Handshake { line } => {
                format!("did not open a session; its answer: {}", answer_in(line))
            }
            other => return sentence(name, other),
        };
        format!(
            "{name} {what}\n  hint: is it an MCP server? Look at its `command` and `args` (or `url`) in the configuration"
        )
    }

    /// Whether the gate ended for a reason of its own: its configuration, its journal.
    fn is_ours(&mut self) -> bool {
        let until = Duration::from_millis(END_MS_MAX);
        let ended = self.client.process().wait_within(until);
        let code = ended.ok().flatten().and_then(|status| status.code());
        code.is_some_and(|code| {
            [EXIT_CONFIGURATION, EXIT_JOURNAL]
                .map(i32::from)
                .contains(&code)
        })
    }

    fn handshake(&mut self) -> Result<(), ClientError> {
        let params = json!({
            "protocolVersion": REVISION,
            "capabilities": {},
            "clientInfo": { "name": "durward", "version": env!("CARGO_PKG_VERSION") },
        });
        let reply = self.client.request("initialize", params)?;
        if reply.error().is_some() {
            // A server without a handshake: 2026-07-28 and later.
            self.client.discover()?;
            return Ok(());
        }
        self.client.notify("notifications/initialized", &json!({}))
    }

    /// Every tool that the policy shows, as the server describes it.
    pub fn tools(&mut self, name: &str) -> Result<Vec<Value>, Problem> {
        let mut all = Vec::new();
        let mut cursor: Option<Value> = None;
        for _ in 0..PAGES_MAX {
            let params = cursor.map_or_else(|| json!({}), |cursor| json!({ "cursor": cursor }));
            let reply = self.client.request("tools/list", params);
            let reply = reply.map_err(|error| sentence(name, &error))?;
            let result = reply.result().map_err(|error| sentence(name, &error))?;
            let tools = result.get("tools").and_then(Value::as_array);
            all.extend(tools.into_iter().flatten().cloned());
            cursor = result.get("nextCursor").filter(|c| !c.is_null()).cloned();
            if cursor.is_none() {
                return Ok(all);
            }
        }
        Err(format!(
            "{name}: the list of tools has more than {PAGES_MAX} pages"
        ))
    }

    /// Calls a tool; `ms_max` is the time for a person's answer and the server's together.
    pub fn call(
        &mut self,
        name: &str,
        tool: &str,
        arguments: &Value,
        ms_max: u64,
    ) -> Result<Reply, Problem> {
        self.client
            .process()
            .set_timeout(Duration::from_millis(ms_max));
        let reply = self.client.call_tool(tool, arguments.clone());
        reply.map_err(|error| sentence(name, &error))
    }

    /// Ends the session and waits for the server.
    pub fn end(mut self) {
        self.client.process().close_input();
        let until = Duration::from_millis(END_MS_MAX);
        let begun = Instant::now();
        // Whatever is still running then is killed when it is dropped.
        let _ = self.client.process().wait_within(until);
        tracing::debug!("the session ended after {} ms", begun.elapsed().as_millis());
    }
}

/// The message of an error as a client received it.
fn answer_in(line: &str) -> String {
    let answer: Value = serde_json::from_str(line).unwrap_or_default();
    let message = answer.pointer("/error/message").and_then(Value::as_str);
    let shown: String = message
        .unwrap_or(line)
        .chars()
        .take(ANSWER_CHARS_MAX)
        .collect();
    format!("\"{}\"", shown.escape_debug())
}

fn sentence(name: &str, error: &ClientError) -> Problem {
    match error {
        ClientError::Closed { .. } => {
            format!("{name}: the session ended before it answered; the reason is above")
        }
        ClientError::Timeout { after, .. } => {
            format!("{name}: no answer within {} s", after.as_secs())
        }
        other => format!("{name}: {other}"),
    }
}
