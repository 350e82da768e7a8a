//! The page as JUnit XML: one case per verdict, or per measured case without verdicts.

use super::page::{MeasuredCase, ReportPage};
use super::svg::escape;
use crate::judge::{Judgement, RuleVerdict};
use crate::stats::gate::ChangeVerdict;
use std::fmt::{self, Write as _};

/// Returns the page.
pub(super) fn render(page: &ReportPage) -> String {
    let mut out = String::new();
    // Writing to a string does not fail.
    let _ = match &page.judged {
        Some(judged) => verdicts(page, judged, &mut out),
        None => cases(page, &mut out),
    };
    out
}

fn verdicts(page: &ReportPage, judged: &Judgement, out: &mut String) -> fmt::Result {
    let is_failure = |one: &&RuleVerdict| one.verdict == ChangeVerdict::Regressed && !one.warn;
    let is_skipped = |one: &&RuleVerdict| {
        one.verdict == ChangeVerdict::Inconclusive
            || (one.verdict == ChangeVerdict::Regressed && one.warn)
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
            (ChangeVerdict::Ok, _) => write!(out, "<system-out>{said}</system-out>")?,
            (ChangeVerdict::Regressed, false) => {
                write!(out, "<failure message=\"{said}\" type=\"regression\"/>")?;
            }
            (ChangeVerdict::Regressed, true) => {
                write!(out, "<skipped message=\"warning only: {said}\"/>")?;
            }
            (ChangeVerdict::Inconclusive, _) => {
                write!(out, "<skipped message=\"no verdict: {said}\"/>")?;
            }
        }
        writeln!(out, "</testcase>")?;
    }
    tail(out)
}

fn cases(page: &ReportPage, out: &mut String) -> fmt::Result {
    head(page, page.cases.len(), 0, 0, out)?;
    for MeasuredCase {
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
    page: &ReportPage,
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
