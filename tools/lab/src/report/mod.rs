//! A stored measurement as a page: Markdown for a summary, one HTML file that needs nothing else, or JUnit
//! for a build server.

mod html;
mod junit;
mod load;
mod markdown;
mod numbers;
mod overhead;
mod page;
mod resources;
mod style;
mod summary;
mod svg;

use crate::error::LabError;
use crate::run::{format_of, summary_file, write_whole};
use page::ReportPage;
use std::io::Write;
use std::path::{Path, PathBuf};

/// Show a stored measurement as a page
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Without --write the page goes into the run directory (report.md, report.html, report.xml), or to standard
output for a document by itself. JUnit holds the verdicts of `lab gate` where the run was judged.

Exit codes: 0 written; 1 the measurement cannot be read; 2 wrong usage.")]
pub struct ReportArgs {
    /// A run directory, or what a command of the lab printed with --json
    run: PathBuf,
    /// The kind of page
    #[arg(long, value_enum, default_value_t = ReportFormat::Md)]
    format: ReportFormat,
    /// Write it to this file; - for standard output
    #[arg(long, value_name = "FILE")]
    write: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum ReportFormat {
    /// Markdown
    Md,
    /// One HTML file, charts included
    Html,
    /// JUnit XML
    Junit,
}

impl ReportFormat {
    fn file(self) -> &'static str {
        match self {
            Self::Md => "report.md",
            Self::Html => "report.html",
            Self::Junit => "report.xml",
        }
    }
}

/// Runs `lab report`.
pub(crate) fn run(args: &ReportArgs, out: &mut dyn Write) -> Result<u8, LabError> {
    let page = read(&args.run)?;
    let text = match args.format {
        ReportFormat::Md => markdown::render(&page),
        ReportFormat::Html => html::render(&page),
        ReportFormat::Junit => junit::render(&page),
    };
    let beside = args.run.is_dir().then(|| args.run.join(args.format.file()));
    let written = match args.write.clone().or(beside) {
        Some(file) if file != Path::new("-") => {
            write_whole(&file, text.as_bytes())?;
            writeln!(out, "{}", file.display())
        }
        _ => out.write_all(text.as_bytes()),
    };
    written.map_err(|source| LabError::System {
        what: "write the page",
        source,
    })?;
    Ok(0)
}

/// Returns the page of the run or document at this path.
fn read(path: &Path) -> Result<ReportPage, LabError> {
    let format = format_of(&summary_file(path)?)?;
    let kind = |known: &str| known.split('/').next() == format.split('/').next();
    if kind(crate::load::FORMAT) {
        load::read(path)
    } else if kind(crate::overhead::FORMAT) {
        overhead::read(path)
    } else {
        summary::read(path)
    }
}
