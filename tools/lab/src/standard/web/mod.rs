//! The hop over HTTP, on one side or on both, beside processes that only move bytes and beside peers.

mod peer;
mod plans;
mod rates;
mod rows;
mod tables;

pub(super) use peer::Peer;
pub(super) use rates::decisions;
pub(super) use rows::{Verdict, rows, thousands};
pub(super) use tables::write;

use super::peers::forgiving;
use super::workspace::Workspace;
use super::{Session, Size, StandardArgs};
use crate::error::LabError;
use crate::overhead::{Analysis, Plan};
use rates::Rate;
use serde::Serialize;

/// Which sides speak HTTP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Hop {
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
    pub(super) hop: Hop,
    #[serde(flatten)]
    pub(super) analysis: Analysis,
}

/// All that was measured over HTTP.
#[derive(Debug, Default, Serialize)]
pub(super) struct Web {
    pub(super) groups: Vec<WebGroup>,
    /// Calls a second with many connections.
    rates: Vec<Rate>,
    /// Arms that were not measured, and why.
    absent: Vec<String>,
}

impl Hop {
    pub(super) fn title(self) -> &'static str {
        match self {
            Self::HttpToStdio => "HTTP→stdio",
            Self::HttpToHttp => "HTTP→HTTP",
            Self::StdioToHttp => "stdio→HTTP",
            Self::StdioToHttpBesidePeers => "stdio→HTTP, beside peers",
        }
    }

    /// The variant that the budget counts from.
    pub(super) fn baseline(self) -> &'static str {
        match self {
            Self::HttpToStdio | Self::HttpToHttp => "direct",
            Self::StdioToHttp | Self::StdioToHttpBesidePeers => "bare bridge",
        }
    }
}

/// Measures every hop: added latency pinned, then calls a second with all cores. What was measured is in `web`,
/// whatever ends it.
pub(super) fn measure(
    args: &StandardArgs,
    workspace: &Workspace,
    size: &Size,
    session: &mut Session<'_>,
    web: &mut Web,
) -> Result<(), LabError> {
    web.absent = plans::absent(args);
    for (hop, mut plan) in plans::plans(args, workspace, size)? {
        let analysis = session.compared(hop.title(), args, &mut plan)?;
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
            let plan = Plan {
                arms: arms.to_vec(),
                ..plan.clone()
            };
            rates::measure(hop, &plan, args.quick, context, &interrupt)
        })?;
        web.rates.extend(found.unwrap_or_default());
    }
    Ok(())
}
