//! The budgets of the design, row by row: measured, peer, ratio, and one of three words.

use super::budget::{self, word};
use super::{Group, Standard, approval, journal_rate, web};
use crate::overhead::Comparison;
use crate::stats::Interval;
use std::io::{self, Write};

/// What the generator may cost per call over stdio, in microseconds.
const OWN_STDIO_US_MAX: f64 = 3.0;
/// What it must be able to send over HTTP on one core, per second.
const OWN_HTTP_PER_SECOND_MIN: f64 = 50_000.0;
/// The policy stage at 4 and at 1,000 rules, in microseconds.
const POLICY_US_MAX: [(&str, f64); 2] = [("4 rules", 2.0), ("1000 rules", 5.0)];
/// The journal stage: one append.
const JOURNAL_US_MAX: f64 = 2.0;
/// Rows of the design that need a part that does not stand yet, and their budgets.
const NOT_BUILT: [(&str, &str); 2] = [
    ("model call and stream", "p50 ≤ 60, stream ≤ 80 µs"),
    ("ssh command", "p50 ≤ 2.5 ms"),
];

/// One row of the table.
struct Row {
    what: String,
    budget: String,
    measured: String,
    peer: String,
    ratio: String,
    verdict: &'static str,
}

/// Writes the table; whether every row that stands keeps its budget.
pub(super) fn write(standard: &Standard, out: &mut dyn Write) -> io::Result<bool> {
    let mut rows = hop(standard);
    rows.extend(web::rows(&standard.web).into_iter().map(over_http));
    rows.extend(stages(standard));
    rows.push(journal(standard));
    rows.extend(waiting(standard));
    rows.extend(rest(standard));
    rows.extend(own(standard));
    let kept = rows.iter().all(|row| row.verdict != "SHORT");
    rows.extend(NOT_BUILT.map(|(what, budget)| Row {
        what: what.into(),
        budget: budget.into(),
        measured: "-".into(),
        peer: "-".into(),
        ratio: "-".into(),
        verdict: "not built yet",
    }));
    writeln!(
        out,
        "| row | budget | measured | peer, same run | ratio | |\n|---|---|---|---|---|---|"
    )?;
    for row in rows {
        writeln!(
            out,
            "| {} | {} | {} | {} | {} | {} |",
            row.what, row.budget, row.measured, row.peer, row.ratio, row.verdict
        )?;
    }
    writeln!(
        out,
        "\nThe simulation's budget is measured by scripts/bench_pbpk.py, beside libroadrunner."
    )?;
    Ok(kept)
}

/// The hop over stdio with 50 rules, beside the bare relay and FastMCP's proxy.
fn hop(standard: &Standard) -> Vec<Row> {
    let found = standard.groups.iter().find_map(|group| {
        let comparisons = &group.analysis.comparisons;
        let guarded = comparisons.iter().find(|c| c.arm == "durward, 50 rules")?;
        let relay = comparisons.iter().find(|c| c.arm == "bare relay")?;
        group.budgeted.then_some((guarded, relay))
    });
    let Some((guarded, relay)) = found else {
        return Vec::new();
    };
    let mut rows = vec![row(
        "stdio→stdio, 50 rules, p50",
        budget::ADDED_P50_US_MAX,
        &guarded.overhead_us,
        Some(("bare relay", &relay.overhead_us)),
    )];
    if let (Some(ours), peers) = (&guarded.added_p99_us, &relay.added_p99_us) {
        let peer = peers.as_ref().map(|theirs| ("bare relay", theirs));
        rows.push(row(
            "stdio→stdio, 50 rules, p99",
            budget::ADDED_P99_US_MAX,
            ours,
            peer,
        ));
    }
    for group in &standard.groups {
        rows.extend(beside_fastmcp(group));
    }
    rows
}

fn beside_fastmcp(group: &Group) -> Vec<Row> {
    let comparisons = &group.analysis.comparisons;
    let Some(ours) = comparisons.iter().find(|c| c.arm.starts_with("durward")) else {
        return Vec::new();
    };
    let theirs = comparisons.iter().filter(|c| c.arm.starts_with("FastMCP"));
    let of = |peer: &Comparison| {
        let named = Some((peer.arm.as_str(), &peer.overhead_us));
        row(
            "stdio→stdio, p50, unpinned load of Python",
            budget::ADDED_P50_US_MAX,
            &ours.overhead_us,
            named,
        )
    };
    theirs.map(of).collect()
}

