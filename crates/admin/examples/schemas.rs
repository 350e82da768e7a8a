//! Prints a schema of the data of an operation: `schemas NAME`.

use std::io::{self, Write as _};

use schemars::{Schema, schema_for};

/// Version of the schemas: it changes when a member disappears or gets another meaning.
const VERSION: u32 = 1;

fn schema(name: &str) -> Option<Schema> {
    Some(match name {
        "calls" => schema_for!(admin::calls::CallPage),
        "call-kinds" => schema_for!(Vec<admin::calls::KindCount>),
        "approval" => schema_for!(admin::approvals::WaitingCall),
        "approval-answer" => schema_for!(admin::approvals::AnsweredCall),
        "approval-event" => schema_for!(admin::approvals::InstanceEvent),
        "spend" => schema_for!(admin::spend::SpendReport),
        _ => return None,
    })
}

fn main() -> io::Result<()> {
    let name = std::env::args().nth(1).unwrap_or_default();
    let Some(mut schema) = schema(&name) else {
        return Err(io::Error::other(format!("no schema is named \"{name}\"")));
    };
    schema.insert("version".to_owned(), VERSION.into());
    writeln!(io::stdout(), "{:#}", schema.to_value())
}
