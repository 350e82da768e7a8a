//! Which crate may use which: one table, checked against the manifests.
//!
//! The arrows are the architecture: a crate that is not in a row may not be used there. Dev dependencies are free.

use super::metadata::{Dependency, Package};
use super::tree::SourceTree;
use crate::finding::Finding;

const TABLE_FILE: &str = "xtask/src/tidy/arrows.rs";

/// Crates of the workspace that a crate may use.
#[derive(Clone, Copy)]
enum AllowedUse {
    Use(&'static [&'static str]),
    UseAllBut(&'static [&'static str]),
}

/// Every crate of the house, whether it exists yet or not.
const ARROWS: &[(&str, AllowedUse)] = &[
    ("allocator", AllowedUse::Use(&[])),
    ("wire", AllowedUse::Use(&[])),
    ("dialects", AllowedUse::Use(&["wire"])),
    ("state", AllowedUse::Use(&[])),
    ("share", AllowedUse::Use(&[])),
    ("gate", AllowedUse::Use(&["state", "share"])),
    ("net", AllowedUse::Use(&["wire", "share"])),
    (
        "toolkit",
        AllowedUse::Use(&["gate", "wire", "share", "state"]),
    ),
    (
        "identity",
        AllowedUse::Use(&["gate", "net", "state", "toolkit"]),
    ),
    ("echo", AllowedUse::Use(&["toolkit"])),
    (
        "mcp",
        AllowedUse::Use(&["gate", "wire", "share", "net", "toolkit"]),
    ),
    (
        "models",
        AllowedUse::Use(&["gate", "wire", "dialects", "net", "state", "toolkit"]),
    ),
    (
        "agents",
        AllowedUse::Use(&["gate", "wire", "dialects", "toolkit", "state"]),
    ),
    (
        "admin",
        AllowedUse::Use(&[
            "gate", "wire", "dialects", "state", "toolkit", "mcp", "models",
        ]),
    ),
    (
        "ssh",
        AllowedUse::Use(&["toolkit", "gate", "share", "net", "state"]),
    ),
    ("tables", AllowedUse::Use(&[])),
    ("otlp", AllowedUse::Use(&[])),
    ("pbpk", AllowedUse::Use(&["tables"])),
    (
        "simulation",
        AllowedUse::Use(&["toolkit", "gate", "pbpk", "state", "net"]),
    ),
    ("stores", AllowedUse::Use(&["state"])),
    (
        "console",
        AllowedUse::Use(&["gate", "net", "state", "toolkit"]),
    ),
    ("sshd", AllowedUse::Use(&[])),
    ("mocks", AllowedUse::Use(&["wire", "net", "sshd"])),
    ("lab", AllowedUse::Use(&["wire", "net", "mocks"])),
    ("journal-rate", AllowedUse::Use(&["gate", "state"])),
    ("testkit", AllowedUse::Use(&[])),
    (
        "durward",
        AllowedUse::UseAllBut(&["lab", "mocks", "journal-rate"]),
    ),
    ("xtask", AllowedUse::Use(&[])),
];

/// Crates that only tests may use.
const TESTS_ONLY: &[&str] = &["testkit"];

/// Crates of others that one of ours may not use, and why.
const BANS: &[(&str, &[&str], &str)] = &[
    (
        "wire",
        &["tokio", "hyper", "rustls", "tracing", "rustix"],
        "`wire` does no I/O and no logging",
    ),
    (
        "gate",
        &["tokio", "hyper", "rustls", "tracing"],
        "`gate` knows no protocol, no socket and no runtime",
    ),
    (
        "state",
        &["tokio", "hyper", "rustls"],
        "`state` opens no socket",
    ),
    (
        "pbpk",
        &["tokio", "hyper", "rustls", "serde", "serde_json"],
        "`pbpk` is a pure library",
    ),
];

/// Checks the arrows between our crates, and the bans on others'.
pub(super) fn check(tree: &SourceTree, packages: &[Package]) -> Vec<Finding> {
    packages
        .iter()
        .flat_map(|package| check_package(tree, package, packages))
        .collect()
}

