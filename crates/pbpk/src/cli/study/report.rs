//! The report of a study: one HTML file with all pictures in it.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use super::super::failure::CommandFailure;
use super::node::DocumentNode;
use super::{StudyRun, file};
use crate::csv;
use crate::run::OspVersion;

/// Most rows of a table.
const ROWS_MAX: usize = 500;
/// Most pictures of one population.
const PICTURES_MAX: usize = 50;
/// Digits of numbers in tables.
const DIGITS: usize = 5;

const STYLE: &str = "body{font:15px/1.5 system-ui,sans-serif;max-width:70rem;margin:2rem auto;padding:0 1rem;color:#1b1b1b}\
table{border-collapse:collapse;margin:1rem 0}td,th{border:1px solid #bbb;padding:.2rem .6rem;text-align:left}\
td.n{text-align:right;font-variant-numeric:tabular-nums}img{max-width:100%;margin:1rem 0}li.w{color:#8a4b00}code{background:#f2f2f2}";

/// Returns the report of a study that was carried out.
pub(super) fn html(study: &StudyRun) -> Result<String, CommandFailure> {
    let title = study.file.name.as_deref().unwrap_or("Study");
    let release = study.file.osp_version.clone();
    let release = release.unwrap_or_else(|| OspVersion::default().name().to_owned());
    let mut page = format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{0}</title><style>{STYLE}</style></head>\n\
         <body><h1>{0}</h1>\n<p>Runs follow OSP {1}; made by Durward {2}.</p>\n",
        escape(title),
        escape(&release),
        env!("CARGO_PKG_VERSION")
    );
    for fit in &study.file.fits {
        let folder = study.fit_folder(&fit.name);
        heading(&mut page, &format!("Fit {}", fit.name));
        add(
            &mut page,
            &format!("<p>Data of the arm {}.</p>\n", escape(&fit.arm)),
        );
        fit_tables(&mut page, &folder.join("fit.json"))?;
        // Observed against fitted values, and residuals over time.
        picture(&mut page, &folder.join("fitted.svg"), "Goodness of fit")?;
        warnings(&mut page, &study.fit_step(fit)?.warnings());
    }
    for arm in &study.file.arms {
        let folder = study.arm_folder(&arm.name);
        heading(&mut page, &format!("Arm {}", arm.name));
        add(&mut page, "<ul>");
        add(
            &mut page,
            &format!(
                "<li>Model <code>{}</code></li>",
                escape(&arm.model.display().to_string())
            ),
        );
        for regimen in &arm.regimen {
            add(
                &mut page,
                &format!("<li>Dose <code>{}</code></li>", escape(regimen)),
            );
        }
        for parameter in &arm.parameters {
            add(
                &mut page,
                &format!("<li>Set <code>{}</code></li>", escape(parameter)),
            );
        }
        if let Some(fit) = &arm.estimates {
            add(
                &mut page,
                &format!("<li>Estimates of the fit {}</li>", escape(fit)),
            );
        }
        add(&mut page, "</ul>\n");
        picture(&mut page, &folder.join("curves.svg"), "Curves")?;
        if arm.population.is_some() {
            for file in pictures(&folder.join("population")) {
                picture(
                    &mut page,
                    &file,
                    "Percentiles 5, 50 and 95 of the population",
                )?;
            }
        }
        table(&mut page, &folder.join("pk.csv"))?;
        for step in study.arm_steps(arm)? {
            warnings(&mut page, &step.warnings());
        }
    }
    page.push_str("</body></html>\n");
    Ok(page)
}

fn add(page: &mut String, text: &str) {
    page.push_str(text);
}

fn heading(page: &mut String, text: &str) {
    add(page, &format!("<h2>{}</h2>\n", escape(text)));
}

fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            c => escaped.push(c),
        }
    }
    escaped
}

fn read(file: &Path) -> Result<String, CommandFailure> {
    fs::read_to_string(file)
        .map_err(|e| CommandFailure::failure(format!("cannot read {}: {e}", file.display())))
}

/// Adds an SVG as an image of its own: what one picture names does not meet the names of another.
fn picture(page: &mut String, file: &Path, title: &str) -> Result<(), CommandFailure> {
    let mut address = String::from("data:image/svg+xml,");
    for byte in read(file)?.bytes() {
        match byte {
            b'a'..=b'z'
            | b'A'..=b'Z'
            | b'0'..=b'9'
            | b' '
            | b'-'
            | b'_'
            | b'.'
            | b'/'
            | b'='
            | b':'
            | b','
            | b';' => {
                address.push(char::from(byte));
            }
            byte => {
                // Writing to a string cannot fail.
                let _ = write!(address, "%{byte:02X}");
            }
        }
    }
    let text = escape(title);
    add(
        page,
        &format!("<img alt=\"{text}\" title=\"{text}\" src=\"{address}\">\n"),
    );
    Ok(())
}

