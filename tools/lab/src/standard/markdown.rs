//! The standard run as a page.

use super::budget::{self, verdict, word};
use super::{
    ComparisonGroup, StandardResults, approval, causes, check, earlier, features, peers,
    stdio_rate, web,
};
use crate::overhead::{ArmFigures, VariantComparison, loads, point, whole};
use crate::stats::Interval;
use std::fmt::{self, Write as _};

/// Returns the page.
pub(super) fn render(standard: &StandardResults) -> String {
    let mut page = String::new();
    // Writing to a string does not fail.
    let _ = write(standard, &mut page);
    page
}

fn write(standard: &StandardResults, page: &mut String) -> fmt::Result {
    writeln!(page, "# Benchmarks\n")?;
    writeln!(
        page,
        "Written by `make bench` (`durward-lab standard --write BENCHMARKS.md`).\n"
    )?;
    if standard.quick {
        writeln!(
            page,
            "**Quick run: three short launches, indicative only.**\n"
        )?;
    }
    method(standard, page)?;
    for group in &standard.groups {
        table(group, page)?;
    }
    stdio_rate::write(&standard.stdio_rates, page)?;
    web::write(&standard.web, page)?;
    if let Some(one_url) = &standard.one_url {
        one_url.write(page)?;
    }
    stages(standard, page)?;
    standard.journal_rate.write(page)?;
    idle(standard, page)?;
    if let Some(profile) = &standard.profile {
        writeln!(page, "\nProfile of the variant with 50 rules: {profile}")?;
    }
    short(standard, page)?;
    earlier::write(&standard.runs, page)
}

/// Writes each missed budget with its cause.
fn short(standard: &StandardResults, page: &mut String) -> fmt::Result {
    let rows = check::short(standard);
    if rows.is_empty() {
        return Ok(());
    }
    writeln!(page, "\n## What is short\n")?;
    writeln!(
        page,
        "Stages of the variant's own journal, the largest first. {}.\n",
        causes::legend()
    )?;
    for (what, cause) in rows {
        writeln!(page, "- **{what}**: {cause}.")?;
    }
    Ok(())
}

fn method(standard: &StandardResults, page: &mut String) -> fmt::Result {
    let Some(first) = standard.groups.first().map(|group| &group.analysis) else {
        return Ok(());
    };
    writeln!(page, "## What and how\n")?;
    writeln!(
        page,
        "- **What**: the hop over stdio. A raw client speaks MCP {} over pipes with `durward-lab mock echo` \
and `durward-lab mock files`: directly, behind `durward-lab mock relay` (a process that only moves bytes), and behind \
`durward run` with its journal on (`--sync interval`). `read_file` reads a file of five lines below `/tmp`. The rule sets \
are those of the access proxy's paper: allow-all, its 4 rules, and 50 and 1,000 rules of which the first allows the call \
and the others do not match. Limits are on, and raised beyond what is asked for.",
        first.protocol
    )?;
    writeln!(
        page,
        "- **How**: {} launches; {}. {} calls per variant and launch after {} to warm up, turns of {}, seed {}, {}. \
The client blocks on its pipes; the watch runs from before the write to after the read of the answer; every id and \
every answer is checked, and an arm whose answers differ from the direct ones stops the run.",
        first.launches,
        first.design,
        first.runs,
        first.warmup,
        first.turn,
        first.seed,
        first
            .pinned_core
            .map_or("nothing pinned".into(), |core| format!(
                "client and all processes on core {core}"
            )),
    )?;
    writeln!(page, "- **Machine**: {}.", first.host.describe())?;
    let load: Vec<String> = standard
        .groups
        .iter()
        .map(|group| loads(&group.analysis))
        .collect();
    writeln!(
        page,
        "- **Load average** (1 minute) over the tables below: {}.",
        load.join("; ")
    )?;
    writeln!(
        page,
        "- **Version**: {}. {}.",
        first.version,
        standard.journal_line()
    )?;
    writeln!(
        page,
        "- **Reading**: microseconds; [95 % interval over launches]. Added p50 is the mean over launches of the \
median of paired differences; percentiles of an arm are the mean of its launches' percentiles. A budget is kept \
where the upper end of the interval keeps it: added p50 ≤ {} µs, added p99 ≤ {} µs.",
        budget::ADDED_P50_US_MAX,
        budget::ADDED_P99_US_MAX
    )?;
    peers::write(&standard.absent, page)?;
    warnings(standard, page)
}

/// Every warning once; those about variants with the table they belong to.
fn warnings(standard: &StandardResults, page: &mut String) -> fmt::Result {
    let mut warnings: Vec<String> = Vec::new();
    for group in &standard.groups {
        for warning in &group.analysis.warnings {
            // The page has the load before each table.
            let busy = "the machine was busy";
            if warning.starts_with(busy) && warnings.iter().any(|known| known.starts_with(busy)) {
                continue;
            }
            let of_arms = warning.starts_with("unstable");
            let title = if of_arms {
                format!("{}: ", group.title)
            } else {
                String::new()
            };
            let line = format!("{title}{warning}");
            if !warnings.contains(&line) {
                warnings.push(line);
            }
        }
    }
    for warning in warnings {
        writeln!(page, "- **Warning**: {warning}.")?;
    }
    Ok(())
}