fn check_package(tree: &SourceTree, package: &Package, all: &[Package]) -> Vec<Finding> {
    let name = package.name.as_str();
    let manifest = package.manifest_path.as_str();
    let at =
        |dependency: &Dependency| tree.line_of(manifest, |line| declares(line, &dependency.name));
    let Some((_, may)) = ARROWS.iter().find(|(known, _)| *known == name) else {
        let wrong = format!("crate `{name}` is not in the table of arrows");
        return vec![Finding::new(
            manifest,
            1,
            wrong,
            format!("add it to {TABLE_FILE} with what it may use"),
        )];
    };
    let mut findings = Vec::new();
    for dependency in package.dependencies.iter().filter(|d| d.ships()) {
        let ours = all.iter().any(|p| p.name == dependency.name);
        if TESTS_ONLY.contains(&dependency.name.as_str()) {
            let wrong = format!("`{name}` ships with `{}`", dependency.name);
            let remedy = "only tests may use it: list it under [dev-dependencies]";
            findings.push(Finding::new(manifest, at(dependency), wrong, remedy));
            continue;
        }
        let is_allowed = match may {
            AllowedUse::Use(allowed) => allowed.contains(&dependency.name.as_str()),
            AllowedUse::UseAllBut(banned) => !banned.contains(&dependency.name.as_str()),
        };
        if ours && !is_allowed {
            let wrong = format!("`{name}` may not use `{}`", dependency.name);
            let remedy = match may {
                AllowedUse::Use([]) => {
                    "it uses no crate of the workspace: move the code to a crate that may"
                        .to_owned()
                }
                AllowedUse::Use(some) => format!(
                    "it may use {}: move the code to a crate that may",
                    some.join(", ")
                ),
                AllowedUse::UseAllBut(_) => {
                    "what only tests and measurements need does not ship: move it to `tools`"
                        .to_owned()
                }
            };
            findings.push(Finding::new(manifest, at(dependency), wrong, remedy));
        }
        if let Some((_, _, why)) = BANS
            .iter()
            .find(|(ours, banned, _)| *ours == name && banned.contains(&dependency.name.as_str()))
        {
            let wrong = format!(
                "`{name}` may not use the external crate `{}`",
                dependency.name
            );
            findings.push(Finding::new(
                manifest,
                at(dependency),
                wrong,
                format!("{why}: move the code to `net` or above"),
            ));
        }
    }
    findings
}

