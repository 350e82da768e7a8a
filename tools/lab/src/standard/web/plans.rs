//! The comparisons over HTTP.

use super::Hop;
use crate::driver::{Answers, Operation};
use crate::error::LabError;
use crate::overhead::Plan;
use crate::standard::plans::{hello, named_peer, plain};
use crate::standard::workspace::{Server, Workspace};
use crate::standard::{Size, StandardArgs};
use crate::variant::Variant;
use std::ffi::OsString;

/// The tool that is called.
const TOOL: &str = "echo";
/// Timed and untimed calls of a launch beside peers: one of them opens a session for every call.
const PEER_RUNS: u32 = 100;
const PEER_WARMUP: u32 = 10;

/// All comparisons over HTTP, in the order of the page.
pub(super) fn plans(
    args: &StandardArgs,
    workspace: &Workspace,
    size: &Size,
) -> Result<Vec<(Hop, Plan)>, LabError> {
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
        workspace.relayed_http(Server::Echo),
        workspace.served(Server::Echo)?,
    ];
    let mut behind = vec!["--".into()];
    behind.extend(workspace.server(Server::Echo));
    to_stdio.extend(peers(&behind)?);
    let mut to_http = vec![direct(), workspace.tunnelled(), workspace.served_http()?];
    to_http.extend(peers(&["--url".into(), "{direct}".into()])?);
    let bridged = vec![direct(), workspace.bridged(), workspace.guarded_http()?];
    let beside = beside_peers(args, bridged.clone())?;
    let plan = |arms: Vec<Variant>, hello: &Operation| Plan {
        // Some proxies add members of their own to an answer.
        answers: Answers::Content,
        ..plain(args, size, arms, hello.clone())
    };
    let mut plans = vec![
        (Hop::HttpToStdio, plan(to_stdio, &hello)),
        (Hop::HttpToHttp, plan(to_http, &hello)),
        (
            Hop::StdioToHttp,
            Plan {
                references: 2,
                ..plan(bridged, &hello)
            },
        ),
    ];
    if let Some(arms) = beside {
        plans.push((
            Hop::StdioToHttpBesidePeers,
            Plan {
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

/// The bridge and ours with the peers that were named, each before the first variant; nothing without peers.
fn beside_peers(
    args: &StandardArgs,
    mut arms: Vec<Variant>,
) -> Result<Option<Vec<Variant>>, LabError> {
    for text in &args.peer {
        arms.push(named_peer(text)?.before(&["{direct}".into()]));
    }
    Ok((!args.peer.is_empty()).then_some(arms))
}

/// What is missing, and how it is had.
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
