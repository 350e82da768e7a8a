//! The official Go SDK's client. What its server says on `initialized` reaches it on every way (W2).

use std::process::Command;

use super::ways::{Can, every_way};
use crate::support::components;

#[test]
fn go_sdk() {
    let Some(client) = components::go_client() else {
        return;
    };
    let can = Can {
        elicit: true,
        progress: true,
        told: &["direct", "run", "run --url", "serve"],
    };
    every_way(&mut Command::new(client), &can);
}
