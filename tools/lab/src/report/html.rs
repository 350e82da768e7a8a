//! The page as one HTML file: style and charts inside, no script, nothing fetched.

use super::page::{NumberTable, PageSection, ReportPage};
use super::style::SHEET;
use super::svg::{COLOURS, Chart, escape};
use std::fmt::{self, Write as _};

/// The drawing widths of a chart in a wide and in a narrow window, in pixels.
const WIDTHS: [(&str, f64); 2] = [("wide", 1_020.0), ("narrow", 334.0)];
/// Forbids to fetch or run anything, also for hostile names in a measurement.
const RULES: &str = "default-src 'none'; style-src 'unsafe-inline'; img-src data:";

/// Returns the page.
pub(super) fn render(page: &ReportPage) -> String {
    let mut out = String::new();
    // Writing to a string does not fail.
    let _ = write(page, &mut out);
    out
}

fn write(page: &ReportPage, out: &mut String) -> fmt::Result {
    let title = escape(&page.title);
    write!(
        out,
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
<meta http-equiv=\"Content-Security-Policy\" content=\"{RULES}\">\n\
<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n<title>{title}</title>\n\
<link rel=\"icon\" href=\"data:,\">\n<style>{SHEET}</style>\n</head>\n<body>\n<main>\n<h1>{title}</h1>\n\
<p class=\"lead\">{}</p>\n",
        escape(&page.lead)
    )?;
    tiles(page, out)?;
    verdicts(page, out)?;
    warnings(page, out)?;
    for section in &page.sections {
        part(section, out)?;
    }
    writeln!(out, "<section><h2>How it was measured</h2><dl>")?;
    for (name, value) in &page.facts {
        writeln!(out, "<dt>{}</dt><dd>{}</dd>", escape(name), escape(value))?;
    }
    out.write_str("</dl></section>\n</main>\n</body>\n</html>\n")
}

fn tiles(page: &ReportPage, out: &mut String) -> fmt::Result {
    if page.tiles.is_empty() {
        return Ok(());
    }
    out.write_str("<div class=\"tiles\">\n")?;
    for tile in &page.tiles {
        writeln!(
            out,
            "<div class=\"tile s{}\"><span>{}</span><b>{}</b><span>{}</span></div>",
            tile.series % COLOURS,
            escape(&tile.name),
            escape(&tile.value),
            escape(&tile.note)
        )?;
    }
    out.write_str("</div>\n")
}

fn verdicts(page: &ReportPage, out: &mut String) -> fmt::Result {
    let Some(judged) = &page.judged else {
        return Ok(());
    };
    out.write_str(
        "<section><h2>Verdicts</h2><div class=\"scroll\"><table><tr><th>rule</th><th>variant</th><th>observed</th><th>verdict</th></tr>\n",
    )?;
    for one in &judged.rules {
        writeln!(
            out,
            "<tr><td>{}</td><td>{}</td><td>{}</td><td class=\"{}\">{}</td></tr>",
            escape(&one.rule),
            escape(&one.arm),
            escape(&one.observed),
            one.verdict.word(),
            one.verdict.word()
        )?;
    }
    out.write_str("</table></div></section>\n")
}

fn warnings(page: &ReportPage, out: &mut String) -> fmt::Result {
    if page.warnings.is_empty() {
        return Ok(());
    }
    out.write_str("<section class=\"warnings\"><h2>Read this first</h2><ul>\n")?;
    for warning in &page.warnings {
        writeln!(out, "<li>{}</li>", escape(warning))?;
    }
    out.write_str("</ul></section>\n")
}

fn part(section: &PageSection, out: &mut String) -> fmt::Result {
    writeln!(out, "<section><h2>{}</h2>", escape(&section.title))?;
    if !section.note.is_empty() {
        writeln!(out, "<p class=\"note\">{}</p>", escape(&section.note))?;
    }
    for chart in &section.charts {
        figure(chart, out)?;
    }
    if let Some(table) = &section.table {
        grid(table, out)?;
    }
    out.write_str("</section>\n")
}

fn figure(chart: &Chart, out: &mut String) -> fmt::Result {
    out.write_str("<figure>\n")?;
    for (class, width) in WIDTHS {
        writeln!(out, "<div class=\"{class}\">{}</div>", chart.svg(width))?;
    }
    let legend = chart.legend();
    if !legend.is_empty() {
        out.write_str("<figcaption>")?;
        for (name, series) in legend {
            let tint = series % COLOURS;
            write!(
                out,
                "<span class=\"s{tint}\"><i></i>{}</span>",
                escape(&name)
            )?;
        }
        out.write_str("</figcaption>\n")?;
    }
    out.write_str("</figure>\n")
}

fn grid(table: &NumberTable, out: &mut String) -> fmt::Result {
    let row = |cells: &[String], tag: &str| -> String {
        let cells: String = cells
            .iter()
            .map(|cell| format!("<{tag}>{}</{tag}>", escape(cell)))
            .collect();
        format!("<tr>{cells}</tr>\n")
    };
    out.write_str("<div class=\"scroll\"><table>\n")?;
    out.write_str(&row(&table.head, "th"))?;
    for cells in &table.rows {
        out.write_str(&row(cells, "td"))?;
    }
    out.write_str("</table></div>\n")
}
