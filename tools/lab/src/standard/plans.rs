//! The comparisons of the standard set.

use super::workspace::{MockServer, RuleSet, StandardWorkspace};
use super::{RunSize, StandardArgs, approval, features};
use crate::affinity;
use crate::driver::{AnswerEquality, ProtocolRevision, TimedOperation};
use crate::error::LabError;
use crate::overhead::OverheadPlan;
use crate::variant::{Variant, VariantTransport};

const OFFICIAL: &str = "`tools/call read_file`, the official filesystem server";
/// Timed and untimed calls of a launch beside peers, which take a hundred times as long.
const PEER_RUNS: u32 = 400;
const PEER_WARMUP: u32 = 50;

/// A comparison: its title, whether the budget of the hop applies to it, its plan.
pub(super) type Named = (&'static str, bool, OverheadPlan);

/// Returns all comparisons, in the order of the page.
pub(super) fn plans(
    args: &StandardArgs,
    workspace: &StandardWorkspace,
    size: &RunSize,
) -> Result<Vec<Named>, LabError> {
    let (echo, files) = (MockServer::Echo, MockServer::Files);
    let guarded = |server, rules| workspace.guard_server(server, rules);
    let plan = |arms, operation| plain(args, size, arms, operation);
    let hello = hello()?;
    let echo_arms = vec![
        workspace.direct(echo),
        workspace.relayed(echo),
        guarded(echo, RuleSet::AllowAll)?,
    ];
    let files_arms = vec![
        workspace.direct(files),
        workspace.relayed(files),
        guarded(files, RuleSet::AllowAll)?,
        guarded(files, RuleSet::Four)?,
        guarded(files, RuleSet::Mixed(50))?,
        guarded(files, RuleSet::Mixed(1_000))?,
    ];
    let denied = denied(workspace, plan(Vec::new(), workspace.read_forbidden()))?;
    let asked = approval::with_approval(workspace, plan(Vec::new(), workspace.read()))?;
    let pending = approval::pending(workspace, plan(Vec::new(), workspace.read()))?;
    let abreast = |concurrency| OverheadPlan {
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
            plan(echo_arms.clone(), TimedOperation::List),
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

/// Returns the comparisons of parts that are off by default, and of those that the command line names. `plan` is that
/// of the echo server.
fn others(
    args: &StandardArgs,
    workspace: &StandardWorkspace,
    plan: OverheadPlan,
) -> Result<Vec<Named>, LabError> {
    let features = features::plan(workspace, plan.clone())?;
    let mut plans = vec![(features::TITLE, false, features)];
    if workspace.has_official() {
        let operation = workspace.read();
        let official = official(
            workspace,
            OverheadPlan {
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
fn denied(workspace: &StandardWorkspace, plan: OverheadPlan) -> Result<OverheadPlan, LabError> {
    let server = MockServer::Files;
    Ok(OverheadPlan {
        arms: vec![
            workspace.direct(server),
            workspace.guard_server(server, RuleSet::Four)?,
            workspace.guard_server(server, RuleSet::Mixed(1_000))?,
        ],
        deny: true,
        ..plan
    })
}

/// Reads by the official filesystem server, which takes a hundred times as long as ours.
fn official(workspace: &StandardWorkspace, plan: OverheadPlan) -> Result<OverheadPlan, LabError> {
    let server = MockServer::Official;
    Ok(OverheadPlan {
        arms: vec![
            workspace.direct(server),
            workspace.relayed(server),
            workspace.guard_server(server, RuleSet::Four)?,
            workspace.guard_server(server, RuleSet::Mixed(1_000))?,
        ],
        runs: PEER_RUNS,
        warmup: PEER_WARMUP,
        turn: PEER_RUNS.div_ceil(4),
        ..plan
    })
}

pub(super) fn hello() -> Result<TimedOperation, LabError> {
    TimedOperation::call("echo", serde_json::json!({ "text": "hello" }))
}

/// What all comparisons have in common.
pub(super) fn plain(
    args: &StandardArgs,
    size: &RunSize,
    arms: Vec<Variant>,
    operation: TimedOperation,
) -> OverheadPlan {
    OverheadPlan {
        arms,
        operation,
        protocol: ProtocolRevision::Legacy,
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
        answers: AnswerEquality::Same,
        deny: false,
        references: 1,
        person: None,
    }
}

/// Returns a peer that the command line names, without its server.
pub(super) fn named_peer(text: &str) -> Result<Variant, LabError> {
    let (name, line) = text
        .split_once('=')
        .filter(|(name, _)| !name.is_empty())
        .ok_or_else(|| LabError::Usage(format!("--peer takes NAME=CMD, not {text}")))?;
    Variant::parse(name, line, VariantTransport::Stdio)
}

/// Returns the same comparison with the peers that were named, each before the echo server.
fn beside_peers(
    args: &StandardArgs,
    workspace: &StandardWorkspace,
    plan: OverheadPlan,
) -> Result<OverheadPlan, LabError> {
    let peer =
        |text: &String| Ok(named_peer(text)?.before(workspace.direct(MockServer::Echo).command()));
    let peers: Result<Vec<Variant>, LabError> = args.peer.iter().map(peer).collect();
    let mut arms = plan.arms;
    arms.extend(peers?);
    Ok(OverheadPlan {
        arms,
        runs: PEER_RUNS,
        warmup: PEER_WARMUP,
        turn: PEER_RUNS.div_ceil(4),
        // Some proxies add members of their own to an answer.
        answers: AnswerEquality::Content,
        ..plan
    })
}
