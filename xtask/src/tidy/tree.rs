//! The files under version control, read once.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use super::modules::links::FileLinks;
use super::survey::{self, FileSurvey};
use crate::command::{self, TaskError};
use crate::finding::Finding;

/// Every text file, by its path relative to the root, with `/` between the parts.
#[derive(Debug, Default)]
pub(super) struct SourceTree {
    texts: BTreeMap<String, String>,
    surveys: BTreeMap<String, Result<FileSurvey, survey::ParseFailure>>,
    tests: BTreeSet<String>,
}

/// One Rust file that could be parsed.
#[derive(Clone, Copy, Debug)]
pub(super) struct RustFile<'a> {
    pub(super) path: &'a str,
    pub(super) text: &'a str,
    pub(super) survey: &'a FileSurvey,
    /// Whether the whole file is test code.
    pub(super) test: bool,
}

impl SourceTree {
    /// Reads what git tracks or would track; what is ignored is no part of the tree.
    pub(super) fn load(root: &Path) -> Result<Self, TaskError> {
        let mut texts = BTreeMap::new();
        for name in list(root)? {
            let path = root.join(&name);
            // A file that was deleted but not yet staged is listed too, and so is a link into nowhere.
            if !path.is_file() {
                continue;
            }
            let bytes = fs::read(&path).map_err(TaskError::io(name.as_str()))?;
            if let Ok(text) = String::from_utf8(bytes) {
                texts.insert(name, text);
            }
        }
        Ok(Self::from_texts(texts))
    }

    /// Returns a tree for a test of a rule.
    #[cfg(test)]
    pub(super) fn of(files: &[(&str, &str)]) -> Self {
        Self::from_texts(
            files
                .iter()
                .map(|(path, text)| ((*path).to_owned(), (*text).to_owned()))
                .collect(),
        )
    }

    fn from_texts(texts: BTreeMap<String, String>) -> Self {
        let surveys: BTreeMap<_, _> = texts
            .iter()
            .filter(|(path, _)| path.ends_with(".rs"))
            .map(|(path, text)| (path.clone(), survey::read(text)))
            .collect();
        let mut tests = BTreeSet::new();
        for (path, survey) in &surveys {
            let Ok(survey) = survey else { continue };
            for module in &survey.test_modules {
                let stem = format!("{}{module}", module_folder(path));
                let below = format!("{stem}/");
                let file = format!("{stem}.rs");
                tests.extend(
                    surveys
                        .keys()
                        .filter(|p| **p == file || p.starts_with(&below))
                        .cloned(),
                );
            }
        }
        tests.extend(surveys.keys().filter(|path| is_test_folder(path)).cloned());
        Self {
            texts,
            surveys,
            tests,
        }
    }

    /// Returns every text file with its path.
    pub(super) fn texts(&self) -> impl Iterator<Item = (&str, &str)> {
        self.texts
            .iter()
            .map(|(path, text)| (path.as_str(), text.as_str()))
    }

    /// Returns the paths of all Rust files, parsed or not.
    pub(super) fn rust_paths(&self) -> impl Iterator<Item = &str> {
        self.surveys.keys().map(String::as_str)
    }

    /// Returns the tree's own copy of the path of a Rust file, if there is such a file.
    pub(super) fn rust_path(&self, path: &str) -> Option<&str> {
        let (path, _) = self.surveys.get_key_value(path)?;
        Some(path)
    }

    /// Returns the declarations and names of a Rust file; `None` if it cannot be parsed.
    pub(super) fn links(&self, path: &str) -> Option<&FileLinks> {
        let survey = self.surveys.get(path)?.as_ref().ok()?;
        Some(&survey.links)
    }

    /// Returns the text of one file.
    pub(super) fn text(&self, path: &str) -> Option<&str> {
        self.texts.get(path).map(String::as_str)
    }

    /// Returns every Rust file that could be parsed.
    pub(super) fn rust(&self) -> impl Iterator<Item = RustFile<'_>> {
        self.surveys.iter().filter_map(|(path, survey)| {
            Some(RustFile {
                path,
                text: self.text(path)?,
                survey: survey.as_ref().ok()?,
                test: self.tests.contains(path),
            })
        })
    }

    /// Returns every Rust file that is not test code.
    pub(super) fn shipped(&self) -> impl Iterator<Item = RustFile<'_>> {
        self.rust().filter(|file| !file.test)
    }

    /// Returns the files that could not be parsed; tests may hold such files on purpose.
    pub(super) fn unparsed(&self) -> Vec<Finding> {
        let bad = self
            .surveys
            .iter()
            .filter(|(path, _)| !self.tests.contains(*path));
        bad.filter_map(|(path, survey)| {
            let bad = survey.as_ref().err()?;
            Some(Finding::new(
                path,
                bad.line,
                format!("the file cannot be parsed: {}", bad.why),
                "mend the syntax",
            ))
        })
        .collect()
    }

    /// Returns the first line, counted from 1, of a file that satisfies `wanted`, or 1.
    pub(super) fn line_of(&self, path: &str, wanted: impl Fn(&str) -> bool) -> usize {
        let line = self
            .text(path)
            .and_then(|text| text.lines().position(wanted));
        line.map_or(1, |index| index + 1)
    }
}

