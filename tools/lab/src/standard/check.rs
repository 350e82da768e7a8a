//! The budgets of the design, row by row: measured, peer, ratio, and one of three words.

use super::budget::{self, word};
use super::one_url::OneUrl;
use super::stdio_rate::StdioRate;
use super::{
    ComparisonGroup, StandardResults, approval, causes, features, journal_rate, ratio, web,
};
use crate::overhead::VariantComparison;
use crate::stats::Interval;
use std::io::{self, Write};

/// Most that the generator may cost per call over stdio, in microseconds.
const OWN_STDIO_US_MAX: f64 = 3.0;
/// Requests that it must be able to send over HTTP on one core, per second.
const OWN_HTTP_PER_SECOND_MIN: f64 = 50_000.0;
/// The policy stage at 4 and at 1,000 rules, in microseconds.
const POLICY_US_MAX: [(&str, f64); 2] = [("4 rules", 2.0), ("1000 rules", 5.0)];
/// The journal stage: one append.
const JOURNAL_US_MAX: f64 = 2.0;
/// The word for a budget that is missed.
const SHORT: &str = "SHORT";

/// One row of the table.
struct CheckRow {
    what: String,
    budget: String,
    measured: String,
    peer: String,
    ratio: String,
    verdict: &'static str,
    /// Stages behind the figure, or another cause.
    cause: String,
}

/// Returns the figures of every budget, for the pages of later runs.
pub(super) fn figures(standard: &StandardResults) -> Vec<(String, String)> {
    let rows = rows(standard).into_iter();
    rows.filter(|row| row.measured != "-")
        .map(|row| match row.peer.as_str() {
            "-" => (row.what, row.measured),
            peer => (row.what, format!("{}; {peer}", row.measured)),
        })
        .collect()
}

/// Returns the rows that miss their budget, each with its cause.
pub(super) fn short(standard: &StandardResults) -> Vec<(String, String)> {
    let rows = rows(standard).into_iter();
    let short = rows.filter(|row| row.verdict == SHORT);
    causes::group_rows(short.map(|row| (row.what, row.cause)).collect())
}

/// Returns every budget in force, then calls a second over stdio, which has none.
fn rows(standard: &StandardResults) -> Vec<CheckRow> {
    let mut rows = hop(standard);
    rows.extend(web::rows(&standard.web).into_iter().map(over_http));
    rows.extend(stages(standard));
    rows.push(journal(standard));
    rows.extend(one_url(standard));
    rows.extend(waiting(standard));
    rows.extend(features::of(standard).into_iter().map(feature));
    rows.extend(rest(standard));
    rows.extend(own(standard));
    rows.extend(stdio_rates(standard));
    rows.extend(missing(standard));
    rows
}

/// Tables that hold budgets and could not be measured: nothing was shown.
fn missing(standard: &StandardResults) -> impl Iterator<Item = CheckRow> {
    let ours = standard.absent.iter().filter(|absent| absent.ours);
    ours.map(|absent| CheckRow {
        what: absent.title.clone(),
        budget: "-".into(),
        measured: "not measured".into(),
        peer: "-".into(),
        ratio: "-".into(),
        verdict: SHORT,
        cause: absent.why.clone(),
    })
}

/// Ours with so many calls under way, beside the relay and each peer.
fn stdio_rates(standard: &StandardResults) -> Vec<CheckRow> {
    let rates = &standard.stdio_rates;
    let ours = rates.iter().filter(|rate| rate.arm.starts_with("durward"));
    let row = |ours: &StdioRate| {
        let theirs = rates.iter().filter(move |other| {
            other.width == ours.width && other.arm != ours.arm && other.arm != "direct"
        });
        let said = |other: &StdioRate| {
            let rate = web::thousands(&other.per_second);
            format!("{} {rate}/s", other.arm)
        };
        let ratio = |other: &StdioRate| {
            format!(
                "{:.2}",
                ours.per_second.point / other.per_second.point.max(1e-9)
            )
        };
        CheckRow {
            what: format!("calls a second over stdio, {} under way", ours.width),
            budget: "-".into(),
            measured: format!("{}/s", web::thousands(&ours.per_second)),
            peer: join_parts(theirs.clone().map(said)),
            ratio: join_parts(theirs.map(ratio)),
            verdict: "",
            cause: String::new(),
        }
    };
    ours.map(row).collect()
}

