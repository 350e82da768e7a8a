//! Headline figures of earlier runs: each page keeps its own, so that the next one can show them beside its own.

use super::{StandardResults, check};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt::{self, Write as _};
use std::path::Path;

/// How many earlier runs a page keeps.
const RUNS_MAX: usize = 4;
/// The largest page that is read, in bytes.
const PAGE_BYTES_MAX: u64 = 4 * 1024 * 1024;
/// Marks around the figures in a page. The end mark cannot be within: JSON has no use for it.
const BEGIN: &str = "<!-- headline figures of this run and those before it: ";
const END: &str = " -->";

/// The headline figures of one run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct HeadlineFigures {
    /// Its number: 1 for the first with a known page.
    pub(super) run: u32,
    /// How fast the machine was: a direct call of echo at the median, in microseconds, and the loop that only
    /// writes and reads.
    pub(super) direct_p50_us: Option<f64>,
    pub(super) loop_us: Option<f64>,
    /// Figure of each budget, with its interval, as text.
    pub(super) figures: Vec<(String, String)>,
}

/// Returns the runs that a page knows, its own first; none without a page, and an error if it cannot be read.
pub(super) fn of_page(page: &Path) -> Result<Vec<HeadlineFigures>, String> {
    let size = match std::fs::metadata(page) {
        Ok(known) => known.len(),
        Err(_) => return Ok(Vec::new()),
    };
    if size > PAGE_BYTES_MAX {
        return Err("it is longer than 4 MiB".into());
    }
    let text = std::fs::read_to_string(page).map_err(|error| error.to_string())?;
    parse(&text)
}

fn parse(page: &str) -> Result<Vec<HeadlineFigures>, String> {
    let Some((_, rest)) = page.split_once(BEGIN) else {
        return Ok(Vec::new());
    };
    let (json, _) = rest.split_once(END).ok_or("its figures have no end")?;
    serde_json::from_str(json).map_err(|error| format!("its figures are no figures: {error}"))
}

/// This run's figures before those of the page that it replaces.
pub(super) fn with(
    standard: &StandardResults,
    mut before: Vec<HeadlineFigures>,
) -> Vec<HeadlineFigures> {
    let own = &standard.own_cost;
    let first = standard.groups.first();
    let direct = first.and_then(|group| group.analysis.arms.first());
    let headline = HeadlineFigures {
        run: before.first().map_or(1, |last| last.run.saturating_add(1)),
        direct_p50_us: direct.map(|arm| arm.p50_us.point),
        loop_us: Some(own.stdio_floor_us),
        figures: check::figures(standard),
    };
    before.insert(0, headline);
    before.truncate(RUNS_MAX + 1);
    before
}

/// The table of the earlier runs, and the figures for the next page.
pub(super) fn write(runs: &[HeadlineFigures], page: &mut String) -> fmt::Result {
    if let [this, earlier @ ..] = runs
        && !earlier.is_empty()
    {
        table(this, earlier, page)?;
    }
    let json = serde_json::to_string(runs).map_err(|_| fmt::Error)?;
    // The end of the comment within a name would end it.
    writeln!(page, "\n{BEGIN}{}{END}", json.replace("-->", "--\\u003e"))
}

fn table(this: &HeadlineFigures, earlier: &[HeadlineFigures], page: &mut String) -> fmt::Result {
    writeln!(page, "\n## Earlier runs\n")?;
    writeln!(
        page,
        "What the pages before this one said, the latest first. The first two rows tell how fast the machine was then: whoever \
compares takes both arms from one run.\n"
    )?;
    let all = || std::iter::once(this).chain(earlier);
    let heads: Vec<String> = all()
        .map(|run| match run.run == this.run {
            true => format!("this run ({})", run.run),
            false => format!("run {}", run.run),
        })
        .collect();
    writeln!(page, "| row | {} |", heads.join(" | "))?;
    writeln!(page, "|---|{}", "---|".repeat(heads.len()))?;
    let us = |of: fn(&HeadlineFigures) -> Option<f64>| -> Vec<String> {
        let told = |run| of(run).map_or("-".into(), |us| format!("{us:.1} µs"));
        all().map(told).collect()
    };
    line(
        "direct echo over stdio, p50",
        &us(|run| run.direct_p50_us),
        page,
    )?;
    line(
        "a loop that only writes and reads",
        &us(|run| run.loop_us),
        page,
    )?;
    let known: Vec<BTreeMap<&str, &str>> = all()
        .map(|run| {
            run.figures
                .iter()
                .map(|(w, m)| (w.as_str(), m.as_str()))
                .collect()
        })
        .collect();
    let mut names: Vec<&str> = Vec::new();
    for (name, _) in all().flat_map(|run| &run.figures) {
        if !names.contains(&name.as_str()) {
            names.push(name);
        }
    }
    for name in names {
        let cells: Vec<String> = known
            .iter()
            .map(|run| run.get(name).map_or("-".into(), |said| (*said).to_owned()))
            .collect();
        line(name, &cells, page)?;
    }
    Ok(())
}

fn line(name: &str, cells: &[String], page: &mut String) -> fmt::Result {
    let plain = |text: &str| text.replace('|', "\\|").replace(['\n', '\r'], " ");
    let cells: Vec<String> = cells.iter().map(|cell| plain(cell)).collect();
    writeln!(page, "| {} | {} |", plain(name), cells.join(" | "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headline(run: u32, what: &str, said: &str) -> HeadlineFigures {
        HeadlineFigures {
            run,
            direct_p50_us: Some(3.8),
            loop_us: None,
            figures: vec![(what.into(), said.into())],
        }
    }

    #[test]
    fn a_page_hands_its_figures_to_the_next() {
        let runs = vec![
            headline(2, "p50", "28.0 [27, 29] µs; a-->b | c"),
            headline(1, "p99", "73.9 µs"),
        ];
        let mut page = "# Benchmarks\n".to_owned();
        write(&runs, &mut page).unwrap();
        assert_eq!(parse(&page), Ok(runs));
        assert!(page.contains("| row | this run (2) | run 1 |"), "{page}");
        assert!(page.contains("| direct echo over stdio, p50 | 3.8 µs | 3.8 µs |"));
        assert!(page.contains("| p99 | - | 73.9 µs |"), "{page}");
    }

    #[test]
    fn the_first_page_has_nobody_to_stand_beside() {
        let mut page = String::new();
        write(&[headline(1, "p50", "1 µs")], &mut page).unwrap();
        assert!(!page.contains("Earlier runs"));
        assert_eq!(parse("# a page by hand"), Ok(Vec::new()));
        assert!(parse(&format!("{BEGIN}[")).unwrap_err().contains("no end"));
        assert!(
            parse(&format!("{BEGIN}[{END}"))
                .unwrap_err()
                .contains("no figures")
        );
    }
}
