//! The folders from which models may be loaded. Links are resolved before a path is compared with them.

use std::path::{Path, PathBuf};

use crate::fault::{Fault, Kind};

/// The extensions of models, lower case, without their dot.
pub const EXTENSIONS: [&str; 2] = ["pkml", "xml"];
/// Longest path, in bytes.
const PATH_BYTES_MAX: usize = 4_096;
/// Deepest folder that a search looks into.
const DEPTH_MAX: usize = 8;
/// Most files and folders that a search looks at.
const ENTRIES_MAX: usize = 20_000;

/// The folders.
#[derive(Debug, Clone, Default)]
pub struct ModelFolders {
    roots: Vec<PathBuf>,
}

/// A model file that was found.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct FoundModel {
    /// The whole path.
    pub path: PathBuf,
    /// The path below its folder.
    pub relative: PathBuf,
    /// The folder.
    pub root: PathBuf,
}

impl ModelFolders {
    /// These folders; they need not be there yet.
    #[must_use]
    pub fn new(roots: &[PathBuf]) -> Self {
        Self {
            roots: roots.to_vec(),
        }
    }

    /// Returns the model file that a caller names: a whole path, or one relative to a folder.
    ///
    /// # Errors
    /// [`Fault`] of the argument `filePath`. A file outside of the folders and an absent one give the same fault, so
    /// that a caller does not learn which files exist.
    pub fn resolve(&self, named: &str) -> Result<PathBuf, Fault> {
        let field = "filePath";
        let wanted = fit(named, field)?;
        let extension = extension(wanted);
        if !EXTENSIONS.contains(&extension.as_str()) {
            return Err(refused_type(&extension));
        }
        // A link may lead to a file of another type.
        let found = self
            .file(wanted)
            .filter(|found| EXTENSIONS.contains(&self::extension(found).as_str()));
        found.ok_or_else(|| {
            Fault::input(field, "no such model in the folders that are allowed")
                .hint("discover_models lists the models that can be loaded")
        })
    }

    /// Returns a file of any type that a caller names in this argument; none if it is not in the folders.
    ///
    /// # Errors
    /// [`Fault`] of the argument if it is not a path.
    pub fn find(&self, named: &str, field: &str) -> Result<Option<PathBuf>, Fault> {
        Ok(self.file(fit(named, field)?))
    }

    /// Returns the file that a path leads to, below one of the folders.
    fn file(&self, wanted: &Path) -> Option<PathBuf> {
        let roots = self
            .roots
            .iter()
            .filter_map(|root| root.canonicalize().ok());
        let mut found = roots.filter_map(|root| root.join(wanted).canonicalize().ok());
        found.find(|found| self.holds(found) && found.is_file())
    }

    fn holds(&self, path: &Path) -> bool {
        let roots = self
            .roots
            .iter()
            .filter_map(|root| root.canonicalize().ok());
        roots.into_iter().any(|root| path.starts_with(root))
    }

    /// Returns all model files, by path.
    #[must_use]
    pub fn search(&self) -> Vec<FoundModel> {
        let mut found = Vec::new();
        let mut left = ENTRIES_MAX;
        for root in self
            .roots
            .iter()
            .filter_map(|root| root.canonicalize().ok())
        {
            let mut folders = vec![(root.clone(), 0)];
            while let Some((folder, depth)) = folders.pop() {
                let Ok(entries) = std::fs::read_dir(&folder) else {
                    continue;
                };
                for entry in entries.flatten() {
                    if left == 0 {
                        found.sort();
                        return found;
                    }
                    left -= 1;
                    let Ok(path) = entry.path().canonicalize() else {
                        continue;
                    };
                    if path.is_dir() && depth < DEPTH_MAX && path.starts_with(&folder) {
                        folders.push((path, depth + 1));
                    } else if path.is_file()
                        && path.starts_with(&root)
                        && EXTENSIONS.contains(&extension(&path).as_str())
                    {
                        let relative = path.strip_prefix(&root).unwrap_or(&path).to_path_buf();
                        let root = root.clone();
                        found.push(FoundModel {
                            path,
                            relative,
                            root,
                        });
                    }
                }
            }
        }
        found.sort();
        found.dedup_by(|a, b| a.path == b.path);
        found
    }
}

