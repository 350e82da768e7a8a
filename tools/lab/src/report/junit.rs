//! The page as JUnit XML: one case per verdict, or per thing that was measured where nothing was judged.

use super::page::{Case, Page};
use super::svg::escape;
use crate::judge::{Judged, Judgement};
use crate::stats::gate::Verdict;
use std::fmt::{self, Write as _};

/// The page.
pub(super) fn render(page: &Page) -> String {
    let mut out = String::new();
    // Writing to a string does not fail.
    let _ = match &page.judged {
        Some(judged) => verdicts(page, judged, &mut out),
        None => cases(page, &mut out),
    };
    out
}

fn verdicts(page: &Page, judged: &Judgement, out: &mut String) -> fmt::Result {
    let is_failure = |one: &&Judged| one.verdict == Verdict::Regressed && !one.warn;
    let is_skipped = |one: &&Judged| {
        one.verdict == Verdict::Inconclusive || (one.verdict == Verdict::Regressed && one.warn)
    };
    let failures = judged.rules.iter().filter(is_failure).count();
    let skipped = judged.rules.iter().filter(is_skipped).count();
    head(page, judged.rules.len(), failures, skipped, out)?;
    for one in &judged.rules {
        write!(
            out,
            "    <testcase classname=\"{}\" name=\"{}\" time=\"0\">",
            escape(&one.arm),
            escape(&one.rule)
        )?;
        let said = escape(&one.observed);
        match (one.verdict, one.warn) {
            (Verdict::Ok, _) => write!(out, "<system-out>{said}</system-out>")?,
            (Verdict::Regressed, false) => {
                write!(out, "<failure message=\"{said}\" type=\"regression\"/>")?;
            }
            (Verdict::Regressed, true) => {
                write!(out, "<skipped message=\"warning only: {said}\"/>")?;
            }
            (Verdict::Inconclusive, _) => {
                write!(out, "<skipped message=\"no verdict: {said}\"/>")?;
            }
        }
        writeln!(out, "</testcase>")?;
    }
    tail(out)
}

fn cases(page: &Page, out: &mut String) -> fmt::Result {
    head(page, page.cases.len(), 0, 0, out)?;
    for Case {
        name,
        seconds,
        said,
    } in &page.cases
    {
        writeln!(
            out,
            "    <testcase classname=\"{}\" name=\"{}\" time=\"{seconds:.6}\"><system-out>{}</system-out></testcase>",
            escape(&page.title),
            escape(name),
            escape(said)
        )?;
    }
    tail(out)
}

fn head(
    page: &Page,
    tests: usize,
    failures: usize,
    skipped: usize,
    out: &mut String,
) -> fmt::Result {
    let counts =
        format!("tests=\"{tests}\" failures=\"{failures}\" errors=\"0\" skipped=\"{skipped}\"");
    writeln!(
        out,
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites {counts}>\n  <testsuite name=\"{}\" {counts}>",
        escape(&page.title)
    )
}

fn tail(out: &mut String) -> fmt::Result {
    out.write_str("  </testsuite>\n</testsuites>\n")
}
