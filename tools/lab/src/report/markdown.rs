//! The page as Markdown: a summary for a build server or a pull request.

use super::page::{NumberTable, ReportPage};
use std::fmt::{self, Write as _};

/// Returns the page.
pub(super) fn render(page: &ReportPage) -> String {
    let mut out = String::new();
    // Writing to a string does not fail.
    let _ = write(page, &mut out);
    out
}

fn write(page: &ReportPage, out: &mut String) -> fmt::Result {
    writeln!(out, "# {}\n\n{}", line(&page.title), line(&page.lead))?;
    if !page.tiles.is_empty() {
        writeln!(out)?;
    }
    for tile in &page.tiles {
        writeln!(
            out,
            "- {}: **{}** {}",
            line(&tile.name),
            line(&tile.value),
            line(&tile.note)
        )?;
    }
    if let Some(judged) = &page.judged {
        let mut found = NumberTable::new(&["rule", "variant", "observed", "verdict"]);
        found.rows = judged
            .rules
            .iter()
            .map(|one| {
                let word = one.verdict.word().to_owned();
                vec![
                    one.rule.clone(),
                    one.arm.clone(),
                    one.observed.clone(),
                    word,
                ]
            })
            .collect();
        writeln!(out, "\n## Verdicts\n")?;
        table(&found, out)?;
    }
    if !page.warnings.is_empty() {
        writeln!(out)?;
    }
    for warning in &page.warnings {
        writeln!(out, "- **Warning**: {}", line(warning))?;
    }
    for section in &page.sections {
        // A section of charts alone has nothing to say here.
        if let Some(found) = &section.table {
            writeln!(out, "\n## {}\n", line(&section.title))?;
            if !section.note.is_empty() {
                writeln!(out, "{}\n", line(&section.note))?;
            }
            table(found, out)?;
        }
    }
    writeln!(out, "\n## How it was measured\n")?;
    for (name, value) in &page.facts {
        writeln!(out, "- **{}**: {}", line(name), line(value))?;
    }
    Ok(())
}

fn table(table: &NumberTable, out: &mut String) -> fmt::Result {
    let row = |cells: &[String]| {
        let cells: Vec<String> = cells
            .iter()
            .map(|cell| line(cell).replace('|', "\\|"))
            .collect();
        format!("| {} |", cells.join(" | "))
    };
    writeln!(out, "{}", row(&table.head))?;
    let columns = table.head.len().saturating_sub(1);
    writeln!(out, "|---|{}", "--:|".repeat(columns))?;
    for cells in &table.rows {
        writeln!(out, "{}", row(cells))?;
    }
    Ok(())
}

/// Text that stays on its line and makes no markup of names.
fn line(text: &str) -> String {
    let shown = text.chars().map(|c| if c.is_control() { ' ' } else { c });
    shown.collect::<String>().replace('<', "\\<")
}
