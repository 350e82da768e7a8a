//! Runs one row in one cell and says what came of each column.

use std::collections::BTreeMap;
use std::fs;
use std::time::Duration;

use mcp::client::Process;
use serde_json::Value;

use super::cell::{Cell, Edge, Peer};
use super::edge::{self, Behind, Driver};
use super::row::{Column, Row, Step};
use super::{frames, records};
use crate::support::guarded::{PATIENCE, Place, eventually};
use crate::support::program::lab_binary;

/// What each column came to.
pub(crate) type Seen = BTreeMap<Column, Vec<String>>;

/// What the handshake makes a server receive, and what `durward` asks on its own behalf.
const HANDSHAKE: [&str; 3] = ["initialize", "notifications/initialized", "server/discover"];

/// One run.
struct Run<'a> {
    row: &'a Row,
    cell: Cell,
    place: Place,
    patience: Duration,
    received: Vec<String>,
}

/// Runs a row in a cell. `red` says that frames may be missing.
pub(crate) fn run(row: &Row, cell: Cell, red: bool) -> Seen {
    let place = Place::new();
    place.write_policy(&frames::said(row.policy, row, cell));
    let mut run = Run {
        row,
        cell,
        place,
        patience: if red {
            Duration::from_secs(row.red_wait_s)
        } else {
            PATIENCE
        },
        received: Vec::new(),
    };
    let record = run.place.path("received").to_str().unwrap().to_owned();
    let words = [&["mock"], row.server, &["--record", &record]].concat();
    let mut site = None;
    let command: Vec<String>;
    let behind = match cell.peer {
        Peer::Child => {
            command = [&[lab_binary()], &words[..]]
                .concat()
                .iter()
                .map(|w| (*w).to_owned())
                .collect();
            Behind::Command(&command)
        }
        Peer::Http => {
            let words = [&words[..], &["--http", "127.0.0.1:0"]].concat();
            let options = run.place.options();
            let mut process = Process::spawn(lab_binary().as_ref(), words, &options).unwrap();
            let url = String::from_utf8(process.read_line().unwrap()).unwrap();
            Behind::Url(&site.insert((process, url)).1)
        }
        Peer::Builtin => {
            fs::write(
                run.place.path("durward.yaml"),
                "servers: { peer: { builtin: echo } }",
            )
            .unwrap();
            Behind::Configuration("durward.yaml")
        }
    };
    let mut driver = edge::open(&run.place, row, cell, &behind);
    for step in row.script {
        run.step(&mut *driver, step);
    }
    let finish = driver.finish();
    run.received.extend(finish.rest);
    run.seen(finish.statuses, finish.exit)
}

