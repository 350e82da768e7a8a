//! The examples of the help, each section at a desk of its own. What is not run has its reason in a table.

use super::desk::{Desk, said};
use crate::support::world::World;

/// Beginnings of commands, and why they are not run here.
const NOT_RUN: &[(&str, &str)] = &[
    (
        "durward agents",
        "needs agents: agents::configured, and the page of agents",
    ),
    (
        "durward approvals watch",
        "a screen: approval_screen:: drives it",
    ),
    (
        "durward approvals",
        "needs a call that waits: approval_control:: answers them",
    ),
    (
        "durward audit tail --follow",
        "runs until Ctrl-C: the unit tests of audit::",
    ),
    ("durward budgets", "needs a Redis server: models::fleet"),
    ("durward demo", "a tour of its own: demo::"),
    (
        "durward lab",
        "runs durward-lab, another program: lab_command::",
    ),
    ("durward login", "needs an issuer: sign_in::"),
    ("durward logout", "needs an issuer: sign_in::"),
    ("durward logs tail", "runs until Ctrl-C: logs_command::"),
    ("durward man | man", "needs a pager"),
    (
        "durward models explain",
        "needs providers: models::explained",
    ),
    (
        "durward pins approve",
        "needs a changed definition: pins_command::",
    ),
    (
        "durward pins diff",
        "needs a changed definition: pins_command::",
    ),
    ("durward pins propose", "needs pins: pins_command::"),
    (
        "durward policy diff",
        "needs recorded versions: policy_history::",
    ),
    (
        "durward policy rollback",
        "needs recorded versions: policy_history::",
    ),
    (
        "durward policy show v",
        "needs recorded versions: policy_history::",
    ),
    (
        "durward reload",
        "needs a running instance: reload_policy::",
    ),
    (
        "durward run --url",
        "a server on the internet: http_upstream_real::",
    ),
    ("durward runs show", "needs a run: agents::answers"),
    ("durward serve", "serves until it is ended: serve_http::"),
    (
        "durward servers add",
        "needs a configuration without these servers: servers_command::",
    ),
    (
        "durward servers archive",
        "needs a server that can be spared: servers_command::",
    ),
    (
        "durward servers restore",
        "needs an archived server: servers_command::",
    ),
    (
        "durward sim",
        "needs a model: the tests of pbpk run the examples of its README",
    ),
    (
        "durward ssh hosts check",
        "needs a file of hosts: json_output::",
    ),
    (
        "durward ssh replay",
        "needs a recording: the unit tests of recording:: in ssh",
    ),
    (
        "durward ssh serve --print",
        "prints for hosts of the reader: ssh_serve::",
    ),
    ("durward ssh serve", "serves until it is ended: ssh_serve::"),
    ("durward whoami", "needs an issuer: sign_in::"),
];

/// Commands of which the example shows another end than success.
const ENDS: &[(&str, i32)] = &[
    // Nobody is there to ask, or to say yes.
    ("durward init --", 0),
    ("durward init", 16),
    ("durward wrap claude-desktop", 1),
    ("durward wrap cursor", 1),
    // The policy of this desk does not name the host.
    ("durward ssh check --policy", 4),
];

/// What has to be so before a command: what it writes is not there yet, what it changes is.
const WRITES: &[(&str, &str)] = &[
    ("durward init", "rm -f \"$XDG_CONFIG_HOME\"/durward/*; "),
    (
        "durward keys rotate",
        "durward keys create ci > /dev/null 2>&1 || true; ",
    ),
    (
        "durward keys revoke",
        "durward keys create laptop > /dev/null 2>&1 || true; ",
    ),
    ("durward policy init", "rm -f policy.json my-rules.json; "),
];

/// The examples of every command: the command's name, and what is to be typed.
fn examples(page: &str) -> Vec<(String, Vec<String>)> {
    let mut found = Vec::new();
    for section in page.split("\n## `").skip(1) {
        let name = section.split('`').next().unwrap().to_owned();
        let Some((_, rest)) = section.split_once("\nExamples:\n") else {
            continue;
        };
        let mut commands: Vec<String> = Vec::new();
        for line in rest.lines().take_while(|line| line.starts_with("  ")) {
            match (line.strip_prefix("  durward"), commands.last_mut()) {
                (Some(_), _) => commands.push(line.trim().to_owned()),
                // A line that was too long goes on.
                (None, Some(last)) => {
                    last.push(' ');
                    last.push_str(line.trim());
                }
                (None, None) => panic!("{name}: {line}"),
            }
        }
        // What is said about an example is two blanks away from it.
        let typed = |line: &String| line.split("  ").next().unwrap().to_owned();
        found.push((name, commands.iter().map(typed).collect()));
    }
    found
}

fn beginning<'t, T: Copy>(table: &'t [(&'t str, T)], command: &str) -> Option<T> {
    let mut rows = table.iter();
    rows.find(|(start, _)| command.starts_with(start))
        .map(|(_, value)| *value)
}

#[test]
fn every_example_of_the_help_is_run() {
    let world = World::new(None);
    let page = String::from_utf8(world.durward(&["__docs", "commands"]).stdout).unwrap();
    let (mut run, mut left_out) = (0, 0);
    for (name, commands) in examples(&page) {
        let mut desk: Option<Desk> = None;
        for command in commands {
            if let Some(reason) = beginning(NOT_RUN, &command) {
                eprintln!("not run: {command}: {reason}");
                left_out += 1;
                continue;
            }
            if desk.is_none() {
                desk = Desk::new().map(Desk::with_journal);
            }
            let Some(desk) = &desk else { return };
            let before = beginning(WRITES, &command).unwrap_or_default();
            let done = desk.shell(&format!("{before}{command}"));
            let expected = beginning(ENDS, &command).unwrap_or(0);
            assert_eq!(
                done.status.code(),
                Some(expected),
                "{name}: {command}\n{}",
                said(&done)
            );
            run += 1;
        }
    }
    eprintln!("{run} examples run, {left_out} not");
    assert!(run > 30, "{run}");
}
