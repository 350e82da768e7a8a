//! The comparisons over HTTP.

use super::HttpSides;
use crate::driver::{AnswerEquality, TimedOperation};
use crate::error::LabError;
use crate::overhead::OverheadPlan;
use crate::standard::plans::{hello, named_peer, plain};
use crate::standard::workspace::{MockServer, StandardWorkspace};
use crate::standard::{RunSize, StandardArgs};
use crate::variant::Variant;
use std::ffi::OsString;

/// The tool that is called.
const TOOL: &str = "echo";
/// Timed and untimed calls of a launch beside peers: one of them opens a session for every call.
const PEER_RUNS: u32 = 100;
const PEER_WARMUP: u32 = 10;

/// Returns all comparisons over HTTP, in the order of the page.
pub(super) fn plans(
    args: &StandardArgs,
    workspace: &StandardWorkspace,
    size: &RunSize,
) -> Result<Vec<(HttpSides, OverheadPlan)>, LabError> {
    let hello = hello()?;
    let direct = || workspace.direct_http();
    let peers = |server: &[OsString]| -> Result<Vec<Variant>, LabError> {
        args.http_peer
            .iter()
            .map(|peer| peer.before(server, TOOL))
            .collect()
    };
    let mut to_stdio = vec![
        direct(),
        workspace.relayed_http(MockServer::Echo),
        workspace.serve_server(MockServer::Echo)?,
    ];
    let mut behind = vec!["--".into()];
    behind.extend(workspace.server(MockServer::Echo));
    to_stdio.extend(peers(&behind)?);
    let mut to_http = vec![direct(), workspace.tunnelled(), workspace.served_http()?];
    to_http.extend(peers(&["--url".into(), "{direct}".into()])?);
    let bridged = vec![direct(), workspace.bridged(), workspace.guarded_http()?];
    let beside = beside_peers(args, bridged.clone())?;
    let plan = |arms: Vec<Variant>, hello: &TimedOperation| OverheadPlan {
        // Some proxies add members of their own to an answer.
        answers: AnswerEquality::Content,
        ..plain(args, size, arms, hello.clone())
    };
    let mut plans = vec![
        (HttpSides::HttpToStdio, plan(to_stdio, &hello)),
        (HttpSides::HttpToHttp, plan(to_http, &hello)),
        (
            HttpSides::StdioToHttp,
            OverheadPlan {
                references: 2,
                ..plan(bridged, &hello)
            },
        ),
    ];
    if let Some(arms) = beside {
        plans.push((
            HttpSides::StdioToHttpBesidePeers,
            OverheadPlan {
                references: 2,
                runs: PEER_RUNS,
                warmup: PEER_WARMUP,
                turn: PEER_RUNS.div_ceil(4),
                ..plan(arms, &hello)
            },
        ));
    }
    Ok(plans)
}

/// Returns the bridge and ours with the peers that were named, each before the first variant; nothing without peers.
fn beside_peers(
    args: &StandardArgs,
    mut arms: Vec<Variant>,
) -> Result<Option<Vec<Variant>>, LabError> {
    for text in &args.peer {
        arms.push(named_peer(text)?.before(&["{direct}".into()]));
    }
    Ok((!args.peer.is_empty()).then_some(arms))
}

/// Returns the absent parts, and how to get them.
pub(super) fn absent(args: &StandardArgs) -> Vec<String> {
    let there = args.http_peer.iter().any(|peer| peer.name == "mcp-proxy");
    match there {
        true => Vec::new(),
        false => vec![
            "mcp-proxy 0.6.0 is not installed: scripts/setup-peers installs it, make bench names it"
                .into(),
        ],
    }
}