fn join_parts(parts: impl Iterator<Item = String>) -> String {
    match parts.collect::<Vec<_>>() {
        none if none.is_empty() => "-".into(),
        some => some.join(", "),
    }
}

/// Writes the table; returns whether every row keeps its budget.
pub(super) fn write(standard: &StandardResults, out: &mut dyn Write) -> io::Result<bool> {
    let rows = rows(standard);
    let kept = rows.iter().all(|row| row.verdict != SHORT);
    writeln!(
        out,
        "| row | budget | measured | peer, same run | ratio | |\n|---|---|---|---|---|---|"
    )?;
    for row in &rows {
        writeln!(
            out,
            "| {} | {} | {} | {} | {} | {} |",
            row.what, row.budget, row.measured, row.peer, row.ratio, row.verdict
        )?;
    }
    for (what, cause) in short(standard) {
        writeln!(out, "\nSHORT {what}: {cause}")?;
    }
    if !kept {
        writeln!(out, "\nStages: {}", causes::legend())?;
    }
    writeln!(
        out,
        "\nThe budgets of the solver, of simulations, of SSH and of models are measured by scripts/bench_pbpk.py, \
bench_simulation.py, bench_ssh.py and bench_gateways.py; `make bench` runs them."
    )?;
    Ok(kept)
}

/// Returns the hop over stdio with 50 rules, beside the bare relay and FastMCP's proxy.
fn hop(standard: &StandardResults) -> Vec<CheckRow> {
    let found = standard.groups.iter().find_map(|group| {
        let comparisons = &group.analysis.comparisons;
        let guarded = comparisons.iter().find(|c| c.arm == "durward, 50 rules")?;
        let relay = comparisons.iter().find(|c| c.arm == "bare relay")?;
        let cause = causes::in_analysis(&group.analysis, &guarded.arm).unwrap_or_default();
        group.budgeted.then_some((guarded, relay, cause))
    });
    let Some((guarded, relay, cause)) = found else {
        return Vec::new();
    };
    let mut rows = vec![row(
        "stdio→stdio, 50 rules, p50",
        budget::ADDED_P50_US_MAX,
        &guarded.overhead_us,
        Some(("bare relay", &relay.overhead_us)),
        &cause,
    )];
    if let (Some(ours), peers) = (&guarded.added_p99_us, &relay.added_p99_us) {
        let peer = peers.as_ref().map(|theirs| ("bare relay", theirs));
        rows.push(row(
            "stdio→stdio, 50 rules, p99",
            budget::ADDED_P99_US_MAX,
            ours,
            peer,
            &cause,
        ));
    }
    for group in &standard.groups {
        rows.extend(beside_fastmcp(group));
    }
    rows
}

fn beside_fastmcp(group: &ComparisonGroup) -> Vec<CheckRow> {
    let comparisons = &group.analysis.comparisons;
    let Some(ours) = comparisons.iter().find(|c| c.arm.starts_with("durward")) else {
        return Vec::new();
    };
    let cause = causes::in_analysis(&group.analysis, &ours.arm).unwrap_or_default();
    let theirs = comparisons.iter().filter(|c| c.arm.starts_with("FastMCP"));
    let of = |peer: &VariantComparison| {
        let named = Some((peer.arm.as_str(), &peer.overhead_us));
        row(
            &format!("stdio→stdio, p50, beside {}", peer.arm),
            budget::ADDED_P50_US_MAX,
            &ours.overhead_us,
            named,
            &cause,
        )
    };
    theirs.map(of).collect()
}

fn row(
    what: &str,
    most_us: f64,
    ours: &Interval,
    peer: Option<(&str, &Interval)>,
    cause: &str,
) -> CheckRow {
    CheckRow {
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
        cause: cause.to_owned(),
    }
}

/// Policy and journal by the variants' own stages.
fn stages(standard: &StandardResults) -> Vec<CheckRow> {
    let arms = || {
        standard
            .groups
            .iter()
            .flat_map(|group| &group.analysis.arms)
    };
    let stage = |arm: &str, name: &str| {
        let arm = arms().find(|a| a.arm.name == format!("durward, {arm}") && a.stages.is_some())?;
        let mut stages = arm.stages.as_ref()?.stages.iter();
        Some((stages.find(|s| s.name == name)?.us, causes::of_arm(arm)))
    };
    let policy = POLICY_US_MAX.iter().filter_map(|(rules, most)| {
        let name = format!("policy stage, {rules}, mean");
        let (us, cause) = stage(rules, "policy_us")?;
        Some(row(&name, *most, &us, None, &cause))
    });
    let journal = stage("50 rules", "journal_us");
    policy
        .chain(journal.map(|(us, cause)| {
            row(
                "journal stage, one append, mean",
                JOURNAL_US_MAX,
                &us,
                None,
                &cause,
            )
        }))
        .collect()
}

