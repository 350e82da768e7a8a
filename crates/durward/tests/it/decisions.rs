//! Tool × policy × arguments → decision, and the tools that each policy shows: the tables of `tests/decisions`
//! through the real binary, in every era that the server speaks and by FastMCP's client, with the journal as a
//! second witness and, for our own server, a count of what reached it as a third.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::support::approver::Denier;
use crate::support::components;
use crate::support::decisions::{Case, Decision, Table};
use crate::support::program::lab_binary;
use crate::support::raised::RAISED_LIMITS;
use crate::support::world::{World, binary};
use mcp::client::{Client, Era};
use serde_json::{Value, json};

/// The command line of a server that works on a world's folder.
type Server = fn(&World) -> Option<Vec<String>>;

fn seed_server(world: &World) -> Option<Vec<String>> {
    let text = |path: &Path| path.to_str().unwrap().to_owned();
    let count = count_file(world);
    let args = [
        "mock",
        "files",
        "--root",
        &text(&world.tmp),
        "--count",
        &text(&count),
    ];
    Some(
        std::iter::once(lab_binary())
            .chain(args)
            .map(str::to_owned)
            .collect(),
    )
}

fn official_server(world: &World) -> Option<Vec<String>> {
    let program = components::official_filesystem()?;
    Some(vec![
        program.to_str().unwrap().to_owned(),
        world.tmp.to_str().unwrap().to_owned(),
    ])
}

fn count_file(world: &World) -> std::path::PathBuf {
    world.far.join("calls-that-arrived.jsonl")
}

#[test]
fn seed10_by_a_raw_client_in_every_era() {
    raw("seed10", seed_server, &Era::ALL);
}

#[test]
fn official14_by_a_raw_client_in_every_era() {
    raw("official14", official_server, &Era::ALL[..4]);
}

#[test]
fn seed10_by_fastmcp() {
    fastmcp(
        "seed10",
        seed_server,
        &[("auto", "2026-07-28"), ("legacy", "2025-11-25")],
    );
}

#[test]
fn official14_by_fastmcp() {
    fastmcp(
        "official14",
        official_server,
        &[("auto", "2025-11-25"), ("legacy", "2025-11-25")],
    );
}

/// Every policy of a table in every era of the server, which must be `eras`, without and with Durward between.
fn raw(name: &str, server: Server, eras: &[Era]) {
    let table = Table::read(name);
    let world = World::new(None);
    let Some(command) = server(&world) else {
        return;
    };
    let spoken = eras_of(&command, &world);
    eprintln!("{name}: {} speaks {}", table.server, versions(&spoken));
    assert_eq!(spoken, eras, "the server's own eras");
    let guarded = eras_of(&guard(&World::new(None), &command), &world);
    assert_eq!(guarded, eras, "the server's eras through durward");
    let mut wrong = Vec::new();
    for &era in eras {
        for policy in table.tools_list.keys() {
            let found = raw_run(&table, policy, era, server);
            wrong.extend(
                found
                    .into_iter()
                    .map(|what| format!("{policy}, {}: {what}", era.version())),
            );
        }
    }
    report(wrong);
}

fn raw_run(table: &Table, policy: &str, era: Era, server: Server) -> Vec<String> {
    let world = World::new(Table::policy(policy).as_deref());
    let command = server(&world).unwrap();
    let unguarded = tools(&mut start(&command, &world, era));
    let mut client = start(&guard(&world, &command), &world, era);
    let _denier = Denier::start(&world.runtime());
    let mut wrong = Vec::new();
    check_tools(table, policy, &unguarded, &tools(&mut client), &mut wrong);
    let cases = table.cases(policy, &world);
    for case in &cases {
        let reply = client
            .call_tool(&case.tool, case.arguments.clone())
            .unwrap();
        let answer = serde_json::from_str(reply.line()).unwrap();
        wrong.extend(case.judge(&answer).err());
    }
    client.process().close_input();
    let status = client
        .process()
        .wait_within(Duration::from_secs(30))
        .unwrap();
    if !status.is_some_and(|status| status.success()) {
        wrong.push(format!(
            "durward ended with {status:?} after its input: {}",
            client.process().stderr()
        ));
    }
    check_witnesses(&world, &cases, &mut wrong);
    wrong
}