impl Run<'_> {
    fn step(&mut self, driver: &mut dyn Driver, step: &Step) {
        match *step {
            Step::Send(frame) => {
                let frame = self.with_state(&frames::fill(frame, self.row, self.cell));
                driver.send(&frame);
            }
            Step::Receive(count) => {
                for _ in 0..count {
                    match driver.receive(self.patience) {
                        Some(frame) => self.received.push(frame),
                        // What is missing shows when the columns are compared.
                        None => return,
                    }
                }
            }
            Step::Answer(result) => {
                let Some(question) = self.last_question() else {
                    return;
                };
                driver.send(&format!(
                    r#"{{"jsonrpc":"2.0","id":{question},"result":{result}}}"#
                ));
            }
            Step::Cancel(id) => driver.cancel(id),
            Step::Vanish => driver.vanish(),
            Step::Person(answer) => self.answer_as_a_person(answer),
            Step::Reload(policy) => {
                let policy = frames::said(policy, self.row, self.cell);
                self.place.write_policy(&policy);
                let output = self
                    .place
                    .durward(&["--no-config", "--state-dir", "state", "reload"]);
                assert!(output.status.success(), "{output:?}");
            }
            // There is no wire to listen at: what was let through is there.
            Step::ServerHas(method) if self.cell.peer == Peer::Builtin => {
                self.journal_has("mcp_method", method);
            }
            Step::ServerHas(text) => eventually("the server has it", || {
                self.server_received()
                    .iter()
                    .any(|frame| frame.contains(text))
            }),
            Step::JournalHas(member, value) => self.journal_has(member, value),
        }
    }

    fn journal_has(&self, member: &str, value: &str) {
        let args = [
            "--no-config",
            "--state-dir",
            "state",
            "audit",
            "show",
            "--json",
        ];
        eventually("the journal has it", || {
            let output = self.place.durward(&args);
            let text = String::from_utf8(output.stdout).unwrap();
            text.lines().any(|line| {
                let record: Value = serde_json::from_str(line).unwrap();
                record[member] == value
            })
        });
    }

    /// `{state}`: the state of the last result that wanted input.
    fn with_state(&self, frame: &str) -> String {
        if !frame.contains("{state}") {
            return frame.to_owned();
        }
        let state = self.received.iter().rev().find_map(|frame| {
            let frame: Value = serde_json::from_str(frame).ok()?;
            frame["result"]["requestState"].as_str().map(str::to_owned)
        });
        frame.replace("{state}", &state.unwrap_or_default())
    }

    /// The id of the last request that the client received, as spelled.
    fn last_question(&self) -> Option<String> {
        self.received.iter().rev().find_map(|frame| {
            let message: Value = serde_json::from_str(frame).ok()?;
            message["method"].as_str()?;
            message.get("id").map(Value::to_string)
        })
    }

    fn answer_as_a_person(&self, answer: &str) {
        eventually("a person is asked and answers", || {
            let listed = self.place.durward(&["approvals", "list", "--json"]);
            let listed = String::from_utf8(listed.stdout).unwrap();
            let Some(line) = listed.lines().next() else {
                return false;
            };
            let question: Value = serde_json::from_str(line).unwrap();
            let id = question["id"].as_str().unwrap();
            self.place
                .durward(&["approvals", answer, id])
                .status
                .success()
        });
    }

    /// What the server wrote down, without the handshake.
    fn server_received(&self) -> Vec<String> {
        let text = fs::read_to_string(self.place.path("received")).unwrap_or_default();
        // A frame that is still being written has no line end yet.
        let whole = text.rfind('\n').map_or("", |end| &text[..end]);
        let said = |line: &str| {
            let frame: Value = serde_json::from_str(line).unwrap_or_default();
            let method = frame["method"].as_str().unwrap_or_default().to_owned();
            HANDSHAKE.contains(&method.as_str())
        };
        let frames: Vec<&str> = whole.lines().filter(|line| !said(line)).collect();
        // Before the first call of a tool that nobody has listed, the gate lists for itself.
        let is_list = |frame: &str| frame.contains(r#""method":"tools/list""#);
        let asked = |step: &&Step| matches!(step, Step::Send(frame) if is_list(frame));
        let of_client = self.row.script.iter().filter(asked).count();
        let lists = frames.iter().filter(|frame| is_list(frame)).count();
        let mut own = lists.saturating_sub(of_client);
        let mut is_own = |frame: &str| {
            let is_own = own > 0 && is_list(frame);
            own -= usize::from(is_own);
            is_own
        };
        frames
            .into_iter()
            .filter(|frame| !is_own(frame))
            .map(str::to_owned)
            .collect()
    }

    fn seen(&self, statuses: Vec<String>, exit: String) -> Seen {
        let journal = self.place.journal();
        let client = self.received.iter().map(|f| frames::of_client(f));
        let mut client: Vec<String> = client.collect();
        let server = self.server_received();
        let server = server.iter().map(|f| frames::of_server(f, self.cell));
        let mut server: Vec<String> = server.collect();
        let mut records = records::lines(&journal, !self.row.unordered);
        if self.row.unordered {
            client = client.iter().map(|f| frames::in_byte_order(f)).collect();
            for column in [&mut client, &mut server, &mut records] {
                column.sort();
            }
        }
        Seen::from([
            (Column::Client, client),
            (Column::Status, statuses),
            (Column::Server, server),
            (Column::Journal, records),
            (Column::Marks, records::wrong_marks(&journal, self.cell)),
            (Column::Exit, vec![exit]),
        ])
    }
}

/// What the row says of a column in a cell.
pub(crate) fn expected(row: &Row, cell: Cell, column: Column) -> Vec<String> {
    let exception = row
        .except
        .iter()
        .find(|e| e.column == column && cell.fits(e.cells));
    let lines: Vec<&str> = match exception {
        Some(exception) => exception.expect.to_vec(),
        None => match column {
            Column::Client => row.client.to_vec(),
            Column::Server => row.server_got.to_vec(),
            Column::Journal => row.journal.to_vec(),
            Column::Status => statuses(row, cell),
            Column::Marks => Vec::new(),
            Column::Exit => vec!["0"],
        },
    };
    lines
        .iter()
        .map(|line| frames::fill(line, row, cell))
        .collect()
}

/// 200 for each request that the script sends over HTTP, 202 for anything else.
fn statuses(row: &Row, cell: Cell) -> Vec<&'static str> {
    if cell.edge == Edge::Stdio {
        return Vec::new();
    }
    let of = |step: &Step| match step {
        Step::Send(frame) if frame.starts_with('[') => Some("200"),
        Step::Send(frame) if frame.contains(r#""id":"#) && frame.contains(r#""method":"#) => {
            Some("200")
        }
        Step::Send(_) | Step::Answer(_) => Some("202"),
        Step::Cancel(_) if cell.era == super::cell::Era::Legacy => Some("202"),
        _ => None,
    };
    row.script.iter().filter_map(of).collect()
}