/// Returns the journal under many writers, beside the disk where each record waits for it.
fn journal(standard: &StandardResults) -> CheckRow {
    let rate = &standard.journal_rate;
    CheckRow {
        what: format!("journal, {} writers", rate.writers),
        budget: format!("≥ {:.0}/s", journal_rate::PER_SECOND_MIN),
        measured: format!("{}/s", rate.format_rate()),
        peer: "-".into(),
        ratio: "-".into(),
        verdict: word(rate.is_kept()),
        cause: format!(
            "{:.1} µs a record with {} writers, {:.1} with --sync every (crates/gate/src/journal over crates/state/src/log)",
            1e6 / rate.per_second.point.max(1e-9),
            rate.writers,
            1e6 / rate.every_per_second.point.max(1e-9)
        ),
    }
}

/// Lists and calls in front of many servers.
fn one_url(standard: &StandardResults) -> Vec<CheckRow> {
    let held = standard.one_url.iter().flat_map(OneUrl::rows);
    held.map(|held| CheckRow {
        what: held.what,
        budget: held.budget,
        measured: held.measured,
        peer: "-".into(),
        ratio: "-".into(),
        verdict: word(held.is_kept),
        cause: held.cause,
    })
    .collect()
}

/// Allowed calls while others wait for a person.
fn waiting(standard: &StandardResults) -> Option<CheckRow> {
    let ratio = approval::of(standard)?;
    Some(CheckRow {
        what: "p50 while 50 calls wait for a person, over p50 while none does".into(),
        budget: format!("≤ {:.2}", approval::RATIO_MAX),
        measured: ratio::format_ratio(&ratio),
        peer: "-".into(),
        ratio: "-".into(),
        verdict: word(approval::is_kept(&ratio)),
        cause: approval::cause(standard).unwrap_or_default(),
    })
}

/// Returns a part that is off by default, beside the same calls without it.
fn feature(found: features::MedianRatio) -> CheckRow {
    CheckRow {
        what: format!("p50 of echo, {}, over the plain one's", found.arm),
        budget: found.budget(),
        measured: ratio::format_ratio(&found.ratio),
        peer: "-".into(),
        ratio: "-".into(),
        verdict: found.word(),
        cause: "no call waits for a collector (crates/durward/src/otel)".into(),
    }
}

fn rest(standard: &StandardResults) -> Vec<CheckRow> {
    let (idle, plain) = (
        &standard.idle,
        |what: &str, budget: String, measured, kept, cause| CheckRow {
            what: what.into(),
            budget,
            measured,
            peer: "-".into(),
            ratio: "-".into(),
            verdict: word(kept),
            cause,
        },
    );
    vec![
        plain(
            "resident at rest",
            format!("≤ {} MiB", budget::RESIDENT_KIB_MAX / 1024),
            format!("{:.1} MiB", idle.resident_kib as f64 / 1024.0),
            budget::memory_kept(standard),
            format!(
                "durward run with 50 rules after 20 calls; its watcher holds {:.1} MiB beside it",
                idle.helpers_kib as f64 / 1024.0
            ),
        ),
        plain(
            "spawn to the answer to initialize",
            format!("≤ {:.0} ms", budget::START_US_MAX / 1e3),
            format!("{} ms", crate::overhead::whole(&idle.start_us.scaled(1e-3))),
            budget::start_kept(standard),
            format!(
                "{} ms of it the server alone; the rest is durward's start",
                crate::overhead::whole(&idle.start_direct_us.scaled(1e-3))
            ),
        ),
    ]
}

fn over_http(found: web::BudgetVerdict) -> CheckRow {
    let (peer, ratio) = match found.peer {
        Some((peer, ratio)) => (peer, format!("{ratio:.2}")),
        None if found.wants_peer => ("not installed: scripts/setup-peers".into(), "-".into()),
        None => ("-".into(), "-".into()),
    };
    CheckRow {
        what: found.what,
        budget: found.budget,
        measured: found.measured,
        peer,
        ratio,
        verdict: word(found.kept),
        cause: found.cause,
    }
}