/// Returns whether a line of a manifest declares a dependency: `name = …`, `name.workspace = …` or
/// `[dependencies.name]`.
fn declares(line: &str, name: &str) -> bool {
    let line = line.trim_start();
    let rest = line
        .strip_prefix(name)
        .or_else(|| line.strip_prefix("[dependencies.")?.strip_prefix(name));
    rest.is_some_and(|rest| rest.starts_with([' ', '=', '.', ']']))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package(name: &str, uses: &[(&str, Option<&str>)]) -> Package {
        Package {
            name: name.to_owned(),
            manifest_path: format!("crates/{name}/Cargo.toml"),
            dependencies: uses
                .iter()
                .map(|(name, kind)| Dependency {
                    name: (*name).to_owned(),
                    kind: kind.map(str::to_owned),
                })
                .collect(),
            targets: Vec::new(),
        }
    }

    fn findings_of(packages: &[Package]) -> Vec<String> {
        let manifest =
            "[dependencies]\nstate.workspace = true\nnet.workspace = true\ntokio = \"1\"\n";
        let files: Vec<(&str, &str)> = packages
            .iter()
            .map(|p| (p.manifest_path.as_str(), manifest))
            .collect();
        check(&SourceTree::of(&files), packages)
            .iter()
            .map(ToString::to_string)
            .collect()
    }

    #[test]
    fn an_arrow_that_is_drawn_passes() {
        assert_eq!(
            findings_of(&[package("state", &[]), package("gate", &[("state", None)])]),
            [""; 0]
        );
    }

    #[test]
    fn an_arrow_that_is_not_drawn_is_found_at_its_line() {
        let found = findings_of(&[package("net", &[]), package("gate", &[("net", None)])]);
        assert_eq!(found.len(), 1);
        assert!(
            found[0].starts_with("crates/gate/Cargo.toml:3: `gate` may not use `net`; "),
            "{found:?}"
        );
    }

    #[test]
    fn dev_dependencies_are_free_and_build_dependencies_are_not() {
        let net = package("net", &[]);
        assert_eq!(
            findings_of(&[net.clone(), package("gate", &[("net", Some("dev"))])]).len(),
            0
        );
        assert_eq!(
            findings_of(&[net, package("gate", &[("net", Some("build"))])]).len(),
            1
        );
    }

    #[test]
    fn the_lab_never_links_the_gate_or_a_face() {
        for face in ["gate", "mcp", "models", "agents", "console"] {
            assert_eq!(
                findings_of(&[package(face, &[]), package("lab", &[(face, None)])]).len(),
                1,
                "{face}"
            );
        }
    }

    #[test]
    fn faces_do_not_use_each_other() {
        for face in ["models", "agents"] {
            let with = package(face, &[("mcp", None)]);
            assert_eq!(findings_of(&[package("mcp", &[]), with]).len(), 1, "{face}");
        }
    }

    #[test]
    fn the_kit_of_the_tests_never_ships() {
        let kit = package("testkit", &[]);
        for name in ["durward", "gate", "lab"] {
            let with = |kind| findings_of(&[kit.clone(), package(name, &[("testkit", kind)])]);
            assert_eq!(with(Some("dev")), [""; 0]);
            for kind in [None, Some("build")] {
                let found = with(kind);
                assert_eq!(found.len(), 1, "{found:?}");
                assert!(found[0].contains("only tests may use it"), "{found:?}");
            }
        }
    }

    #[test]
    fn new_crates_have_their_arrows_and_no_others() {
        let allowed = [
            (
                "toolkit",
                &["gate", "wire", "state"][..],
                &["net", "mcp"][..],
            ),
            ("mcp", &["toolkit"], &["state", "models"]),
            (
                "console",
                &["gate", "net", "state", "toolkit"],
                &["mcp", "wire"],
            ),
            (
                "simulation",
                &["toolkit", "gate", "pbpk", "state", "net"],
                &["mcp", "wire"],
            ),
            (
                "models",
                &["gate", "wire", "net", "state", "toolkit"],
                &["mcp", "mocks"],
            ),
            (
                "ssh",
                &["toolkit", "gate", "net", "state"],
                &["mcp", "wire"],
            ),
        ];
        for (name, may, may_not) in allowed {
            for (others, expected) in [(may, 0), (may_not, 1)] {
                for other in others {
                    let found =
                        findings_of(&[package(other, &[]), package(name, &[(other, None)])]);
                    assert_eq!(found.len(), expected, "{name} {other}: {found:?}");
                }
            }
        }
    }

    #[test]
    fn the_binary_may_use_everything_but_what_only_measures() {
        const TOOLS: [&str; 3] = ["lab", "mocks", "journal-rate"];
        for tool in TOOLS {
            let linked = findings_of(&[package(tool, &[]), package("durward", &[(tool, None)])]);
            assert_eq!(linked.len(), 1, "{tool}: {linked:?}");
            let tested = findings_of(&[
                package(tool, &[]),
                package("durward", &[(tool, Some("dev"))]),
            ]);
            assert_eq!(tested, [""; 0], "{tool}");
        }
        let all: Vec<Package> = ARROWS
            .iter()
            .filter(|(n, _)| *n != "durward" && !TESTS_ONLY.contains(n) && !TOOLS.contains(n))
            .map(|(n, _)| package(n, &[]))
            .collect();
        let uses: Vec<(&str, Option<&str>)> = all.iter().map(|p| (p.name.as_str(), None)).collect();
        let durward = package("durward", &uses);
        assert_eq!(findings_of(&[all.clone(), vec![durward]].concat()).len(), 0);
    }

    #[test]
    fn a_crate_outside_the_table_is_found() {
        let found = findings_of(&[package("helpers", &[])]);
        assert!(
            found[0].contains("`helpers` is not in the table"),
            "{found:?}"
        );
    }

    #[test]
    fn external_bans_are_found() {
        for (ours, banned, _) in BANS {
            for name in *banned {
                assert_eq!(
                    findings_of(&[package(ours, &[(name, None)])]).len(),
                    1,
                    "{ours} {name}"
                );
            }
        }
    }

    #[test]
    fn every_arrow_points_at_a_crate_of_the_table_and_there_is_no_cycle() {
        let uses = |name: &str| ARROWS.iter().find(|(n, _)| *n == name).map(|(_, may)| *may);
        for (start, _) in ARROWS {
            let mut open = vec![*start];
            let mut seen = Vec::new();
            while let Some(name) = open.pop() {
                let Some(AllowedUse::Use(next)) = uses(name) else {
                    assert_eq!(name, "durward", "an arrow points outside the table");
                    continue;
                };
                for &next in next {
                    assert_ne!(next, *start, "{start} reaches itself");
                    if !seen.contains(&next) {
                        seen.push(next);
                        open.push(next);
                    }
                }
            }
        }
    }
}
