//! The TypeScript SDK's client, both of its lines.

use std::process::Command;

use super::ways::{Can, every_way};
use crate::support::components;

fn sdk(version: &str) {
    let (Some(node), Some(packages)) = (components::node(), components::client_packages()) else {
        return;
    };
    let can = Can {
        elicit: true,
        progress: true,
        told: &["run", "run --url", "serve"],
    };
    let driver = components::client_driver("typescript.mjs");
    every_way(
        Command::new(node).arg(driver).arg(packages).arg(version),
        &can,
    );
}

#[test]
fn typescript_sdk_1() {
    sdk("1");
}

#[test]
fn typescript_sdk_2() {
    sdk("2");
}
