//! From a path as it is written to the modules that it names.

use std::collections::BTreeSet;

use super::links::WrittenPath;
use super::map::{Module, ModuleMap, ModulePath};

/// How many `use` a name is followed through: imports of one another would never end.
const STEPS_MAX: usize = 16;

/// One module names another.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::tidy) struct ModuleArrow<'a> {
    pub(in crate::tidy) from: ModulePath,
    pub(in crate::tidy) to: ModulePath,
    pub(in crate::tidy) file: &'a str,
    pub(in crate::tidy) line: usize,
}

/// Which modules of a crate name which others: the module that defines a name, and those that hand it on.
pub(in crate::tidy) fn arrows<'a>(map: &ModuleMap<'a>) -> Vec<ModuleArrow<'a>> {
    let mut arrows = BTreeSet::new();
    for (from, module) in map.modules.iter().filter(|(_, module)| !module.test) {
        for path in &module.paths {
            for to in named_modules(map, from, path) {
                let (file, line) = (module.file, path.line);
                arrows.insert(ModuleArrow {
                    from: from.clone(),
                    to,
                    file,
                    line,
                });
            }
        }
    }
    arrows.into_iter().collect()
}

fn named_modules(
    map: &ModuleMap<'_>,
    from: &ModulePath,
    path: &WrittenPath,
) -> BTreeSet<ModulePath> {
    let mut walk = NameWalk {
        map,
        touched: BTreeSet::new(),
    };
    walk.begin(from, &path.names, STEPS_MAX);
    walk.touched.remove(from);
    walk.touched
}

struct NameWalk<'m, 'a> {
    map: &'m ModuleMap<'a>,
    touched: BTreeSet<ModulePath>,
}

impl NameWalk<'_, '_> {
    /// A path as the module `from` writes it. A name that is no module and no import is another crate's, or local.
    fn begin(&mut self, from: &ModulePath, names: &[String], steps: usize) {
        let Some((first, rest)) = names.split_first() else {
            return;
        };
        match first.as_str() {
            "crate" => self.down(Vec::new(), rest, steps),
            "self" => self.down(from.clone(), rest, steps),
            "super" => self.down(parent(from), rest, steps),
            name => {
                let here = self.map.modules.get(from);
                let known = self.map.modules.contains_key(&child(from, name))
                    || here.is_some_and(|module| imports(module, name).is_some());
                if known {
                    self.down(from.clone(), names, steps);
                }
            }
        }
    }

    /// The rest of a path, seen from the module `at`.
    fn down(&mut self, mut at: ModulePath, names: &[String], steps: usize) {
        for (index, name) in names.iter().enumerate() {
            if name == "super" {
                at = parent(&at);
                continue;
            }
            let inner = child(&at, name);
            if self.map.modules.contains_key(&inner) {
                at = inner;
                continue;
            }
            let rest = names.get(index + 1..).unwrap_or_default();
            self.handed_on(&at, name, rest, steps);
            self.touched.insert(at);
            return;
        }
        self.touched.insert(at);
    }

    /// Follows a name that the module `at` does not define itself.
    fn handed_on(&mut self, at: &ModulePath, name: &str, rest: &[String], steps: usize) {
        let Some(module) = self.map.modules.get(at) else {
            return;
        };
        let Some(steps) = steps.checked_sub(1) else {
            return;
        };
        if module.items.contains(name) {
            return;
        }
        if let Some(target) = imports(module, name) {
            self.begin(at, &[target, rest].concat(), steps);
            return;
        }
        let all = module.imports.iter().filter(|import| import.name.is_none());
        for import in all {
            let mut whole = import.target.clone();
            whole.push(name.to_owned());
            let mut further = NameWalk {
                map: self.map,
                touched: BTreeSet::new(),
            };
            further.begin(at, &import.target, steps);
            let holds = further.touched.iter().any(|module| {
                self.map.modules.contains_key(&child(module, name))
                    || self
                        .map
                        .modules
                        .get(module)
                        .is_some_and(|m| m.items.contains(name) || imports(m, name).is_some())
            });
            if holds {
                self.begin(at, &[whole.as_slice(), rest].concat(), steps);
                return;
            }
        }
    }
}

