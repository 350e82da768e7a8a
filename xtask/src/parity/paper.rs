//! Parts of a paper: every heading below the title, by its path, and every table under it.

/// Returns the parts in order: `A`, `A / B` for headings, `A (table)`, `A (table 2)` for tables.
pub(super) fn parts(text: &str) -> Vec<String> {
    let (mut parts, mut path, mut tables) = (Vec::new(), Vec::<(usize, String)>::new(), 0);
    let (mut fenced, mut before) = (false, "");
    for line in text.lines() {
        if line.starts_with("```") {
            fenced = !fenced;
        }
        let level = line.chars().take_while(|c| *c == '#').count();
        if !fenced && (2..=6).contains(&level) {
            path.retain(|(above, _)| *above < level);
            path.push((level, line.trim_matches(['#', ' ']).to_owned()));
            tables = 0;
            parts.push(name(&path));
        }
        if !fenced && is_rule(line) && before.starts_with('|') {
            tables += 1;
            let behind = match tables {
                1 => " (table)".to_owned(),
                more => format!(" (table {more})"),
            };
            parts.push(name(&path) + &behind);
        }
        before = line;
    }
    parts
}

/// Returns whether the line above is the head of a table.
fn is_rule(line: &str) -> bool {
    line.starts_with('|') && line.contains("--") && line.chars().all(|c| "|-: ".contains(c))
}

fn name(path: &[(usize, String)]) -> String {
    let names: Vec<&str> = path.iter().map(|(_, name)| name.as_str()).collect();
    names.join(" / ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headings_by_path_and_tables_by_number() {
        let text = "# T\n## A\n| x |\n|---|\n| 1 |\n### B\n```\n## no\n```\n| y |\n|--|\n\n| z |\n| --: |\n| - |\n## C\n";
        assert_eq!(
            parts(text),
            [
                "A",
                "A (table)",
                "A / B",
                "A / B (table)",
                "A / B (table 2)",
                "C"
            ]
        );
    }
}