fn table(group: &ComparisonGroup, page: &mut String) -> fmt::Result {
    writeln!(page, "\n## {}\n", group.title)?;
    writeln!(
        page,
        "| variant | p50 | p95 | p99 | max | added p50 | added p99 | budget |"
    )?;
    writeln!(page, "|---|--:|--:|--:|--:|--:|--:|---|")?;
    for figures in &group.analysis.arms {
        let name = &figures.arm.name;
        let found = group.analysis.comparisons.iter().find(|c| c.arm == *name);
        row(group, figures, found, page)?;
    }
    approval::below(group, page)?;
    features::below(group, page)
}

fn row(
    group: &ComparisonGroup,
    figures: &ArmFigures,
    found: Option<&VariantComparison>,
    page: &mut String,
) -> fmt::Result {
    let added = found.map_or("-".into(), |c| whole(&c.overhead_us));
    let added_p99 = found
        .and_then(|c| c.added_p99_us.as_ref())
        .map_or("-".into(), whole);
    let kept = found.and_then(|c| verdict(group, c)).map_or("", word);
    writeln!(
        page,
        "| {} | {} | {} | {} | {:.0} | {added} | {added_p99} | {kept} |",
        figures.arm.name,
        point(Some(&figures.p50_us)),
        point(figures.p95_us.as_ref()),
        point(figures.p99_us.as_ref()),
        figures.max_us,
    )
}

/// Writes the stages of each guarded variant, by its own journal.
fn stages(standard: &StandardResults, page: &mut String) -> fmt::Result {
    writeln!(page, "\n## Where the time goes\n")?;
    writeln!(
        page,
        "Mean of a call, µs: outside (the watch) = the stages of the variant's own journal + unexplained (two pipes and wake-ups, \
and what the arm does outside its stages). Of a refused call the journal has the time of the policy; lists are no calls, and \
leave no record.\n"
    )?;
    let names = crate::journal::StageTimes::NAMES.map(|name| name.trim_end_matches("_us"));
    writeln!(
        page,
        "| table | variant | outside | {} | unexplained |",
        names.join(" | ")
    )?;
    writeln!(page, "|---|---|--:|{}--:|", "--:|".repeat(names.len()))?;
    let titled = standard
        .groups
        .iter()
        .map(|group| (group.title, &group.analysis));
    let web = standard.web.groups.iter();
    let all = titled.chain(web.map(|group| (group.hop.title(), &group.analysis)));
    for (title, analysis) in all {
        for arm in &analysis.arms {
            let Some(found) = &arm.stages else { continue };
            let means: Vec<String> = found
                .stages
                .iter()
                .map(|stage| format!("{:.1}", stage.us.point))
                .collect();
            writeln!(
                page,
                "| {} | {} | {:.1} | {} | {} |",
                title,
                arm.arm.name,
                found.outside_us.point,
                means.join(" | "),
                whole(&found.unexplained_us)
            )?;
        }
    }
    Ok(())
}

fn idle(standard: &StandardResults, page: &mut String) -> fmt::Result {
    let idle = &standard.idle;
    let mebibytes = |kib: u64| kib as f64 / 1024.0;
    writeln!(page, "\n## Start and rest\n")?;
    writeln!(
        page,
        "`durward run` with 50 rules before `mock files`, {} launches, not pinned.\n",
        idle.launches
    )?;
    writeln!(page, "| what | measured | budget | |")?;
    writeln!(page, "|---|--:|--:|---|")?;
    writeln!(
        page,
        "| resident at rest, `durward run` | {:.1} MiB | ≤ {} MiB | {} |",
        mebibytes(idle.resident_kib),
        budget::RESIDENT_KIB_MAX / 1024,
        word(budget::memory_kept(standard))
    )?;
    writeln!(
        page,
        "| its watcher (pages shared with it counted again) | {:.1} MiB | - | |",
        mebibytes(idle.helpers_kib)
    )?;
    writeln!(
        page,
        "| spawn to the answer to `initialize` | {} ms | ≤ {:.0} ms | {} |",
        milliseconds(&idle.start_us),
        budget::START_US_MAX / 1_000.0,
        word(budget::start_kept(standard))
    )?;
    writeln!(
        page,
        "| the same, server alone | {} ms | - | |",
        milliseconds(&idle.start_direct_us)
    )?;
    writeln!(
        page,
        "\nThe lab's own cost, on one core with the server it calls: {:.2} µs of its thread's processor time a call over stdio (≤ 3), all \
of it, {:.2} of which a loop pays that only writes and reads; over HTTP {:.2} µs, and {:.0} calls a second made (≥ 50,000), \
the server's share of the core included.",
        standard.own_cost.stdio_us,
        standard.own_cost.stdio_floor_us,
        standard.own_cost.http_us,
        standard.own_cost.http_per_second
    )
}

fn milliseconds(interval: &Interval) -> String {
    whole(&interval.scaled(1e-3))
}

impl StandardResults {
    fn journal_line(&self) -> String {
        format!(
            "The journal of the variant with 50 rules verifies: {}",
            self.journal
        )
    }
}