fn extension(path: &Path) -> String {
    let extension = path.extension().unwrap_or_default();
    extension.to_string_lossy().to_ascii_lowercase()
}

/// Returns the path that a text is.
fn fit<'t>(named: &'t str, field: &str) -> Result<&'t Path, Fault> {
    let named = named.trim();
    let wrong = |what: &str| Err(Fault::input(field, what).code("value_error"));
    if named.is_empty() {
        return wrong("the path must not be blank");
    }
    if named.len() > PATH_BYTES_MAX || named.contains('\0') {
        return wrong("it is not a path");
    }
    Ok(Path::new(named))
}

fn refused_type(extension: &str) -> Fault {
    let field = "filePath";
    match extension {
        "r" => Fault::of(
            Kind::EnvironmentMissing,
            field,
            "models written in R need the rxode2 adapter, which this version does not have",
        ),
        "pksim5" | "mbp3" => {
            let wrong = format!("a .{extension} project of PK-Sim or MoBi is not a simulation");
            Fault::input(field, wrong).hint(
                "open it there and export the simulation as .pkml: Export to MoBi... in PK-Sim, Save as pkml in MoBi",
            )
        }
        _ => Fault::input(field, "a model is a .pkml file or a SimModel .xml file"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_models_in_the_folders_are_found_whatever_leads_there() {
        let dir = std::env::temp_dir().join(format!("folders-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&dir);
        std::fs::create_dir_all(dir.join("in/deep")).unwrap();
        std::fs::create_dir_all(dir.join("out")).unwrap();
        for file in ["in/a.pkml", "in/deep/b.XML", "in/c.txt", "out/d.pkml"] {
            std::fs::write(dir.join(file), "x").unwrap();
        }
        std::os::unix::fs::symlink(dir.join("out/d.pkml"), dir.join("in/link.pkml")).unwrap();
        std::os::unix::fs::symlink(dir.join("in/c.txt"), dir.join("in/text.pkml")).unwrap();
        let folders = ModelFolders::new(&[dir.join("in"), dir.join("nowhere")]);
        for good in ["a.pkml", " a.pkml ", "deep/b.XML", "deep/../a.pkml"] {
            assert!(folders.resolve(good).is_ok(), "{good}");
        }
        let whole = dir.join("in/a.pkml");
        assert!(folders.resolve(whole.to_str().unwrap()).is_ok());
        let outside = dir.join("out/d.pkml");
        for bad in [
            "../out/d.pkml",
            "link.pkml",
            "text.pkml",
            "e.pkml",
            outside.to_str().unwrap(),
        ] {
            let fault = folders.resolve(bad).unwrap_err();
            assert_eq!(
                fault.message, "no such model in the folders that are allowed",
                "{bad}"
            );
            assert_eq!(fault.details[0].field.as_deref(), Some("filePath"));
        }
        for (bad, kind) in [
            ("", Kind::InvalidInput),
            ("  ", Kind::InvalidInput),
            ("a\0.pkml", Kind::InvalidInput),
            ("c.txt", Kind::InvalidInput),
            ("a.pksim5", Kind::InvalidInput),
            ("a.R", Kind::EnvironmentMissing),
        ] {
            assert_eq!(folders.resolve(bad).unwrap_err().kind, kind, "{bad}");
        }
        let names: Vec<_> = folders
            .search()
            .into_iter()
            .map(|found| found.relative)
            .collect();
        assert_eq!(
            names,
            [PathBuf::from("a.pkml"), PathBuf::from("deep/b.XML")]
        );
        std::fs::remove_dir_all(&dir).unwrap();
    }
}
