//! The edge over stdio: `durward run`, driven line by line.

use std::time::Duration;

use mcp::client::Client;

use super::cell::Cell;
use super::edge::{Behind, Driver, Finish, era, exit};
use super::row::Row;
use crate::support::guarded::{PATIENCE, Place};

pub(crate) struct Stdio {
    client: Client,
}

impl Stdio {
    pub(crate) fn open(place: &Place, row: &Row, cell: Cell, behind: &Behind<'_>) -> Self {
        let flags = [&["--name", "peer"], row.flags].concat();
        let mut client = match behind {
            Behind::Command(words) => {
                let words: Vec<&str> = words.iter().map(String::as_str).collect();
                place.guard_command(&flags, &words)
            }
            Behind::Configuration(file) => place.guard_configured(file, row.flags, "peer"),
            Behind::Url(url) => place.guard_reached(&[&flags[..], &["--url", url]].concat()),
        };
        client.handshake(era(row, cell)).unwrap();
        Self { client }
    }
}

impl Driver for Stdio {
    fn send(&mut self, frame: &str) {
        self.client.process().send_line(frame.as_bytes()).unwrap();
    }

    fn receive(&mut self, longest: Duration) -> Option<String> {
        let line = self.client.process().read_line_within(longest);
        line.unwrap().map(|line| String::from_utf8(line).unwrap())
    }

    fn cancel(&mut self, id: &str) {
        self.send(&format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{id}}}}}"#
        ));
    }

    fn vanish(&mut self) {
        self.client.process().close_input();
        self.client.process().close_output();
    }

    fn finish(mut self: Box<Self>) -> Finish {
        let process = self.client.process();
        process.close_input();
        let mut rest = Vec::new();
        while let Ok(line) = process.read_line() {
            rest.push(String::from_utf8(line).unwrap());
        }
        let status = process.wait_within(PATIENCE).unwrap();
        Finish {
            rest,
            statuses: Vec::new(),
            exit: status.map_or("does not end".to_owned(), exit),
        }
    }
}
