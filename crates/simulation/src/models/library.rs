//! Models as they were read and compiled, kept for as long as somebody is likely to want them again.

use std::collections::VecDeque;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use pbpk::compile::{CompileError, Structure};
use pbpk::model::{Model, ModelFormat};
use pbpk::read::{ReadOptions, XmlLimits};
use pbpk::regimen::{Regimen, RegimenError};
use pbpk::watch::{Interrupt, Watch};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::fault::{Fault, Kind};

/// Bytes that are read or digested between two looks at whether to go on: a few milliseconds without instructions for
/// it.
const DIGESTED_AT_ONCE: usize = 1 << 20;
/// Most compiled models that are kept.
const STRUCTURES_MAX: usize = 16;

/// A model file and the content that it had.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelRef {
    /// The file.
    pub path: PathBuf,
    /// SHA-256 of its content, in hex.
    pub sha256: String,
    /// Regimens that it is given instead of its own doses.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub regimens: Vec<String>,
}

impl ModelRef {
    /// Reads a model from its content and gives it the regimens.
    fn parse(&self, bytes: &[u8], watch: &Watch<'_>) -> Result<Model, Fault> {
        let read = pbpk::read::read_watched(bytes, &ReadOptions::default(), watch)?;
        if self.regimens.is_empty() {
            return Ok(read);
        }
        let parsed = self.regimens.iter().map(|text| text.parse());
        let regimens = parsed.collect::<Result<Vec<Regimen>, RegimenError>>()?;
        Ok(pbpk::regimen::apply(read, &regimens, watch.question())?.0)
    }

    /// Returns the content of the file, which has to be unchanged.
    ///
    /// # Errors
    /// [`Kind::Conflict`] if it is another one by now; [`Fault`] if it cannot be read.
    pub fn content(&self, watch: &Watch<'_>) -> Result<Vec<u8>, Fault> {
        let (bytes, sha256) = content(&self.path, watch)?;
        if sha256 != self.sha256 {
            let wrong = format!(
                "{} has changed since it was loaded; load it again",
                self.path.display()
            );
            return Err(Fault::of(Kind::Conflict, "filePath", wrong));
        }
        Ok(bytes)
    }
}

/// Which quantities a run stores.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum QuantitySelection {
    /// Those that the file selects.
    #[default]
    File,
    /// Those that these paths or patterns name.
    Paths(Vec<String>),
}

/// A model file that was read.
#[derive(Debug, Clone)]
pub struct ReadModel {
    /// Which file.
    pub model: ModelRef,
    /// Its length in bytes.
    pub bytes: u64,
    /// Compiled for the outputs that the file selects.
    pub structure: Arc<Structure>,
}

/// Compiled models.
#[derive(Debug, Default)]
pub struct ModelLibrary {
    /// The one used last is at the end.
    kept: Mutex<VecDeque<CachedStructure>>,
}

#[derive(Debug)]
struct CachedStructure {
    sha256: String,
    regimens: Vec<String>,
    selection: QuantitySelection,
    structure: Arc<Structure>,
}

impl ModelLibrary {
    /// Reads a file, gives it regimens and compiles it.
    ///
    /// # Errors
    /// [`Fault`] if the file cannot be read, or is no model that can be run.
    pub fn read(
        &self,
        path: &Path,
        regimens: Vec<String>,
        watch: &Watch<'_>,
    ) -> Result<ReadModel, Fault> {
        let (bytes, sha256) = content(path, watch)?;
        let model = ModelRef {
            path: path.to_path_buf(),
            sha256,
            regimens,
        };
        let length = bytes.len() as u64;
        let selection = QuantitySelection::File;
        let structure = match self.find_cached(&model, &selection) {
            Some(kept) => kept,
            None => {
                let read = model.parse(&bytes, watch)?;
                drop(bytes);
                self.compile(Arc::new(read), &model, selection, watch)?
            }
        };
        Ok(ReadModel {
            model,
            bytes: length,
            structure,
        })
    }

    /// Returns a model as it was when it was loaded, compiled for these outputs.
    ///
    /// # Errors
    /// [`Fault`]; also if the file has another content by now.
    pub fn open(
        &self,
        model: &ModelRef,
        selection: &QuantitySelection,
        watch: &Watch<'_>,
    ) -> Result<Arc<Structure>, Fault> {
        if let Some(kept) = self.find_cached(model, selection) {
            return Ok(kept);
        }
        if let Some(other) = self.find_cached(model, &QuantitySelection::File) {
            let read = Arc::new(other.model().clone());
            return self.compile(read, model, selection.clone(), watch);
        }
        let bytes = model.content(watch)?;
        let read = model.parse(&bytes, watch)?;
        self.compile(Arc::new(read), model, selection.clone(), watch)
    }

    fn find_cached(
        &self,
        model: &ModelRef,
        selection: &QuantitySelection,
    ) -> Option<Arc<Structure>> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let is = |kept: &CachedStructure| {
            kept.sha256 == model.sha256
                && kept.regimens == model.regimens
                && kept.selection == *selection
        };
        let at = kept.iter().position(is)?;
        let found = kept.remove(at)?;
        let structure = Arc::clone(&found.structure);
        kept.push_back(found);
        Some(structure)
    }

    fn compile(
        &self,
        model: Arc<Model>,
        of: &ModelRef,
        selection: QuantitySelection,
        watch: &Watch<'_>,
    ) -> Result<Arc<Structure>, Fault> {
        let outputs = outputs(&model, &selection)?;
        if model.quantities.is_empty() {
            let wrong = "nothing to simulate: the model holds no quantity";
            return Err(Fault::of(Kind::UnsupportedModel, "filePath", wrong));
        }
        let structure = Structure::with_watch(model, outputs, watch).map_err(|error| {
            let kind = match &error {
                CompileError::Interrupted { cause } => Fault::from(*cause).kind,
                CompileError::Cycle { .. } | CompileError::NoSuchOutput { .. } => {
                    Kind::ModelInvalid
                }
            };
            Fault::of(kind, "filePath", error.to_string())
        })?;
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() >= STRUCTURES_MAX {
            kept.pop_front();
        }
        kept.push_back(CachedStructure {
            sha256: of.sha256.clone(),
            regimens: of.regimens.clone(),
            selection,
            structure: Arc::clone(&structure),
        });
        Ok(structure)
    }
}

