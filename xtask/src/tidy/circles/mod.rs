//! Folders of a crate name each other in one direction only.
//!
//! The rule compares the children of one folder: at the top of a crate every module, further down every folder. A
//! folder and what lies below it are one thing and may name each other. A list has the circles that are allowed for
//! now, as the arrows that close them; it may only shrink.

use std::collections::BTreeMap;

use super::modules::map::ModuleMap;
use super::modules::names::arrows;
use super::modules::roots::{self, RootTarget};
use super::tree::SourceTree;
use crate::finding::Finding;
use graph::ModuleGraph;
use list::ExceptionList;

mod graph;
mod list;

/// Arrows that close a circle and are not on the list, and entries of the list that close none.
pub(super) fn check(tree: &SourceTree) -> Vec<Finding> {
    let mut list = ExceptionList::read(tree.text(list::FILE).unwrap_or_default());
    let mut findings = Vec::new();
    for (folder, graph) in graphs(tree) {
        let borne = list.of(&folder);
        let (needed, left) = graph.without(&borne);
        for arrow in needed {
            list.needed(&folder, arrow);
        }
        for arrow in left {
            let (file, line) = graph.place(&arrow);
            let around = graph.way(&arrow.1, &arrow.0).join(" -> ");
            let wrong = format!("`{}` -> {around} is a circle in {folder}", arrow.0);
            let remedy = "move what both need into a module that names neither";
            findings.push(Finding::new(file, line, wrong, remedy));
        }
    }
    findings.extend(list.finish());
    findings
}

/// Returns the arrows between the children of each folder.
fn graphs(tree: &SourceTree) -> BTreeMap<String, ModuleGraph> {
    let mut graphs: BTreeMap<String, ModuleGraph> = BTreeMap::new();
    for (root, target) in roots::all(tree) {
        if target != RootTarget::Shipped {
            continue;
        }
        let source = root.rsplit_once('/').map_or("", |(folder, _)| folder);
        let map = ModuleMap::new(tree, root);
        for arrow in arrows(&map) {
            let same = arrow
                .from
                .iter()
                .zip(&arrow.to)
                .take_while(|(a, b)| a == b)
                .count();
            let (Some(from), Some(to)) = (arrow.from.get(same), arrow.to.get(same)) else {
                continue;
            };
            let above = arrow.from.get(..same).unwrap_or_default();
            let is_child = |name: &String| {
                let path = [above, std::slice::from_ref(name)].concat();
                above.is_empty() || is_folder(&map, &path)
            };
            if is_child(from) && is_child(to) {
                let folder = [&[source.to_owned()], above].concat().join("/");
                let graph = graphs.entry(folder).or_default();
                graph.add(from, to, (arrow.file, arrow.line));
            }
        }
    }
    graphs
}

/// Returns whether a module has modules in files of their own.
fn is_folder(map: &ModuleMap<'_>, path: &[String]) -> bool {
    map.modules
        .range(path.to_vec()..)
        .take_while(|(inner, _)| inner.starts_with(path))
        .any(|(inner, module)| inner.len() > path.len() && module.whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MANIFEST: (&str, &str) = ("a/Cargo.toml", "[package]\n");

    fn findings_of(files: &[(&str, &str)]) -> Vec<String> {
        let files: Vec<(&str, &str)> = [&[MANIFEST], files].concat();
        check(&SourceTree::of(&files))
            .iter()
            .map(ToString::to_string)
            .collect()
    }

    const LIB: (&str, &str) = ("a/src/lib.rs", "mod one;\nmod two;\nmod three;");
    const ONE: (&str, &str) = (
        "a/src/one.rs",
        "//! One.\nuse crate::two::Two;\npub struct One;",
    );
    const THREE: (&str, &str) = ("a/src/three.rs", "use crate::one::One;");

    #[test]
    fn a_circle_between_the_modules_of_a_crate_is_found() {
        let two = ("a/src/two/mod.rs", "mod deep;\npub struct Two;");
        let deep = ("a/src/two/deep.rs", "use crate::three::Three;");
        assert_eq!(
            findings_of(&[LIB, ONE, two, deep, THREE]),
            [
                "a/src/one.rs:2: `one` -> two -> three -> one is a circle in a/src; \
              move what both need into a module that names neither"
            ]
        );
        let deep = ("a/src/two/deep.rs", "use super::Two;");
        assert_eq!(findings_of(&[LIB, ONE, two, deep, THREE]), [""; 0]);
    }

    #[test]
    fn a_circle_between_folders_further_down_is_found_and_one_of_files_is_not() {
        let files = |x: &'static str| {
            [
                ("a/src/lib.rs", "mod top;"),
                ("a/src/top/mod.rs", "mod x;\nmod y;\nmod p;\nmod q;"),
                ("a/src/top/x/mod.rs", "mod in_x;"),
                ("a/src/top/x/in_x.rs", x),
                ("a/src/top/y/mod.rs", "mod in_y;\npub use in_y::Y;"),
                ("a/src/top/y/in_y.rs", "use crate::top::x;\npub struct Y;"),
                ("a/src/top/p.rs", "use super::q::Q;\npub struct P;"),
                ("a/src/top/q.rs", "use super::p::P;\npub struct Q;"),
            ]
        };
        let circle = findings_of(&files("use super::super::y::Y;"));
        assert_eq!(circle.len(), 1, "{circle:?}");
        assert!(
            circle[0].contains("is a circle in a/src/top;"),
            "{circle:?}"
        );
        assert_eq!(findings_of(&files("")), [""; 0]);
    }

    #[test]
    fn a_folder_and_what_lies_below_it_may_name_each_other() {
        let files = [
            ("a/src/lib.rs", "mod top;"),
            (
                "a/src/top/mod.rs",
                "mod low;\nuse low::Low;\npub struct Top;",
            ),
            (
                "a/src/top/low/mod.rs",
                "mod lower;\nuse super::Top;\npub struct Low;",
            ),
            ("a/src/top/low/lower.rs", "use crate::top::Top;"),
        ];
        assert_eq!(findings_of(&files), [""; 0]);
    }

    #[test]
    fn a_listed_arrow_is_borne_while_it_closes_a_circle() {
        let two = ("a/src/two.rs", "use crate::three::Three;\npub struct Two;");
        let list = |text: &'static str| (list::FILE, text);
        let only = |found: Vec<String>| -> Vec<String> {
            let allowed = |finding: &String| !finding.contains("are allowed");
            found.into_iter().filter(allowed).collect()
        };
        let all = [LIB, ONE, two, THREE];
        let borne = [&all[..], &[list("a/src: one -> two\n")]].concat();
        assert_eq!(only(findings_of(&borne)), [""; 0]);
        let free = [LIB, ONE, ("a/src/two.rs", "pub struct Two;"), THREE];
        for (entry, why) in [
            ("a/src: one -> two\n", "no circle any more"),
            ("a/src: two -> one\n", "no circle any more"),
            ("a/src/gone: x -> y\n", "no circle any more"),
        ] {
            let found = only(findings_of(&[&free[..], &[list(entry)]].concat()));
            assert_eq!(found.len(), 1, "{entry}: {found:?}");
            assert!(found[0].contains(why), "{found:?}");
        }
        let twice = "a/src: one -> two\na/src: two -> three\n";
        let found = only(findings_of(&[&all[..], &[list(twice)]].concat()));
        assert_eq!(found.len(), 1, "one of both is enough: {found:?}");
    }
}