/// Returns the generator's own cost.
fn own(standard: &StandardResults) -> Vec<CheckRow> {
    let own = &standard.own_cost;
    let plain = |what: &str, budget: &str, measured: String, kept| CheckRow {
        what: what.into(),
        budget: budget.into(),
        measured,
        peer: "-".into(),
        ratio: "-".into(),
        verdict: word(kept),
        cause: format!(
            "{:.2} µs over stdio of which a bare write and read are {:.2}, {:.2} over HTTP (tools/lab/src/driver)",
            own.stdio_us, own.stdio_floor_us, own.http_us
        ),
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::standard::idle::IdleFigures;
    use crate::standard::journal_rate::JournalRate;
    use crate::standard::own_cost::OwnCost;
    use crate::standard::peers::MissingRow;
    use crate::standard::web::WebResults;

    /// Returns a run without a table; it keeps its other budgets but for a journal of so many records a second.
    fn bare(journal_per_second: f64, absent: Vec<MissingRow>) -> StandardResults {
        let of = |value: f64| Interval::over_launches(&[value, value * 1.001], 0.95);
        let rate = |arm: &str, width, per_second| StdioRate {
            arm: arm.into(),
            width,
            per_second: of(per_second),
            p50_us: 1.0,
            p99_us: None,
            answered: 1,
            decided: None,
        };
        StandardResults {
            format: "",
            quick: true,
            groups: Vec::new(),
            idle: IdleFigures {
                start_us: of(1_000.0),
                start_direct_us: of(500.0),
                resident_kib: 1,
                helpers_kib: 1,
                launches: 2,
            },
            own_cost: OwnCost {
                stdio_us: 1.0,
                stdio_floor_us: 0.9,
                http_us: 2.0,
                http_per_second: 1e6,
            },
            web: WebResults::default(),
            stdio_rates: vec![
                rate("direct", 8, 90_000.0),
                rate("bare relay", 8, 60_000.0),
                rate("durward, 50 rules", 8, 30_000.0),
                rate("FastMCP", 8, 300.0),
            ],
            one_url: None,
            journal_rate: JournalRate {
                writers: 16,
                records: 1,
                per_second: of(journal_per_second),
                every_per_second: of(1_000.0),
                disk_per_second: 1_000.0,
            },
            absent,
            journal: String::new(),
            profile: None,
            runs: Vec::new(),
        }
    }

    fn write_page(standard: &StandardResults) -> (bool, String) {
        let mut out = Vec::new();
        let kept = write(standard, &mut out).unwrap();
        (kept, String::from_utf8(out).unwrap())
    }

    #[test]
    fn a_short_row_names_where_its_time_goes() {
        let (kept, text) = write_page(&bare(100_000.0, Vec::new()));
        assert!(!kept);
        assert!(
            text.contains("SHORT journal, 16 writers: 10.0 µs a record"),
            "{text}"
        );
        assert!(text.contains("crates/state/src/log"), "{text}");
        let (kept, text) = write_page(&bare(1e6, Vec::new()));
        assert!(kept && !text.contains("SHORT"), "{text}");
    }

    #[test]
    fn what_was_not_measured_keeps_no_budget_but_a_missing_peer_misses_none() {
        let absent = |ours| {
            vec![MissingRow {
                title: "HTTP→stdio".into(),
                why: "it died".into(),
                ours,
            }]
        };
        let (kept, text) = write_page(&bare(1e6, absent(true)));
        assert!(!kept);
        assert!(text.contains("| HTTP→stdio | - | not measured |"), "{text}");
        assert!(text.contains("SHORT HTTP→stdio: it died"), "{text}");
        assert!(write_page(&bare(1e6, absent(false))).0);
    }

    #[test]
    fn calls_a_second_stand_beside_the_relay_and_each_peer() {
        let (_, text) = write_page(&bare(1e6, Vec::new()));
        let row = text
            .lines()
            .find(|line| line.contains("8 under way"))
            .unwrap();
        assert!(
            row.contains("bare relay 60030") && row.contains("FastMCP 300"),
            "{row}"
        );
        assert!(
            row.contains("| 0.50, 100.00 |") && !row.contains("direct"),
            "{row}"
        );
    }
}