/// Positions of the outputs that are selected.
fn outputs(model: &Model, selection: &QuantitySelection) -> Result<Vec<usize>, Fault> {
    let paths = match selection {
        QuantitySelection::File if model.selections.is_empty() => return Ok(model.outputs()),
        // Selected quantities that the file does not have are skipped, as in the suite.
        QuantitySelection::File => {
            let found = model.selections.iter();
            let found: Vec<usize> = found
                .filter_map(|path| pbpk::path::find_one(model, path).ok())
                .collect();
            return Ok(if found.is_empty() {
                model.outputs()
            } else {
                found
            });
        }
        QuantitySelection::Paths(paths) => paths,
    };
    let mut chosen = Vec::new();
    for path in paths {
        let found = pbpk::path::find(model, path).map_err(|error| {
            let fault = Fault::from(error);
            let details = fault
                .details
                .into_iter()
                .map(|detail| crate::fault::FaultDetail {
                    field: Some("outputs".into()),
                    ..detail
                });
            Fault {
                details: details.collect(),
                ..fault
            }
        })?;
        for position in found {
            if !chosen.contains(&position) {
                chosen.push(position);
            }
        }
    }
    Ok(chosen)
}

/// Returns the content of a file, bounded, with its SHA-256.
fn content(path: &Path, watch: &Watch<'_>) -> Result<(Vec<u8>, String), Fault> {
    let failed = |error: std::io::Error| {
        Fault::input(
            "filePath",
            format!("{} cannot be read: {error}", path.display()),
        )
    };
    let bytes_max = XmlLimits::default().file_bytes_max;
    let file = toolkit::files::open_in_place(path).map_err(failed)?;
    let mut file = file.take(bytes_max + 1);
    let mut bytes = Vec::new();
    loop {
        watch.ask()?;
        let mut block = file.by_ref().take(DIGESTED_AT_ONCE as u64);
        if block.read_to_end(&mut bytes).map_err(failed)? == 0 {
            break;
        }
    }
    if bytes.len() as u64 > bytes_max {
        let wrong = format!("the file has more than {bytes_max} bytes");
        return Err(Fault::input("filePath", wrong));
    }
    let sha256 = digest(&bytes, watch)?;
    Ok((bytes, sha256))
}

/// SHA-256 of bytes, in hex; of many it takes a while.
///
/// # Errors
/// That of `watch`.
pub(crate) fn digest(bytes: &[u8], watch: &Watch<'_>) -> Result<String, Interrupt> {
    let mut digest = Sha256::new();
    for block in bytes.chunks(DIGESTED_AT_ONCE) {
        watch.ask()?;
        digest.update(block);
    }
    Ok(hex(&digest.finalize()))
}

/// Returns the first 16 of these bytes in the form of a UUID of this version (RFC 9562).
pub(crate) fn uuid(bytes: &[u8], version: &str) -> String {
    let mut digits = hex(bytes.get(..16).unwrap_or(bytes));
    if digits.len() == 32 {
        digits.replace_range(12..13, version);
        digits.replace_range(16..17, "8");
        for at in [20, 16, 12, 8] {
            digits.insert(at, '-');
        }
    }
    digits
}

/// Bytes in hex.
pub(crate) fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Returns the version of a model's format, as metadata.
#[must_use]
pub fn version(model: &Model) -> Option<String> {
    match model.format {
        ModelFormat::Pkml { version } => Some(format!("pkml {version}")),
        ModelFormat::SimModel { version } => version.map(|version| format!("SimModel {version}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

    #[test]
    fn a_link_that_took_the_place_of_a_model_is_not_followed() {
        let name = format!("durward-library-{}", std::process::id());
        let root = std::env::temp_dir().canonicalize().unwrap().join(name);
        std::fs::create_dir_all(root.join("models")).unwrap();
        std::fs::write(root.join("other.xml"), "text").unwrap();
        let place = root.join("models/model.xml");
        std::os::unix::fs::symlink(root.join("other.xml"), &place).unwrap();
        let library = ModelLibrary::default();
        let wrong = library
            .read(&place, Vec::new(), &Watch::default())
            .unwrap_err()
            .message;
        assert!(wrong.contains("a link has come into its path"), "{wrong}");
        std::fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn the_digest_of_many_bytes_ends_where_it_is_told_and_is_that_of_all() {
        let bytes: Vec<u8> = (0..4 * DIGESTED_AT_ONCE + 7).map(|i| i as u8).collect();
        let asked = AtomicUsize::new(0);
        let ask = || (asked.fetch_add(1, Relaxed) == 3).then_some(Interrupt::Cancelled);
        let watch = Watch::new(Some(&ask));
        assert_eq!(digest(&bytes, &watch), Err(Interrupt::Cancelled));
        assert_eq!(asked.load(Relaxed), 4);
        let whole = digest(&bytes, &Watch::default());
        assert_eq!(whole, Ok(hex(&Sha256::digest(&bytes))));
    }
}
