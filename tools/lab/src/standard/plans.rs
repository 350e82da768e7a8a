//! The comparisons of the standard set.

use super::workspace::{Rules, Server, Workspace};
use super::{Size, StandardArgs, approval, features};
use crate::affinity;
use crate::driver::{Answers, Operation, Protocol};
use crate::error::LabError;
use crate::overhead::Plan;
use crate::variant::{Transport, Variant};

const OFFICIAL: &str = "`tools/call read_file`, the official filesystem server";
/// Timed and untimed calls of a launch beside peers, which take a hundred times as long.
const PEER_RUNS: u32 = 400;
const PEER_WARMUP: u32 = 50;

/// A comparison: its title, whether the budget of the hop is held against it, what is measured.
pub(super) type Named = (&'static str, bool, Plan);

/// All comparisons, in the order of the page.
pub(super) fn plans(
    args: &StandardArgs,
    workspace: &Workspace,
    size: &Size,
) -> Result<Vec<Named>, LabError> {
    let (echo, files) = (Server::Echo, Server::Files);
    let guarded = |server, rules| workspace.guarded(server, rules);
    let plan = |arms, operation| plain(args, size, arms, operation);
    let hello = hello()?;
    let echo_arms = vec![
        workspace.direct(echo),
        workspace.relayed(echo),
        guarded(echo, Rules::AllowAll)?,
    ];
    let files_arms = vec![
        workspace.direct(files),
        workspace.relayed(files),
        guarded(files, Rules::AllowAll)?,
        guarded(files, Rules::Four)?,
        guarded(files, Rules::Mixed(50))?,
        guarded(files, Rules::Mixed(1_000))?,
    ];
    let denied = denied(workspace, plan(Vec::new(), workspace.read_forbidden()))?;
    let asked = approval::asked(workspace, plan(Vec::new(), workspace.read()))?;
    let pending = approval::pending(workspace, plan(Vec::new(), workspace.read()))?;
    let abreast = |concurrency| Plan {
        concurrency,
        ..plan(echo_arms.clone(), hello.clone())
    };
    let mut plans = vec![
        (
            "`tools/call echo`",
            true,
            plan(echo_arms.clone(), hello.clone()),
        ),
        (
            "`tools/call read_file`, allowed",
            true,
            plan(files_arms, workspace.read()),
        ),
        (
            "`tools/list` (echo)",
            false,
            plan(echo_arms.clone(), Operation::List),
        ),
        (
            "`tools/call read_file`, denied by a rule (of 1,000, by 250 at once)",
            false,
            denied,
        ),
        (approval::ASKED, false, asked),
        (approval::PENDING, false, pending),
        ("`tools/call echo`, 8 under way at once", false, abreast(8)),
        (
            "`tools/call echo`, 32 under way at once",
            false,
            abreast(32),
        ),
    ];
    plans.extend(others(args, workspace, plan(echo_arms, hello))?);
    Ok(plans)
}

/// What is off by default, and what is there only where the command line names it. `plan` is that of the echo server.
fn others(args: &StandardArgs, workspace: &Workspace, plan: Plan) -> Result<Vec<Named>, LabError> {
    let features = features::plan(workspace, plan.clone())?;
    let mut plans = vec![(features::TITLE, false, features)];
    if workspace.has_official() {
        let operation = workspace.read();
        let official = official(
            workspace,
            Plan {
                operation,
                ..plan.clone()
            },
        )?;
        plans.push((OFFICIAL, false, official));
    }
    if !args.peer.is_empty() {
        let beside = beside_peers(args, workspace, plan)?;
        plans.push(("`tools/call echo`, beside peers", false, beside));
    }
    Ok(plans)
}

/// Reads that a rule refuses.
fn denied(workspace: &Workspace, plan: Plan) -> Result<Plan, LabError> {
    let server = Server::Files;
    Ok(Plan {
        arms: vec![
            workspace.direct(server),
            workspace.guarded(server, Rules::Four)?,
            workspace.guarded(server, Rules::Mixed(1_000))?,
        ],
        deny: true,
        ..plan
    })
}

/// Reads by the official filesystem server, which takes a hundred times as long as ours.
fn official(workspace: &Workspace, plan: Plan) -> Result<Plan, LabError> {
    let server = Server::Official;
    Ok(Plan {
        arms: vec![
            workspace.direct(server),
            workspace.relayed(server),
            workspace.guarded(server, Rules::Four)?,
            workspace.guarded(server, Rules::Mixed(1_000))?,
        ],
        runs: PEER_RUNS,
        warmup: PEER_WARMUP,
        turn: PEER_RUNS.div_ceil(4),
        ..plan
    })
}

pub(super) fn hello() -> Result<Operation, LabError> {
    Operation::call("echo", serde_json::json!({ "text": "hello" }))
}

/// What all comparisons have in common.
pub(super) fn plain(
    args: &StandardArgs,
    size: &Size,
    arms: Vec<Variant>,
    operation: Operation,
) -> Plan {
    Plan {
        arms,
        operation,
        protocol: Protocol::Legacy,
        launches: size.launches,
        launches_max: size.launches,
        half_width_us: f64::INFINITY,
        concurrency: 1,
        runs: size.runs,
        warmup: size.warmup,
        turn: size.runs.div_ceil(4),
        delay_us: 0,
        pin: args.pin.or_else(affinity::last_core),
        seed: args.seed,
        timeout_ms: 10_000,
        confidence: 0.95,
        answers: Answers::Same,
        deny: false,
        references: 1,
        person: None,
    }
}

/// A peer that the command line names, without its server.
pub(super) fn named_peer(text: &str) -> Result<Variant, LabError> {
    let (name, line) = text
        .split_once('=')
        .filter(|(name, _)| !name.is_empty())
        .ok_or_else(|| LabError::Usage(format!("--peer takes NAME=CMD, not {text}")))?;
    Variant::parse(name, line, Transport::Stdio)
}

/// The same comparison with the peers that were named, each before the echo server.
fn beside_peers(args: &StandardArgs, workspace: &Workspace, plan: Plan) -> Result<Plan, LabError> {
    let peer =
        |text: &String| Ok(named_peer(text)?.before(workspace.direct(Server::Echo).command()));
    let peers: Result<Vec<Variant>, LabError> = args.peer.iter().map(peer).collect();
    let mut arms = plan.arms;
    arms.extend(peers?);
    Ok(Plan {
        arms,
        runs: PEER_RUNS,
        warmup: PEER_WARMUP,
        turn: PEER_RUNS.div_ceil(4),
        // Some proxies add members of their own to an answer.
        answers: Answers::Content,
        ..plan
    })
}
