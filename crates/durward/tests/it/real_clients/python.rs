//! Python clients: the MCP SDK's own, and those of the two agent frameworks that most build on.

use std::path::PathBuf;
use std::process::Command;

use super::ways::{Can, every_way};
use crate::support::components;

fn client(python: Option<PathBuf>, name: &str, can: &Can) {
    let Some(python) = python else {
        return;
    };
    let driver = components::client_driver("clients.py");
    every_way(Command::new(python).arg(driver).arg(name), can);
}

#[test]
fn python_sdk() {
    let can = Can {
        elicit: true,
        progress: true,
        told: &["run"],
    };
    client(components::fastmcp_python(), "sdk", &can);
}

#[test]
fn openai_agents() {
    let can = Can {
        elicit: false,
        progress: false,
        told: &["run"],
    };
    client(components::agents_python(), "agents", &can);
}

#[test]
fn langchain() {
    let can = Can {
        elicit: true,
        progress: true,
        told: &[],
    };
    client(components::agents_python(), "langchain", &can);
}