/// The eras in which a handshake succeeds, each tried on a process of its own.
fn eras_of(command: &[String], world: &World) -> Vec<Era> {
    let speaks = |era: &Era| {
        let mut client = Client::spawn_with(&command[0], &command[1..], &world.options()).unwrap();
        client.handshake(*era).is_ok()
    };
    Era::ALL.into_iter().filter(speaks).collect()
}

fn versions(eras: &[Era]) -> String {
    eras.iter()
        .map(|era| era.version())
        .collect::<Vec<_>>()
        .join(" ")
}

/// The same server with Durward in front of it.
fn guard(world: &World, command: &[String]) -> Vec<String> {
    // More questions than a person would bear: the tables ask for each row.
    let flags = ["run", "--approval-per-minute", "100000"];
    let mut line = vec![binary().to_owned()];
    line.extend(flags.map(str::to_owned));
    line.extend(RAISED_LIMITS.map(str::to_owned));
    if let Some(policy) = &world.policy {
        line.extend(["--policy".to_owned(), policy.to_str().unwrap().to_owned()]);
    }
    line.push("--".to_owned());
    line.extend_from_slice(command);
    line
}

fn start(command: &[String], world: &World, era: Era) -> Client {
    let mut client = Client::spawn_with(&command[0], &command[1..], &world.options()).unwrap();
    client.handshake(era).unwrap();
    client
}

/// All pages of `tools/list`.
fn tools(client: &mut Client) -> Vec<String> {
    let mut names = Vec::new();
    let mut params = json!({});
    loop {
        let reply = client.request("tools/list", params).unwrap();
        let result = reply.result().unwrap();
        names.extend(
            result["tools"]
                .as_array()
                .unwrap()
                .iter()
                .map(|tool| tool["name"].as_str().unwrap().to_owned()),
        );
        let Some(cursor) = result.get("nextCursor") else {
            return names;
        };
        params = json!({ "cursor": cursor });
    }
}

/// What is shown is what the table says, in the server's order.
fn check_tools(
    table: &Table,
    policy: &str,
    unguarded: &[String],
    shown: &[String],
    wrong: &mut Vec<String>,
) {
    let expected = &table.tools_list[policy];
    for name in expected.iter().filter(|name| !unguarded.contains(name)) {
        wrong.push(format!(
            "the table lists {name}, which the server does not have"
        ));
    }
    let expected: Vec<&String> = unguarded
        .iter()
        .filter(|name| expected.contains(name))
        .collect();
    if shown.iter().ne(expected.iter().copied()) {
        wrong.push(format!(
            "tools/list shows {shown:?}\n    expected {expected:?}"
        ));
    }
}

/// The journal holds one decision per call in their order, verifies, and nothing refused reached the server.
fn check_witnesses(world: &World, cases: &[Case], wrong: &mut Vec<String>) {
    let shown = world.durward(&["audit", "show", "--json", "--limit", "100000"]);
    assert!(
        shown.status.success(),
        "{}",
        String::from_utf8_lossy(&shown.stderr)
    );
    let records: Vec<Value> = String::from_utf8(shown.stdout)
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
        .filter(|record| record["kind"] == "decision" && record["mcp_method"] == "tools/call")
        .collect();
    if records.len() != cases.len() {
        wrong.push(format!(
            "{} calls, but {} decision records",
            cases.len(),
            records.len()
        ));
    }
    wrong.extend(
        cases
            .iter()
            .zip(&records)
            .filter_map(|(case, record)| case.judge_record(record).err()),
    );
    let verified = world.durward(&["audit", "verify"]);
    if !verified.status.success() {
        wrong.push(format!(
            "audit verify: {}",
            String::from_utf8_lossy(&verified.stdout)
        ));
    }
    let Ok(arrived) = fs::read_to_string(count_file(world)) else {
        return;
    };
    let arrived: Vec<Value> = arrived
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["name"].clone())
        .collect();
    let allowed: Vec<&str> = cases
        .iter()
        .filter(|case| case.decision == Decision::Allow)
        .map(|case| case.tool.as_str())
        .collect();
    if arrived != allowed {
        wrong.push(format!(
            "{} calls are allowed, but {} reached the server",
            allowed.len(),
            arrived.len()
        ));
    }
}