/// Returns the names of all files: from git, or by walking where git cannot be asked (an unpacked archive, a foreign
/// owner).
fn list(root: &Path) -> Result<Vec<String>, TaskError> {
    let args = [
        "ls-files",
        "-z",
        "--cached",
        "--others",
        "--exclude-standard",
    ];
    let Ok(listed) = command::output(root, "git", &args) else {
        let mut names = Vec::new();
        walk(root, "", &mut names)?;
        return Ok(names);
    };
    let names = listed.split(|&b| b == 0).filter(|name| !name.is_empty());
    Ok(names
        .map(|name| String::from_utf8_lossy(name).into_owned())
        .collect())
}

/// What `.gitignore` names, and git itself.
const IGNORED: [&str; 4] = [".git", ".cache", "target", "runs"];

fn walk(root: &Path, folder: &str, names: &mut Vec<String>) -> Result<(), TaskError> {
    let entries = fs::read_dir(root.join(folder)).map_err(TaskError::io(folder))?;
    for entry in entries {
        let entry = entry.map_err(TaskError::io(folder))?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let kind = entry.file_type().map_err(TaskError::io(name.as_str()))?;
        if folder.is_empty() && IGNORED.contains(&name.as_str()) {
            continue;
        }
        let path = if folder.is_empty() {
            name
        } else {
            format!("{folder}/{name}")
        };
        if kind.is_dir() {
            walk(root, &path, names)?;
        } else if kind.is_file() {
            names.push(path);
        }
    }
    Ok(())
}

/// Returns the folder of the modules that a file declares, with a trailing slash.
pub(super) fn module_folder(path: &str) -> String {
    let (folder, file) = path.rsplit_once('/').unwrap_or(("", path));
    let folder = if folder.is_empty() {
        String::new()
    } else {
        format!("{folder}/")
    };
    match file {
        "lib.rs" | "main.rs" | "mod.rs" => folder,
        named => format!("{folder}{}/", named.trim_end_matches(".rs")),
    }
}

/// Returns whether the file is of integration tests or fuzz targets, which are meant to fail.
fn is_test_folder(path: &str) -> bool {
    let mut folders = path.split('/');
    folders.next_back();
    folders.any(|folder| matches!(folder, "tests" | "fuzz"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_code_is_known_by_folder_and_by_declaration() {
        let tree = SourceTree::of(&[
            (
                "crates/a/src/lib.rs",
                "//! A.\n#[cfg(test)]\nmod checks;\nmod deep;\n",
            ),
            ("crates/a/src/checks.rs", ""),
            ("crates/a/src/checks/more.rs", ""),
            ("crates/a/src/deep.rs", "#[cfg(all(test, unix))] mod unix;"),
            ("crates/a/src/deep/unix.rs", ""),
            ("crates/a/src/unix.rs", ""),
            ("crates/a/tests/run.rs", ""),
            ("crates/a/fuzz/frame.rs", ""),
            ("crates/a/examples/mock.rs", ""),
            ("crates/a/benches/hot.rs", ""),
        ]);
        let shipped: Vec<&str> = tree.shipped().map(|file| file.path).collect();
        assert_eq!(
            shipped,
            [
                "crates/a/benches/hot.rs",
                "crates/a/examples/mock.rs",
                "crates/a/src/deep.rs",
                "crates/a/src/lib.rs",
                "crates/a/src/unix.rs",
            ]
        );
    }

    #[test]
    fn an_unpacked_archive_is_walked() {
        let root = std::env::temp_dir().join(format!("xtask-walk-{}", std::process::id()));
        for path in ["crates/a/src/lib.rs", "target/debug/x.rs", ".ci/run"] {
            let path = root.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "//! A.\n").unwrap();
        }
        let mut names = Vec::new();
        walk(&root, "", &mut names).unwrap();
        names.sort();
        assert_eq!(names, [".ci/run", "crates/a/src/lib.rs"]);
        fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn a_file_that_cannot_be_parsed_is_found() {
        let tree = SourceTree::of(&[
            ("crates/a/src/lib.rs", "//! A.\nfn f( {}\n"),
            ("crates/a/tests/fail.rs", "fn f( {}"),
        ]);
        let found = tree.unparsed();
        assert_eq!(found.len(), 1);
        assert!(
            found[0].to_string().starts_with("crates/a/src/lib.rs:2: "),
            "{}",
            found[0]
        );
    }
}
