//! Files to models.
//!
//! The root element decides the format. Readers take any byte stream; only [`file`] opens anything.

mod aliases;
pub(crate) mod cycle;
mod pkml;
mod simmodel;

use std::cell::Cell;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use crate::error::LoadError;
use crate::model::Model;
use crate::watch::{Interrupt, Watch};
pub use crate::xml::XmlLimits;
use crate::xml::{XmlNode, XmlScanner};

/// The first bytes of the databases as which PK-Sim and MoBi keep their projects.
const DATABASE: &[u8] = b"SQLite format 3\0";

/// How strictly a file is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ReadOptions {
    /// Refuse what the schema forbids but the genuine solver tolerates: negative output times.
    pub strict: bool,
    /// Bounds of the document.
    pub limits: XmlLimits,
}

/// Reads a model of either format.
///
/// # Errors
/// [`LoadError`] with line or path; other documents are [`LoadError::UnsupportedRoot`].
pub fn reader(input: impl BufRead, options: &ReadOptions) -> Result<Model, LoadError> {
    read_watched(input, options, &Watch::default())
}

/// As [`reader`], asking `watch` now and then whether to go on.
///
/// # Errors
/// As [`reader`], and [`LoadError::Interrupted`].
pub fn read_watched(
    mut input: impl BufRead,
    options: &ReadOptions,
    watch: &Watch<'_>,
) -> Result<Model, LoadError> {
    let cause = Cell::new(None);
    // A source that cannot be read fails again in the scanner.
    if input
        .fill_buf()
        .is_ok_and(|start| start.starts_with(DATABASE))
    {
        return Err(LoadError::Project);
    }
    let asked = WatchedStream {
        inner: input,
        watch,
        cause: &cause,
    };
    let read = document(XmlScanner::new(asked, options.limits), watch);
    // An interruption reaches the scanner as a failed read.
    if let Some(cause) = cause.get() {
        return Err(LoadError::Interrupted { cause });
    }
    check(read?, options, watch)
}

/// A stream that asks at every piece whether to go on.
struct WatchedStream<'a, R> {
    inner: R,
    watch: &'a Watch<'a>,
    cause: &'a Cell<Option<Interrupt>>,
}

impl<R: BufRead> Read for WatchedStream<'_, R> {
    fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
        self.inner.read(out)
    }
}

impl<R: BufRead> BufRead for WatchedStream<'_, R> {
    fn fill_buf(&mut self) -> std::io::Result<&[u8]> {
        if let Err(cause) = self.watch.ask() {
            self.cause.set(Some(cause));
            return Err(std::io::Error::other(cause));
        }
        self.inner.fill_buf()
    }

    fn consume(&mut self, amount: usize) {
        self.inner.consume(amount);
    }
}

fn document(mut scanner: XmlScanner<impl BufRead>, watch: &Watch<'_>) -> Result<Model, LoadError> {
    let root = match scanner.next()? {
        XmlNode::Start(element) => element.name().to_owned(),
        XmlNode::End | XmlNode::Eof => {
            return Err(LoadError::Invalid {
                line: scanner.line(),
                message: "the file holds no element".to_owned(),
            });
        }
    };
    let model = match root.as_str() {
        "SimulationTransfer" => pkml::read(&mut scanner, watch)?,
        "Simulation" => simmodel::read(&mut scanner, watch)?,
        _ => return Err(LoadError::UnsupportedRoot { found: root }),
    };
    // The rest must be well-formed too: a second root or a cut tail is a fault of the file.
    if !matches!(scanner.next()?, XmlNode::Eof) {
        return Err(LoadError::Invalid {
            line: scanner.line(),
            message: "more than one root element".to_owned(),
        });
    }
    Ok(model)
}

/// Reads a model from memory.
///
/// # Errors
/// As [`reader`].
pub fn bytes(input: &[u8], options: &ReadOptions) -> Result<Model, LoadError> {
    reader(input, options)
}

/// Reads a model from a file, and makes sure that the file stayed the same meanwhile.
///
/// # Errors
/// As [`reader`], and [`LoadError::Io`], [`LoadError::ChangedWhileRead`], a size above the bound.
pub fn file(path: &Path, options: &ReadOptions) -> Result<Model, LoadError> {
    file_watched(path, options, &Watch::default())
}

/// As [`file`], asking `watch` now and then whether to go on.
///
/// # Errors
/// As [`file`], and [`LoadError::Interrupted`].
pub fn file_watched(
    path: &Path,
    options: &ReadOptions,
    watch: &Watch<'_>,
) -> Result<Model, LoadError> {
    let name = path.display().to_string();
    let io = |e: std::io::Error| LoadError::Io {
        file: path.display().to_string(),
        message: e.to_string(),
    };
    let opened = File::open(path).map_err(io)?;
    let before = opened.metadata().map_err(io)?;
    if before.is_dir() {
        return Err(LoadError::Io {
            file: name,
            message: "it is a directory".to_owned(),
        });
    }
    if before.len() > options.limits.file_bytes_max {
        return Err(LoadError::Limit {
            what: "bytes in the file",
            limit: options.limits.file_bytes_max,
            line: 0,
        });
    }
    let handle = opened.try_clone().map_err(io)?;
    let result = read_watched(BufReader::with_capacity(1 << 16, opened), options, watch);
    let after = handle.metadata().map_err(io)?;
    let touched = match (before.modified(), after.modified()) {
        (Ok(a), Ok(b)) => a != b,
        _ => false,
    };
    if touched || before.len() != after.len() {
        return Err(LoadError::ChangedWhileRead { file: name });
    }
    result
}

/// What both formats share: output times and definitions that go in circles.
fn check(mut model: Model, options: &ReadOptions, watch: &Watch<'_>) -> Result<Model, LoadError> {
    if model.grid.is_too_large() {
        return Err(LoadError::Limit {
            what: "output times",
            limit: crate::model::OutputGrid::TIMES_MAX as u64,
            line: 0,
        });
    }
    if let Some(interval) = model.grid.intervals.iter().find(|i| i.start > i.end) {
        return Err(LoadError::Invalid {
            line: 0,
            message: format!(
                "an output interval starts at {} min and ends before that, at {} min",
                interval.start, interval.end
            ),
        });
    }
    let unusable = model.grid.unusable();
    if unusable > 0 {
        if options.strict {
            return Err(LoadError::Invalid {
                line: 0,
                message: format!("{unusable} output times are negative or not finite"),
            });
        }
        model.warnings.push(format!(
            "{unusable} output times are negative or not finite; they were dropped"
        ));
    }
    cycle::refuse(&model, watch)?;
    Ok(model)
}
