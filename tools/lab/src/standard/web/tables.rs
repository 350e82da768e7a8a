//! The hop over HTTP as tables.

use super::rates::{CONNECTIONS, ConnectionRate};
use super::rows::{ADDED_P50_US_MAX, ADDED_P99_US_MAX, is_kept, is_ours, thousands};
use super::{WebGroup, WebResults};
use crate::overhead::{VariantComparison, point, whole};
use crate::standard::budget::word;
use std::fmt::{self, Write as _};

/// Writes all tables.
pub(in super::super) fn write(web: &WebResults, page: &mut String) -> fmt::Result {
    writeln!(page, "\n## Over HTTP\n")?;
    writeln!(
        page,
        "`tools/call echo`, everything as above but for the transport. *direct* is `mock echo --http --bare`: blocking calls, a \
thread a connection, nothing but a call's needs, so that what stands before it is not hidden by it. *Bare* arms \
(`mock relay --http`, `mock bridge`) move bytes or frames and judge nothing; ours are `durward serve` and, from stdio, \
`durward run --url`, with 50 rules, limits and the journal on. Only `content` of the answers is compared, for peers add \
members. Budgets: added p50 ≤ {ADDED_P50_US_MAX} µs, p99 ≤ {ADDED_P99_US_MAX} µs over *direct*; from stdio p50 ≤ {ADDED_P50_US_MAX} µs over the *bare bridge*."
    )?;
    for absent in &web.absent {
        writeln!(page, "- **Absent**: {absent}.")?;
    }
    for group in &web.groups {
        latencies(group, page)?;
    }
    rates(&web.rates, page)
}

fn latencies(group: &WebGroup, page: &mut String) -> fmt::Result {
    let mut references: Vec<&str> = Vec::new();
    for found in &group.analysis.comparisons {
        if !references.contains(&found.baseline.as_str()) {
            references.push(&found.baseline);
        }
    }
    writeln!(page, "\n### {}\n", group.hop.title())?;
    let heads: String = references
        .iter()
        .map(|name| format!(" added p50 over {name} | added p99 over {name} |"))
        .collect();
    writeln!(page, "| variant | p50 | p95 | p99 |{heads} budget |")?;
    writeln!(
        page,
        "|---|--:|--:|--:|{}---|",
        "--:|--:|".repeat(references.len())
    )?;
    for figures in &group.analysis.arms {
        let found = |baseline: &str| {
            let mut all = group.analysis.comparisons.iter();
            all.find(|c| c.arm == figures.arm.name && c.baseline == baseline)
        };
        let added: String = references.iter().map(|name| cells(found(name))).collect();
        let verdict = references
            .iter()
            .find_map(|name| is_kept(group.hop, found(name)?));
        writeln!(
            page,
            "| {} | {} | {} | {} |{added} {} |",
            figures.arm.name,
            point(Some(&figures.p50_us)),
            point(figures.p95_us.as_ref()),
            point(figures.p99_us.as_ref()),
            verdict.map_or("", word)
        )?;
    }
    Ok(())
}

fn cells(found: Option<&VariantComparison>) -> String {
    match found {
        None => " - | - |".into(),
        Some(found) => format!(
            " {} | {} |",
            whole(&found.overhead_us),
            found.added_p99_us.as_ref().map_or("-".into(), whole)
        ),
    }
}

fn rates(rates: &[ConnectionRate], page: &mut String) -> fmt::Result {
    writeln!(page, "\n### {CONNECTIONS} connections\n")?;
    writeln!(
        page,
        "Calls a second; client, variant and servers share all cores, nothing is pinned. Each connection has a session of its own, \
one thread drives them all; every id and answer is checked. Memory: the arm's own process; beside it what else it started but the servers (watchers of children), \
with their part of shared pages.\n"
    )?;
    writeln!(
        page,
        "| hop | variant | calls/s | p50 | p99 | resting MiB | loaded MiB | others MiB | answered | decided | |\n|---|---|--:|--:|--:|--:|--:|--:|--:|--:|---|"
    )?;
    for rate in rates {
        let kept = rate
            .hop
            .per_second_min()
            .filter(|_| is_ours(&rate.arm))
            .map(|least| rate.per_second.lower() >= least);
        writeln!(
            page,
            "| {} | {} | {} | {:.0} | {:.0} | {:.1} | {:.1} | {:.1} | {} | {} | {} |",
            rate.hop.title(),
            rate.arm,
            thousands(&rate.per_second),
            rate.p50_us,
            rate.p99_us,
            rate.resting_kib as f64 / 1024.0,
            rate.loaded_kib as f64 / 1024.0,
            rate.helpers_kib as f64 / 1024.0,
            rate.answered,
            rate.decided
                .map_or("-".into(), |decided| decided.to_string()),
            kept.map_or("", word)
        )?;
    }
    for rate in rates {
        if let Some(verified) = &rate.verified {
            writeln!(
                page,
                "\nJournal of {}, {}: {verified}.",
                rate.arm,
                rate.hop.title()
            )?;
        }
    }
    Ok(())
}
