//! The hop over HTTP, on one side or on both, beside processes that only move bytes and beside peers.

mod peer;
mod plans;
mod rates;
mod rows;
mod tables;

pub(super) use peer::Peer;
pub(super) use rows::{Verdict, rows};
pub(super) use tables::write;

use super::scene::Scene;
use super::{Size, StandardArgs};
use crate::error::LabError;
use crate::interrupt::Interrupt;
use crate::overhead::{self, Analysis, Monitor};
use crate::progress::{Kind, Progress};
use crate::{Context, host};
use rates::Rate;
use serde::Serialize;
use std::io::Write;

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
#[derive(Debug, Serialize)]
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

    /// The arm that the budget counts from.
    pub(super) fn baseline(self) -> &'static str {
        match self {
            Self::HttpToStdio | Self::HttpToHttp => "direct",
            Self::StdioToHttp | Self::StdioToHttpBesidePeers => "bare bridge",
        }
    }
}

/// Measures every hop: added latency pinned, then calls a second with all cores.
pub(super) fn measure(
    args: &StandardArgs,
    scene: &Scene,
    size: &Size,
    context: &Context,
    interrupt: &Interrupt,
    err: &mut dyn Write,
) -> Result<Web, LabError> {
    let mut web = Web {
        groups: Vec::new(),
        rates: Vec::new(),
        absent: plans::absent(args),
    };
    for (hop, plan) in plans::plans(args, scene, size)? {
        // Progress that nobody reads is not missed.
        let _ = writeln!(err, "{}", hop.title());
        let load = host::load_average();
        let progress = Progress::new(&mut *err, Kind::Quiet);
        let mut monitor = Monitor::new(progress, interrupt.clone());
        let measured = overhead::measure(&plan, &mut monitor)?;
        if measured.aborted {
            return Err(LabError::Aborted);
        }
        drop(monitor);
        let analysis = Analysis::of(&plan, &measured, load, context);
        web.groups.push(WebGroup { hop, analysis });
        if hop.per_second_min().is_some() {
            let _ = writeln!(err, "{}, {} connections", hop.title(), rates::CONNECTIONS);
            let found = rates::measure(hop, &plan, args.quick, context, interrupt)?;
            web.rates.extend(found);
        }
    }
    Ok(web)
}
