//! The systemd unit: one file, which the page quotes, and which leaves a service little to reach.

use std::fs;
use std::process::Command;

use crate::support::components::repository;

const UNIT: &str = "docs/examples/systemd/durward.service";

/// Highest exposure by `systemd-analyze security`, in tenths: 10 is everything, 0 nothing.
const EXPOSURE_MAX: u32 = 60;

#[test]
fn the_page_quotes_the_unit_that_is_shipped() {
    let read = |path: &str| fs::read_to_string(repository().join(path)).unwrap();
    let (page, unit) = (read("docs/guides/serve.md"), read(UNIT));
    let quoted = format!("```ini\n{unit}```\n");
    assert!(
        page.contains(&quoted),
        "docs/guides/serve.md quotes another unit"
    );
    let units = page.matches("[Service]").count();
    assert_eq!(units, 1, "one unit is enough");
}

#[test]
fn the_unit_leaves_a_service_little_to_reach() {
    let analyzed = Command::new("systemd-analyze")
        .args(["security", "--offline=yes"])
        .arg(repository().join(UNIT))
        .output();
    let Ok(analyzed) = analyzed else {
        eprintln!("skipped: there is no systemd-analyze here");
        return;
    };
    let text = String::from_utf8_lossy(&analyzed.stdout).into_owned();
    let overall = text
        .lines()
        .find_map(|line| line.split_once("Overall exposure level for "));
    let Some((_, overall)) = overall else {
        eprintln!("skipped: this systemd-analyze reads no unit offline");
        return;
    };
    let level = overall.split_whitespace().nth(1).unwrap();
    let tenths: u32 = level.replace('.', "").parse().unwrap();
    assert!(tenths <= EXPOSURE_MAX, "{overall}");
}