fn row(what: &str, most_us: f64, ours: &Interval, peer: Option<(&str, &Interval)>) -> Row {
    Row {
        what: what.into(),
        budget: format!("≤ {most_us:.0} µs"),
        measured: format!("{} µs", crate::overhead::whole(ours)),
        peer: peer.map_or("-".into(), |(name, theirs)| {
            format!("{name} {} µs", crate::overhead::whole(theirs))
        }),
        ratio: peer.map_or("-".into(), |(_, theirs)| {
            format!("{:.2}", ours.point / theirs.point)
        }),
        verdict: word(ours.upper() <= most_us),
    }
}

/// Policy and journal by the arms' own stages.
fn stages(standard: &Standard) -> Vec<Row> {
    let arms = || {
        standard
            .groups
            .iter()
            .flat_map(|group| &group.analysis.arms)
    };
    let stage = |arm: &str, name: &str| {
        arms()
            .find(|a| a.arm.name == format!("durward, {arm}") && a.stages.is_some())
            .and_then(|a| a.stages.as_ref()?.stages.iter().find(|s| s.name == name))
            .map(|stage| stage.us)
    };
    let policy = POLICY_US_MAX.iter().filter_map(|(rules, most)| {
        let name = format!("policy stage, {rules}, mean");
        Some(row(&name, *most, &stage(rules, "policy_us")?, None))
    });
    let journal = stage("50 rules", "journal_us");
    policy
        .chain(journal.map(|us| row("journal stage, one append, mean", JOURNAL_US_MAX, &us, None)))
        .collect()
}

/// The journal under many writers, beside the disk where each record waits for it.
fn journal(standard: &Standard) -> Row {
    let rate = &standard.journal_rate;
    Row {
        what: format!("journal, {} writers", rate.writers),
        budget: format!("≥ {:.0}/s", journal_rate::PER_SECOND_MIN),
        measured: format!("{}/s", rate.told()),
        peer: "-".into(),
        ratio: "-".into(),
        verdict: word(rate.is_kept()),
    }
}

/// Allowed calls while others wait for a person.
fn waiting(standard: &Standard) -> Option<Row> {
    let ratio = approval::of(standard)?;
    Some(Row {
        what: "p50 while 50 calls wait for a person, over p50 while none does".into(),
        budget: format!("≤ {:.2}", approval::RATIO_MAX),
        measured: approval::told(&ratio),
        peer: "-".into(),
        ratio: "-".into(),
        verdict: word(approval::is_kept(&ratio)),
    })
}

fn rest(standard: &Standard) -> Vec<Row> {
    let (idle, plain) = (
        &standard.idle,
        |what: &str, budget: String, measured, kept| Row {
            what: what.into(),
            budget,
            measured,
            peer: "-".into(),
            ratio: "-".into(),
            verdict: word(kept),
        },
    );
    vec![
        plain(
            "resident at rest",
            format!("≤ {} MiB", budget::RESIDENT_KIB_MAX / 1024),
            format!("{:.1} MiB", idle.resident_kib as f64 / 1024.0),
            budget::memory_kept(standard),
        ),
        plain(
            "spawn to the answer to initialize",
            format!("≤ {:.0} ms", budget::START_US_MAX / 1e3),
            format!("{} ms", crate::overhead::whole(&idle.start_us.scaled(1e-3))),
            budget::start_kept(standard),
        ),
    ]
}

fn over_http(found: web::Verdict) -> Row {
    let (peer, ratio) = match found.peer {
        Some((peer, ratio)) => (peer, format!("{ratio:.2}")),
        None if found.wants_peer => ("not installed: scripts/setup-peers".into(), "-".into()),
        None => ("-".into(), "-".into()),
    };
    Row {
        what: found.what,
        budget: found.budget,
        measured: found.measured,
        peer,
        ratio,
        verdict: word(found.kept),
    }
}

/// The generator's own cost.
fn own(standard: &Standard) -> Vec<Row> {
    let own = &standard.own_cost;
    let plain = |what: &str, budget: &str, measured: String, kept| Row {
        what: what.into(),
        budget: budget.into(),
        measured,
        peer: "-".into(),
        ratio: "-".into(),
        verdict: word(kept),
    };
    vec![
        plain(
            "the lab itself, stdio driver",
            "≤ 3 µs of processor a call",
            format!(
                "{:.2} µs, {:.2} of it bare write and read",
                own.stdio_us, own.stdio_floor_us
            ),
            own.stdio_us <= OWN_STDIO_US_MAX,
        ),
        plain(
            "the lab itself, HTTP driver",
            "≥ 50,000/s on one core",
            format!("{:.0}/s", own.http_per_second),
            own.http_per_second >= OWN_HTTP_PER_SECOND_MIN,
        ),
    ]
}
