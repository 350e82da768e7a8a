//! The hop over HTTP, on one side or on both, beside processes that only move bytes and beside peers.

mod peer;
mod plans;
mod rates;
mod rows;
mod tables;

pub(super) use peer::WebPeer;
pub(super) use rates::decisions;
pub(super) use rows::{BudgetVerdict, rows, thousands};
pub(super) use tables::write;

use super::peers::forgiving;
use super::workspace::StandardWorkspace;
use super::{RunSize, StandardArgs, StandardSession};
use crate::error::LabError;
use crate::overhead::{OverheadAnalysis, OverheadPlan};
use rates::ConnectionRate;
use serde::Serialize;

/// Which sides speak HTTP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum HttpSides {
    /// A client over HTTP before a server over stdio.
    HttpToStdio,
    /// HTTP on both sides.
    HttpToHttp,
    /// A client over stdio before a server over HTTP: the seed's topology.
    StdioToHttp,
    /// The same, beside proxies that take a thousand times as long.
    StdioToHttpBesidePeers,
}

/// One comparison over HTTP.
#[derive(Debug, Serialize)]
pub(super) struct WebGroup {
    pub(super) hop: HttpSides,
    #[serde(flatten)]
    pub(super) analysis: OverheadAnalysis,
}

/// All that was measured over HTTP.
#[derive(Debug, Default, Serialize)]
pub(super) struct WebResults {
    pub(super) groups: Vec<WebGroup>,
    /// Calls a second with many connections.
    rates: Vec<ConnectionRate>,
    /// Arms that were not measured, and why.
    absent: Vec<String>,
}

impl HttpSides {
    pub(super) fn title(self) -> &'static str {
        match self {
            Self::HttpToStdio => "HTTP→stdio",
            Self::HttpToHttp => "HTTP→HTTP",
            Self::StdioToHttp => "stdio→HTTP",
            Self::StdioToHttpBesidePeers => "stdio→HTTP, beside peers",
        }
    }

    /// Returns the variant that the budget counts from.
    pub(super) fn baseline(self) -> &'static str {
        match self {
            Self::HttpToStdio | Self::HttpToHttp => "direct",
            Self::StdioToHttp | Self::StdioToHttpBesidePeers => "bare bridge",
        }
    }
}

/// Measures every hop: added latency pinned, then calls a second with all cores. Its results are in `web` even on a
/// failure.
pub(super) fn measure(
    args: &StandardArgs,
    workspace: &StandardWorkspace,
    size: &RunSize,
    session: &mut StandardSession<'_>,
    web: &mut WebResults,
) -> Result<(), LabError> {
    web.absent = plans::absent(args);
    for (hop, mut plan) in plans::plans(args, workspace, size)? {
        let analysis = session.compare_variants(hop.title(), args, &mut plan)?;
        let groups = analysis.map(|analysis| WebGroup { hop, analysis });
        web.groups.extend(groups);
        if hop.per_second_min().is_none() {
            continue;
        }
        let title = format!("{}, {} connections", hop.title(), rates::CONNECTIONS);
        session.say(&title);
        let (context, interrupt) = (session.context, session.interrupt.clone());
        let mut arms = std::mem::take(&mut plan.arms);
        let found = forgiving(&title, args, &mut arms, &mut session.absent, |arms| {
            let plan = OverheadPlan {
                arms: arms.to_vec(),
                ..plan.clone()
            };
            rates::measure(hop, &plan, args.quick, context, &interrupt)
        })?;
        web.rates.extend(found.unwrap_or_default());
    }
    Ok(())
}