/// Returns the path behind an imported name.
fn imports<'a>(module: &Module<'a>, name: &str) -> Option<&'a [String]> {
    let found = module
        .imports
        .iter()
        .find(|import| import.name.as_deref() == Some(name) && import.target.len() > 1)?;
    Some(&found.target)
}

fn child(of: &[String], name: &str) -> ModulePath {
    let mut path = of.to_vec();
    path.push(name.to_owned());
    path
}

fn parent(of: &[String]) -> ModulePath {
    of.split_last()
        .map(|(_, above)| above.to_vec())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::tree::SourceTree;

    /// `from -> to` for every arrow of a crate of these files.
    fn arrows_of(files: &[(&str, &str)]) -> Vec<String> {
        let tree = SourceTree::of(files);
        let map = ModuleMap::new(&tree, "src/lib.rs");
        let mut found: Vec<String> = arrows(&map)
            .iter()
            .filter(|arrow| !arrow.from.is_empty())
            .map(|arrow| format!("{} -> {}", arrow.from.join("::"), arrow.to.join("::")))
            .collect();
        found.dedup();
        found
    }

    const ROOT: (&str, &str) = (
        "src/lib.rs",
        "mod a;\nmod b;\nmod c;\npub use c::Deep;\npub use b::*;",
    );

    #[test]
    fn every_way_of_naming_leads_to_the_module() {
        for text in [
            "use crate::b::B;",
            "use super::b::B;",
            "use crate::{b::B, missing};",
            "use crate::b;\nfn f(x: b::B) {}",
            "use crate::b as other;\nfn f(x: other::B) {}",
            "fn f(x: crate::b::B) {}",
            "fn f() { m!(crate::b::B); }",
            "mod inner { use super::super::b::B; }",
            "use crate::B;",
        ] {
            let found = arrows_of(&[
                ROOT,
                ("src/a.rs", text),
                ("src/b.rs", "pub struct B;"),
                ("src/c.rs", ""),
            ]);
            assert!(
                found
                    .iter()
                    .any(|arrow| arrow.starts_with('a') && arrow.ends_with("-> b")),
                "{text}: {found:?}"
            );
        }
    }

    #[test]
    fn a_name_that_is_handed_on_leads_to_its_source_too() {
        let files = [
            ROOT,
            ("src/a.rs", "use crate::Deep;\nuse crate::b::Other;"),
            ("src/b.rs", "pub use crate::c::Other;"),
            ("src/c.rs", "pub struct Deep;\npub struct Other;"),
        ];
        assert_eq!(arrows_of(&files), ["a -> ", "a -> b", "a -> c", "b -> c"]);
    }

    #[test]
    fn other_crates_and_own_names_lead_nowhere() {
        let a = "use std::fmt;\nuse serde::b::B;\nfn f(x: fmt::Error) { Own::new(); }\nstruct Own;";
        assert_eq!(
            arrows_of(&[ROOT, ("src/a.rs", a), ("src/b.rs", ""), ("src/c.rs", "")]),
            [""; 0]
        );
    }

    #[test]
    fn imports_of_one_another_end() {
        let files = [
            ("src/lib.rs", "mod a;\nmod b;\nmod c;"),
            ("src/a.rs", "pub use crate::b::X;\npub use crate::b::*;"),
            ("src/b.rs", "pub use crate::a::X;\npub use crate::a::*;"),
            ("src/c.rs", "use crate::a::X;\nuse crate::a::Y;"),
        ];
        assert_eq!(arrows_of(&files), ["a -> b", "b -> a", "c -> a", "c -> b"]);
    }
}