/// Pictures of a folder, by name.
fn pictures(folder: &Path) -> Vec<std::path::PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let files = entries.map(|entry| entry.path());
    let mut files: Vec<_> = files
        .filter(|file| file.extension().is_some_and(|extension| extension == "svg"))
        .collect();
    files.sort();
    files.truncate(PICTURES_MAX);
    files
}

fn warnings(page: &mut String, warnings: &[String]) {
    if warnings.is_empty() {
        return;
    }
    add(page, "<ul>");
    for warning in warnings {
        add(
            page,
            &format!("<li class=\"w\">Warning: {}</li>", escape(warning)),
        );
    }
    add(page, "</ul>\n");
}

fn cell(text: &str) -> String {
    match text.parse::<f64>() {
        Ok(number) => number_cell(Some(number)),
        Err(_) => format!("<td>{}</td>", escape(text)),
    }
}

fn number_cell(number: Option<f64>) -> String {
    let text = match number {
        Some(0.0) => "0".to_owned(),
        Some(number) if number.is_finite() => {
            let exponent = number.abs().log10().floor();
            match (-3.0..DIGITS as f64).contains(&exponent) {
                // Between 0 and 7 decimals.
                true => format!(
                    "{number:.*}",
                    (DIGITS as f64 - 1.0 - exponent).max(0.0) as usize
                ),
                false => format!("{number:.*e}", DIGITS - 1),
            }
        }
        _ => "–".to_owned(),
    };
    format!("<td class=\"n\">{text}</td>")
}

/// Adds a CSV file as a table.
fn table(page: &mut String, file: &Path) -> Result<(), CommandFailure> {
    let text = read(file)?;
    let read = csv::read(&mut text.as_bytes())
        .map_err(|e| CommandFailure::failure(format!("{}: {e}", file.display())))?;
    add(page, "<table><tr>");
    for head in &read.header {
        add(page, &format!("<th>{}</th>", escape(head)));
    }
    add(page, "</tr>\n");
    for row in read.rows.iter().take(ROWS_MAX) {
        let cells: String = row.iter().map(|text| cell(text)).collect();
        add(page, &format!("<tr>{cells}</tr>\n"));
    }
    add(page, "</table>\n");
    if read.rows.len() > ROWS_MAX {
        let left = read.rows.len() - ROWS_MAX;
        add(page, &format!("<p>{left} more rows are in the file.</p>\n"));
    }
    Ok(())
}

/// Adds estimates and criteria of a fit.
fn fit_tables(page: &mut String, file: &Path) -> Result<(), CommandFailure> {
    let read = file::fit_document(file)?;
    let text = |one: &DocumentNode, name: &str| {
        let text = one.get(name).and_then(DocumentNode::text);
        format!("<td>{}</td>", escape(text.unwrap_or_default()))
    };
    let number = |one: &DocumentNode, name: &str| number_cell(one.number(name));
    add(
        page,
        "<table><tr><th>parameter</th><th>unit</th><th>start</th><th>estimate</th><th>95 % from</th><th>to</th></tr>\n",
    );
    for one in read.items("parameters") {
        let mut row = text(one, "path") + &text(one, "unit");
        for name in ["start", "value", "low", "high"] {
            row.push_str(&number(one, name));
        }
        add(page, &format!("<tr>{row}</tr>\n"));
    }
    add(
        page,
        "</table>\n<table><tr><th>criterion</th><th>value</th></tr>\n",
    );
    for one in read.items("sigmas") {
        let name = |name: &str| one.get(name).and_then(DocumentNode::text);
        let head = format!(
            "standard deviation of {}, {}",
            name("output").unwrap_or_default(),
            name("kind").unwrap_or_default()
        );
        let value = number(one, "value");
        add(
            page,
            &format!("<tr><td>{}</td>{value}</tr>\n", escape(&head)),
        );
    }
    let criteria = [
        ("objective", "−2 log likelihood"),
        ("aic", "AIC"),
        ("bic", "BIC"),
        ("sum_of_squares", "sum of squares"),
    ];
    for (name, head) in criteria {
        if read.get(name).is_some() {
            let value = number(&read, name);
            add(page, &format!("<tr><td>{head}</td>{value}</tr>\n"));
        }
    }
    add(page, "</table>\n");
    Ok(())
}
