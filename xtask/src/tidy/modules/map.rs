//! The modules of one crate, from its root down.

use std::collections::{BTreeMap, BTreeSet};

use super::super::tree::{SourceTree, module_folder};
use super::links::{DeclaredModule, FileLinks, ImportedName, Scope, WrittenPath};

/// How deep modules may lie: files that include one another would never end.
const DEPTH_MAX: usize = 32;

/// Names from the crate's root: `["policy", "judge"]`.
pub(in crate::tidy) type ModulePath = Vec<String>;

/// One module, in a file of its own or inside another's.
#[derive(Debug, Default)]
pub(in crate::tidy) struct Module<'a> {
    pub(in crate::tidy) file: &'a str,
    /// Compiled only for tests.
    pub(in crate::tidy) test: bool,
    /// Whether it has a file of its own.
    pub(in crate::tidy) whole: bool,
    pub(super) imports: Vec<&'a ImportedName>,
    pub(super) paths: Vec<&'a WrittenPath>,
    pub(super) items: BTreeSet<&'a str>,
}

/// All modules of a crate by their paths.
#[derive(Debug, Default)]
pub(in crate::tidy) struct ModuleMap<'a> {
    pub(in crate::tidy) modules: BTreeMap<ModulePath, Module<'a>>,
}

impl<'a> ModuleMap<'a> {
    /// Follows `mod` from the file at the root. A file that is missing or cannot be parsed has no modules.
    pub(in crate::tidy) fn new(tree: &'a SourceTree, root: &'a str) -> Self {
        let mut map = Self::default();
        let folder = root.rsplit_once('/').map_or("", |(folder, _)| folder);
        let below = if folder.is_empty() {
            String::new()
        } else {
            format!("{folder}/")
        };
        map.file(tree, Vec::new(), root, &below, false);
        map
    }

    /// Returns the files that the crate is made of.
    pub(in crate::tidy) fn files(&self) -> impl Iterator<Item = &'a str> {
        self.modules.values().map(|module| module.file)
    }

    /// Takes in a file as the module `at`; its own modules lie in `below`.
    fn file(
        &mut self,
        tree: &'a SourceTree,
        at: ModulePath,
        file: &'a str,
        below: &str,
        test: bool,
    ) {
        let links = tree.links(file);
        let whole = Module {
            file,
            test,
            whole: true,
            ..Module::default()
        };
        if self.modules.insert(at.clone(), whole).is_some() {
            return;
        }
        let Some(links) = links else { return };
        if at.len() >= DEPTH_MAX {
            return;
        }
        for scope in &links.inline {
            let inner = Module {
                file,
                test,
                ..Module::default()
            };
            self.modules.insert(join_path(&at, scope), inner);
        }
        self.fill(&at, links);
        for declared in &links.modules {
            if let Some((next, folder)) = find(tree, file, below, declared) {
                let mut path = join_path(&at, &declared.scope);
                path.push(declared.name.clone());
                self.file(tree, path, next, &folder, test || declared.test);
            }
        }
    }

    fn fill(&mut self, at: &ModulePath, links: &'a FileLinks) {
        let mut each = |scope: &Scope, add: &mut dyn FnMut(&mut Module<'a>)| {
            if let Some(module) = self.modules.get_mut(&join_path(at, scope)) {
                add(module);
            }
        };
        for import in &links.imports {
            each(&import.scope, &mut |module| module.imports.push(import));
        }
        for path in &links.paths {
            each(&path.scope, &mut |module| module.paths.push(path));
        }
        for (scope, item) in &links.items {
            each(scope, &mut |module| {
                module.items.insert(item);
            });
        }
    }
}

/// Finds a declared module: its file, and the folder of its own modules.
fn find<'a>(
    tree: &'a SourceTree,
    file: &str,
    below: &str,
    declared: &DeclaredModule,
) -> Option<(&'a str, String)> {
    if let Some(named) = &declared.file {
        let folder = file.rsplit_once('/').map_or("", |(folder, _)| folder);
        let found = tree.rust_path(&plain(&format!("{folder}/{named}")))?;
        // A file that is named so counts as `mod.rs`: its modules lie beside it.
        let beside = found
            .rsplit_once('/')
            .map_or(String::new(), |(folder, _)| format!("{folder}/"));
        return Some((found, beside));
    }
    let mut stem = below.to_owned();
    for name in &declared.scope {
        stem = format!("{stem}{name}/");
    }
    let name = &declared.name;
    [format!("{stem}{name}.rs"), format!("{stem}{name}/mod.rs")]
        .iter()
        .find_map(|candidate| tree.rust_path(candidate))
        .map(|found| (found, module_folder(found)))
}

fn join_path(at: &[String], scope: &[String]) -> ModulePath {
    at.iter().chain(scope).cloned().collect()
}

/// Returns a path without `.` and `..`.
fn plain(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            name => parts.push(name),
        }
    }
    parts.join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_are_followed_through_files_folders_and_named_paths() {
        let tree = SourceTree::of(&[
            (
                "a/src/lib.rs",
                "mod one;\nmod two;\nmod three { mod four; }\n#[cfg(test)]\nmod checks;",
            ),
            ("a/src/one.rs", "mod deep;"),
            ("a/src/one/deep.rs", ""),
            (
                "a/src/two/mod.rs",
                "#[path = \"../../shared/other.rs\"]\nmod other;\nmod gone;",
            ),
            ("a/src/three/four.rs", ""),
            ("a/src/checks.rs", ""),
            ("a/shared/other.rs", "mod beside;"),
            ("a/shared/beside.rs", ""),
            ("a/src/left.rs", ""),
        ]);
        let map = ModuleMap::new(&tree, "a/src/lib.rs");
        let found: Vec<(String, &str, bool)> = map
            .modules
            .iter()
            .map(|(path, module)| (path.join("::"), module.file, module.test))
            .collect();
        let at = |path: &str, file, test| (path.to_owned(), file, test);
        assert_eq!(
            found,
            [
                at("", "a/src/lib.rs", false),
                at("checks", "a/src/checks.rs", true),
                at("one", "a/src/one.rs", false),
                at("one::deep", "a/src/one/deep.rs", false),
                at("three", "a/src/lib.rs", false),
                at("three::four", "a/src/three/four.rs", false),
                at("two", "a/src/two/mod.rs", false),
                at("two::other", "a/shared/other.rs", false),
                at("two::other::beside", "a/shared/beside.rs", false),
            ]
        );
    }

    #[test]
    fn a_file_that_includes_itself_ends() {
        let tree = SourceTree::of(&[("a/src/lib.rs", "#[path = \"lib.rs\"]\nmod again;")]);
        assert!(ModuleMap::new(&tree, "a/src/lib.rs").modules.len() <= DEPTH_MAX + 1);
    }
}
