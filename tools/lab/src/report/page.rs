//! Content of a page, before it is Markdown, HTML or XML.

use super::svg::Chart;
use crate::judge::Judgement;

/// A page.
#[derive(Debug)]
pub(super) struct ReportPage {
    pub(super) title: String,
    /// One sentence under the title.
    pub(super) lead: String,
    /// The figures that matter most.
    pub(super) tiles: Vec<FigureTile>,
    pub(super) warnings: Vec<String>,
    pub(super) sections: Vec<PageSection>,
    /// Names and values that say how it was made.
    pub(super) facts: Vec<(String, String)>,
    /// Verdict of a gate, if there is one.
    pub(super) judged: Option<Judgement>,
    /// Measured cases, one name each, for a page of tests.
    pub(super) cases: Vec<MeasuredCase>,
}

/// One figure, large.
#[derive(Debug)]
pub(super) struct FigureTile {
    pub(super) name: String,
    pub(super) value: String,
    /// The interval or the like.
    pub(super) note: String,
    /// Which colour it has in the charts.
    pub(super) series: usize,
}

/// A part of the page under a heading.
#[derive(Debug)]
pub(super) struct PageSection {
    pub(super) title: String,
    /// How to read it.
    pub(super) note: String,
    pub(super) charts: Vec<Chart>,
    pub(super) table: Option<NumberTable>,
}

/// A table; all columns but the first hold numbers.
#[derive(Debug, Default)]
pub(super) struct NumberTable {
    pub(super) head: Vec<String>,
    pub(super) rows: Vec<Vec<String>>,
}

/// One thing that was measured.
#[derive(Debug)]
pub(super) struct MeasuredCase {
    pub(super) name: String,
    pub(super) seconds: f64,
    pub(super) said: String,
}

impl NumberTable {
    /// Returns a table with these column names.
    pub(super) fn new(head: &[&str]) -> Self {
        Self {
            head: head.iter().map(|name| (*name).to_owned()).collect(),
            rows: Vec::new(),
        }
    }
}