/// Every policy of a table by FastMCP's client in each of its modes, with the revision it must settle on.
fn fastmcp(name: &str, server: Server, modes: &[(&str, &str)]) {
    let table = Table::read(name);
    let Some(python) = components::fastmcp_python() else {
        return;
    };
    if server(&World::new(None)).is_none() {
        return;
    }
    let mut wrong = Vec::new();
    for (mode, revision) in modes {
        eprintln!("{name}: FastMCP, mode {mode}, expects {revision}");
        for policy in table.tools_list.keys() {
            let found = fastmcp_run(&table, policy, &python, (mode, revision), server);
            wrong.extend(
                found
                    .into_iter()
                    .map(|what| format!("{policy}, FastMCP {mode}: {what}")),
            );
        }
    }
    report(wrong);
}

fn fastmcp_run(
    table: &Table,
    policy: &str,
    python: &Path,
    (mode, revision): (&str, &str),
    server: Server,
) -> Vec<String> {
    let world = World::new(Table::policy(policy).as_deref());
    let command = server(&world).unwrap();
    let line = guard(&world, &command);
    let unguarded = tools(&mut start(&command, &world, Era::ALL[3]));
    let cases = table.cases(policy, &world);
    let calls: Vec<Value> = cases
        .iter()
        .map(|case| json!({ "tool": case.tool, "arguments": case.arguments }))
        .collect();
    let mut environment: std::collections::BTreeMap<String, String> =
        world.environment().into_iter().collect();
    environment.insert("PATH".to_owned(), std::env::var("PATH").unwrap());
    let plan = json!({
        "command": line[0], "args": line[1..], "env": environment, "cwd": world.tmp, "mode": mode, "calls": calls,
    });
    let file = world.far.join("plan.json");
    fs::write(&file, plan.to_string()).unwrap();
    let driver = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/drivers/fastmcp_client.py");
    let _denier = Denier::start(&world.runtime());
    let done = Command::new(python)
        .arg(driver)
        .arg(file)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{policy}, {mode}: {said}");
    let seen: Vec<Value> = String::from_utf8(done.stdout)
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(seen.len(), cases.len() + 1, "{said}");
    let mut wrong = Vec::new();
    if seen[0]["revision"] != revision {
        wrong.push(format!(
            "the client settled on {}, not on {revision}",
            seen[0]["revision"]
        ));
    }
    let shown: Vec<String> = serde_json::from_value(seen[0]["tools"].clone()).unwrap();
    check_tools(table, policy, &unguarded, &shown, &mut wrong);
    for (case, seen) in cases.iter().zip(&seen[1..]) {
        wrong.extend(case.judge(seen).err());
    }
    check_witnesses(&world, &cases, &mut wrong);
    wrong
}

/// Everything that is wrong, up to a screenful.
fn report(wrong: Vec<String>) {
    const SHOWN_MAX: usize = 60;
    let shown: Vec<&str> = wrong.iter().take(SHOWN_MAX).map(String::as_str).collect();
    assert!(
        wrong.is_empty(),
        "{} wrong\n  {}",
        wrong.len(),
        shown.join("\n  ")
    );
}
